/* SPDX-License-Identifier: Apache-2.0 */
/* The memory store as hearth profile -T has it: old profiles go, the sum of all there ever was stays. */
#include "support.h"

#include "base/clock.h"
#include "model_samples.h"
#include "store/store.h"

#define KEPT 5
#define PUT 12

static uint64_t second(uint64_t index)
{
	return (1790000000 + index) * NSEC_PER_SEC;
}

static void put(struct store_state *s, uint64_t index, struct model *all)
{
	scoped(window_release) struct window w = { 0 };
	struct store_upload up = {
		.service = STR("profile"), .type = STR("cpu"), .created_ns = second(index), .window = &w
	};
	struct store_id id;

	assert_int_equal(window_init(&w, MIB(16)), 0);
	model_release(w.model);
	assert_int_equal(random_model(100 + index, w.model), 0);
	w.start_ns = second(index);
	w.end_ns = second(index + 1);
	assert_int_equal(model_merge(all, w.model), 0);
	assert_int_equal(store_memory.put(s, &up, &id), 0);
}

static int count_one(void *ctx, const struct store_profile *profile)
{
	(void)profile;
	++*(size_t *)ctx;
	return 0;
}

static void same_content(const struct model *a, const struct model *b)
{
	struct content left = { 0 }, right = { 0 };

	content_add(&left, a);
	content_add(&right, b);
	content_sum(&left);
	content_sum(&right);
	content_assert_same(&left, &right);
	content_release(&left);
	content_release(&right);
}

static void the_sum_outlives_its_profiles(void **state)
{
	const struct store_config config = { .clock = &clock_system, .kept_max = KEPT, .keeps_sum = true };
	struct store_selector all = { .to_ns = UINT64_MAX }, late = { .from_ns = second(PUT - 2), .to_ns = UINT64_MAX };
	struct store_state *s;
	struct model wanted;

	(void)state;
	assert_int_equal(model_init(&wanted, MIB(64)), 0);
	assert_int_equal(store_memory.open(&config, &s), 0);
	for (uint64_t i = 0; i < PUT; i++) {
		scoped(window_release) struct window sum = { 0 }, part = { 0 };
		struct store_sum info;
		size_t count = 0;

		put(s, i, &wanted);
		assert_int_equal(store_memory.list(s, &all, count_one, &count), 0);
		assert_int_equal(count, MIN(i + 1, (uint64_t)KEPT));
		assert_int_equal(store_memory.sum(s, &all, &sum, &info), 0);
		assert_int_equal(info.profiles, i + 1);
		same_content(sum.model, &wanted);
		assert_int_equal(store_memory.sum(s, &late, &part, &info), 0);
		assert_int_equal(info.profiles, i + 3 > PUT ? i + 3 - PUT : 0);
	}
	store_memory.close(s);
	model_release(&wanted);
}

static int with_little_memory(void *ctx)
{
	const struct store_config config = { .clock = &clock_system, .kept_max = 1, .keeps_sum = true };
	struct store_upload up = {
		.service = STR("profile"), .type = STR("cpu"), .created_ns = second(0), .window = ctx
	};
	const struct store_selector all = { .to_ns = UINT64_MAX };
	scoped(window_release) struct window sum = { 0 };
	struct store_state *s;
	struct store_sum info;
	struct store_id id;
	int r = store_memory.open(&config, &s);

	if (r < 0)
		return r;
	r = store_memory.put(s, &up, &id);
	r = r ? r : store_memory.put(s, &up, &id);
	r = r ? r : store_memory.sum(s, &all, &sum, &info);
	store_memory.close(s);
	return r;
}

static void memory_may_fail(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(window_init(&w, MIB(16)), 0);
	model_release(w.model);
	assert_int_equal(random_model(7, w.model), 0);
	for_each_failing_allocation(with_little_memory, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_outlives_its_profiles),
		cmocka_unit_test(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
