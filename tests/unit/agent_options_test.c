/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of gProfiler's through flag, environment and file; what may not stand together. */
#include "support.h"

#include <ctype.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/agent_arguments.h"
#include "cli/agent_options.h"

static char said[512];

/* In place of the one that writes to stderr. */
int command_fail(const struct command *c, const char *format, ...)
{
	va_list args;

	(void)c;
	va_start(args, format);
	(void)vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	return EXIT_FAILED;
}

/* A value that is not the default. */
static const char *sample_of(const struct opt *o)
{
	switch (o->type) {
	case OPT_FLAG:
	case OPT_SWITCH:
		return o->fallback && !strcmp(o->fallback, "true") ? "false" : "true";
	case OPT_UINT:
		return o->max && o->max < 77 ? "3" : "77";
	case OPT_DURATION:
		return "7s";
	case OPT_SIZE:
		return "7M";
	case OPT_CHOICE:
		return o->choices[1];
	case OPT_TEXT:
	case OPT_PATH:
	case OPT_LIST:
		return "word";
	}
	return NULL;
}

static bool is_text(const struct opt *o)
{
	return o->type == OPT_TEXT || o->type == OPT_PATH;
}

static const char *text_at(const struct agent_options *o, size_t at)
{
	const char *text;

	memcpy(&text, (const char *)o + at, sizeof(text));
	return text ? text : "";
}

/* Pointers become what they point to. */
static void take(const struct opt *o, struct agent_options *config, struct buf *out)
{
	static const size_t sizes[] = {
		[OPT_FLAG] = sizeof(bool),         [OPT_SWITCH] = sizeof(uint8_t), [OPT_UINT] = sizeof(uint64_t),
		[OPT_DURATION] = sizeof(uint64_t), [OPT_SIZE] = sizeof(uint64_t),  [OPT_CHOICE] = sizeof(size_t)
	};
	const struct opt_list *list = (const void *)((const char *)config + o->at);

	buf_clear(out);
	if (is_text(o))
		buf_adds(out, str_of(text_at(config, o->at)));
	else if (o->type == OPT_LIST)
		for (size_t i = 0; i < list->count; i++)
			buf_addf(out, "%s,", list->items[i]);
	else
		buf_add(out, (const char *)config + o->at, sizes[o->type]);
}

enum source { BY_NOTHING, BY_FLAG, BY_ENVIRONMENT, BY_FILE };

static void get(const struct opt *o, const char *value, enum source source, struct buf *out)
{
	char path[] = "/tmp/hearth-agent-XXXXXX", word[200], name[200] = "GPROFILER_";
	struct opt_dialect dialect = agent_dialect;
	const struct opt_spec spec = { .program = "agent", .groups = agent_option_groups, .dialect = &dialect };
	scoped(opt_result_release) struct opt_result result = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	static struct agent_options config; /* some KiB */
	char program[] = "agent", *argv[] = { program, word, NULL };
	int fd = mkstemp(path), argc = 1, r;

	assert_true(fd >= 0);
	dialect.file = path;
	if (source == BY_FLAG) {
		(void)snprintf(word, sizeof(word), "--%s=%s", o->name, value);
		if (o->type == OPT_FLAG)
			(void)snprintf(word, sizeof(word), "--%s%s", strcmp(value, "false") ? "" : "no-", o->name);
		argc = 2;
	} else if (source == BY_ENVIRONMENT) {
		size_t at = strlen(name);

		for (const char *c = o->name; *c; c++)
			name[at++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
		name[at] = 0;
		setenv(name, value, 1);
	} else if (source == BY_FILE) {
		(void)snprintf(word, sizeof(word), "%s: %s\n", o->name, value);
		assert_int_equal(io_write_all(fd, word, strlen(word)), 0);
	}
	close(fd);
	config = (struct agent_options){ 0 };
	r = opt_parse(&spec, argc, argv, &config, &result, &why);
	unlink(path);
	unsetenv(name);
	if (r < 0)
		print_message("%s: %s\n", o->name, buf_cstr(&why));
	assert_int_equal(r, 0);
	take(o, &config, out);
}

static void every_option_from_every_source(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct opt_group *g = agent_option_groups; g->opts; g++)
		for (const struct opt *o = g->opts; o->name; o++, count++) {
			scoped(buf_release) struct buf usual = BUF_INIT(KIB(1)), flag = BUF_INIT(KIB(1)),
						       other = BUF_INIT(KIB(1));
			const char *value = sample_of(o);

			get(o, value, BY_NOTHING, &usual);
			get(o, value, BY_FLAG, &flag);
			if (str_eq(buf_str(&usual), buf_str(&flag)))
				print_message("%s\n", o->name);
			assert_false(str_eq(buf_str(&usual), buf_str(&flag)));
			get(o, value, BY_ENVIRONMENT, &other);
			assert_true(str_eq(buf_str(&flag), buf_str(&other)));
			get(o, value, BY_FILE, &other);
			assert_true(str_eq(buf_str(&flag), buf_str(&other)));
		}
	print_message("  %zu options\n", count);
	assert_true(count > 100);
}

