/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_options.h"

#include <ctype.h>

#include "base/log.h"
#include "sampler/event.h"

#define FREQUENCY_MAX 10000
#define DWARF_FREQUENCY_MAX 100
#define FREQUENCY 11
#define SPARK_SAMPLE_PERIOD 120

#define AT(member) offsetof(struct agent_options, member)

static const char *const agent_modes[] = {
	[AGENT_MODE_CPU] = "cpu", [AGENT_MODE_ALLOCATION] = "allocation", [AGENT_MODE_NONE] = "none", NULL
};

static const struct opt general[] = {
	{ "profiling-frequency", 'f', OPT_UINT, .at = AT(session.frequency), .min = 1, .max = FREQUENCY_MAX,
	  .arg = "HZ", .help = "samples per second on each CPU (default 11)" },
	{ "profiling-duration", 'd', OPT_UINT, .at = AT(duration_s), .min = 1, .max = 1000000000, .fallback = "60",
	  .arg = "SECONDS", .help = "seconds of a cycle; each has its files" },
	{ "continuous", 'c', OPT_FLAG, .at = AT(continuous), .help = "cycle after cycle, until a signal comes" },
	{ "output-dir", 'o', OPT_PATH, .at = AT(output_dir), .arg = "DIR",
	  .help = "where files go; made when it is not there" },
	{ "flamegraph", 0, OPT_FLAG, .at = AT(flamegraph), .fallback = "true",
	  .help = "write a flame graph page, too" },
	{ "rotating-output", 0, OPT_FLAG, .at = AT(rotating_output), .help = "keep the files of the last cycle only" },
	{ "mode", 0, OPT_CHOICE, .at = AT(mode), .choices = agent_modes, .fallback = "cpu", .arg = "NAME",
	  .help = "what is measured: time (cpu); allocation is not there, docs/agent.md says what measures it" },
	{ "alloc-interval", 0, OPT_TEXT, .at = AT(alloc_interval), .arg = "SIZE",
	  .help = "of allocations: --mode allocation is not there" },
	{ "pids", 0, OPT_LIST, .at = AT(pids), .arg = "PID[,PID]", .help = "only these processes" },
	{ "profile-spawned-processes", 0, OPT_FLAG, .at = AT(spawned),
	  .help = "also programs that start in the middle of a cycle: they always are" },
	{ "max-processes-runtime-profiler", 0, OPT_UINT, .at = AT(max_processes), .min = 1, .arg = "N",
	  .help = "name the functions only of the Python and Ruby processes that use the CPU most, so many of each "
		  "(default: all)" },
	{ "min-duration", 0, OPT_UINT, .at = AT(min_duration_s), .min = 1, .max = 1000000000, .arg = "SECONDS",
	  .help = "name no functions of Python and Ruby processes younger than this" },
	{ "skip-system-profilers-above", 0, OPT_UINT, .at = AT(skip_above), .min = 1, .arg = "N",
	  .help = "no native stacks when there are more processes than this" },
	{ "insert-dso-name", 0, OPT_FLAG, .at = AT(insert_dso_name), .help = "native frames become symbol (library)" },
	{ "controller-pid", 0, OPT_UINT, .at = AT(controller_pid), .min = 1, .max = INT32_MAX, .arg = "PID",
	  .help = "end when this process does" },
	{ "rootless", 0, OPT_FLAG, .at = AT(rootless), .help = "needed when not run as root, refused otherwise" },
	{ "dont-disable-core-files", 0, OPT_FLAG, .at = AT(keep_core_files), .help = "a crash may leave a core file" },
	{ "pid-file", 0, OPT_PATH, .at = AT(pid_file), .fallback = "/var/run/gprofiler.pid", .arg = "PATH",
	  .help = "the process id is written here" },
	{ "heartbeat-file", 0, OPT_PATH, .at = AT(heartbeat_file), .arg = "PATH",
	  .help = "touched when a cycle begins" },
	{ "external-metadata", 0, OPT_PATH, .at = AT(external_metadata), .arg = "PATH",
	  .help = "JSON that is put into the metadata" },
	{ "disable-pidns-check", 0, OPT_FLAG, .at = AT(without_pidns_check), .help = "run in a pid namespace, too" },
	{ "diagnostics", 0, OPT_FLAG, .at = AT(diagnostics),
	  .help = "now and then write to the log what runs on the machine" },
	SESSION_WHO_OPTIONS(struct agent_options, session),
	SESSION_SAMPLING_OPTIONS(struct agent_options, session),
	{ 0 },
};

