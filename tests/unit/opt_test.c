/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <unistd.h>

#include "base/io.h"
#include "base/opt.h"

struct config {
	bool all, children;
	uint64_t frequency, duration_ns, size, room;
	const char *addr;
	size_t format;
	struct opt_list out;
};

static const char *const formats[] = { "html", "col", NULL };

static const struct opt opts[] = {
	{ "all", 'a', OPT_FLAG, .at = offsetof(struct config, all), .help = "every process" },
	{ "children", 0, OPT_FLAG, .at = offsetof(struct config, children), .fallback = "true",
	  .help = "children too" },
	{ "frequency", 'F', OPT_UINT, .at = offsetof(struct config, frequency), .min = 1, .max = 1000, .fallback = "99",
	  .arg = "HZ", .help = "samples per second" },
	{ "duration", 'd', OPT_DURATION, .at = offsetof(struct config, duration_ns), .arg = "TIME",
	  .help = "how long" },
	{ "ring", 0, OPT_SIZE, .at = offsetof(struct config, size), .fallback = "64K", .help = "bytes" },
	{ "room", 0, OPT_SIZE, .at = offsetof(struct config, room), .bare = "9K", .help = "bytes" },
	{ "addr", 0, OPT_TEXT, .at = offsetof(struct config, addr), .help = "where" },
	{ "format", 0, OPT_CHOICE, .at = offsetof(struct config, format), .choices = formats, .help = "format" },
	{ "output", 'o', OPT_LIST, .at = offsetof(struct config, out), .help = "file" },
	{ 0 },
};
static const struct opt_group groups[] = { { NULL, opts }, { 0 } };

static int parse(char *words, bool stop, struct config *config, struct opt_result *result, struct buf *why)
{
	struct opt_spec spec = { .program = "hearth test", .groups = groups, .stop_at_operand = stop };
	static char *argv[32];
	int argc = 0;

	argv[argc++] = (char *)(uintptr_t) "test";
	for (char *word = strtok_r(words, " ", &words); word; word = strtok_r(NULL, " ", &words))
		argv[argc++] = word;
	*config = (struct config){ 0 };
	return opt_parse(&spec, argc, argv, config, result, why);
}

static void takes_every_form(void **state)
{
	char words[] =
		"-aF 49 --duration=1.5s -addr localhost --no-children --format col -o x -oy --ring 2M op1 --all op2";
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct config config;

	(void)state;
	assert_int_equal(parse(words, false, &config, &result, &why), 0);
	assert_true(config.all && !config.children);
	assert_int_equal(config.frequency, 49);
	assert_int_equal(config.duration_ns, 1500 * NSEC_PER_MSEC);
	assert_string_equal(config.addr, "localhost");
	assert_int_equal(config.format, 1);
	assert_int_equal(config.out.count, 2);
	assert_string_equal(config.out.items[1], "y");
	assert_int_equal(config.size, MIB(2));
	assert_int_equal(result.operand_count, 2);
	assert_string_equal(result.operands[1], "op2");
}

static void a_command_keeps_its_options(void **state)
{
	char words[] = "-F 49 prog -addr -F 7";
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct config config;

	(void)state;
	assert_int_equal(parse(words, true, &config, &result, &why), 0);
	assert_int_equal(config.frequency, 49);
	assert_int_equal(result.operand_count, 4);
	assert_string_equal(result.operands[1], "-addr");
}