/* gprofiler/main.py, parse_cmd_args(), and the arguments of its profilers: all of them, with a value that they take and
 * one that they do not. NULL: it takes none, or any. */
static const struct {
	const char *name, *good, *bad;
} known[] = {
	{ "pid-file", "x", NULL },
	{ "profiling-frequency", "11", "0" },
	{ "profiling-duration", "60", "1.5" },
	{ "min-duration", "10", "0" },
	{ "insert-dso-name", NULL, NULL },
	{ "output-dir", "x", NULL },
	{ "flamegraph", NULL, NULL },
	{ "no-flamegraph", NULL, NULL },
	{ "mode", "cpu", "memory" },
	{ "alloc-interval", "2mb", "much" },
	{ "rotating-output", NULL, NULL },
	{ "pids", "1,2", NULL },
	{ "max-processes-runtime-profiler", "10", "0" },
	{ "skip-system-profilers-above", "600", "0" },
	{ "rootless", NULL, NULL },
	{ "log-usage", NULL, NULL },
	{ "upload-results", NULL, NULL },
	{ "dont-disable-core-files", NULL, NULL },
	{ "verbose", NULL, NULL },
	{ "continuous", NULL, NULL },
	{ "disable-container-names", NULL, NULL },
	{ "disable-pidns-check", NULL, NULL },
	{ "disable-metrics-collection", NULL, NULL },
	{ "disable-metadata-collection", NULL, NULL },
	{ "disable-application-identifiers", NULL, NULL },
	{ "app-id-args-filter", "-D.*", NULL },
	{ "disable-application-metadata", NULL, NULL },
	{ "profile-api-version", "v1", "v2" },
	{ "controller-pid", "1", "-1" },
	{ "external-metadata", "x", NULL },
	{ "profile-spawned-processes", NULL, NULL },
	{ "diagnostics", NULL, NULL },
	{ "heartbeat-file", "x", NULL },
	{ "enable-heartbeat-server", NULL, NULL },
	{ "heartbeat-interval", "30", "0" },
	{ "spark-sample-period", "120", "x" },
	{ "collect-spark-metrics", NULL, NULL },
	{ "databricks-job-name-as-service-name", NULL, NULL },
	{ "server-host", "http://a", NULL },
	{ "api-server", "http://a", NULL },
	{ "glogger-server", "http://a", NULL },
	{ "server-upload-timeout", "120", "0" },
	{ "token", "x", NULL },
	{ "service-name", "x", NULL },
	{ "curlify-requests", NULL, NULL },
	{ "no-verify", NULL, NULL },
	{ "log-file", "x", NULL },
	{ "log-rotate-max-size", "5242880", "0" },
	{ "log-rotate-backup-count", "1", "0" },
	{ "dont-send-logs", NULL, NULL },
	{ "dotnet-mode", "disabled", "perf" },
	{ "no-dotnet", NULL, NULL },
	{ "python-mode", "py-spy", "perf" },
	{ "no-python", NULL, NULL },
	{ "java-mode", "disabled", "perf" },
	{ "no-java", NULL, NULL },
	{ "perf-mode", "smart", "lbr" },
	{ "no-perf", NULL, NULL },
	{ "php-mode", "none", "perf" },
	{ "no-php", NULL, NULL },
	{ "ruby-mode", "none", "perf" },
	{ "no-ruby", NULL, NULL },
	{ "nodejs-mode", "none", "fp" },
	{ "no-nodejs", NULL, NULL },
	{ "no-python-versions", NULL, NULL },
	{ "pyperf-user-stacks-pages", "0", "-1" },
	{ "python-pyperf-verbose", NULL, NULL },
	{ "python-pyspy-process", "1,2", NULL },
	{ "python-skip-pyperf-profiler-above", "0", "x" },
	{ "java-no-version-check", NULL, NULL },
	{ "java-async-profiler-mode", "itimer", "wall" },
	{ "java-async-profiler-safemode", "63", "64" },
	{ "java-async-profiler-features", "probesp,vtable,comptask", "probesp,x" },
	{ "java-async-profiler-args", "x", NULL },
	{ "java-safemode", NULL, NULL },
	{ "java-safemode", "hserr", NULL },
	{ "java-jattach-timeout", "30", "0" },
	{ "java-async-profiler-mcache", "255", "256" },
	{ "java-collect-spark-app-name-as-appid", NULL, NULL },
	{ "java-async-profiler-no-report-meminfo", NULL, NULL },
	{ "no-java-async-profiler-buildids", NULL, NULL },
	{ "java-collect-jvm-flags", "all", NULL },
	{ "java-full-hserr", NULL, NULL },
	{ "java-include-method-modifiers", NULL, NULL },
	{ "java-line-numbers", "line-of-function", "all" },
	{ "java-collect-thread-names", NULL, NULL },
	{ "perf-dwarf-stack-size", "65528", "65529" },
	{ "perf-no-memory-restart", NULL, NULL },
	{ "perf-use-cgroups", NULL, NULL },
	{ "perf-max-cgroups", "50", "x" },
	{ "perf-max-docker-containers", "0", "x" },
	{ "perf-event", "cycles", NULL },
	{ "perf-event-period", "1", "0" },
	{ "hw-events-file", "x", NULL },
	{ "php-proc-filter", "php-fpm", NULL },
	{ "enable-hw-metrics-collection", NULL, NULL },
	{ "perfspect-path", "x", NULL },
	{ "perfspect-duration", "60", "0" },
};

