/* SPDX-License-Identifier: Apache-2.0 */
/* hearth record: profile the machine, processes, a container or a command once, into files. */
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rights.h"
#include "cli/command.h"
#include "cli/end_signals.h"
#include "cli/format_names.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/push_options.h"
#include "cli/python_options.h"
#include "cli/session_options.h"
#include "cli/summary.h"
#include "cli/svg_options.h"
#include "cli/targets.h"
#include "cli/value.h"

#define FREQUENCY_MAX 10000
#define PUSH_WINDOW_NS (60 * NSEC_PER_SEC)
#define COMMAND_END_MS 3000  /* how long a command that was told to end is waited for */
#define PUSH_JITTER_PARTS 10 /* windows leave within the next tenth of one: a fleet does not come at once */

struct config {
	struct session_options session;
	bool all, callgraph, quiet, self, idle;
	uint8_t children;
	struct opt_list pids, outputs;
	const char *format, *recording, *value;
	size_t sampler;
	struct push_options push;
	struct frame_options frames;
	struct svg_options svg;
};

static const char *const sampler_names[] = { "auto", "bpf", "perf", "remote", "recorded", NULL };

static const struct opt what_options[] = {
	{ "all", 'a', OPT_FLAG, .at = offsetof(struct config, all),
	  .help = "every process (the default without -p and COMMAND)" },
	{ "pid", 'p', OPT_LIST, .at = offsetof(struct config, pids), .arg = "PID[,PID]",
	  .help = "only these processes; ends when all of them have" },
	{ "children", 0, OPT_SWITCH, .at = offsetof(struct config, children),
	  .help = "also what they start from now on (default: with COMMAND yes, with -p no)" },
	SESSION_WHO_OPTIONS(struct config, session),
	{ "self", 0, OPT_FLAG, .at = offsetof(struct config, self), .fallback = "true", .help = "sample hearth too" },
	{ 0 },
};

static const struct opt how_options[] = {
	{ "frequency", 'F', OPT_UINT, .at = offsetof(struct config, session.frequency), .min = 1, .max = FREQUENCY_MAX,
	  .fallback = "99", .arg = "HZ", .help = "samples per second on each CPU" },
	{ "rate", 'r', OPT_UINT, .at = offsetof(struct config, session.frequency), .min = 1, .max = FREQUENCY_MAX,
	  .arg = "HZ", .help = "the same" },
	SESSION_EVENT_OPTIONS(struct config, session),
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, session.duration_ns), .min = NSEC_PER_MSEC,
	  .arg = "TIME", .help = "how long: 10, 1.5s, 2m (default: until Ctrl-C, or until the processes end)" },
	{ "window", 0, OPT_DURATION, .at = offsetof(struct config, session.window_ns), .min = NSEC_PER_SEC,
	  .arg = "TIME",
	  .help = "cut the session into windows of this length, each its own files (default with --push: 60s)" },
	{ "call-graph", 'g', OPT_FLAG, .at = offsetof(struct config, callgraph),
	  .help = "accepted for perf's sake: stacks are always taken" },
	SESSION_SAMPLING_OPTIONS(struct config, session),
	SESSION_TIMES_OPTION(struct config, session, NULL),
	{ "sampler", 0, OPT_CHOICE, .at = offsetof(struct config, sampler), .choices = sampler_names,
	  .fallback = "auto", .arg = "NAME", .help = "where samples come from" },
	{ "idle", 0, OPT_FLAG, .at = offsetof(struct config, idle),
	  .help = "for --sampler remote: also threads that do not run, at every look" },
	{ "recording", 0, OPT_PATH, .at = offsetof(struct config, recording), .arg = "FILE",
	  .help = "for --sampler recorded: the file to replay" },
	{ 0 },
};

static const struct opt runtime_options[] = RUNTIME_LABEL_OPTIONS(struct config, session.runtimes);

static const struct opt frame_options[] = { FRAME_OPTIONS(struct config, frames), { 0 } };

static const struct opt svg_options[] = SVG_OPTIONS(struct config, svg);

