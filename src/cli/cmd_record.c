/* SPDX-License-Identifier: Apache-2.0 */
/* hearth record: profile the machine, processes, a container or a command once, into files. */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/summary.h"
#include "sink/format.h"
#include "sink/sink.h"

#define PIDS_MAX 1024
#define OUTPUTS_MAX 64
#define FREQUENCY_MAX 10000
#define DESCRIPTORS_WANTED 4096
#define DESCRIPTORS_NEEDED 64

struct config {
	uint64_t frequency, duration_ns, window_ns, ring_bytes;
	bool all, callgraph, quiet, allow_dangerous_kernel, self;
	uint8_t children;
	struct opt_list pids, outputs;
	const char *format, *cgroup, *container, *container_socket, *host_root, *recording, *service_name;
	size_t sampler;
};

static const char *const sampler_names[] = { "auto", "bpf", "recorded", NULL };

static const struct opt what_options[] = {
	{ "all", 'a', OPT_FLAG, .at = offsetof(struct config, all), .help = "every process (the default without -p and COMMAND)" },
	{ "pid", 'p', OPT_LIST, .at = offsetof(struct config, pids), .arg = "PID[,PID]",
	  .help = "only these processes; ends when all of them have" },
	{ "children", 0, OPT_SWITCH, .at = offsetof(struct config, children),
	  .help = "also what they start from now on (default: with COMMAND yes, with -p no)" },
	{ "cgroup", 0, OPT_PATH, .at = offsetof(struct config, cgroup), .arg = "DIR",
	  .help = "only processes of this cgroup v2 directory and those below it" },
	{ "container", 0, OPT_TEXT, .at = offsetof(struct config, container), .arg = "NAME",
	  .help = "only this container: its name, or at least 12 digits of its id" },
	{ "self", 0, OPT_FLAG, .at = offsetof(struct config, self), .fallback = "true", .help = "sample hearth too" },
	{ 0 },
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_UINT, .at = offsetof(struct config, frequency), .min = 1, .max = FREQUENCY_MAX,
	  .fallback = "99", .arg = "HZ", .help = "samples per second on each CPU" },
	{ "rate", 'r', OPT_UINT, .at = offsetof(struct config, frequency), .min = 1, .max = FREQUENCY_MAX, .arg = "HZ",
	  .help = "the same" },
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, duration_ns), .min = NSEC_PER_MSEC, .arg = "TIME",
	  .help = "how long: 10, 1.5s, 2m (default: until Ctrl-C, or until the processes end)" },
	{ "window", 0, OPT_DURATION, .at = offsetof(struct config, window_ns), .min = NSEC_PER_SEC, .arg = "TIME",
	  .help = "cut the session into windows of this length, each its own files" },
	{ "call-graph", 'g', OPT_FLAG, .at = offsetof(struct config, callgraph),
	  .help = "accepted for perf's sake: stacks are always taken" },
	{ "sampler", 0, OPT_CHOICE, .at = offsetof(struct config, sampler), .choices = sampler_names, .fallback = "auto",
	  .arg = "NAME", .help = "where samples come from" },
	{ "recording", 0, OPT_PATH, .at = offsetof(struct config, recording), .arg = "FILE",
	  .help = "for --sampler recorded: the file to replay" },
	{ "ring-size", 0, OPT_SIZE, .at = offsetof(struct config, ring_bytes), .arg = "SIZE",
	  .help = "memory between kernel and program (default: a second's worst case, 256K to 8M)" },
	{ "allow-dangerous-kernel", 0, OPT_FLAG, .at = offsetof(struct config, allow_dangerous_kernel),
	  .help = "sample even on kernels that are known to freeze (5.19 to 6.3, see hearth doctor)" },
	{ "host-root", 0, OPT_PATH, .at = offsetof(struct config, host_root), .fallback = "", .arg = "DIR",
	  .help = "where the host's file system is mounted, when run in a container" },
	{ "container-socket", 0, OPT_PATH, .at = offsetof(struct config, container_socket), .arg = "PATH",
	  .help = "the container engine's socket (default: Docker's)" },
	{ 0 },
};

static const struct opt output_options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format (.html .pb.gz .col .folded .hwin); repeatable; a directory gets "
		  "all of html, col and pb.gz (default: the working directory)" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: html, pprof, col, folded or window (default: by suffix)" },
	{ "service-name", 0, OPT_TEXT, .at = offsetof(struct config, service_name), .arg = "NAME",
	  .help = "stored with the profile as the label group" },
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "no progress and no summary" },
	{ 0 },
};

struct output {
	char *path;
	struct sink_state *sink;
};

