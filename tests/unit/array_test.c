/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/array.h"

static void grows_to_its_maximum(void **state)
{
	uint32_t *items = NULL;
	size_t count = 0, cap = 0;

	(void)state;
	while (array_grow(&items, &cap, count, 1000) == 0) {
		items[count] = (uint32_t)count;
		count++;
	}
	assert_int_equal(count, 1000);
	assert_int_equal(array_grow(&items, &cap, count, 1000), -E2BIG);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i);
	free(items);
}

static void reserves_what_is_asked_for(void **state)
{
	uint32_t *items = NULL, *before;
	size_t cap = 0;

	(void)state;
	assert_int_equal(array_reserve(&items, &cap, 0), 0);
	assert_null(items);
	assert_int_equal(array_reserve(&items, &cap, 100), 0);
	assert_int_equal(cap, 100);
	before = items;
	assert_int_equal(array_reserve(&items, &cap, 99), 0);
	assert_int_equal(array_reserve(&items, &cap, SIZE_MAX / 2), -ENOMEM);
	assert_ptr_equal(items, before);
	assert_int_equal(cap, 100);
	free(items);
}

static void trims_to_what_is_used(void **state)
{
	uint32_t *items = NULL;
	size_t count = 0, cap = 0;

	(void)state;
	array_trim(&items, &cap, count); /* nothing is fine */
	assert_null(items);
	for (; count < 40; count++) {
		assert_int_equal(array_grow(&items, &cap, count, 1000), 0);
		items[count] = (uint32_t)count;
	}
	assert_true(cap > count);
	array_trim(&items, &cap, count);
	assert_int_equal(cap, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i);
	assert_int_equal(array_grow(&items, &cap, count, 1000), 0);
	assert_true(cap > count);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(grows_to_its_maximum),
					    cmocka_unit_test(reserves_what_is_asked_for),
					    cmocka_unit_test(trims_to_what_is_used) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