static const struct opt output_options[] = {
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, outputs), .arg = "FILE",
	  .help = "where to; the suffix says the format (" SUFFIXES_WRITTEN
		  "; also with .gz behind it); repeatable; a directory "
		  "gets "
		  "all of html, col and pb.gz (default: the working directory)" },
	{ "format", 0, OPT_TEXT, .at = offsetof(struct config, format), .arg = "NAME",
	  .help = "format of the output: " FORMATS_WRITTEN " (default: by suffix)" },
	VALUE_OPTION(struct config, value),
	SESSION_SERVICE_OPTIONS(struct config, session),
	PUSH_OPTIONS(struct config, push),
	{ "quiet", 'q', OPT_FLAG, .at = offsetof(struct config, quiet), .help = "no progress and no summary" },
	{ 0 },
};

/* One run of the command. */
struct record {
	const struct config *config;
	struct outputs outputs; /* written to by the worker until session_stop() */
	struct render_svg_config svg;
	struct pusher pusher; /* the same */
	struct targets targets;
	struct service_rules *rules; /* the session's */
	struct launch launch;
	char *command_line;
	struct end_signals signals;
	struct session *session;
	struct summary summary; /* the worker's until session_stop() */
	bool discard;           /* the command could not be started: nothing is written; set before a window is cut */
	bool is_time_over;      /* --duration ended the session */
};

static void record_release(struct record *r)
{
	session_close(r->session);
	service_rules_free(r->rules);
	outputs_release(&r->outputs);
	pusher_release(&r->pusher);
	targets_release(&r->targets);
	launch_release(&r->launch);
	end_signals_release(&r->signals);
	summary_release(&r->summary);
	free(r->command_line);
}

/* On the worker. */
static void on_window(void *ctx, const struct window *w)
{
	struct record *r = ctx;

	if (r->discard)
		return;
	summary_add(&r->summary, w);
	outputs_write(&r->outputs, w);
	pusher_write(&r->pusher, w);
}

static int check_value(const struct config *config)
{
	static const char *const names[] = { "samples", "cpu", "waits", "off_cpu" };
	const size_t count = config->session.off_cpu ? ARRAY_SIZE(names) : 2;

	for (size_t i = 0; config->value && i < count; i++)
		if (!strcmp(names[i], config->value))
			return EXIT_DONE;
	if (!config->value)
		return EXIT_DONE;
	command_fail(&command_record, "--value: a session has samples and cpu%s, not '%s'",
		     config->session.off_cpu ? ", waits and off_cpu" : "; with --off-cpu also waits and off_cpu",
		     config->value);
	return EXIT_USAGE;
}

static int check_conflicts(const struct config *config, int operand_count)
{
	int ways = (config->pids.count > 0) + (operand_count > 0) + config->all;

	if (ways > 1) {
		command_fail(&command_record, "choose one: --all, --pid or a COMMAND");
		return EXIT_USAGE;
	}
	if (check_value(config) != EXIT_DONE)
		return EXIT_USAGE;
	if (!config->sampler)
		return EXIT_DONE;
	if (sampler_find(str_of(sampler_names[config->sampler]))->is_replay != !!config->recording) {
		command_fail(&command_record, "--sampler recorded and --recording FILE go together");
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

/* The push has windows of its own, in place of the option's. */
static uint64_t window_ns(const struct config *config)
{
	return config->push.url && !config->session.window_ns ? PUSH_WINDOW_NS : config->session.window_ns;
}

static int open_session(struct record *r)
{
	const struct config *config = r->config;
	struct session_config cfg = {
		.sampler = config->sampler ? sampler_find(str_of(sampler_names[config->sampler])) : NULL,
		.sampling = { .pids = r->targets.pids,
			      .pid_count = r->targets.count,
			      .follow_children =
				      config->children ? config->children == OPT_SWITCH_ON : r->launch.pid > 0,
			      .include_self = config->self,
			      .recording = config->recording,
			      .idle = config->idle },
		.default_value = config->value,
		.command = r->command_line,
		.want_metadata = true,
		.thread_names = true,
		.on_window = on_window,
		.ctx = r,
	};

	return session_options_open(&command_record, &config->session, r->rules, &cfg, &r->session);
}

static void show_progress(const struct record *r)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));
	struct session_stats stats;
	char left[32] = "Ctrl-C ends", passed[32];

	session_stats(r->session, &stats);
	if (r->config->session.duration_ns) {
		progress_time(r->config->session.duration_ns - MIN(r->config->session.duration_ns, stats.elapsed_ns),
			      left);
		memcpy(left + strlen(left), " left", sizeof(" left"));
	}
	progress_time(stats.elapsed_ns / NSEC_PER_SEC * NSEC_PER_SEC, passed);
	buf_addf(&text, "\r%s, %llu samples, %llu lost; %s\033[K", passed, (unsigned long long)stats.samples,
		 (unsigned long long)stats.lost, left);
	log_text(buf_str(&text), false); /* a terminal may stand (Ctrl-S) */
}

