/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdio.h>

#include "base/intern.h"

static int add_many(void *ctx)
{
	scoped(intern_release) struct intern in;
	int r = 0;

	(void)ctx;
	intern_init(&in, MIB(1));
	for (uint32_t i = 0; i < 3000 && r == 0; i++) {
		char text[32];
		int size = snprintf(text, sizeof(text), "name %u", i % 1500);
		uint32_t id = 0;

		r = intern_add(&in, str_n(text, (size_t)size), &id);
		if (r == 0)
			assert_int_equal(id, i % 1500 + 1);
	}
	if (r == 0) {
		assert_int_equal(intern_count(&in), 1501);
		assert_true(str_eq(intern_get(&in, 1), STR("name 0")));
		assert_true(str_eq(intern_get(&in, 1500), STR("name 1499")));
	}
	return r;
}

static void equal_text_equal_id(void **state)
{
	(void)state;
	assert_int_equal(add_many(NULL), 0);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(add_many, NULL);
}

static void odd_strings(void **state)
{
	scoped(intern_release) struct intern in;
	uint32_t empty, nul, nuls, found;

	(void)state;
	intern_init(&in, 8);
	assert_int_equal(intern_find(&in, STR("x"), &found), -ENOENT);
	assert_int_equal(intern_add(&in, STR(""), &empty), 0);
	assert_int_equal(intern_add(&in, str_n("\0", 1), &nul), 0);
	assert_int_equal(intern_add(&in, str_n("\0\0", 2), &nuls), 0);
	assert_int_equal(empty, 0);
	assert_true(nul != nuls);
	assert_int_equal(intern_find(&in, str_n("\0\0", 2), &found), 0);
	assert_int_equal(found, nuls);
	assert_int_equal(intern_add(&in, STR("123456"), &found), -E2BIG);
	assert_int_equal(intern_count(&in), 3);
}

static void all_at_once(void **state)
{
	scoped(intern_release) struct intern in, from;
	uint32_t found[601] = { 0 }, id;

	(void)state;
	intern_init(&in, MIB(1));
	intern_init(&from, MIB(1));
	intern_find_all(&in, &from, found); /* of nothing in nothing */
	for (uint32_t i = 1; i <= 600; i++) {
		char text[32];
		int size = snprintf(text, sizeof(text), "name %u", i);

		assert_int_equal(intern_add(&from, str_n(text, (size_t)size), &id), 0);
	}
	intern_find_all(&in, &from, found);
	for (uint32_t i = 1; i <= 600; i++)
		assert_int_equal(found[i], 0);
	for (uint32_t i = 600; i; i -= 2)
		assert_int_equal(intern_add(&in, intern_get(&from, i), &id), 0);
	intern_find_all(&in, &from, found);
	for (uint32_t i = 1; i <= 600; i++) {
		id = 0;
		assert_int_equal(intern_find(&in, intern_get(&from, i), &id), i % 2 ? -ENOENT : 0);
		assert_int_equal(found[i], id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_text_equal_id),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(odd_strings),
		cmocka_unit_test(all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
