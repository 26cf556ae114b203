/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "agent/aggregate.h"

#define DEPTH 50

/* Counts the same few hundred stacks several times over; what is there must be what an array says. */
static int fill(struct aggregate *a)
{
	uint32_t process, frame;
	int r = aggregate_add_process(a, &(struct aggregate_process){ .pid = 7, .perf_map_fd = -1 }, &process);

	for (uint32_t i = 0; i < 600 && r == 0; i++) {
		struct aggregate_sample row = { .process = process, .tid = i % 3, .has_user = true };

		for (uint32_t depth = 0; depth < DEPTH && r == 0; depth++) {
			const struct aggregate_frame f = { .kind = ABI_FRAME_NATIVE,
							   .owner = 1,
							   .at = depth == DEPTH - 1 ? 1000 + i % 100 : depth };

			r = aggregate_add_frame(a, &f, &frame);
			if (r == 0)
				r = aggregate_add_stack(a, row.stack, frame, &row.stack);
		}
		if (r == 0)
			r = aggregate_add_sample(a, &row, 0);
	}
	return r;
}

/* Ticks of 20 ms from the window's start on; what came before counts as there. Waits have none. */
static void samples_have_times(void **state)
{
	static const uint64_t times_ms[] = { 999, 1000, 1019, 1020, 11005 };
	static const uint32_t ticks[] = { 0, 0, 0, 1, 500 };
	scoped(aggregate_freep) struct aggregate *a = NULL;
	struct aggregate_sample row = { .has_user = true };

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	a->with_times = true;
	a->start_ns = NSEC_PER_SEC;
	assert_int_equal(
		aggregate_add_process(a, &(struct aggregate_process){ .pid = 7, .perf_map_fd = -1 }, &row.process), 0);
	for (size_t i = 0; i < ARRAY_SIZE(times_ms); i++) {
		row.tid = i % 2;
		assert_int_equal(aggregate_add_sample(a, &row, times_ms[i] * NSEC_PER_MSEC), 0);
	}
	row.is_wait = true;
	assert_int_equal(aggregate_add_sample(a, &row, 2 * NSEC_PER_SEC), 0);
	assert_int_equal(a->sample_count, 3);
	assert_int_equal(a->tick_count, ARRAY_SIZE(ticks));
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		assert_int_equal(a->ticks[i].sample, i % 2);
		assert_int_equal(a->ticks[i].tick, ticks[i]);
	}
	assert_int_equal(a->untimed, 0);
}

/* Samples beyond the bound are counted, without their times. */
static void times_are_bounded(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	struct aggregate_sample row = { .has_user = true };

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	a->with_times = true;
	assert_int_equal(
		aggregate_add_process(a, &(struct aggregate_process){ .pid = 7, .perf_map_fd = -1 }, &row.process), 0);
	for (size_t i = 0; i < AGGREGATE_TICKS_MAX + 5; i++)
		assert_int_equal(aggregate_add_sample(a, &row, i), 0);
	assert_int_equal(a->tick_count, AGGREGATE_TICKS_MAX);
	assert_int_equal(a->tick_cap * sizeof(*a->ticks), MIB(8));
	assert_int_equal(a->untimed, 5);
	assert_int_equal(a->total, AGGREGATE_TICKS_MAX + 5);
	assert_int_equal(a->samples[0].count, AGGREGATE_TICKS_MAX + 5);
}

static int fill_new(void *ctx)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	int r = aggregate_new(&a);

	(void)ctx;
	if (r < 0)
		return r;
	a->with_times = true;
	r = fill(a);
	assert_int_equal(a->tick_count + a->untimed, a->total);
	return r;
}