static struct agent_options checked; /* some KiB */

static int check(const char *words)
{
	const struct opt_dialect dialect = { .environment = "NOBODY_", .is_configargparse = true };
	const struct opt_spec spec = { .program = "agent", .groups = agent_option_groups, .dialect = &dialect };
	scoped(opt_result_release) struct opt_result result = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	char program[] = "agent", text[300], *rest = text, *argv[32] = { program };
	int argc = 1, r;

	(void)snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	said[0] = 0;
	checked = (struct agent_options){ 0 };
	r = opt_parse(&spec, argc, argv, &checked, &result, &why);
	if (r < 0) {
		(void)snprintf(said, sizeof(said), "%s", buf_cstr(&why));
		return EXIT_USAGE;
	}
	return agent_options_check(NULL, &checked);
}

/* Whether it then can do what was asked is another matter: a word that is known is no usage error by itself. */
static int check_one(const char *name, const char *value)
{
	char words[200];

	(void)snprintf(words, sizeof(words), "-o x --%s%s%s", name, value ? "=" : "", value ? value : "");
	return check(words);
}

static void every_option_of_gprofiler(void **state)
{
	static const char *const with[] = { "alloc-interval", "perf-event-period", "hw-events-file",
					    "enable-heartbeat-server", "upload-results" }; /* need others */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		bool alone = true;
		int e = check_one(known[i].name, known[i].good);

		for (size_t j = 0; j < ARRAY_SIZE(with); j++)
			alone &= strcmp(with[j], known[i].name) != 0;
		if (e == EXIT_USAGE)
			print_message("  %s: %s\n", known[i].name, said);
		assert_true(alone ? e != EXIT_USAGE : e == EXIT_USAGE && !strstr(said, "unknown"));
		if (!known[i].bad)
			continue;
		assert_int_equal(check_one(known[i].name, known[i].bad), EXIT_USAGE);
		print_message("  %s\n", said);
		assert_non_null(strstr(said, known[i].name));
		assert_null(strchr(said, '\n'));
	}
}

/* Defaults as gProfiler's, where they have a meaning here. */
static void defaults(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "pid-file", "/var/run/gprofiler.pid" },
		{ "profiling-duration", "60" },
		{ "flamegraph", "true" },
		{ "mode", "cpu" },
		{ "heartbeat-interval", "30" },
		{ "server-host", "https://profiler.granulate.io" },
		{ "api-server", "https://api.granulate.io" },
		{ "server-upload-timeout", "120" },
		{ "verify", "true" },
		{ "log-file", "/var/log/gprofiler/gprofiler.log" },
		{ "log-rotate-max-size", "5242880" },
		{ "log-rotate-backup-count", "1" },
		{ "python-mode", "auto" },
		{ "perf-mode", "fp" },
		{ "perf-dwarf-stack-size", "8192" },
		{ "java-jattach-timeout", "30" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct opt *found = NULL;

		for (const struct opt_group *g = agent_option_groups; g->opts; g++)
			for (const struct opt *o = g->opts; o->name; o++)
				if (!strcmp(o->name, cases[i].name))
					found = o;
		must(found); /* an assertion of cmocka does not tell clang-tidy */
		assert_string_equal(found->fallback, cases[i].want);
	}
}

