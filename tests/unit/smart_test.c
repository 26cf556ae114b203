/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "agent/smart.h"

/* One sample of process @pid: a letter per frame from the root on. u: user code, x: unknown, j: JIT code without a
 * map, k: kernel. */
static int add(struct aggregate *a, uint32_t pid, const char *frames, bool by_chain, uint32_t count)
{
	const struct aggregate_process process = { .pid = pid, .perf_map_fd = -1 };
	struct aggregate_sample row = { .tid = pid, .by_chain = by_chain };
	int r = aggregate_add_process(a, &process, &row.process);

	for (size_t i = 0; r == 0 && frames[i]; i++) {
		struct aggregate_frame f = { .kind = frames[i] == 'k'   ? ABI_FRAME_KERNEL
						     : frames[i] == 'x' ? ABI_FRAME_USER
						     : frames[i] == 'j' ? ABI_FRAME_JIT
									: ABI_FRAME_NATIVE,
					     .at = i };
		uint32_t frame;

		f.owner = f.kind == ABI_FRAME_NATIVE ? 1 : f.kind == ABI_FRAME_KERNEL ? 0 : row.process;
		r = aggregate_add_frame(a, &f, &frame);
		if (r == 0)
			r = aggregate_add_stack(a, row.stack, frame, &row.stack);
	}
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = aggregate_add_sample(a, &row, 0);
	return r;
}

static uint64_t count_of(const struct aggregate *a, uint32_t pid, bool by_chain)
{
	uint64_t count = 0;

	for (size_t i = 0; i < a->sample_count; i++)
		if (a->processes[a->samples[i].process].pid == pid && a->samples[i].by_chain == by_chain)
			count += a->samples[i].count;
	return count;
}

static void the_kind_that_shows_more(void **state)
{
	static const struct {
		const char *chain[2], *copy[2];
		bool chain_wins;
	} rows[] = {
		{ { "uuu", "u" }, { "uuuu", "uu" }, false }, /* gProfiler's example: 3 against 4 */
		{ { "uuu" }, { "uuu" }, false },             /* equal: copies */
		{ { "uuuu" }, { "uuu" }, true },
		{ { "xxxu" }, { "uu" }, false }, /* frames that say nothing do not count */
		{ { "jju" }, { "uu" }, false },
		{ { "ukkkkk" }, { "uu" }, false },             /* nor does the kernel */
		{ { "uuuuuu", "u" }, { "uuu", "uuu" }, true }, /* the mean: 3.5 against 3 */
		{ { "k" }, { "k" }, false },
		{ { "uu" }, { NULL }, true }, /* no copy */
		{ { NULL }, { "u" }, false }, /* no chain: nothing is dropped */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		scoped(aggregate_freep) struct aggregate *a = NULL;
		uint64_t chains = 0, copies = 0;

		assert_int_equal(aggregate_new(&a), 0);
		assert_int_equal(add(a, 99, "uuu", true, 3), 0); /* another process has nothing to do with it */
		assert_int_equal(add(a, 99, "uuuu", false, 3), 0);
		for (size_t k = 0; k < 2; k++) {
			if (rows[i].chain[k]) {
				/* counts have no weight: the first one is much more often */
				assert_int_equal(add(a, 7, rows[i].chain[k], true, k ? 1 : 50), 0);
				chains += k ? 1 : 50;
			}
			if (rows[i].copy[k]) {
				assert_int_equal(add(a, 7, rows[i].copy[k], false, k ? 1 : 50), 0);
				copies += k ? 1 : 50;
			}
		}
		assert_int_equal(smart_choose(a), 0);
		assert_int_equal(count_of(a, 7, true), rows[i].chain_wins ? chains : 0);
		assert_int_equal(count_of(a, 7, false), rows[i].chain_wins ? 0 : copies);
		assert_int_equal(count_of(a, 99, true), 0);
		assert_int_equal(count_of(a, 99, false), 3);
		assert_int_equal(a->total, 3 + (rows[i].chain_wins ? chains : copies));
	}
}

static int choose(void *ctx)
{
	struct aggregate *a = NULL;
	int r = aggregate_new(&a);

	(void)ctx;
	for (uint32_t pid = 1; r == 0 && pid < 4; pid++)
		r = add(a, pid, "uu", pid & 1, 1);
	if (r == 0)
		r = smart_choose(a);
	aggregate_free(a);
	return r;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(choose, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kind_that_shows_more),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
