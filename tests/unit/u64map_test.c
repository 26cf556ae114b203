/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/u64map.h"

#define KEYS 4000

/* Against the obvious version: a plain array of what each key holds. */
static int random_operations(void *ctx)
{
	scoped(u64map_release) struct u64map map;
	static uint32_t held[KEYS];
	uint32_t got;
	uint64_t state = 12345;

	(void)ctx;
	memset(held, 0, sizeof(held));
	u64map_init(&map, KEYS);
	for (int i = 0; i < 50000; i++) {
		uint64_t key;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		key = (state >> 33) % KEYS;
		if (state >> 62 == 0) {
			assert_int_equal(u64map_remove(&map, key << 32), held[key] ? 0 : -ENOENT);
			held[key] = 0;
			continue;
		}
		if (u64map_put(&map, key << 32, (uint32_t)i + 1) < 0)
			return -ENOMEM;
		held[key] = (uint32_t)i + 1;
	}
	for (uint64_t key = 0; key < KEYS; key++) {
		got = 0;
		assert_int_equal(u64map_get(&map, key << 32, &got), held[key] ? 0 : -ENOENT);
		assert_int_equal(got, held[key]);
	}
	return 0;
}

static void agrees_with_an_array(void **state)
{
	(void)state;
	assert_int_equal(random_operations(NULL), 0);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(random_operations, NULL);
}

static void has_a_maximum(void **state)
{
	scoped(u64map_release) struct u64map map;

	(void)state;
	u64map_init(&map, 2);
	assert_int_equal(u64map_put(&map, 1, 1), 0);
	assert_int_equal(u64map_put(&map, 2, 2), 0);
	assert_int_equal(u64map_put(&map, 3, 3), -E2BIG);
	assert_int_equal(u64map_put(&map, 2, 9), 0); /* replacing needs no room */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_an_array),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(has_a_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
