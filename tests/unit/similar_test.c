/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/similar.h"

static void finds(void **state)
{
	static const char *const words[] = {
		"record", "report", "convert", "container", "container-socket", "up", NULL
	};
	static const struct {
		const char *typed, *want;
	} cases[] = {
		{ "recrod", "record" },
		{ "reprot", "report" },
		{ "reocrd", "record" },
		{ "covnert", "convert" },
		{ "contaner", "container" },
		{ "conv", "convert" },
		{ "contain", "container" },
		{ "ip", "up" },
		{ "record", "record" },
		{ "xyzzy", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a-word-that-is-much-longer-than-any-of-the-others-could-ever-be-here-or-there", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur bytes = guard_page(cases[i].typed, strlen(cases[i].typed));
		struct similar s = similar_to(cur_rest(&bytes));

		print_message("  '%s'\n", cases[i].typed);
		for (size_t w = 0; words[w]; w++)
			similar_offer(&s, words[w]);
		if (cases[i].want)
			assert_string_equal(s.best, cases[i].want);
		else
			assert_null(s.best);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
