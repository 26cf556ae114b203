/* SPDX-License-Identifier: Apache-2.0 */
/* hearth agent: gProfiler's command line, files and habits, on hearth's sampler. docs/agent.md says what differs. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/rights.h"
#include "cli/agent_arguments.h"
#include "cli/agent_diagnostics.h"
#include "cli/agent_external.h"
#include "cli/agent_filter.h"
#include "cli/agent_options.h"
#include "cli/agent_phrases.h"
#include "cli/agent_start.h"
#include "cli/agent_usage.h"
#include "runtime/java/flags.h"
#include "runtime/java/names.h"
#include "sink/sink.h"

#define PIDS_MAX 4096
#define STEP_MS 200

struct agent {
	struct agent_options *options;
	int lock, signals;
	int controller; /* pidfd, readable when it has ended; -1: there is none */
	pid_t *pids;    /* those that were alive at the start; NULL: all processes */
	size_t pid_count;
	struct service_rules *rules;
	struct sink_state *sink; /* the worker's until session_stop() */
	struct session *session;
	struct buf external, arguments; /* JSON */
	struct agent_filter filter;     /* of a thread of the session's */
	struct agent_usage usage;
	uint64_t diagnosed_ns;
	struct agent_seen seen; /* the worker's until session_stop() */
	_Atomic bool failed;    /* a cycle's files could not be written */
};

static const struct sink *cycle_sink(void)
{
	return sink_find(STR("cycle"));
}

static void agent_release(struct agent *a)
{
	session_close(a->session);
	cycle_sink()->close(a->sink);
	service_rules_free(a->rules);
	agent_filter_release(&a->filter);
	free(a->pids);
	buf_release(&a->external);
	buf_release(&a->arguments);
	agent_seen_release(&a->seen);
	closep(&a->lock);
	closep(&a->signals);
	closep(&a->controller);
}

static bool is_alive(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

static int add_pids(struct agent *a, const char *item)
{
	struct str rest = str_trim(str_of(item)), one;
	uint64_t pid;

	if (rest.len > 1 && str_starts(rest, STR("[")) &&
	    str_ends(rest, STR("]"))) /* a list, as configuration files have it */
		rest = str_skip(str_first(rest, rest.len - 1), 1);
	while (str_next(&rest, ',', &one)) {
		if (!str_trim(one).len)
			continue;
		if (str_to_u64(str_trim(one), 1, INT32_MAX, &pid) < 0 || a->pid_count == PIDS_MAX) {
			command_fail(&command_agent, "--pids: '" STR_FMT "' is no list of at most %d process ids",
				     STR_ARG(str_of(item)), PIDS_MAX);
			return EXIT_USAGE;
		}
		if (is_alive((pid_t)pid))
			a->pids[a->pid_count++] = (pid_t)pid;
	}
	return EXIT_DONE;
}

static int find_pids(struct agent *a)
{
	int e = EXIT_DONE;

	if (!a->options->pids.count)
		return EXIT_DONE;
	a->pids = calloc(PIDS_MAX, sizeof(*a->pids));
	if (!a->pids)
		return command_fail(&command_agent, "out of memory");
	for (size_t i = 0; i < a->options->pids.count && e == EXIT_DONE; i++)
		e = add_pids(a, a->options->pids.items[i]);
	return e;
}

/* Lines that other programs look for are gProfiler's. The log's folder, made here, is nobody else's to write to: what
 * would lie in it is opened as root. */
static int open_log(const struct agent_options *o)
{
	int r;

	(void)umask(umask(022) | 022);
	r = log_start_file(o->log_file, o->log_rotate_bytes, (unsigned int)o->log_rotate_count);
	if (r < 0)
		return command_fail(&command_agent, "--log-file: cannot write '%s': %s", o->log_file,
				    r == -ELOOP ? "links are not followed; name the file itself" : strerror(-r));
	log_set_style(LOG_STYLE_GPROFILER);
	log_set_level(o->verbose ? LOG_DEBUG : LOG_INFO);
	log_to_stdout();
	r = log_start();
	return r < 0 ? command_fail(&command_agent, "cannot start a thread: %s", strerror(-r)) : EXIT_DONE;
}

static int open_signals(struct agent *a)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail with constant numbers */
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? command_fail(&command_agent, "cannot watch for signals: %s", strerror(errno))
			      : EXIT_DONE;
}

