/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/base.h"

struct varint_case {
	const char *name, *hex;
	int want;
	uint64_t value;
};

static void uvarint_reads(void **state)
{
	static const struct varint_case cases[] = {
		{ "zero", "00", 0, 0 },
		{ "one byte", "7f", 0, 127 },
		{ "two bytes", "8001", 0, 128 },
		{ "padded", "808000", 0, 0 },
		{ "largest", "ffffffffffffffffff01", 0, UINT64_MAX },
		{ "empty", "", -EBADMSG, 7 },
		{ "unfinished", "8080", -EBADMSG, 7 },
		{ "bit 64 set", "ffffffffffffffffff02", -EOVERFLOW, 7 },
		{ "eleven bytes", "8080808080808080808001", -EBADMSG, 7 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page_hex(cases[i].hex);
		uint64_t value = 7;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(cur_uvarint(&in, &value), cases[i].want);
		assert_int_equal(value, cases[i].value);
		assert_int_equal(in.bad, cases[i].want < 0);
	}
}

static void short_reads_stick(void **state)
{
	struct cur in = guard_page_hex("010203");

	(void)state;
	assert_int_equal(cur_le16(&in), 0x0201);
	assert_int_equal(cur_le16(&in), 0);
	assert_true(in.bad);
	assert_int_equal(cur_u8(&in), 0); /* the third byte is not handed out after a failure */
	assert_int_equal(cur_left(&in), 0);
}

static void cstr_needs_its_end(void **state)
{
	struct cur whole = guard_page("ab\0c", 4);

	(void)state;
	assert_true(str_eq(cur_cstr(&whole), STR("ab")));
	assert_int_equal(cur_cstr(&whole).len, 0);
	assert_true(whole.bad);
}

static void sub_is_bounded(void **state)
{
	struct cur in = guard_page_hex("0102030405");
	struct cur sub = cur_sub(&in, 2), beyond;

	(void)state;
	assert_int_equal(cur_le32(&sub), 0);
	assert_true(sub.bad);
	assert_int_equal(cur_u8(&in), 3);
	beyond = cur_sub(&in, 3);
	assert_true(beyond.bad && in.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uvarint_reads),
		cmocka_unit_test(short_reads_stick),
		cmocka_unit_test(cstr_needs_its_end),
		cmocka_unit_test(sub_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
