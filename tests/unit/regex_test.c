/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns against texts; what is refused; patterns that make a backtracking engine run away. */
#include "support.h"

#include "query/regex.h"

static bool fits(const char *pattern, const char *text)
{
	struct regex re = { 0 };
	bool found;

	assert_int_equal(regex_compile(str_of(pattern), &re), 0);
	found = regex_fits(&re, str_of(text));
	regex_release(&re);
	return found;
}

static void matches(void **state)
{
	static const struct {
		const char *pattern, *fits, *fits_not; /* texts, blanks between them; _ is the empty one */
	} cases[] = {
		{ "", "_", "a" },
		{ "abc", "abc", "ab abcd xabc _" },
		{ "a|bc|d", "a bc d", "b c abc _ ad" },
		{ "a||b", "a _ b", "ab" },
		{ "(a|b)*c", "c abbac", "ab _ ca" },
		{ "x?a*b", "b xb aab xaab", "x xxb a" },
		{ "(ab)+", "ab abab", "_ aba" },
		{ "(a*)*", "_ aaaa", "b" },
		{ "(a?){3}b", "b ab aaab", "aaaab" },
		{ "a{2,4}", "aa aaaa", "a aaaaa _" },
		{ "(a|b){0,2}", "_ ab b", "aba" },
		{ "a{2,}", "aa aaaaaa", "a" },
		{ "a{0}b", "b", "ab" },
		{ "a{0,}", "_ aaa", "b" },
		{ "a{x}", "a{x}", "a" },
		{ ".+", "x \xc3\xa9", "_" },
		{ ".", "\xc3\xa9 \xff", "_ ab" },
		{ "\xc3\xa9+", "\xc3\xa9\xc3\xa9", "\xc3" },
		{ "[a-c]x", "ax cx", "dx x" },
		{ "[^a-c]", "d \xc3\xa9", "a _" },
		{ "[]a]+", "]a", "b" },
		{ "[a\\-]+", "a-a", "b" },
		{ "[a-]+", "-a", "b" },
		{ "[\\d.]+", "1.2", "a" },
		{ "[[:alpha:]]+", "aZ", "1" },
		{ "[[:^alpha:]]+", "12", "a" },
		{ "\\d+\\.\\w", "12.x", "12x a.x" },
		{ "\\D\\S\\W", "ab!", "1b! abc" },
		{ "(?i)GeT", "get GET", "gets" },
		{ "a(?i:B)c", "abc aBc", "abC" },
		{ "(?:ab)?c", "c abc", "ab" },
		{ "(?i)[^b]", "a", "b B" },
		{ "^abc$", "abc", "ab" },
		{ "a^b", "", "ab" },
		{ "\\x41\\x{e9}", "A\xc3\xa9", "A" },
		{ "\\Qa.b*\\Ec", "a.b*c", "aXb*c" },
		{ "a+?b*?", "a aabb", "b" },
		{ "(((a)))", "a", "b" },
		{ "service-(eu|us)\\..*", "service-eu.x service-us.", "service-xx.a" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int want = 0; want < 2; want++) {
			struct str rest = str_of(want ? cases[i].fits : cases[i].fits_not), word;

			print_message("  %s\n", cases[i].pattern);
			while (rest.len && str_next(&rest, ' ', &word)) {
				char text[64] = "";

				if (!str_eq(word, STR("_")))
					memcpy(text, word.ptr, word.len);
				assert_int_equal(fits(cases[i].pattern, text), want);
			}
		}
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *pattern;
		int want;
	} cases[] = {
		{ "(", -EBADMSG },           { ")", -EBADMSG },       { "a(b", -EBADMSG },
		{ "[", -EBADMSG },           { "[]", -EBADMSG },      { "[b-a]", -EBADMSG },
		{ "[[:nope:]]", -EBADMSG },  { "[a-\\d]", -EBADMSG }, { "*", -EBADMSG },
		{ "a**", -EBADMSG },         { "(*)", -EBADMSG },     { "a|*", -EBADMSG },
		{ "a{3,2}", -EBADMSG },      { "a{1001}", -EBADMSG }, { "\\", -EBADMSG },
		{ "\\b", -EBADMSG },         { "\\pL", -EBADMSG },    { "(?P<n>a)", -EBADMSG },
		{ "(?=a)", -EBADMSG },       { "(?i", -EBADMSG },     { "\\1", -EBADMSG },
		{ "\\x{110000}", -EBADMSG }, { "\\xf", -EBADMSG },    { "((a{100}){100}){100}", -E2BIG },
		{ "(?i)*", -EBADMSG },       { "^*", -EBADMSG },
	};
	char deep[REGEX_GROUPS_MAX + 2] = "", *large = calloc(REGEX_PATTERN_MAX + 2, 1);
	struct regex re = { 0 };

	(void)state;
	assert_non_null(large);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("  %s\n", cases[i].pattern);
		assert_int_equal(regex_compile(str_of(cases[i].pattern), &re), cases[i].want);
		assert_null(re.states);
	}
	memset(deep, '(', REGEX_GROUPS_MAX + 1);
	assert_int_equal(regex_compile(str_of(deep), &re), -E2BIG);
	memset(large, 'a', REGEX_PATTERN_MAX + 1);
	assert_int_equal(regex_compile(str_of(large), &re), -E2BIG);
	assert_int_equal(regex_compile(str_first(str_of(large), REGEX_PATTERN_MAX), &re), 0);
	regex_release(&re);
	free(large);
}

/* Steps are at most states times code points, also where others need 2^30. */
static void stays_linear(void **state)
{
	static const char *const patterns[] = { "(a*)*b",      "(a|aa)+b",        "(a|a)*b",
						"(.*)*(.*)*x", "(a?){500}a{500}", "((a{0,20}){0,20})" };
	char text[2049] = "";

	(void)state;
	memset(text, 'a', 2048);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		struct regex re = { 0 };

		assert_int_equal(regex_compile(str_of(patterns[i]), &re), 0);
		assert_false(regex_fits(&re, str_of(text)));
		assert_true(re.steps <= 2 * re.states_count * (sizeof(text) + 1));
		regex_release(&re);
	}
}

static int compile_once(void *ctx)
{
	struct regex re = { 0 };
	int r = regex_compile(STR("(a|[b-d]\\w){2,3}[^x]*"), &re);

	(void)ctx;
	if (r == 0)
		assert_true(regex_fits(&re, STR("acd!!")));
	regex_release(&re);
	return r;
}

static void survives_allocation_failure(void **state)
{
	(void)state;
	for_each_failing_allocation(compile_once, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches),
		cmocka_unit_test(refuses),
		cmocka_unit_test(stays_linear),
		cmocka_unit_test(survives_allocation_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