/* One run of the command. */
struct record {
	const struct config *config;
	const struct sink *file_sink;
	struct output outputs[OUTPUTS_MAX];
	size_t output_count;
	pid_t pids[PIDS_MAX];
	int pid_fds[PIDS_MAX]; /* pidfd: readable when the process has ended; -1: has, or not watched */
	size_t pid_count;
	struct launch launch;
	char *command_line;
	int signals;
	struct session *session;
	struct summary summary; /* the worker's until session_stop() */
	struct buf written;	/* the worker's: a line per file */
	bool write_failed, to_stdout, interrupted;
};

static void record_release(struct record *r)
{
	session_close(r->session);
	for (size_t i = 0; i < r->output_count; i++) {
		r->file_sink->close(r->outputs[i].sink);
		free(r->outputs[i].path);
	}
	for (size_t i = 0; i < r->pid_count; i++)
		closep(&r->pid_fds[i]);
	launch_release(&r->launch);
	closep(&r->signals);
	summary_release(&r->summary);
	buf_release(&r->written);
	free(r->command_line);
}

/* ---- outputs ---- */

static int add_output(struct record *r, struct str path, bool many)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	struct output *o = &r->outputs[r->output_count];
	struct sink_config cfg = { .format = r->config->format, .many = many };
	int e;

	if (r->output_count == OUTPUTS_MAX) {
		command_fail(&command_record, "more than %d outputs", OUTPUTS_MAX);
		return EXIT_USAGE;
	}
	o->path = str_dup(path);
	if (!o->path)
		return command_fail(&command_record, "out of memory");
	r->output_count++;
	cfg.path = o->path;
	r->to_stdout |= !strcmp(o->path, "-");
	e = r->file_sink->open(&cfg, &why, &o->sink);
	if (e == 0)
		return EXIT_DONE;
	command_fail(&command_record, "%s", why.len ? buf_cstr(&why) : strerror(-e));
	return e == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* The three usual files, named by the time of the end. */
static int add_usual_outputs(struct record *r, struct str directory)
{
	static const char *const usual[] = { "html", "col", "pprof" };
	int e = EXIT_DONE;

	for (size_t i = 0; i < ARRAY_SIZE(usual) && e == EXIT_DONE; i++) {
		scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
		const struct format *f = r->config->format ? format_find(str_of(r->config->format)) : format_find(str_of(usual[i]));

		buf_adds(&path, directory);
		if (directory.len && directory.ptr[directory.len - 1] != '/')
			buf_addc(&path, '/');
		buf_addf(&path, "profile%s", f ? format_suffix(f) : "");
		e = add_output(r, buf_str(&path), true);
		if (r->config->format)
			break;
	}
	return e;
}

static int open_outputs(struct record *r)
{
	int e = EXIT_DONE;

	if (!r->config->outputs.count)
		return add_usual_outputs(r, STR(""));
	for (size_t i = 0; i < r->config->outputs.count && e == EXIT_DONE; i++) {
		const char *path = r->config->outputs.items[i];
		struct stat st;

		if ((stat(path, &st) == 0 && S_ISDIR(st.st_mode)) || str_ends(str_of(path), STR("/")))
			e = add_usual_outputs(r, str_of(path));
		else
			e = add_output(r, str_of(path), r->config->window_ns != 0);
	}
	return e;
}

/* On the worker. */
static void on_window(void *ctx, const struct window *w)
{
	struct record *r = ctx;

	summary_add(&r->summary, w);
	for (size_t i = 0; i < r->output_count; i++) {
		scoped(buf_release) struct buf where = BUF_INIT(KIB(16));
		int e = r->file_sink->write(r->outputs[i].sink, w, &where);

		if (e < 0) {
			command_fail(&command_record, "%s: cannot write: %s", where.len ? buf_cstr(&where) : r->outputs[i].path,
				     strerror(-e));
			r->write_failed = true;
		} else {
			buf_addf(&r->written, "  " STR_FMT "\n", STR_ARG(buf_str(&where)));
		}
	}
}

/* ---- what to profile ---- */

static int add_pid(struct record *r, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno == ESRCH)
		return command_fail(&command_record, "there is no process %d", (int)pid);
	if (r->pid_count == PIDS_MAX) {
		closep(&fd);
		command_fail(&command_record, "more than %d processes", PIDS_MAX);
		return EXIT_USAGE;
	}
	r->pids[r->pid_count] = pid;
	r->pid_fds[r->pid_count++] = fd;
	return EXIT_DONE;
}

static int parse_pids(struct record *r)
{
	int e = EXIT_DONE;

	for (size_t i = 0; i < r->config->pids.count && e == EXIT_DONE; i++) {
		struct str rest = str_of(r->config->pids.items[i]), piece;

		while (e == EXIT_DONE && str_next(&rest, ',', &piece)) {
			uint64_t pid;

			if (str_to_u64(piece, 1, INT32_MAX, &pid) == 0) {
				e = add_pid(r, (pid_t)pid);
				continue;
			}
			command_fail(&command_record, "--pid: '" STR_FMT "' is not a process id", STR_ARG(piece));
			e = EXIT_USAGE;
		}
	}
	return e;
}