static const struct opt told[] = {
	{ "disable-container-names", 0, OPT_FLAG, .at = AT(without_containers), .help = "no names of containers" },
	{ "disable-metrics-collection", 0, OPT_FLAG, .at = AT(without_metrics),
	  .help = "no averages of CPU and memory" },
	{ "disable-metadata-collection", 0, OPT_FLAG, .at = AT(without_metadata),
	  .help = "no metadata of system and cloud" },
	{ "disable-application-identifiers", 0, OPT_FLAG, .at = AT(without_app_ids), .help = "no appid: frames" },
	{ "disable-application-metadata", 0, OPT_FLAG, .at = AT(without_app_metadata),
	  .help = "no metadata of applications" },
	{ "app-id-args-filter", 0, OPT_LIST, .at = AT(app_id_args), .arg = "REGEX",
	  .help = "arguments of JVMs that become part of the application id" },
	{ "profile-api-version", 0, OPT_TEXT, .at = AT(api_version), .arg = "VERSION",
	  .help = "v1: as old versions had it" },
	SESSION_SERVICE_OPTIONS(struct agent_options, session),
	{ 0 },
};

static const struct opt sending[] = {
	{ "upload-results", 'u', OPT_FLAG, .at = AT(upload),
	  .help = "send profiles to a Performance Studio (not there yet)" },
	{ "token", 0, OPT_TEXT, .at = AT(token), .arg = "TOKEN", .help = "for --upload-results" },
	{ "server-host", 0, OPT_TEXT, .at = AT(server_host), .fallback = "https://profiler.granulate.io", .arg = "URL",
	  .help = "where profiles go" },
	{ "api-server", 0, OPT_TEXT, .at = AT(api_server), .fallback = "https://api.granulate.io", .arg = "URL",
	  .help = "where logs go" },
	{ "glogger-server", 0, OPT_TEXT, .at = AT(api_server), .arg = "URL" },
	{ "server-upload-timeout", 0, OPT_UINT, .at = AT(upload_timeout_s), .min = 1, .fallback = "120",
	  .arg = "SECONDS", .help = "how long an upload may take" },
	{ "curlify-requests", 0, OPT_FLAG, .at = AT(curlify),
	  .help = "write each request to the log as a curl command" },
	{ "verify", 0, OPT_FLAG, .at = AT(verify), .fallback = "true", .help = "check certificates" },
	{ "enable-heartbeat-server", 0, OPT_FLAG, .at = AT(heartbeat_server),
	  .help = "profile when the server says so (not there yet)" },
	{ "heartbeat-interval", 0, OPT_UINT, .at = AT(heartbeat_interval_s), .min = 1, .fallback = "30",
	  .arg = "SECONDS", .help = "between two questions" },
	{ 0 },
};

static const struct opt logging[] = {
	{ "verbose", 'v', OPT_FLAG, .at = AT(verbose), .help = "everything on standard output, too" },
	{ "log-file", 0, OPT_PATH, .at = AT(log_file), .fallback = "/var/log/gprofiler/gprofiler.log", .arg = "PATH",
	  .help = "where the log goes" },
	{ "log-rotate-max-size", 0, OPT_UINT, .at = AT(log_rotate_bytes), .min = 1, .fallback = "5242880",
	  .arg = "BYTES", .help = "bytes of a log file before the next one begins" },
	{ "log-rotate-backup-count", 0, OPT_UINT, .at = AT(log_rotate_count), .min = 1, .max = 1000, .fallback = "1",
	  .arg = "N", .help = "old log files that are kept" },
	{ "dont-send-logs", 0, OPT_FLAG, .at = AT(without_log_upload), .help = "logs stay here" },
	{ "log-usage", 0, OPT_FLAG, .at = AT(log_usage),
	  .help = "in a container: write to the log what it used of CPU and memory" },
	{ 0 },
};