/* On a thread of the session's own. */
static bool wants_argument(void *ctx, struct str argument)
{
	struct agent *a = ctx;

	return agent_filter_wants(&a->filter, argument);
}

/* On the session's worker, before on_window(). */
static void on_built(void *ctx, struct window *w)
{
	struct agent *a = ctx;

	agent_phrases_window(a->options, w, &a->seen);
	if (a->options->external_metadata)
		agent_external_add(a->options->external_metadata, w);
	agent_options_leave_out(a->options, w->model);
}

/* On the session's worker. */
static void on_window(void *ctx, const struct window *w)
{
	struct agent *a = ctx;
	scoped(buf_release) struct buf where = BUF_INIT(KIB(64));
	int r = cycle_sink()->write(a->sink, w, &where);
	struct str rest = buf_str(&where), line;

	while (rest.len && str_next(&rest, '\n', &line))
		if (line.len)
			log_write(LOG_INFO, line.ptr ? strndupa(line.ptr, line.len) : "", NULL, 0);
	if (r == 0)
		return;
	a->failed = true;
	log_error("a cycle's files cannot be written", LOG_CSTR("directory", a->options->output_dir), LOG_ERR(r));
}

static void touch_heartbeat(const char *path)
{
	scoped(closep) int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644) : -1;

	if (path && (fd < 0 || futimens(fd, NULL) < 0))
		log_warn("the heartbeat file cannot be touched", LOG_CSTR("path", path), LOG_ERR(-errno));
}

static uint32_t left_out(const struct agent_options *o)
{
	const uint32_t v1 = CODEC_WITHOUT_CONTAINER_FRAME | CODEC_WITHOUT_APP_METADATA;

	return (o->without_containers ? CODEC_WITHOUT_CONTAINERS : 0) |
	       (o->without_app_ids ? CODEC_WITHOUT_APP_IDS : 0) |
	       (o->without_app_metadata ? CODEC_WITHOUT_APP_METADATA : 0) |
	       (o->without_metrics ? CODEC_WITHOUT_METRICS : 0) | (o->without_metadata ? CODEC_WITHOUT_METADATA : 0) |
	       (o->api_version ? v1 : 0);
}

/* What gProfiler means by it: on a crowded machine no profiler of the whole system, only those of runtimes. */
static void look_how_crowded(struct agent_options *o)
{
	size_t count = o->skip_above ? agent_process_count(o->session.host_root) : 0;

	if (!o->skip_above || count <= o->skip_above)
		return;
	log_warn("more processes than --skip-system-profilers-above: only stacks of language runtimes",
		 LOG_U64("processes", count));
	unwind_options_only_runtimes(&o->session.unwind);
}