static int step_timeout_ms(const struct record *r, uint64_t start_ns)
{
	uint64_t elapsed = clock_monotonic_ns(&clock_system) - start_ns, left = 200 * NSEC_PER_MSEC;

	if (r->config->session.duration_ns)
		left = elapsed >= r->config->session.duration_ns ? 0
								 : MIN(left, r->config->session.duration_ns - elapsed);
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
		/* The signal first: Ctrl-C may have ended the command as well. */
		if (e < 0 || end_signals_came(&r->signals) || launch_ended(&r->launch) || targets_ended(&r->targets))
			break;
		if (progress && clock_monotonic_ns(&clock_system) - shown_ns >= NSEC_PER_SEC) {
			shown_ns = clock_monotonic_ns(&clock_system);
			show_progress(r);
		}
	}
	r->is_time_over = timeout_ms <= 0;
	if (progress)
		log_text(STR("\r\033[K"), true);
	return e == -ENODATA ? 0 : e;
}

static int say_summary(struct record *r, struct str pushed)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(256));
	struct session_stats stats;

	if (r->config->quiet)
		return EXIT_DONE;
	session_stats(r->session, &stats);
	summary_text(&r->summary, &stats, &text);
	session_options_notices(r->session, &text);
	if (r->outputs.written.len)
		buf_addf(&text, "\nWritten:\n%s", buf_cstr(&r->outputs.written));
	buf_adds(&text, pushed);
	if (!r->outputs.to_stdout)
		return command_print(&command_record, &text);
	log_text(buf_str(&text), true);
	return EXIT_DONE;
}

/* A command that outlives its session: it is our own child, and ends with us. Only after the session's end, since names
 * are read from it until then. */
static void end_command(struct record *r)
{
	const char *program = r->launch.program;
	int passed_on = r->signals.is_from_terminal ? 0 : r->signals.signal;

	if (r->launch.pid <= 0)
		return;
	if (launch_ended(&r->launch)) /* by itself, meanwhile: its status counts */
		r->is_time_over = false;
	else if (r->is_time_over) {
		bool ended = launch_wait(&r->launch, SIGTERM, COMMAND_END_MS);

		command_fail(&command_record, "the time was over before '%s' ended: it was sent SIGTERM%s", program,
			     ended ? "" : " and still runs");
	} else if (r->signals.signal && !launch_wait(&r->launch, passed_on, COMMAND_END_MS)) {
		command_fail(&command_record, "'%s' has not ended at %s and still runs", program,
			     strsignal(r->signals.signal));
	}
}

/* Of a session that went well: as of the command alone. */
static int command_status(const struct record *r)
{
	if (!r->launch.program || r->is_time_over)
		return EXIT_DONE;
	return r->signals.signal ? 128 + r->signals.signal : r->launch.status;
}

static int finish(struct record *r, int e)
{
	scoped(buf_release) struct buf pushed = BUF_INIT(KIB(16));
	int stopped, push_status;

	end_signals_close(&r->signals);
	stopped = session_stop(r->session);
	end_command(r);
	push_status = pusher_finish(&r->pusher, &pushed);
	if (say_summary(r, buf_str(&pushed)) != EXIT_DONE)
		return EXIT_FAILED;
	if (e < 0)
		return command_fail(&command_record, "sampling ended early: %s; what was gathered is written",
				    strerror(-e));
	if (stopped < 0)
		return command_fail(&command_record, "the last window is lost: %s", strerror(-stopped));
	if (r->outputs.failed)
		return EXIT_FAILED;
	return push_status == EXIT_DONE ? command_status(r) : push_status;
}