static void a_value_may_be_left_out(void **state)
{
	static const struct {
		const char *words;
		bool stop;
		uint64_t want;
		int operands;
	} cases[] = {
		{ "--room -a op", false, KIB(9), 1 },        { "--room 3K op", false, KIB(3), 1 },
		{ "--room=4K op", false, KIB(4), 1 },        { "op --room", false, KIB(9), 1 },
		{ "-room 3K -a", false, KIB(3), 0 },         { "-room", false, KIB(9), 0 },
		{ "-o --room --room 3K", false, KIB(3), 0 }, { "--room 3K op --room 4K", true, KIB(3), 3 },
		{ "-a -- --room 3K", false, 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(freep) char *words = strdup(cases[i].words);
		scoped(opt_result_release) struct opt_result result;
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		struct config config;

		print_message("  %s\n", cases[i].words);
		assert_int_equal(parse(words, cases[i].stop, &config, &result, &why), 0);
		assert_int_equal(config.room, cases[i].want);
		assert_int_equal(result.operand_count, cases[i].operands);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *words, *message;
	} cases[] = {
		{ "-F abc", "--frequency: 'abc' is not a whole number" },
		{ "-F 0", "--frequency: 0 is not from 1 to 1000" },
		{ "-F 1001", "--frequency: 1001 is not from 1 to 1000" },
		{ "-d 5y", "--duration: '5y' is not a time such as 10, 1.5s, 200ms or 2m" },
		{ "--format svg", "--format: 'svg' is not one of html, col" },
		{ "--nonsense", "unknown or ambiguous option '--nonsense'; --help lists them" },
		{ "-Z", "unknown option '-Z'; --help lists them" },
		{ "-o", "option '-o' needs a value; --help lists them" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(freep) char *words = strdup(cases[i].words);
		scoped(opt_result_release) struct opt_result result;
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		struct config config;

		print_message("  %s\n", cases[i].words);
		assert_int_equal(parse(words, false, &config, &result, &why), -EINVAL);
		assert_string_equal(buf_cstr(&why), cases[i].message);
	}
}

static void flags_win_over_environment_over_file(void **state)
{
	char path[] = "/tmp/hearth-opt-XXXXXX", words[200];
	int fd = mkstemp(path);
	static const char text[] = "# comment\n frequency = 10 \nring=1M\nformat = col\nall\naddr = a b\n";
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct config config;

	(void)state;
	assert_int_equal(io_write_all(fd, text, sizeof(text) - 1), 0);
	close(fd);
	setenv("HEARTH_FREQUENCY", "20", 1);
	setenv("HEARTH_RING", "3M", 1);
	(void)snprintf(words, sizeof(words), "-F 30 --config %s", path);
	assert_int_equal(parse(words, false, &config, &result, &why), 0);
	unsetenv("HEARTH_FREQUENCY");
	unsetenv("HEARTH_RING");
	unlink(path);
	assert_int_equal(config.frequency, 30);
	assert_int_equal(config.size, MIB(3));
	assert_int_equal(config.format, 1);
	assert_true(config.all);
	assert_string_equal(config.addr, "a b");
}

static void a_file_that_is_too_large(void **state)
{
	char path[] = "/tmp/hearth-opt-XXXXXX", words[200];
	int fd = mkstemp(path);
	scoped(opt_result_release) struct opt_result result;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct config config;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, MIB(1) + 1), 0);
	close(fd);
	(void)snprintf(words, sizeof(words), "--config %s", path);
	assert_int_equal(parse(words, false, &config, &result, &why), -E2BIG);
	unlink(path);
	assert_true(str_ends(buf_str(&why), STR(": too large")));
}

static const struct opt_dialect other = { .environment = "OTHER_", .is_configargparse = true };

/* @texts: the items of the list, else the address. */
static int parse_with(const char *file, const char *words, struct config *config, struct buf *texts, struct buf *why)
{
	char path[] = "/tmp/hearth-opt-XXXXXX", text[200], *rest = text;
	struct opt_dialect dialect = other;
	struct opt_spec spec = { .program = "other", .groups = groups, .dialect = &dialect };
	struct opt_result result;
	char *argv[32];
	int argc = 0, fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, file, strlen(file)), 0);
	close(fd);
	dialect.file = path;
	(void)snprintf(text, sizeof(text), "%s", words);
	argv[argc++] = path;
	for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	*config = (struct config){ 0 };
	r = opt_parse(&spec, argc, argv, config, &result, why);
	unlink(path);
	for (size_t i = 0; texts && r == 0 && i < config->out.count; i++)
		buf_addf(texts, "%s|", config->out.items[i]);
	if (texts && r == 0 && !texts->len)
		buf_adds(texts, str_of(config->addr));
	opt_result_release(&result); /* texts of the file are gone */
	return r;
}

static int parse_other(const char *file, const char *words, struct config *config, struct buf *why)
{
	return parse_with(file, words, config, NULL, why);
}