static int open_session(struct agent *a)
{
	struct agent_options *o = a->options;
	struct sink_config files = { .path = o->output_dir,
				     .without_page = !o->flamegraph,
				     .rotating = o->rotating_output };
	struct session_config cfg = { .sampling = { .pids = a->pids, .pid_count = a->pid_count, .include_self = true },
				      .want_metadata = !o->without_metadata,
				      .want_cloud = true,
				      .runtimes_chosen = AGENT_CHOSEN_RUNTIMES,
				      .runtime_age_min_ns = o->min_duration_s * NSEC_PER_SEC,
				      .runtime_process_max = (size_t)o->max_processes,
				      .external_metadata = a->external.len ? buf_cstr(&a->external) : NULL,
				      .run_arguments = buf_cstr(&a->arguments),
				      .follows_clock = true,
				      .wants_argument = a->filter.count ? wants_argument : NULL,
				      .with_spark = o->spark_names,
				      .thread_names = o->java_threads,
				      .thread_frames = o->java_threads,
				      .on_built = on_built,
				      .on_window = on_window,
				      .ctx = a };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(16));
	int r;

	files.options = frame_options_get(&o->frames, runtime_options_outside(&o->session.runtimes));
	files.options.frames.libraries = o->insert_dso_name;
	files.options.frames.java_lines = o->java_lines;
	java_include_modifiers = o->java_modifiers;
	java_collect_flags = o->java_flags;
	files.options.without = left_out(o);
	r = cycle_sink()->open(&files, &why, &a->sink);
	if (r < 0)
		return command_fail(&command_agent, "%s", why.len ? buf_cstr(&why) : strerror(-r));
	o->session.window_ns = o->continuous ? o->duration_s * NSEC_PER_SEC : 0;
	o->session.duration_ns = o->continuous ? 0 : o->duration_s * NSEC_PER_SEC;
	r = session_options_open(&command_agent, &o->session, a->rules, &cfg, &a->session);
	if (r != EXIT_DONE) /* gProfiler knows no others; an event that cannot be sampled is a usage error */
		return r == EXIT_USAGE || (o->perf.event && r == EXIT_NOT_PERMITTED) ? EXIT_USAGE : EXIT_FAILED;
	agent_seen_init(&a->seen);
	r = session_start(a->session);
	return r < 0 ? command_fail(&command_agent, "cannot start sampling: %s", strerror(-r)) : EXIT_DONE;
}

static bool was_signalled(const struct agent *a)
{
	struct signalfd_siginfo info;

	return read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static bool has_ended(int pidfd)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&ended, 1, 0) == 1;
}

static bool controller_ended(const struct agent *a)
{
	char line[100];

	if (!has_ended(a->controller))
		return false;
	(void)snprintf(line, sizeof(line), "Controller process %" PRIu64 " has exited; gProfiler stopping...",
		       a->options->controller_pid);
	log_info(line);
	return true;
}

/* Cycle after cycle, or one. A signal ends the running one early, with what it has. Return: 0 or -errno. */
static int sample(struct agent *a)
{
	const struct agent_options *o = a->options;
	uint64_t start = clock_monotonic_ns(&clock_system), cycle_ns = o->duration_s * NSEC_PER_SEC, cycles = 0;
	int r = 0;

	while (r >= 0 && !was_signalled(a) && !controller_ended(a)) {
		uint64_t ran = clock_monotonic_ns(&clock_system) - start;

		if (!o->continuous && ran >= cycle_ns)
			break;
		if (ran / cycle_ns >= cycles) {
			cycles = ran / cycle_ns + 1;
			touch_heartbeat(o->continuous ? o->heartbeat_file : NULL);
			if (cycles > 1)
				agent_usage_log(&a->usage);
			if (o->diagnostics)
				agent_diagnostics_log(o->session.host_root, &a->diagnosed_ns);
		}
		r = session_step(a->session, STEP_MS);
		session_log_notices(a->session);
	}
	return r == -ENODATA ? 0 : MIN(r, 0);
}

static int finish(struct agent *a, int r)
{
	int stopped = session_stop(a->session);

	agent_usage_log(&a->usage);
	r = r ? r : stopped;
	if (r < 0) {
		log_error("sampling ended", LOG_ERR(r));
		return EXIT_FAILED;
	}
	return a->failed && !a->options->continuous ? EXIT_FAILED : EXIT_DONE;
}

/* One that has ended and that nobody has waited for does not run any more. */
static int open_controller(struct agent *a)
{
	uint64_t pid = a->options->controller_pid;

	if (!pid)
		return EXIT_DONE;
	a->controller = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (a->controller >= 0 && !has_ended(a->controller))
		return EXIT_DONE;
	return command_fail(&command_agent, "--controller-pid: process %" PRIu64 " does not run", pid);
}