static void equal_stacks_are_one(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	assert_int_equal(fill(a), 0);
	assert_int_equal(a->total, 600);
	assert_int_equal(a->frame_count, DEPTH - 1 + 100);
	assert_int_equal(a->stack_count, 1 + DEPTH - 1 + 100); /* the empty stack, the shared trunk, the leaves */
	assert_int_equal(a->sample_count, 300);                /* 100 leaves x 3 threads, each met twice */
	for (size_t i = 0; i < a->sample_count; i++)
		assert_int_equal(a->samples[i].count, 2);
	for (size_t i = 1; i < a->stack_count; i++)
		assert_true(a->stacks[i].parent < i);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(fill_new, NULL);
}

static void rows_that_differ_are_kept_apart(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	const struct aggregate_frame rows[] = {
		{ .kind = ABI_FRAME_NATIVE, .owner = 1, .at = 5 },
		{ .kind = ABI_FRAME_NATIVE, .owner = 2, .at = 5 },
		{ .kind = ABI_FRAME_NATIVE, .owner = 1, .at = 6 },
		{ .kind = ABI_FRAME_JIT, .owner = 1, .at = 5 },
		{ .kind = ABI_FRAME_NATIVE, .flags = ABI_FRAME_RETURN, .owner = 1, .at = 5 },
	};

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
			uint32_t at = 99;

			assert_int_equal(aggregate_add_frame(a, &rows[i], &at), 0);
			assert_int_equal(at, i);
		}
}

static uint32_t add_program(struct aggregate *a, uint32_t pid, uint32_t exec_id, uint32_t comm, uint64_t born_ns)
{
	const struct aggregate_process row = { .pid = pid,
					       .start_ns = 9,
					       .exec_id = exec_id,
					       .generation = exec_id,
					       .comm = comm,
					       .born_ns = born_ns,
					       .may_be_short = true,
					       .perf_map_fd = -1 };
	uint32_t at;

	assert_int_equal(aggregate_add_process(a, &row, &at), 0);
	return at;
}

static void short_programs_are_told_by_their_ends(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	struct program program = { .pid = 7, .exec_id = 1, .start_ns = 9 };
	uint32_t first, renamed, next, other;

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	first = add_program(a, 7, 1, 1, 100);
	renamed = add_program(a, 7, 1, 2, 100);
	next = add_program(a, 7, 2, 1, 150);
	other = add_program(a, 8, 1, 1, 0); /* was there before: nobody knows since when */
	assert_int_equal(aggregate_undecided_ns(a, 60), 210);
	aggregate_end_program(a, &program, 100, 150);
	assert_true(aggregate_is_short(&a->processes[first], 60) && aggregate_is_short(&a->processes[renamed], 60));
	assert_false(aggregate_is_short(&a->processes[first], 50));
	assert_false(aggregate_is_short(&a->processes[next], 60));
	assert_int_equal(aggregate_undecided_ns(a, 60), 210);
	program.exec_id = 2;
	aggregate_end_program(a, &program, 140, 300); /* its exec record has come since */
	assert_false(aggregate_is_short(&a->processes[next], 160));
	assert_true(aggregate_is_short(&a->processes[next], 161));
	assert_int_equal(aggregate_undecided_ns(a, 60), 0);
	program = (struct program){ .pid = 8, .exec_id = 1, .start_ns = 8 }; /* an earlier process with this pid */
	aggregate_end_program(a, &program, 5, 6);
	assert_false(aggregate_is_short(&a->processes[other], 60));
	a->processes[first].may_be_short = false;
	assert_false(aggregate_is_short(&a->processes[first], 60));
}

static uint32_t add_request(struct aggregate *a, uint32_t user, uint32_t container, uint32_t number)
{
	const struct aggregate_owner owner = { user, container };
	char path[32];
	uint32_t out = 0;
	int size = snprintf(path, sizeof(path), "/shop/%u", number);

	assert_int_equal(aggregate_add_request(a, &owner, STR("/srv/a.php"), str_n(path, (size_t)size), &out), 0);
	assert_int_not_equal(out, 0);
	return out;
}

