/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "codec/gzip.h"

#define OUT_MAX MIB(8)

/* "hearth\n" as gzip 1.12 packs it: gzip -n. */
#define HEARTH_HEX "1f8b0800000000000003cb484d2c2ac9e00200c2bd610607000000"

static void add_random(struct buf *out, size_t size)
{
	uint64_t x = 88172645463325252;

	for (size_t i = 0; i < size; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		buf_addc(out, (char)(x >> 32));
	}
}

static int unpack(struct str packed, size_t size_max, size_t ratio_max, struct buf *out)
{
	struct cur in = guard_page(packed.ptr, packed.len);

	return gzip_unpack(str_n((const char *)in.pos, packed.len), size_max, ratio_max, out);
}

static void packs_and_unpacks(void **state)
{
	static const size_t sizes[] = { 0, 1, 255, 4096, 1000003 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (int level = 1; level <= 12; level += i < 4 ? 1 : 11) {
			scoped(buf_release) struct buf plain = BUF_INIT(OUT_MAX), packed = BUF_INIT(OUT_MAX),
						       again = BUF_INIT(OUT_MAX), back = BUF_INIT(OUT_MAX);

			add_random(&plain, sizes[i]);
			assert_int_equal(gzip_pack(buf_str(&plain), level, &packed), 0);
			assert_int_equal(gzip_pack(buf_str(&plain), level, &again), 0);
			assert_true(gzip_is(buf_str(&packed)));
			assert_true(str_eq(buf_str(&packed), buf_str(&again)));
			assert_int_equal(unpack(buf_str(&packed), OUT_MAX, 0, &back), 0);
			assert_true(str_eq(buf_str(&plain), buf_str(&back)));
		}
	}
}

static void appends(void **state)
{
	scoped(buf_release) struct buf packed = BUF_INIT(OUT_MAX), back = BUF_INIT(OUT_MAX);

	(void)state;
	assert_int_equal(gzip_pack(STR("one "), 6, &packed), 0);
	assert_int_equal(gzip_pack(STR("two"), 9, &packed), 0);
	buf_adds(&back, STR("before: "));
	assert_int_equal(unpack(buf_str(&packed), OUT_MAX, 0, &back), 0);
	assert_true(str_eq(buf_str(&back), STR("before: one two"))); /* all members */
}

struct unpack_case {
	const char *name, *hex;
	size_t size_max;
	int want;
};

static void unpacks_or_refuses(void **state)
{
	static const struct unpack_case cases[] = {
		{ "good", HEARTH_HEX, 7, 0 },
		{ "one byte too many", HEARTH_HEX, 6, -E2BIG },
		{ "none allowed", HEARTH_HEX, 0, -E2BIG },
		{ "empty", "", 100, -EBADMSG },
		{ "magic only", "1f8b", 100, -EBADMSG },
		{ "cut off", "1f8b0800000000000003cb484d2c2ac9e00200c2bd6106070000", 100, -EBADMSG },
		{ "wrong CRC", "1f8b0800000000000003cb484d2c2ac9e00200c3bd610607000000", 100, -EBADMSG },
		{ "wrong length", "1f8b0800000000000003cb484d2c2ac9e00200c2bd610608000000", 100, -EBADMSG },
		{ "rubbish behind", HEARTH_HEX "00", 100, -EBADMSG },
		{ "second member over the limit", HEARTH_HEX HEARTH_HEX, 13, -E2BIG },
		{ "another method", "1f8b0700000000000003cb484d2c2ac9e00200c2bd610607000000", 100, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		struct cur in = guard_page_hex(cases[i].hex);

		print_message("  %s\n", cases[i].name);
		buf_adds(&out, STR("x"));
		assert_int_equal(gzip_unpack(cur_rest(&in), cases[i].size_max, 0, &out), cases[i].want);
		assert_true(str_eq(buf_str(&out), cases[i].want ? STR("x") : STR("xhearth\n")));
	}
}

static void says_which_member_failed(void **state)
{
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	struct cur in = guard_page_hex(HEARTH_HEX "1f8b0800000000000003cb484d");
	size_t at;

	(void)state;
	assert_int_equal(gzip_unpack_at(cur_rest(&in), OUT_MAX, 0, &out, &at), -EBADMSG);
	assert_int_equal(at, sizeof(HEARTH_HEX) / 2);
	assert_int_equal(out.len, 0);
}

static void limits_the_ratio(void **state)
{
	scoped(buf_release) struct buf plain = BUF_INIT(OUT_MAX), packed = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);

	(void)state;
	for (size_t i = 0; i < MIB(4); i++)
		buf_addc(&plain, 0);
	assert_int_equal(gzip_pack(buf_str(&plain), 9, &packed), 0);
	assert_true(packed.len < KIB(8));
	assert_int_equal(unpack(buf_str(&packed), OUT_MAX, 2, &out), -E2BIG);
	assert_int_equal(out.len, 0);
	assert_int_equal(unpack(buf_str(&packed), OUT_MAX, 0, &out), 0);
	assert_int_equal(out.len, plain.len);
}

static int round_trip(void *ctx)
{
	scoped(buf_release) struct buf packed = BUF_INIT(OUT_MAX), back = BUF_INIT(OUT_MAX);
	int r = gzip_pack(*(struct str *)ctx, 6, &packed);

	return r ? r : gzip_unpack(buf_str(&packed), OUT_MAX, 0, &back);
}

static void survives_failing_allocations(void **state)
{
	struct str text = STR("some text, and some text, and some text");

	(void)state;
	for_each_failing_allocation(round_trip, &text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_and_unpacks),  cmocka_unit_test(appends),
		cmocka_unit_test(unpacks_or_refuses), cmocka_unit_test(says_which_member_failed),
		cmocka_unit_test(limits_the_ratio),   cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
