/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of gProfiler's through flag, environment and file; what may not stand together. */
#include "support.h"

#include <ctype.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/io.h"
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
	struct agent_options config = { 0 };
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

static int check(const char *words)
{
	const struct opt_dialect dialect = { .environment = "NOBODY_", .is_configargparse = true };
	const struct opt_spec spec = { .program = "agent", .groups = agent_option_groups, .dialect = &dialect };
	scoped(opt_result_release) struct opt_result result = { 0 };
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct agent_options config = { 0 };
	char program[] = "agent", text[300], *rest = text, *argv[32] = { program };
	int argc = 1, r;

	(void)snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	said[0] = 0;
	r = opt_parse(&spec, argc, argv, &config, &result, &why);
	if (r < 0) {
		(void)snprintf(said, sizeof(said), "%s", buf_cstr(&why));
		return EXIT_USAGE;
	}
	return agent_options_check(NULL, &config);
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
		{ "-o x --profile-spawned-processes --pids 1", EXIT_USAGE, "--pids" },
		{ "-o x --enable-heartbeat-server", EXIT_USAGE, "--upload-results" },
		{ "-o x --perf-event-period 5", EXIT_USAGE, "--perf-event" },
		{ "-o x --perf-event cycles --perf-event-period 5 -f 3", EXIT_USAGE, "--perf-event-period" },
		{ "-o x --java-mode jfr", EXIT_USAGE, "--java-mode" },
		{ "-o x --python-mode nonsense", EXIT_USAGE, "--python-mode" },
		{ "-o x --java-async-profiler-safemode 64", EXIT_USAGE, "63" },
		{ "-o x --mode none", EXIT_FAILED, "all profilers are disabled" },
		{ "-o x --mode allocation", EXIT_FAILED, "Java" },
		{ "-o x --java-mode ap", EXIT_FAILED, "Java" },
		{ "-u --token t --service-name s", EXIT_FAILED, "--output-dir" },
		{ "-o x --perf-event cycles", EXIT_FAILED, "--perf-event" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int e = check(cases[i].words);

		print_message("  %s: %s\n", cases[i].words, said);
		assert_int_equal(e, cases[i].want);
		assert_non_null(strstr(said, cases[i].said));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_from_every_source),
		cmocka_unit_test(what_goes_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
