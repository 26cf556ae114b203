/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/utf8.h"

#define BAD "\xef\xbf\xbd"

static void cleans(void **state)
{
	static const struct {
		const char *name, *in, *out;
	} cases[] = {
		{ "plain", "main", "main" },
		{ "separator", "a;b", "a|b" },
		{ "controls", "a\nb\tc\x7f", "a?b?c?" },
		{ "ends of lines",
		  "a\xc2\x85"
		  "b\xe2\x80\xa8"
		  "c\xe2\x80\xa9"
		  "d\xe2\x80\xaa\xc2\xa0",
		  "a?b?c?d\xe2\x80\xaa\xc2\xa0" },
		{ "controls above ASCII", "\xc2\x80\xc2\x9b[2J\xc2\x9f", "??[2J?" },
		{ "kept", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5" },
		{ "lone continuation", "a\x80z", "a" BAD "z" },
		{ "overlong slash", "\xc0\xaf", BAD BAD },
		{ "surrogate", "\xed\xa0\x80", BAD BAD BAD },
		{ "above the last", "\xf4\x90\x80\x80", BAD BAD BAD BAD },
		{ "cut off", "\xe2\x82", BAD BAD },
		{ "cut, then text",
		  "\xe2"
		  "a",
		  BAD "a" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(KIB(1));
		struct cur in = guard_page(cases[i].in, strlen(cases[i].in));

		print_message("  %s\n", cases[i].name);
		utf8_clean(&out, cur_rest(&in), '|');
		assert_string_equal(buf_cstr(&out), cases[i].out);
		assert_true(utf8_valid(buf_str(&out)));
	}
}

static void uncuts(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "a\xc3", "a" },
		{ "a\xe2\x82", "a" },
		{ "a\xf0\x9f\x98", "a" },
		{ "a\xc3\xa9", "a" }, /* who knows? */
		{ "a\x80\x80\x80\x80", "a\x80\x80\x80\x80" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page(cases[i].in, strlen(cases[i].in));

		assert_true(str_eq(utf8_uncut(cur_rest(&in)), str_of(cases[i].out)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cleans), cmocka_unit_test(uncuts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