static int prepare(struct agent *a)
{
	struct agent_options *o = a->options;
	int e = agent_options_check(&command_agent, o);

	e = e ? e : agent_filter_open(&command_agent, &o->app_id_args, &a->filter);
	e = e ? e : find_pids(a);
	e = e ? e : service_rules_load(&command_agent, o->session.service_rules, &a->rules);
	e = e ? e : agent_start_check(o, &a->lock);
	if (e == EXIT_DONE && o->pids.count && !a->pid_count) {
		printf("There aren't any alive processes provided via --pid PID list\n");
		return EXIT_FAILED;
	}
	e = e ? e : open_signals(a);
	if (e == EXIT_DONE && rights_bound(true) < 0)
		e = command_fail(&command_agent, "cannot give up rights");
	e = e ? e : open_log(o);
	e = e ? e : agent_start_prepare(&command_agent, o);
	if (e == EXIT_DONE && agent_arguments_json(o, &a->arguments) < 0)
		e = command_fail(&command_agent, "out of memory");
	if (e == EXIT_DONE)
		agent_phrases_start(o, buf_cstr(&a->arguments));
	if (e == EXIT_DONE && o->log_usage && agent_usage_begin("/sys/fs/cgroup", &a->usage) < 0)
		log_warn("--log-usage: no cgroup is mounted at /sys/fs/cgroup");
	e = e ? e : open_controller(a);
	if (e == EXIT_DONE && o->external_metadata)
		e = agent_external_read(&command_agent, o->external_metadata, &a->external);
	return e;
}

static int fail_usage(const char *what)
{
	command_fail(&command_agent, "%s", what);
	return EXIT_USAGE;
}

/* There are no helper programs that could be copied. */
static int extract_resources(const struct agent_options *o)
{
	const char *folder = o->resources_folder;
	int r = folder ? io_make_folders(folder) : 0;

	if (!folder)
		return fail_usage("extract-resources needs --resources-dest DIR");
	if (r == 0 && mkdir(folder, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r < 0)
		return command_fail(&command_agent, "--resources-dest: cannot make '%s': %s", folder, strerror(-r));
	return EXIT_DONE;
}

static int upload_file(const struct agent_options *o)
{
	if (!o->upload_file)
		return fail_usage("upload-file needs --file-path FILE");
	if (!o->token)
		return fail_usage("upload-file needs --token");
	if (!o->session.service_name)
		return fail_usage("upload-file needs --service-name");
	return command_fail(&command_agent, "upload-file: nothing can be sent yet");
}

static int sub_command(const struct agent_options *o, const char *word)
{
	if (!strcmp(word, "extract-resources"))
		return extract_resources(o);
	if (!strcmp(word, "upload-file"))
		return upload_file(o);
	command_fail(&command_agent, "unknown sub-command '%s'", word);
	return EXIT_USAGE;
}

static int run(void *config, int operand_count, char **operands)
{
	scoped(agent_release) struct agent a = {
		.options = config,
		.lock = -1,
		.signals = -1,
		.controller = -1,
		.external = BUF_INIT(MIB(1)),
		.arguments = BUF_INIT(MIB(1)),
	};
	int e = operand_count ? sub_command(a.options, operands[0]) : prepare(&a);

	if (e != EXIT_DONE || operand_count)
		return e;
	agent_options_warn(a.options);
	look_how_crowded(a.options);
	e = open_session(&a);
	return e == EXIT_DONE ? finish(&a, sample(&a)) : e;
}

static const char *const examples[] = { "sudo hearth agent -c -d 60 -o /var/log/profiles",
					"a .col file and a flame graph of the machine for each minute",
					"sudo hearth agent -d 30 -o . --rotating-output", "one cycle, here", NULL };

const struct command command_agent = {
	.name = "agent",
	.aliases = (const char *const[]){ "gprofiler", NULL },
	.summary = "profile the machine as gProfiler does: its options, files and log",
	.operands = "",
	.details = "Options may also come from GPROFILER_NAME in the environment and from /etc/gprofiler/config.ini.\n"
		   "Exit status as gProfiler's: 0 done, 1 failed, 2 usage.",
	.examples = examples,
	.groups = agent_option_groups,
	.dialect = &agent_dialect,
	.config_size = sizeof(struct agent_options),
	.operands_max = 1, /* a sub-command of gProfiler */
	.run = run,
};
