/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "agent/waits.h"

static struct abi_sample *stack(uint64_t id, uint32_t size)
{
	struct abi_sample *s = calloc(1, size);

	must(s && size >= sizeof(*s));
	s->header.size = size;
	s->stack_id = id;
	s->tid = (uint32_t)id;
	return s;
}

static void define(struct waits *w, uint64_t id, uint32_t size)
{
	struct abi_sample *s = stack(id, size);

	assert_int_equal(waits_define(w, s), 0);
	free(s); /* it was copied */
}

static void stacks_are_found_by_their_id(void **state)
{
	struct waits *w;

	(void)state;
	assert_int_equal(waits_new(&w), 0);
	assert_null(waits_find(w, 7));
	define(w, 7, 256);
	define(w, 8, 512);
	define(w, 7, 256); /* told again */
	assert_int_equal(waits_find(w, 7)->tid, 7);
	assert_int_equal(waits_find(w, 8)->header.size, 512);
	waits_free(w);
	waits_free(NULL);
}

static void the_one_used_longest_ago_goes_first(void **state)
{
	const uint32_t size = KIB(64);
	const uint64_t room = WAITS_BYTES_MAX / size;
	struct waits *w;

	(void)state;
	assert_int_equal(waits_new(&w), 0);
	for (uint64_t id = 1; id <= room; id++)
		define(w, id, size);
	assert_non_null(waits_find(w, 1));
	define(w, room + 1, size); /* 2 makes room for it */
	assert_non_null(waits_find(w, 1));
	assert_null(waits_find(w, 2));
	assert_non_null(waits_find(w, 3));
	for (uint64_t id = 0; id < 3 * room; id++) { /* places are taken again */
		define(w, 1000 + id, size);
		assert_int_equal(waits_find(w, 1000 + id)->stack_id, 1000 + id);
	}
	assert_null(waits_find(w, 3));
	waits_free(w);
}

static void waits_are_held_until_their_stack_comes(void **state)
{
	struct abi_wait wait = { .header = { .time_ns = 100 }, .stack_id = 5 }, out;
	struct waits *w;

	(void)state;
	assert_int_equal(waits_new(&w), 0);
	assert_true(waits_hold(w, &wait));
	wait.stack_id = 6;
	wait.header.time_ns = 200;
	assert_true(waits_hold(w, &wait));
	assert_false(waits_take_held(w, 100, &out));
	define(w, 6, 256);
	assert_true(waits_take_held(w, 100, &out));
	assert_int_equal(out.stack_id, 6);
	assert_false(waits_take_held(w, 100, &out));
	assert_true(waits_take_held(w, 101, &out)); /* too old: it goes without a stack */
	assert_int_equal(out.stack_id, 5);
	assert_null(waits_find(w, 5));
	for (int i = 0; i < WAITS_HELD_MAX; i++)
		assert_true(waits_hold(w, &wait));
	assert_false(waits_hold(w, &wait));
	waits_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_found_by_their_id),
		cmocka_unit_test(the_one_used_longest_ago_goes_first),
		cmocka_unit_test(waits_are_held_until_their_stack_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
