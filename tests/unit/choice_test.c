/* SPDX-License-Identifier: Apache-2.0 */
/* Whose frames of runtimes are shown, by age and by samples. */
#include "support.h"

#include "agent/choice.h"

#define RUNTIME ABI_RUNTIME_PYTHON
#define OTHER ABI_RUNTIME_RUBY
#define BOTH (1U << RUNTIME | 1U << OTHER)

union sample {
	struct abi_sample s;
	uint8_t bytes[sizeof(struct abi_sample) + 2 * sizeof(struct abi_frame)];
};

/* One native frame, one of @runtime; 0: only the native one. */
static bool takes(struct choice *c, uint32_t pid, uint16_t runtime, uint64_t time_ns)
{
	union sample sample = { .s = { .header.time_ns = time_ns, .pid = pid, .process_start_ns = 100 * pid } };

	sample.s.frame_count = 1;
	sample.s.runtime_count = runtime ? 1 : 0;
	sample.s.frames[1] = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME, .runtime = runtime };
	return choice_takes(c, &sample.s, 1000 + time_ns);
}

static unsigned int taken(struct choice *c, uint32_t pid, uint16_t runtime, unsigned int count, uint64_t time_ns)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += takes(c, pid, runtime, time_ns);
	return sum;
}

static void the_old_ones(void **state)
{
	const struct choice_config cfg = { .runtimes = BOTH, .age_min_ns = 600 };
	struct choice *c;

	(void)state;
	assert_int_equal(choice_new(&cfg, &c), 0);
	assert_true(takes(c, 4, RUNTIME, 0));
	assert_false(takes(c, 5, RUNTIME, 99));
	assert_true(takes(c, 5, RUNTIME, 100));
	assert_true(takes(c, 9, 0, 0));               /* it has nothing to show */
	assert_true(takes(c, 9, ABI_RUNTIME_PHP, 0)); /* it is not chosen from */
	assert_false(takes(c, 9, OTHER, 0));
	choice_free(c);
}

static void those_with_the_most_samples(void **state)
{
	const struct choice_config cfg = { .runtimes = BOTH, .process_max = 2, .look_ns = 1000 };
	struct choice *c;

	(void)state;
	assert_int_equal(choice_new(&cfg, &c), 0);
	choice_cut(c); /* nobody was seen */
	assert_int_equal(taken(c, 1, RUNTIME, 3, 1), 0);
	assert_int_equal(taken(c, 2, RUNTIME, 9, 500), 0);
	assert_int_equal(taken(c, 3, RUNTIME, 7, 1000), 0); /* the look is not over */
	assert_int_equal(taken(c, 4, OTHER, 1, 1000), 0);
	assert_int_equal(taken(c, 1, RUNTIME, 5, 1001), 0); /* 2 and 3 have more */
	assert_int_equal(taken(c, 2, RUNTIME, 1, 1002), 1);
	assert_int_equal(taken(c, 3, RUNTIME, 4, 1002), 4);
	assert_int_equal(taken(c, 4, OTHER, 1, 1002), 1);
	assert_int_equal(taken(c, 5, OTHER, 1, 1003), 1);   /* new, and there is room */
	assert_int_equal(taken(c, 6, RUNTIME, 6, 1003), 0); /* new, and there is none */
	choice_cut(c);                                      /* 6 had 6, 1 had 5, 3 had 4, 2 had 1 */
	assert_int_equal(taken(c, 6, RUNTIME, 1, 2000), 1);
	assert_int_equal(taken(c, 1, RUNTIME, 1, 2000), 1);
	assert_int_equal(taken(c, 3, RUNTIME, 1, 2000), 0);
	assert_int_equal(taken(c, 2, RUNTIME, 1, 2000), 0);
	choice_free(c);
}

/* The first that comes need not be the oldest one: another CPU may be slower to tell of its own. */
static void an_older_sample_ends_no_look(void **state)
{
	const struct choice_config cfg = { .runtimes = BOTH, .process_max = 1, .look_ns = 1000 };
	struct choice *c;

	(void)state;
	assert_int_equal(choice_new(&cfg, &c), 0);
	assert_int_equal(taken(c, 1, RUNTIME, 1, 500), 0);
	assert_int_equal(taken(c, 1, RUNTIME, 1, 499), 0);
	assert_int_equal(taken(c, 2, RUNTIME, 5, 600), 0);
	assert_int_equal(taken(c, 1, RUNTIME, 1, 1500), 0); /* 2 has more */
	assert_int_equal(taken(c, 2, RUNTIME, 1, 1501), 1);
	choice_free(c);
}

static void a_number_of_another_process(void **state)
{
	const struct choice_config cfg = { .runtimes = BOTH, .process_max = 1 };
	union sample again = { .s = { .header.time_ns = 9, .pid = 1, .process_start_ns = 777, .runtime_count = 1 } };
	struct choice *c;

	(void)state;
	again.s.frames[0] = (struct abi_frame){ .kind = ABI_FRAME_RUNTIME, .runtime = RUNTIME };
	assert_int_equal(choice_new(&cfg, &c), 0);
	assert_true(takes(c, 1, RUNTIME, 5));
	assert_false(takes(c, 2, RUNTIME, 6));
	assert_true(choice_takes(c, &again.s, 2000)); /* the one whose place it takes has ended */
	assert_false(takes(c, 2, RUNTIME, 7));
	again.s.frames[0].runtime = ABI_RUNTIME_COUNT; /* none that is chosen from */
	assert_true(choice_takes(c, &again.s, 2000));
	choice_free(c);
}

static int many(void *ctx)
{
	const struct choice_config cfg = { .runtimes = BOTH, .process_max = 3 };
	struct choice *c;
	int r = choice_new(&cfg, &c);
	unsigned int sum = 0;

	(void)ctx;
	if (r < 0)
		return r;
	for (uint32_t pid = 1; pid < 300; pid++)
		sum += takes(c, pid, RUNTIME, 1);
	choice_cut(c);
	assert_true(sum <= 3);
	choice_free(c);
	return sum == 3 ? 0 : -ENOMEM;
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(many, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_old_ones),
		cmocka_unit_test(those_with_the_most_samples),
		cmocka_unit_test(an_older_sample_ends_no_look),
		cmocka_unit_test(a_number_of_another_process),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