static const struct opt later[] = {
#define X(id, title, names, words, standing)                                                                           \
	{ #id "-mode", 0, OPT_TEXT, .at = AT(later_mode[AGENT_LATER_##id]), .arg = "NAME", .help = title ": " names }, \
		{ #id,                                                                                                 \
		  0,                                                                                                   \
		  OPT_FLAG,                                                                                            \
		  .at = AT(later_on[AGENT_LATER_##id]),                                                                \
		  .fallback = "true",                                                                                  \
		  .help = "functions of " title " programs" },
	AGENT_LATER(X)
#undef X
		{ 0 },
};

static const struct opt perf[] = {
	{ "perf", 0, OPT_FLAG, .at = AT(perf.on), .fallback = "true",
	  .help = "native stacks; without: as --perf-mode disabled" },
	{ "perf-event", 0, OPT_TEXT, .at = AT(perf.event), .arg = "NAME", .help = "another event than time" },
	{ "perf-event-period", 0, OPT_UINT, .at = AT(perf.event_period), .min = 1, .arg = "N",
	  .help = "a sample for every so many of them" },
	{ "hw-events-file", 0, OPT_PATH, .at = AT(perf.hw_events_file), .arg = "PATH" },
	{ "perf-no-memory-restart", 0, OPT_FLAG, .at = AT(perf.no_memory_restart) },
	{ "perf-use-cgroups", 0, OPT_FLAG, .at = AT(perf.use_cgroups) },
	{ "perf-max-cgroups", 0, OPT_UINT, .at = AT(perf.max_cgroups), .fallback = "50" },
	{ "perf-max-docker-containers", 0, OPT_UINT, .at = AT(perf.max_docker_containers) },
	{ 0 },
};

static const char *const java_events[] = { "auto", "cpu", "itimer", "alloc", NULL };
static const char *const java_lines[] = { "none", "line-of-function", NULL };

static const struct opt sub_commands[] = {
	{ "file-path", 0, OPT_PATH, .at = AT(upload_file) },
	{ "resources-dest", 0, OPT_PATH, .at = AT(resources_folder) },
	{ 0 },
};

/* Of gProfiler's Java profiler; agent_options_warn() says which of them do nothing here. */
static const struct opt java[] = {
	{ "java-no-version-check", 0, OPT_FLAG, .at = AT(java_no_version_check) },
	{ "java-safemode", 0, OPT_TEXT, .at = AT(java_safemode), .bare = "all" },
	{ "java-collect-spark-app-name-as-appid", 0, OPT_FLAG, .at = AT(spark_names),
	  .help = "executors of Spark are named by their application, too" },
	{ "java-collect-jvm-flags", 0, OPT_TEXT, .at = AT(java_flags), .fallback = "default", .arg = "NAMES",
	  .help = "which flags of JVMs the metadata have: default, all, none, or names" },
	{ "java-full-hserr", 0, OPT_FLAG, .at = AT(java_full_hserr) },
	{ "java-include-method-modifiers", 0, OPT_FLAG, .at = AT(java_modifiers),
	  .help = "methods of Java with their modifiers, in .col: private static ..." },
	{ "java-line-numbers", 0, OPT_CHOICE, .at = AT(java_lines), .choices = java_lines, .arg = "NAME",
	  .help = "methods of Java with their first line, in .col" },
	{ "java-collect-thread-names", 0, OPT_FLAG, .at = AT(java_threads),
	  .help = "stacks of JVMs begin with their thread: [main tid=4711]" },
	{ 0 },
};

/* They are taken, so that command lines go on to work; agent_options_warn() says of which users must know. */
static const struct opt without_meaning[] = {
	{ "pyperf-user-stacks-pages", 0, OPT_UINT, .at = AT(unused.number[0]) },
	{ "python-pyperf-verbose", 0, OPT_FLAG, .at = AT(unused.flag[0]) },
	{ "python-pyspy-process", 0, OPT_LIST, .at = AT(unused.list[0]) },
	{ "python-skip-pyperf-profiler-above", 0, OPT_UINT, .at = AT(unused.number[1]) },
	{ "java-async-profiler-mode", 0, OPT_CHOICE, .at = AT(unused.choice[0]), .choices = java_events },
	{ "java-async-profiler-safemode", 0, OPT_UINT, .at = AT(unused.number[2]), .max = 63 },
	{ "java-async-profiler-features", 0, OPT_TEXT, .at = AT(unused.features) },
	{ "java-async-profiler-args", 0, OPT_TEXT, .at = AT(unused.text[2]) },
	{ "java-jattach-timeout", 0, OPT_UINT, .at = AT(unused.number[3]), .min = 1, .fallback = "30" },
	{ "java-async-profiler-mcache", 0, OPT_UINT, .at = AT(unused.number[4]), .max = 255, .fallback = "30" },
	{ "java-async-profiler-no-report-meminfo", 0, OPT_FLAG, .at = AT(unused.flag[3]) },
	{ "java-async-profiler-buildids", 0, OPT_FLAG, .at = AT(unused.flag[10]),
	  .fallback = "true" }, /* of old READMEs */
	{ "php-proc-filter", 0, OPT_TEXT, .at = AT(unused.text[6]) },
	{ "php-request", 0, OPT_FLAG, .at = AT(php_request) }, /* hearth's; here to say where it is */
	{ "enable-hw-metrics-collection", 0, OPT_FLAG, .at = AT(unused.flag[7]) },
	{ "perfspect-path", 0, OPT_PATH, .at = AT(unused.text[7]) },
	{ "perfspect-duration", 0, OPT_UINT, .at = AT(unused.number[5]), .min = 1, .fallback = "60" },
	{ "spark-sample-period", 0, OPT_UINT, .at = AT(unused.number[6]), .fallback = "120" },
	{ "collect-spark-metrics", 0, OPT_FLAG, .at = AT(unused.flag[8]) },
	{ "databricks-job-name-as-service-name", 0, OPT_FLAG, .at = AT(unused.flag[9]) },
	{ 0 },
};

static const struct opt runtimes[] = RUNTIME_OPTIONS(struct agent_options, session.runtimes);
static const struct opt frames[] = { FRAME_OPTIONS(struct agent_options, frames), { 0 } };

const struct opt_group agent_option_groups[] = {
	{ NULL, general },
	{ "What is told", told },
	{ "Language runtimes", runtimes },
	{ "Frames of Python", frames },
	{ "Language runtimes that come later", later },
	{ "Profiler perf", perf },
	{ "Sending", sending },
	{ "Logging", logging },
	{ NULL, sub_commands },
	{ "Profiler of Java", java },
	{ NULL, without_meaning },
	{ 0 },
};

const struct opt_dialect agent_dialect = {
	.environment = "GPROFILER_",
	.file = "/etc/gprofiler/config.ini",
	.is_configargparse = true,
};

/* "2mb", "100KB", "5 GiB", "1024": units are binary. Source: gprofiler/main.py, humanfriendly.parse_size(). */
static bool is_size(struct str text)
{
	static const char *const units[] = { "",    "b", "k",  "kb",  "kib", "m",  "mb",
					     "mib", "g", "gb", "gib", "t",   "tb", "tib" };
	struct str unit;
	size_t i = 0;

	while (i < text.len && isdigit((unsigned char)text.ptr[i]))
		i++;
	if (!i)
		return false;
	if (i < text.len && text.ptr[i] == '.')
		for (i++; i < text.len && isdigit((unsigned char)text.ptr[i]);)
			i++;
	unit = str_trim(str_skip(text, i));
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (unit.len == strlen(units[i]) && !strncasecmp(unit.ptr, units[i], unit.len))
			return true;
	return false;
}

static bool are_features(struct str text)
{
	struct str one;

	while (text.len && str_next(&text, ',', &one))
		if (!str_eq(one, STR("probesp")) && !str_eq(one, STR("vtable")) && !str_eq(one, STR("comptask")))
			return false;
	return true;
}

/* What may not stand together. Return: what is wrong, or NULL. Source: gprofiler/main.py, "if args.... parser.error".
 */
static const char *find_conflict(const struct agent_options *o)
{
	const struct session_options *s = &o->session;
	bool dwarf = unwind_options_copies(&s->unwind), allocation = o->mode == AGENT_MODE_ALLOCATION;
	const char *node = runtime_modes_nodejs[s->runtimes.mode[RUNTIME_nodejs]];

	if (o->alloc_interval && !is_size(str_of(o->alloc_interval)))
		return "--alloc-interval is a size: 2mb";
	if (o->unused.features && !are_features(str_of(o->unused.features)))
		return "--java-async-profiler-features are of probesp, vtable and comptask";
	if (o->perf.event_period && s->frequency)
		return "--perf-event-period and --profiling-frequency do not go together";
	if (o->mode == AGENT_MODE_CPU && o->alloc_interval)
		return "--alloc-interval is for --mode allocation";
	if (allocation && s->frequency)
		return "--profiling-frequency is for --mode cpu, --alloc-interval for allocation";
	if (o->upload && !o->token)
		return "--upload-results needs --token";
	if (o->upload && !s->service_name)
		return "--upload-results needs --service-name";
	if (o->upload_file || o->resources_folder)
		return "--file-path is for upload-file, --resources-dest for extract-resources";
	if (!o->upload && !o->output_dir)
		return "where to: --output-dir DIR, or --upload-results";
	if (o->mode == AGENT_MODE_CPU && dwarf && s->frequency > DWARF_FREQUENCY_MAX)
		return "--profiling-frequency is at most 100 with --perf-mode dwarf or smart";
	if ((!strcmp(node, "perf") || !strcmp(node, "attach-maps")) &&
	    (unwind_options_is_dwarf(&s->unwind) || unwind_options_only_runtime(&s->unwind)))
		return "--nodejs-mode perf and attach-maps need --perf-mode fp or smart";
	if (o->spawned && o->pids.count)
		return "--profile-spawned-processes and --pids do not go together";
	if (o->heartbeat_server && !(o->upload && o->token && s->service_name))
		return "--enable-heartbeat-server needs --upload-results, --token and --service-name";
	if ((o->perf.event_period || o->perf.hw_events_file) && !o->perf.event)
		return "--perf-event-period and --hw-events-file need --perf-event";
	if (o->perf.event && o->mode != AGENT_MODE_CPU)
		return "--perf-event is for --mode cpu";
	if (o->php_request)
		return "--php-request: .col files and pages of a cycle have no labels; hearth record has them, with "
		       "-o x.pb.gz or --push URL";
	if (o->api_version && strcmp(o->api_version, "v1"))
		return "--profile-api-version: v1 is all there is";
	return NULL;
}

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_of(words), one;

	while (str_next(&rest, ' ', &one))
		if (str_eq(one, word))
			return true;
	return false;
}

#define X(id, title, names, words, standing) { #id, title, words, standing },
static const struct later {
	const char *name, *title, *words;
	bool is_standing; /* gProfiler does it when nothing is said */
} laters[] = { AGENT_LATER(X) };
#undef X

static bool is_off(const char *mode)
{
	return !strcmp(mode, "disabled") || !strcmp(mode, "none");
}

/* Profilers that are not there yet: unknown words are usage errors all the same. */
static int check_later(const struct command *c, const struct agent_options *o)
{
	for (size_t i = 0; i < AGENT_LATER_COUNT; i++) {
		const char *mode = o->later_mode[i];

		if (!mode)
			continue;
		if (!has_word(laters[i].words, str_of(mode))) {
			command_fail(c, "--%s-mode: '%s' is not one of %s", laters[i].name, mode, laters[i].words);
			return EXIT_USAGE;
		}
		if (o->later_on[i] && !is_off(mode))
			return command_fail(c, "--%s-mode %s: %s is not profiled yet; leave the option out",
					    laters[i].name, mode, laters[i].title);
	}
	return EXIT_DONE;
}

/* Two quote characters are no words, too: who writes a DaemonSet has no shell that takes them off. */
static bool has_no_safemode(const struct agent_options *o)
{
	return !o->java_safemode || !o->java_safemode[0] || !strcmp(o->java_safemode, "\"\"");
}

#define EXTENDED_CHECKS "java-extended-version-checks"

/* Unknown words end gProfiler with status 1 when it makes its profiler of Java. Source: gprofiler/profilers/java.py,
 * JavaSafemodeOptions, _init_java_safemode(). */
static int check_safemode(const struct command *c, const struct agent_options *o)
{
	static const char known[] = "profiled-oom profiled-signaled hserr general-oom general-signaled "
				    "pid-in-kernel-messages " EXTENDED_CHECKS " ap-loaded-check";
	struct str rest, word;
	bool is_all, has_extended;

	if (runtime_options_without(&o->session.runtimes) >> ABI_RUNTIME_JAVA & 1 || has_no_safemode(o))
		return EXIT_DONE;
	rest = str_of(o->java_safemode);
	is_all = has_extended = str_eq(rest, STR("all"));
	while (!is_all && str_next(&rest, ',', &word)) {
		if (!has_word(known, word))
			return command_fail(c, "--java-safemode: '" STR_FMT "' is not one of %s; all is each of them",
					    STR_ARG(word), known);
		has_extended |= str_eq(word, STR(EXTENDED_CHECKS));
	}
	if (has_extended && o->java_no_version_check)
		return command_fail(c, "--java-safemode " EXTENDED_CHECKS
				       " and --java-no-version-check do not go together");
	return EXIT_DONE;
}

/* Neither the system nor any runtime is profiled. */
static bool is_nothing_left(const struct session_options *s)
{
	uint32_t without = runtime_options_without(&s->runtimes);
	const struct runtime *runtime;

	for (size_t i = 0; (runtime = runtime_at(i)); i++)
		if (!(without >> runtime->id & 1))
			return false;
	return unwind_options_only_runtime(&s->unwind);
}

/* gProfiler looks only whether the variable is there. Source: gprofiler/main.py, --dont-send-logs. */
static void apply_variables(struct agent_options *o)
{
	o->without_log_upload |= getenv("GPROFILER_DONT_SEND_LOGS") != NULL;
}

/* Fargate lets nobody sample the system, and containers see their own processes only. */
static void apply_fargate(struct agent_options *o)
{
	const char *where = getenv("AWS_EXECUTION_ENV");

	if (!where || strcmp(where, "AWS_ECS_FARGATE") != 0)
		return;
	unwind_options_only_runtimes(&o->session.unwind);
	o->without_pidns_check = true;
}

/* As in gProfiler: no profilers of runtimes beside it, and frame pointers. */
static int take_event(const struct command *c, struct agent_options *o)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	struct sampler_event event;

	if (event_parse(o->session.host_root, str_of(o->perf.event), &event, &why) < 0) {
		command_fail(c, "--perf-event: " STR_FMT, STR_ARG(buf_str(&why)));
		return EXIT_USAGE;
	}
	o->session.event = o->perf.event;
	o->session.event_period = o->perf.event_period;
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		o->session.runtimes.on[i] = false;
	unwind_options_frame_pointers(&o->session.unwind);
	return EXIT_DONE;
}

int agent_options_check(const struct command *c, struct agent_options *o)
{
	const char *conflict;
	int e;

	if (!o->perf.on)
		unwind_options_only_runtimes(&o->session.unwind);
	conflict = find_conflict(o);
	if (conflict) {
		command_fail(c, "%s", conflict);
		return EXIT_USAGE;
	}
	e = check_later(c, o);
	if (e != EXIT_DONE)
		return e;
	if (o->mode == AGENT_MODE_ALLOCATION)
		return command_fail(c,
				    "--mode allocation: only time is sampled here; the JVM itself records allocations: "
				    "hearth java attach PID JFR.start settings=profile duration=60s "
				    "filename=/tmp/a.jfr");
	apply_variables(o);
	apply_fargate(o);
	if (o->mode == AGENT_MODE_NONE || is_nothing_left(&o->session))
		return command_fail(c, "all profilers are disabled");
	o->session.unwind.fp_is_chain = true;
	if (o->perf.event) {
		e = take_event(c, o);
		if (e != EXIT_DONE)
			return e;
	}
	e = check_safemode(c, o);
	if (e != EXIT_DONE)
		return e;
	if (o->upload && !o->output_dir)
		return command_fail(c, "--upload-results: nothing can be sent yet; --output-dir writes files");
	if (o->heartbeat_server)
		return command_fail(c, "--enable-heartbeat-server is not there yet");
	o->session.frequency = o->session.frequency ? o->session.frequency : FREQUENCY;
	return EXIT_DONE;
}

static void warn_deprecated(const char *name, bool is_set, const char *version)
{
	char line[120];

	if (!is_set)
		return;
	(void)snprintf(line, sizeof(line), "%s is deprecated and removed in version %s", name, version);
	log_warn(line);
}

void agent_options_warn(const struct agent_options *o)
{
	scoped(buf_release) struct buf missing = BUF_INIT(KIB(1));
	const char *node = runtime_modes_nodejs[o->session.runtimes.mode[RUNTIME_nodejs]];

	for (size_t i = 0; i < AGENT_LATER_COUNT; i++)
		if (laters[i].is_standing && o->later_on[i] && !o->later_mode[i])
			buf_addf(&missing, "%s%s", missing.len ? ", " : "", laters[i].title);
	if (missing.len)
		log_warn("functions of these runtimes have no names yet", LOG_STR("runtimes", buf_str(&missing)));
	if (!strcmp(node, "attach-maps"))
		log_info("--nodejs-mode attach-maps: nothing is attached, JavaScript is walked without perf maps");
	if (!has_no_safemode(o))
		log_warn("--java-safemode has no meaning: nothing is loaded into a JVM, and Java goes on being walked "
			 "after a JVM was killed, has crashed or left an hs_err file",
			 LOG_CSTR("words", o->java_safemode));
	if (o->java_full_hserr)
		log_warn("--java-full-hserr has no meaning: hs_err files of JVMs are not looked for");
	if (o->java_no_version_check)
		log_info("--java-no-version-check has no meaning: a JVM is walked when its own tables say how");
	if (o->perf.hw_events_file)
		log_warn("--hw-events-file is not read: give --perf-event rHEX, or an event of /sys/bus/event_source");
	if (o->unused.flag[7])
		log_warn("--enable-hw-metrics-collection: hardware metrics are not collected, hwmetrics is null");
	if (o->perf.use_cgroups)
		log_warn(
			"--perf-use-cgroups has no meaning: all processes are sampled and have their container's name");
	if (o->upload)
		log_warn("--upload-results: nothing is sent yet, files are written");
	warn_deprecated("--spark-sample-period", o->unused.number[6] != SPARK_SAMPLE_PERIOD, "1.42.0");
	warn_deprecated("--collect-spark-metrics", o->unused.flag[8], "1.42.0");
	warn_deprecated("--databricks-job-name-as-service-name", o->unused.flag[9], "1.49.0");
}

void agent_options_leave_out(const struct agent_options *o, struct model *m)
{
	for (size_t i = 0; i < m->processes_count; i++) {
		struct model_process *p = &m->processes[i];

		if (o->without_containers)
			p->container = 0;
		if (o->without_app_ids)
			p->app_id = 0;
	}
}
