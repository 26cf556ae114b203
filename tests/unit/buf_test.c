/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/buf.h"

static void stops_at_its_maximum(void **state)
{
	scoped(buf_release) struct buf b = BUF_INIT(10);

	(void)state;
	buf_adds(&b, STR("12345678"));
	buf_adds(&b, STR("abc"));
	assert_int_equal(b.error, -E2BIG);
	buf_addc(&b, 'x'); /* sticks, although one byte would fit */
	assert_true(str_eq(buf_str(&b), STR("12345678")));
}

static void formats_and_terminates(void **state)
{
	scoped(buf_release) struct buf b = BUF_INIT(KIB(1));

	(void)state;
	buf_addf(&b, "%s-%d ", "a", 7);
	buf_addu64(&b, UINT64_MAX);
	buf_addu64(&b, 0);
	assert_string_equal(buf_cstr(&b), "a-7 184467440737095516150");
	assert_int_equal(b.len, strlen(b.ptr));
}

static int fill(void *ctx)
{
	scoped(buf_release) struct buf b = BUF_INIT(KIB(64));

	(void)ctx;
	for (int i = 0; i < 1000; i++)
		buf_adds(&b, STR("0123456789"));
	return b.error;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(fill, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_at_its_maximum),
		cmocka_unit_test(formats_and_terminates),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
