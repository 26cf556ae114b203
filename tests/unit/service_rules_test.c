/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "proc/service_rules.h"

static void patterns_fit(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool fits;
	} cases[] = {
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "a*", "abc", true },
		{ "*c", "abc", true },
		{ "a*c", "abbc", true },
		{ "a*c", "abcd", false },
		{ "*", "", true },
		{ "?", "", false },
		{ "?", "x", true },
		{ "a?c", "abc", true },
		{ "*ab*ab*", "xabyab", true },
		{ "*ab*ab*", "xab", false },
		{ "/opt/*/bin/*", "/opt/a/b/bin/c", true },
		{ "[a]", "a", false },
		{ "\\*", "\\x", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s %s\n", cases[i].pattern, cases[i].text);
		assert_int_equal(service_rules_fits(str_of(cases[i].pattern), str_of(cases[i].text)), cases[i].fits);
	}
}

static void the_first_rule_wins(void **state)
{
	static const char text[] = "# services of ours\n\n  exe /opt/*/shop   ->   shop front  \n"
				   "command *a -> b* -> arrow\r\nexe /opt/* -> rest\ncomm x -> y";
	struct str fields[SERVICE_RULE_FIELD_COUNT] = { [SERVICE_RULE_EXE] = STR("/opt/a/shop") };
	scoped(service_rules_freep) struct service_rules *rules = NULL;
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));

	(void)state;
	assert_int_equal(service_rules_parse(str_of(text), &why, &rules), 0);
	assert_int_equal(service_rules_count(rules), 4);
	assert_true(service_rules_ask(rules, SERVICE_RULE_COMMAND) && !service_rules_ask(rules, SERVICE_RULE_UNIT));
	assert_false(service_rules_ask(NULL, SERVICE_RULE_EXE));
	assert_true(str_eq(service_rules_find(rules, fields), STR("shop front")));
	fields[SERVICE_RULE_EXE] = STR("/opt/a/other");
	assert_true(str_eq(service_rules_find(rules, fields), STR("rest")));
	fields[SERVICE_RULE_COMMAND] = STR("run a -> bc");
	assert_true(str_eq(service_rules_find(rules, fields), STR("arrow")));
	fields[SERVICE_RULE_COMMAND] = fields[SERVICE_RULE_EXE] = STR("");
	assert_int_equal(service_rules_find(rules, fields).len, 0);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "exe /a -> b\npath /a -> b", "line 2: begins with none of" },
		{ "exe /a b", "line 1: is no" },
		{ "exe -> b", "line 1: the pattern is empty" },
		{ "-> b", "line 1: begins with none of" },
		{ "exe /a ->", "line 1: is no" },
		{ "exe", "line 1: is no" },
		{ "exe /a -> \xff", "line 1: the name has control" },
		{ "exe /a -> a\x1b[1m", "line 1: the name has control" },
		{ "exe /a -> \xe2\x80\xaeq", "line 1: the name has control" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct service_rules *rules = (void *)1;
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));

		assert_int_equal(service_rules_parse(str_of(cases[i].text), &why, &rules), -EBADMSG);
		assert_ptr_equal(rules, (void *)1);
		print_message("  %s\n", buf_cstr(&why));
		assert_true(str_starts(buf_str(&why), str_of(cases[i].why)));
	}
}

/* @error: what @count lines make of it. */
static void limit_of(size_t count, const char *line, int error)
{
	scoped(service_rules_freep) struct service_rules *rules = NULL;
	scoped(buf_release) struct buf text = BUF_INIT(MIB(2)), why = BUF_INIT(KIB(1));

	for (size_t i = 0; i < count; i++)
		buf_adds(&text, str_of(line));
	assert_int_equal(text.error, 0);
	assert_int_equal(service_rules_parse(buf_str(&text), &why, &rules), error);
	assert_true((why.len != 0) == (error != 0));
}

static void limits_hold(void **state)
{
	char line[KIB(2)];

	(void)state;
	limit_of(SERVICE_RULES_MAX, "exe a -> b\n", 0);
	limit_of(SERVICE_RULES_MAX + 1, "exe a -> b\n", -E2BIG);
	limit_of(MIB(1) / 16 + 1, "# sixteen bytes\n", -E2BIG);
	(void)snprintf(line, sizeof(line), "exe %0*d -> b\n", SERVICE_RULE_PATTERN_MAX, 0);
	limit_of(1, line, 0);
	(void)snprintf(line, sizeof(line), "exe %0*d -> b\n", SERVICE_RULE_PATTERN_MAX + 1, 0);
	limit_of(1, line, -EBADMSG);
	(void)snprintf(line, sizeof(line), "exe a -> %0*d\n", SERVICE_RULE_NAME_MAX, 0);
	limit_of(1, line, 0);
	(void)snprintf(line, sizeof(line), "exe a -> %0*d\n", SERVICE_RULE_NAME_MAX + 1, 0);
	limit_of(1, line, -EBADMSG);
}

static void memory_may_end(void **state)
{
	bool done = false;

	(void)state;
	for (int nth = 1; !done; nth++) {
		struct service_rules *rules = NULL;
		scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
		int r;

		fail_allocation(nth);
		r = service_rules_parse(STR("exe a -> b\nunit c -> d\n"), &why, &rules);
		done = !allocation_failed();
		assert_int_equal(r, done ? 0 : -ENOMEM);
		service_rules_free(rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_fit),          cmocka_unit_test(the_first_rule_wins),
		cmocka_unit_test(what_is_wrong_is_said), cmocka_unit_test(limits_hold),
		cmocka_unit_test(memory_may_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