static int check_conflicts(const struct config *config, int operand_count)
{
	int ways = (config->pids.count > 0) + (operand_count > 0) + config->all;

	if (ways > 1) {
		command_fail(&command_record, "choose one: --all, --pid or a COMMAND");
		return EXIT_USAGE;
	}
	if (config->sampler == 2 && !config->recording) {
		command_fail(&command_record, "--sampler recorded needs --recording FILE");
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static bool all_ended(struct record *r)
{
	bool any = false;

	for (size_t i = 0; i < r->pid_count; i++) {
		struct pollfd ended = { .fd = r->pid_fds[i], .events = POLLIN };

		if (r->pid_fds[i] < 0)
			continue;
		if (poll(&ended, 1, 0) == 1)
			closep(&r->pid_fds[i]);
		else
			any = true;
	}
	return r->pid_count > 0 && !r->launch.program && !any;
}

/* ---- the session ---- */

static int open_signals(struct record *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signals < 0 ? -errno : 0;
}

static bool was_signalled(const struct record *r)
{
	struct signalfd_siginfo info;

	return read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

/* From here on a second Ctrl-C ends the program at once. What came together with the first (a terminal that closes and
 * systemd send two kinds) does not; and the terminal's end is told once by the kernel and once by the shell. */
static void close_signals(struct record *r)
{
	sigset_t set;

	while (was_signalled(r))
		;
	closep(&r->signals);
	ignore(signal(SIGHUP, SIG_IGN) == SIG_ERR);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	ignore(sigprocmask(SIG_UNBLOCK, &set, NULL)); /* cannot fail with these arguments */
}

/* Mapped files and their symbol tables are kept open: the soft limit of 1,024 is tight for a whole machine. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	ignore(setrlimit(RLIMIT_NOFILE, &limit)); /* with fewer, old files are closed and opened again */
	if (limit.rlim_cur < DESCRIPTORS_NEEDED)
		command_fail(&command_record, "only %llu files may be open: most frames will have no names; allow more with ulimit -n %d",
			     (unsigned long long)limit.rlim_cur, DESCRIPTORS_WANTED);
}

static int fail_open(const struct buf *why, int e)
{
	command_fail(&command_record, STR_FMT, STR_ARG(why->len ? buf_str(why) : str_of(strerror(-e))));
	return e == -EPERM || e == -ENOTSUP || e == -EACCES ? EXIT_NOT_PERMITTED : EXIT_FAILED;
}

static int open_session(struct record *r)
{
	const struct config *config = r->config;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	bool children = config->children ? config->children == OPT_SWITCH_ON : r->launch.pid > 0;
	const struct session_config cfg = {
		.sampler = config->sampler ? sampler_find(str_of(sampler_names[config->sampler])) : NULL,
		.sampling = { .frequency_hz = (uint32_t)config->frequency,
			      .pids = r->pids,
			      .pid_count = r->pid_count,
			      .follow_children = children,
			      .cgroup_path = config->cgroup,
			      .poll_interval_ms = 200,
			      .ring_bytes = config->ring_bytes,
			      .include_self = config->self,
			      .allow_dangerous_kernel = config->allow_dangerous_kernel,
			      .recording = config->recording,
			      .host_root = config->host_root },
		.window_ns = config->window_ns,
		.clock = &clock_system,
		.host_root = config->host_root,
		.container_socket = config->container_socket,
		.container = config->container,
		.command = r->command_line,
		.want_metadata = true,
		.service_name = config->service_name,
		.on_window = on_window,
		.ctx = r,
	};
	int e;

	raise_descriptor_limit();
	e = session_open(&cfg, &why, &r->session);
	return e < 0 ? fail_open(&why, e) : EXIT_DONE;
}

static void show_progress(const struct record *r)
{
	struct session_stats stats;

	session_stats(r->session, &stats);
	fprintf(stderr, "\r%llu s, %llu samples, %llu lost%s ", (unsigned long long)(stats.elapsed_ns / NSEC_PER_SEC),
		(unsigned long long)stats.samples,
		(unsigned long long)(stats.counters[ABI_COUNTER_LOST_RING_FULL] + stats.dropped),
		r->config->duration_ns ? "" : "; Ctrl-C ends");
	fflush(stderr);
}

static int step_timeout_ms(const struct record *r, uint64_t start_ns)
{
	uint64_t elapsed = clock_monotonic_ns(&clock_system) - start_ns, left = 200 * NSEC_PER_MSEC;

	if (r->config->duration_ns)
		left = elapsed >= r->config->duration_ns ? 0 : MIN(left, r->config->duration_ns - elapsed);
	return (int)((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

/* Until the time is up, a signal comes, or what was watched has ended. */
static int run_loop(struct record *r)
{
	bool progress = !r->config->quiet && isatty(STDERR_FILENO);
	uint64_t start_ns = clock_monotonic_ns(&clock_system), shown_ns = start_ns;
	int e = 0, timeout_ms;

	while ((timeout_ms = step_timeout_ms(r, start_ns)) > 0) {
		e = session_step(r->session, timeout_ms);
		if (e < 0 || launch_ended(&r->launch) || all_ended(r))
			break;
		if (was_signalled(r)) {
			r->interrupted = true;
			break;
		}
		if (progress && clock_monotonic_ns(&clock_system) - shown_ns >= NSEC_PER_SEC) {
			shown_ns = clock_monotonic_ns(&clock_system);
			show_progress(r);
		}
	}
	if (progress)
		fputs("\r\033[K", stderr);
	return e == -ENODATA ? 0 : e;
}

static int say_summary(struct record *r)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(256));
	struct session_stats stats;

	if (r->config->quiet)
		return EXIT_DONE;
	session_stats(r->session, &stats);
	summary_text(&r->summary, &stats, &text);
	if (r->written.len)
		buf_addf(&text, "\nWritten:\n%s", buf_cstr(&r->written));
	if (!r->to_stdout)
		return command_print(&command_record, &text);
	fputs(buf_cstr(&text), stderr);
	return EXIT_DONE;
}

static int finish(struct record *r, int e)
{
	int stopped;

	close_signals(r);
	stopped = session_stop(r->session);
	if (e == 0)
		e = stopped;
	if (say_summary(r) != EXIT_DONE)
		return EXIT_FAILED;
	if (e < 0)
		return command_fail(&command_record, "sampling ended early: %s; what was gathered is written", strerror(-e));
	if (r->launch.exec_errno)
		return command_fail(&command_record, "cannot run '%s': %s", r->launch.program, strerror(r->launch.exec_errno));
	return r->write_failed ? EXIT_FAILED : EXIT_DONE;
}

static int prepare(struct record *r, int operand_count, char **operands)
{
	int e = check_conflicts(r->config, operand_count);

	if (e == EXIT_DONE)
		e = open_outputs(r);
	if (e == EXIT_DONE)
		e = parse_pids(r);
	if (e != EXIT_DONE || operand_count == 0)
		return e;
	/* The child waits for the session: nothing of the program is missed. */
	if (launch_fork(operands, &r->launch) < 0)
		return command_fail(&command_record, "cannot fork: %s", strerror(errno));
	r->pids[r->pid_count] = r->launch.pid;
	r->pid_fds[r->pid_count++] = -1; /* launch_ended() watches it */
	r->command_line = launch_command_line(operand_count, operands);
	return EXIT_DONE;
}

static void record_freep(struct record **r)
{
	if (*r)
		record_release(*r);
	free(*r);
}

static int run(void *config_bytes, int operand_count, char **operands)
{
	scoped(record_freep) struct record *r = malloc(sizeof(*r));
	int e;

	if (!r)
		return command_fail(&command_record, "out of memory");
	*r = (struct record){ .config = config_bytes,
			      .file_sink = sink_find(STR("file")),
			      .signals = -1,
			      .launch = LAUNCH_INIT,
			      .written = BUF_INIT(MIB(1)) };
	summary_init(&r->summary);
	e = open_signals(r);
	if (e < 0)
		return command_fail(&command_record, "cannot watch for signals: %s", strerror(-e));
	e = prepare(r, operand_count, operands);
	if (e == EXIT_DONE)
		e = open_session(r);
	if (e != EXIT_DONE)
		return e;
	e = session_start(r->session);
	if (e < 0)
		return command_fail(&command_record, "cannot start sampling: %s", strerror(-e));
	launch_go(&r->launch);
	return finish(r, run_loop(r));
}

static const struct opt_group groups[] = {
	{ "What to profile", what_options }, { "How", how_options }, { "Where to", output_options }, { 0 }
};
static const char *const examples[] = {
	"sudo hearth record -d 10", "the whole machine for ten seconds: a flame graph, a .col and a pprof file here",
	"sudo hearth record -p 1234 -o out.html", "one process until it ends or Ctrl-C",
	"sudo hearth record -o out.pb.gz -- make -j2", "a command and all it starts",
	"sudo hearth record --container web -d 1m -o web.col", "one container for a minute", NULL,
};

const struct command command_record = {
	.name = "record",
	.summary = "profile the machine, processes, a container or a command once",
	.operands = "[-- COMMAND...]",
	.details = "Samples every CPU with eBPF and writes the profile to files. Ctrl-C ends it and keeps what was gathered.\n"
		   "User stacks are walked by frame pointers: a stack that ends in code built without them is marked cut.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.stop_at_operand = true,
	.operands_max = -1,
	.run = run,
};