/* The child waits for the session: nothing of the program is missed. */
static int launch(struct record *r, int operand_count, char **operands)
{
	int e = launch_fork(operands, &r->launch);

	if (e < 0)
		return command_fail(&command_record, "cannot fork: %s", strerror(-e));
	targets_add_child(&r->targets, r->launch.pid);
	r->command_line = launch_command_line(operand_count, operands);
	return EXIT_DONE;
}

static int prepare(struct record *r, int operand_count, char **operands)
{
	const struct config *config = r->config;
	int e = check_conflicts(config, operand_count);

	if (e == EXIT_DONE)
		e = pusher_open(&r->pusher, &command_record, &config->push, window_ns(config) / PUSH_JITTER_PARTS);
	if (e == EXIT_DONE && (!config->push.url || config->outputs.count || config->format))
		e = outputs_open(&r->outputs, &config->outputs, config->format, window_ns(config) != 0);
	if (e == EXIT_DONE && operand_count)
		e = launch(r, operand_count, operands);
	if (e == EXIT_DONE &&
	    (rights_bound(true) < 0 || log_start() < 0)) /* the program was forked and keeps its own */
		e = command_fail(&command_record, "cannot start a thread, or give up rights");
	if (e == EXIT_DONE && config->session.runtimes.php_request && !config->push.url && !r->outputs.shows_labels)
		log_warn("--php-request: no output has a place for labels; .pb.gz, .otlp and --push have");
	return e == EXIT_DONE ? targets_parse(&r->targets, &command_record, &config->pids) : e;
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
	struct config *config = config_bytes;
	int e;

	if (!r)
		return command_fail(&command_record, "out of memory");
	config->session.window_ns = window_ns(config);
	*r = (struct record){ .config = config_bytes,
			      .outputs = OUTPUTS_INIT(&command_record),
			      .signals = END_SIGNALS_INIT,
			      .launch = LAUNCH_INIT };
	summary_init(&r->summary);
	r->outputs.options =
		frame_options_get(&r->config->frames, runtime_options_outside(&r->config->session.runtimes));
	r->outputs.options.value = r->config->value;
	r->summary.options = r->outputs.options;
	r->outputs.options.svg = &r->svg;
	r->outputs.options.title = r->config->svg.title;
	e = svg_options_get(&command_record, &r->config->svg, SVG_DELTA_SELF, &r->svg);
	e = e == EXIT_DONE ? service_rules_load(&command_record, r->config->session.service_rules, &r->rules) : e;
	if (e != EXIT_DONE)
		return e;
	e = end_signals_open(&r->signals);
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
	if (r->launch.exec_errno) {
		r->discard = true;
		command_fail(&command_record, "cannot run '%s': %s", r->launch.program, strerror(r->launch.exec_errno));
		return r->launch.status;
	}
	return finish(r, run_loop(r));
}

static const struct opt_group groups[] = { { "What to profile", what_options },
					   { "How", how_options },
					   { "Language runtimes", runtime_options },
					   { "Frames of Python", frame_options },
					   { "Where to", output_options },
					   { "Classic flame graphs (.svg)", svg_options },
					   { 0 } };
static const char *const examples[] = {
	"sudo hearth record -d 10",
	"the whole machine for ten seconds: a flame graph, a .col and a pprof file here",
	"sudo hearth record -p 1234 -o out.html",
	"one process until it ends or Ctrl-C",
	"sudo hearth record -o out.pb.gz -- make -j2",
	"a command and all it starts",
	"sudo hearth record --container web -d 1m -o web.col",
	"one container for a minute",
	"sudo hearth record --lines -o out.pb.gz -- ./program",
	"inlined functions and source lines: go tool pprof -list shows them",
	NULL,
};

const struct command command_record = {
	.name = "record",
	.summary = "profile the machine, processes, a container or a command once",
	.operands = "[-- COMMAND...]",
	.details =
		"Samples every CPU with eBPF and writes the profile to files. Ctrl-C ends it and keeps what was "
		"gathered.\n"
		"With a COMMAND the exit status is the command's.\n"
		"User stacks are walked in the kernel by the unwind tables of the programs and libraries (.eh_frame), "
		"so "
		"code built without frame pointers has whole stacks too. What had to be guessed, and where a stack was "
		"cut and why, is told with the result.",
	.examples = examples,
	.groups = groups,
	.config_size = sizeof(struct config),
	.stop_at_operand = true,
	.operands_max = -1,
	.run = run,
};
