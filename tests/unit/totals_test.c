/* SPDX-License-Identifier: Apache-2.0 */
/* Round steps of time: where they begin, how long they are, what they cover. */
#include "support.h"

#include "collector/totals.h"

#define SECOND UINT64_C(1000) /* in ms */
#define NOW_MS (UINT64_C(1795000000) * SECOND + 123)

static const uint64_t lengths_s[] = { 1,    2,    5,    10,   15,    20,    30,    60,    120,   300,    600,    900,
				      1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 604800, 2592000 };

struct steps {
	uint64_t from_ms, step_ms, points;
};

static struct steps steps(uint64_t from_ms, uint64_t to_ms, uint64_t points, uint64_t least_ms,
			  const uint64_t *durations_ns, size_t count)
{
	static struct totals t; /* some KiB */

	memset(&t, 0, sizeof(t));
	t.range.from_ns = from_ms * NSEC_PER_MSEC;
	t.range.to_ns = to_ms * NSEC_PER_MSEC;
	t.points = points;
	for (size_t i = 0; i < count; i++)
		totals_note_duration(&t, &(struct store_point){ .duration_ns = durations_ns[i] });
	totals_set_round_step(&t, least_ms);
	return (struct steps){ t.from_ms, t.step_ms, t.points };
}

static bool is_round(uint64_t step_ms)
{
	for (size_t i = 0; i < ARRAY_SIZE(lengths_s); i++)
		if (step_ms == lengths_s[i] * SECOND)
			return true;
	return step_ms % (lengths_s[ARRAY_SIZE(lengths_s) - 1] * SECOND) == 0;
}

static void covers_the_range(void **state)
{
	static const uint64_t spans_s[] = { 0,     1,     9,      60,       899,       900,        3600,
					    86400, 86401, 604800, 31536000, 315360000, 4000000000, 9000000000 };
	static const uint64_t points[] = { 1, 2, 60, 120, 240, 300, 5000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spans_s); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(points); k++) {
			uint64_t span = spans_s[i] * SECOND, from = spans_s[i] > 1000000000 ? 5 : NOW_MS - span;
			struct steps t = steps(from, from + span, points[k], 0, NULL, 0);

			assert_true(is_round(t.step_ms));
			assert_int_equal(t.from_ms % t.step_ms, 0);
			assert_true(t.from_ms <= from && from - t.from_ms < t.step_ms);
			assert_true(t.from_ms + t.points * t.step_ms > from + span);
			assert_true(t.from_ms + (t.points - 1) * t.step_ms <= from + span);
			assert_true(t.points <= points[k] + 1);
		}
	}
}

static void is_as_short_as_it_may_be(void **state)
{
	(void)state;
	assert_int_equal(steps(NOW_MS - 3600 * SECOND, NOW_MS, 179, 0, NULL, 0).step_ms, 30 * SECOND);
	assert_int_equal(steps(NOW_MS - 3600 * SECOND, NOW_MS, 180, 0, NULL, 0).step_ms, 20 * SECOND);
	assert_int_equal(steps(NOW_MS - 900 * SECOND, NOW_MS, 5000, 0, NULL, 0).step_ms, SECOND);
	assert_int_equal(steps(NOW_MS - 900 * SECOND, NOW_MS, 5000, 3600 * SECOND, NULL, 0).step_ms, 3600 * SECOND);
}

static void is_no_shorter_than_profiles(void **state)
{
	uint64_t durations[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(durations); i++)
		durations[i] = i < 90 ? 10 * NSEC_PER_SEC + 40000000 : 600 * NSEC_PER_SEC; /* they end a little late */
	assert_int_equal(steps(NOW_MS - 900 * SECOND, NOW_MS, 300, 0, durations, 100).step_ms, 10 * SECOND);
	durations[89] = 600 * NSEC_PER_SEC;
	assert_int_equal(steps(NOW_MS - 900 * SECOND, NOW_MS, 300, 0, durations, 100).step_ms, 600 * SECOND);
	/* 20 s would have one or two of 15 s */
	for (size_t i = 0; i < ARRAY_SIZE(durations); i++)
		durations[i] = 15 * NSEC_PER_SEC;
	assert_int_equal(steps(NOW_MS - 900 * SECOND, NOW_MS, 46, 0, durations, 100).step_ms, 30 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(covers_the_range),
		cmocka_unit_test(is_as_short_as_it_may_be),
		cmocka_unit_test(is_no_shorter_than_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