/* How many rows of his own somebody gets who asks without end. */
static uint32_t rows_of(struct aggregate *a, uint32_t user, uint32_t container)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < 2 * AGGREGATE_REQUESTS_MAX; i++)
		count += add_request(a, user, container, (user * 8 + container) * 10000 + i) != a->request_other;
	return count;
}

static void further_requests_are_others(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	const struct aggregate_request *other;
	uint32_t first, count;
	size_t strings, rows;

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	first = add_request(a, 33, 0, 0);
	assert_int_equal(a->request_other, 0);
	count = 1 + rows_of(a, 33, 0);
	assert_int_equal(count, 4 * AGGREGATE_REQUESTS_MAX / 5);
	assert_int_equal(add_request(a, 33, 0, 0), first);
	rows = a->request_count;
	strings = intern_count(&a->strings);
	for (uint32_t i = 0; i < 30000; i++) /* what strangers ask for takes no room from what all samples need */
		assert_int_equal(add_request(a, 33, 0, 5000000 + i), a->request_other);
	assert_int_equal(intern_count(&a->strings), strings);
	assert_int_equal(a->request_count, rows);
	other = &a->requests[a->request_other - 1];
	assert_true(str_eq(intern_get(&a->strings, other->script), STR("(other)")));
	assert_true(str_eq(intern_get(&a->strings, other->path), STR("(other)")));
}

/* Who takes all he can leaves something to whoever comes later; all together get no more than there is. */
static void users_share_requests(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	uint32_t all = 0, count;

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	all += rows_of(a, 33, 0);
	count = rows_of(a, 34, 0);
	assert_in_range(count, 150, 200);
	all += count;
	assert_int_equal(add_request(a, 33, 0, 5000000), a->request_other);
	for (uint32_t user = 35; user < 200; user++)
		all += rows_of(a, user, 0);
	assert_in_range(all, AGGREGATE_REQUESTS_MAX - 10, AGGREGATE_REQUESTS_MAX);
	assert_int_equal(a->request_count, all + 1);
	assert_int_equal(add_request(a, 99, 0, 33 * 80000), 1); /* what is known costs nothing */
}

/* In containers the same number is mostly another user. */
static void containers_share_what_a_user_has(void **state)
{
	scoped(aggregate_freep) struct aggregate *a = NULL;
	uint32_t first, second, other_user;

	(void)state;
	assert_int_equal(aggregate_new(&a), 0);
	first = rows_of(a, 33, 1);
	second = rows_of(a, 33, 2);
	assert_in_range(first, 740, 780);
	assert_in_range(second, 20, 60);
	for (uint32_t container = 3; container < 8; container++)
		ignore(rows_of(a, 33, container));
	other_user = rows_of(a, 40, 0);
	assert_in_range(other_user, 150, 200);
}

/* All that may fail on the way, one after the other. */
static int fill_requests(void *ctx)
{
	const struct aggregate_owner owner = { 33, 1 };
	scoped(aggregate_freep) struct aggregate *a = NULL;
	int r = aggregate_new(&a);

	(void)ctx;
	for (uint32_t i = 0; i < 900 && r == 0; i++) {
		char path[32];
		uint32_t out = 7;
		int size = snprintf(path, sizeof(path), "/%u", i);

		r = aggregate_add_request(a, &owner, STR("/srv/a.php"), str_n(path, (size_t)size), &out);
		assert_true(r == 0 ? out && out <= a->request_count : out == 7);
	}
	return r;
}

static void requests_survive_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(fill_requests, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_one),
		cmocka_unit_test(samples_have_times),
		cmocka_unit_test(times_are_bounded),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(rows_that_differ_are_kept_apart),
		cmocka_unit_test(short_programs_are_told_by_their_ends),
		cmocka_unit_test(further_requests_are_others),
		cmocka_unit_test(users_share_requests),
		cmocka_unit_test(containers_share_what_a_user_has),
		cmocka_unit_test(requests_survive_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