/* ConfigArgParse 1.7: configargparse.py, DefaultConfigFileParser and get_possible_config_keys(). */
static void keeps_another_programs_habits(void **state)
{
	static const char file[] = "; comment\n[section]\n---\nfrequency: 10\nduration 5\nformat = col\nall\n"
				   "no-children = true\noutput = [a, b , c]\n";
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct config config;

	(void)state;
	setenv("OTHER_RING", "3M", 1);
	setenv("HEARTH_RING", "4M", 1);
	assert_int_equal(parse_other(file, "", &config, &why), 0);
	assert_int_equal(config.frequency, 10);
	assert_int_equal(config.duration_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(config.format, 1);
	assert_true(config.all && !config.children);
	assert_int_equal(config.out.count, 3);
	assert_int_equal(config.size, MIB(3));
	unsetenv("OTHER_RING");
	unsetenv("HEARTH_RING");
	setenv("OTHER_NO_CHILDREN", "yes", 1);
	setenv("OTHER_OUTPUT", "d", 1);
	assert_int_equal(parse_other("output = a\noutput = b\n", "", &config, &why), 0);
	assert_true(!config.children && config.out.count == 1);
	assert_int_equal(parse_other("output = a\n", "-o x -o y", &config, &why), 0);
	assert_int_equal(config.out.count, 2);
	setenv("OTHER_NO_CHILDREN", "0", 1); /* the switch is not there */
	assert_int_equal(parse_other("", "", &config, &why), 0);
	assert_true(config.children);
	setenv("OTHER_NO_CHILDREN", "maybe", 1);
	assert_int_equal(parse_other("", "", &config, &why), -EINVAL);
	assert_string_equal(buf_cstr(&why), "--no-children: 'maybe' is not true or false (from the environment: "
					    "OTHER_NO_CHILDREN)");
	unsetenv("OTHER_NO_CHILDREN");
	unsetenv("OTHER_OUTPUT");
	assert_int_equal(parse_other("no-frequency = true\n", "", &config, &why), -EINVAL);
	assert_int_equal(parse_other("room\nall: TRUE\n", "", &config, &why), 0);
	assert_true(config.room == KIB(9) && config.all);
}

static void takes_quotes_and_comments_away(void **state)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "addr = a # b", "a" },       { "addr = a ; b", "a" },       { "addr = a#b;c", "a#b;c" },
		{ "addr = \"a b\"", "a b" },   { "addr: 'a b' # c", "a b" },  { "addr \"a # b\"", "a # b" },
		{ "addr = \"a", "\"a" },       { "addr = \"a\"b", "\"a\"b" }, { "addr = \"\"", "" },
		{ "addr = # c", "" },          { "addr=#c", "#c" },           { "addr = 'a'b' #c", "a'b" },
		{ "addr = \"a\"#", "\"a\"#" }, { "---- x\naddr = a", "a" },   { "addr = it's # so", "it's" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1)), addr = BUF_INIT(KIB(1));
		struct config config;

		print_message("  %s\n", cases[i].line);
		assert_int_equal(parse_with(cases[i].line, "", &config, &addr, &why), 0);
		assert_string_equal(buf_cstr(&addr), cases[i].want);
	}
	for (int with_quotes = 0; with_quotes < 2; with_quotes++) {
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1)), items = BUF_INIT(KIB(1));
		struct config config;

		assert_int_equal(
			parse_with(with_quotes ? "output = [\"a,x\", \"b\" , \"\"]" : "output = [a, b\"c, ] # d", "",
				   &config, &items, &why),
			0);
		assert_string_equal(buf_cstr(&items), with_quotes ? "a,x|b|" : "a|b\"c|");
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint64_t ns;
	} cases[] = {
		{ "10", 0, 10 * NSEC_PER_SEC },
		{ "0.1s", 0, 100 * NSEC_PER_MSEC },
		{ "200ms", 0, 200 * NSEC_PER_MSEC },
		{ "2m", 0, 120 * NSEC_PER_SEC },
		{ "1h", 0, 3600 * NSEC_PER_SEC },
		{ "", -EBADMSG, 0 },
		{ "s", -EBADMSG, 0 },
		{ "1.s", -EBADMSG, 0 },
		{ "1.0000000001s", -EBADMSG, 0 },
		{ "-1", -EBADMSG, 0 },
		{ "99999999999999999999", -EBADMSG, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 0;

		print_message("  '%s'\n", cases[i].text);
		assert_int_equal(opt_parse_duration(str_of(cases[i].text), &ns), cases[i].want);
		assert_true(ns == cases[i].ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_form),
		cmocka_unit_test(a_command_keeps_its_options),
		cmocka_unit_test(a_value_may_be_left_out),
		cmocka_unit_test(refuses),
		cmocka_unit_test(flags_win_over_environment_over_file),
		cmocka_unit_test(a_file_that_is_too_large),
		cmocka_unit_test(keeps_another_programs_habits),
		cmocka_unit_test(takes_quotes_and_comments_away),
		cmocka_unit_test(durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