#define NO_RUNTIMES " --no-python --no-java --no-nodejs --no-ruby --no-php --no-perl"

/* A value that may be left out, words that are joined, and names that are cut short. */
static void forms(void **state)
{
	static const struct {
		const char *words;
		int want;
	} cases[] = {
		{ "-o x --java-safemode -c", EXIT_DONE },
		{ "-c --java-safemode all -o x", EXIT_DONE },
		{ "--java-safemode -o x", EXIT_DONE },
		{ "--java-safemode x -o", EXIT_USAGE },
		{ "-cvo x", EXIT_DONE },
		{ "-o x --profiling-dur 5 --contin", EXIT_DONE },
		{ "-o x --profiling 5", EXIT_USAGE },
		{ "-o x --no-per", EXIT_USAGE }, /* perf, perf-no-memory-restart */
		{ "-o x --no-perf" NO_RUNTIMES, EXIT_FAILED },
		{ "-o x --perf-mode none --python-mode disabled --java-mode none --nodejs-mode none --ruby-mode none "
		  "--php-mode disabled --perl-mode disabled",
		  EXIT_FAILED },
		{ "-o x --file-path y", EXIT_USAGE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int e = check(cases[i].words);

		print_message("  %s: %s\n", cases[i].words, said);
		assert_int_equal(e, cases[i].want);
	}
}

static void fargate(void **state)
{
	(void)state;
	setenv("AWS_EXECUTION_ENV", "AWS_ECS_FARGATE", 1);
	assert_int_equal(check("-o x"), EXIT_DONE);
	assert_int_equal(check("-o x" NO_RUNTIMES), EXIT_FAILED); /* nobody samples the system there */
	unsetenv("AWS_EXECUTION_ENV");
	assert_int_equal(check("-o x" NO_RUNTIMES), EXIT_DONE);
}

/* gProfiler's README and gprofiler/main.py: what it takes, and what it refuses with exit 2. */
static void what_goes_together(void **state)
{
	static const struct {
		const char *words;
		int want;
		const char *said;
	} cases[] = {
		{ "-o x", EXIT_DONE, "" },
		{ "-cd 60 -o x --rotating-output --no-flamegraph -f 11", EXIT_DONE, "" },
		{ "-o x --no-java --no-ruby --php-mode disabled --nodejs-mode none", EXIT_DONE, "" },
		{ "-o x --perf-mode smart -f 100 --perf-dwarf-stack-size 65528", EXIT_DONE, "" },
		{ "-o x --java-mode disabled --java-async-profiler-safemode 63", EXIT_DONE, "" },
		{ "-u -o x --token t --service-name s", EXIT_DONE, "" },
		{ "-o x --min-duration 5 --max-processes-runtime-profiler 3", EXIT_DONE, "" },
		{ "", EXIT_USAGE, "where to" },
		{ "-u -o x", EXIT_USAGE, "--token" },
		{ "-u -o x --token t", EXIT_USAGE, "--service-name" },
		{ "-o x -f 0", EXIT_USAGE, "--profiling-frequency" },
		{ "-o x -d 0", EXIT_USAGE, "--profiling-duration" },
		{ "-o x --alloc-interval 2mb", EXIT_USAGE, "--alloc-interval" },
		{ "-o x --mode allocation -f 5", EXIT_USAGE, "--profiling-frequency" },
		{ "-o x --perf-dwarf-stack-size 65529", EXIT_USAGE, "65528" },
		{ "-o x --perf-mode dwarf -f 101", EXIT_USAGE, "at most 100" },
		{ "-o x --perf-mode dwarf --nodejs-mode perf", EXIT_USAGE, "--nodejs-mode" },
		{ "-o x --no-perf --nodejs-mode attach-maps", EXIT_USAGE, "--nodejs-mode" },
		{ "-o x --profile-spawned-processes --pids 1", EXIT_USAGE, "--pids" },
		{ "-o x --enable-heartbeat-server", EXIT_USAGE, "--upload-results" },
		{ "-o x --perf-event-period 5", EXIT_USAGE, "--perf-event" },
		{ "-o x --perf-event cycles --perf-event-period 5 -f 3", EXIT_USAGE, "--perf-event-period" },
		{ "-o x --java-mode jfr", EXIT_USAGE, "--java-mode" },
		{ "-o x --python-mode nonsense", EXIT_USAGE, "--python-mode" },
		{ "-o x --java-async-profiler-safemode 64", EXIT_USAGE, "63" },
		{ "-o x --mode none", EXIT_FAILED, "all profilers are disabled" },
		{ "-o x --java-mode ap", EXIT_DONE, "" },
		{ "-u --token t --service-name s", EXIT_FAILED, "--output-dir" },
		{ "-o x --perf-event nonsense", EXIT_USAGE, "--perf-event" },
		{ "-o x --perf-event context-switches --perf-event-period 5", EXIT_DONE, "" },
		{ "-o x --mode allocation", EXIT_FAILED, "hearth java attach PID JFR.start" },
		{ "-o x --php-request", EXIT_USAGE, "hearth record" },
		{ "-o x --java-safemode", EXIT_DONE, "" },
		{ "-o x --java-safemode=", EXIT_DONE, "" },
		{ "-o x --java-safemode=\"\"", EXIT_DONE, "" },
		{ "-o x --java-safemode profiled-oom,profiled-signaled,hserr,general-oom,general-signaled", EXIT_DONE,
		  "" },
		{ "-o x --java-safemode pid-in-kernel-messages,java-extended-version-checks,ap-loaded-check", EXIT_DONE,
		  "" },
		{ "-o x --java-safemode hserr,word", EXIT_FAILED, "'word' is not one of" },
		{ "-o x --java-safemode hserr,", EXIT_FAILED, "'' is not one of" },
		{ "-o x --java-safemode all,hserr", EXIT_FAILED, "'all' is not one of" },
		{ "-o x --java-safemode word --no-java", EXIT_DONE, "" }, /* nobody looks at it */
		{ "-o x --java-safemode word --perf-event context-switches", EXIT_DONE, "" },
		{ "-o x --java-safemode java-extended-version-checks --java-no-version-check", EXIT_FAILED,
		  "do not go together" },
		{ "-o x --java-safemode --java-no-version-check", EXIT_FAILED, "do not go together" },
		{ "-o x --java-safemode hserr --java-no-version-check", EXIT_DONE, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int e = check(cases[i].words);

		print_message("  %s: %s\n", cases[i].words, said);
		assert_int_equal(e, cases[i].want);
		assert_non_null(strstr(said, cases[i].said));
	}
}

/* Two members are made of --nodejs-mode. */
static void arguments_of_nodejs(void **state)
{
	static const struct {
		const char *words, *want;
	} cases[] = {
		{ "-o x", "\"perf_inject\": false, \"perf_node_attach\": false" },
		{ "-o x --nodejs-mode perf", "\"perf_inject\": true, \"perf_node_attach\": false" },
		{ "-o x --nodejs-mode attach-maps", "\"perf_inject\": false, \"perf_node_attach\": true" },
		{ "-o x --nodejs-mode none", "\"perf_inject\": false, \"perf_node_attach\": false" },
		{ "-o x --nodejs-mode perf --no-nodejs", "\"perf_inject\": false, \"perf_node_attach\": false" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf json = BUF_INIT(MIB(1));

		assert_int_equal(check(cases[i].words), EXIT_DONE);
		assert_int_equal(agent_arguments_json(&checked, &json), 0);
		print_message("  %s\n", cases[i].words);
		assert_true(str_search(buf_str(&json), str_of(cases[i].want)) >= 0);
	}
}

static void names_that_are_left_out(void **state)
{
	(void)state;
	for (unsigned int without = 0; without < 4; without++) {
		scoped(freep) struct agent_options *o = calloc(1, sizeof(*o));
		scoped(window_release) struct window w = { 0 };
		struct model_process row = { .pid = 7 };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
		const struct model_process *left;

		assert_non_null(o);
		assert_int_equal(window_init(&w, MIB(1)), 0);
		assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
		assert_int_equal(model_add_string(w.model, STR("a-container"), &row.container), 0);
		assert_int_equal(model_add_string(w.model, STR("an-app"), &row.app_id), 0);
		assert_int_equal(model_add_process(w.model, &row, &sample.process), 0);
		assert_int_equal(model_add_sample(w.model, &sample, &(int64_t){ 3 }), 0);
		o->without_containers = without & 1;
		o->without_app_ids = without & 2;
		agent_options_leave_out(o, w.model);
		left = &w.model->processes[sample.process];
		assert_int_equal(left->container, without & 1 ? 0 : row.container);
		assert_int_equal(left->app_id, without & 2 ? 0 : row.app_id);
		assert_int_equal(left->pid, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_from_every_source),
		cmocka_unit_test(every_option_of_gprofiler),
		cmocka_unit_test(defaults),
		cmocka_unit_test(forms),
		cmocka_unit_test(fargate),
		cmocka_unit_test(what_goes_together),
		cmocka_unit_test(arguments_of_nodejs),
		cmocka_unit_test(names_that_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
