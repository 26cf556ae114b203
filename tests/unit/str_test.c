/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/str.h"

static void numbers(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 9 },
		{ "", -EBADMSG, 9 },
		{ "-1", -EBADMSG, 9 },
		{ "+1", -EBADMSG, 9 },
		{ " 1", -EBADMSG, 9 },
		{ "1 ", -EBADMSG, 9 },
		{ "1x", -EBADMSG, 9 },
	};
	int64_t negative;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 9;

		print_message("  '%s'\n", cases[i].text);
		assert_int_equal(str_to_u64(str_of(cases[i].text), 0, UINT64_MAX, &value), cases[i].want);
		assert_true(value == cases[i].value);
	}
	assert_int_equal(str_to_i64(STR("-9223372036854775808"), &negative), 0);
	assert_true(negative == INT64_MIN);
	assert_int_equal(str_to_i64(STR("9223372036854775808"), &negative), -ERANGE);
}

static void pieces(void **state)
{
	struct str rest = STR("a,,b"), piece;

	(void)state;
	assert_true(str_next(&rest, ',', &piece) && str_eq(piece, STR("a")));
	assert_true(str_next(&rest, ',', &piece) && str_eq(piece, STR("")));
	assert_true(str_next(&rest, ',', &piece) && str_eq(piece, STR("b")));
	assert_false(str_next(&rest, ',', &piece));
	rest = STR("");
	assert_true(str_next(&rest, ',', &piece));
	assert_false(str_next(&rest, ',', &piece));
}

static void search(void **state)
{
	(void)state;
	assert_int_equal(str_rfind(STR("a/b/c"), '/'), 3);
	assert_true(str_eq(str_base(STR("/usr/bin/x")), STR("x")));
	assert_true(str_eq(str_base(STR("x")), STR("x")));
	assert_int_equal(str_search(STR("hello"), STR("ll")), 2);
	assert_int_equal(str_search(STR("hello"), STR("lx")), -1);
	assert_true(str_ends(STR("a.pb.gz"), STR(".pb.gz")));
	assert_false(str_ends(STR("gz"), STR(".pb.gz")));
	assert_true(str_cmp(STR("ab"), STR("abc")) < 0);
	assert_true(str_eq(str_trim(STR(" \t x y\n")), STR("x y")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(pieces),
		cmocka_unit_test(search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
