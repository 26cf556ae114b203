/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a range profiles cover. */
#include "support.h"

#include "collector/covered.h"

#define SECOND NSEC_PER_SEC
#define NOW (UINT64_C(1795000000) * SECOND + 12345678)

/* Within a thousandth of the range, or two slots. */
static void assert_near(const struct covered *c, uint64_t want_ns)
{
	uint64_t got = covered_ms(c) * NSEC_PER_MSEC, off = got > want_ns ? got - want_ns : want_ns - got;

	if (off > 2 * c->slot_ns + NSEC_PER_MSEC)
		fail_msg("%llu ms, not %llu", (unsigned long long)covered_ms(c),
			 (unsigned long long)(want_ns / NSEC_PER_MSEC));
}

static void the_first_minute_of_an_hour(void **state)
{
	static struct covered c; /* some KiB */

	(void)state;
	covered_init(&c, NOW - 3600 * SECOND, NOW);
	assert_int_equal(covered_ms(&c), 0);
	for (uint64_t i = 0; i < 6; i++)
		for (int series = 0; series < 3; series++)
			covered_note(&c, NOW - 60 * SECOND + i * 10 * SECOND, 10 * SECOND);
	assert_near(&c, 60 * SECOND);
}

static void a_gap_is_not_covered(void **state)
{
	static struct covered c; /* some KiB */

	(void)state;
	covered_init(&c, NOW - 3600 * SECOND, NOW);
	covered_note(&c, NOW - 3600 * SECOND, 100 * SECOND);
	covered_note(&c, NOW - 3550 * SECOND, 100 * SECOND); /* half of it is known */
	covered_note(&c, NOW - 5 * SECOND, 30 * SECOND);     /* lasts beyond the range */
	assert_near(&c, 180 * SECOND);
}

/* Profiles shorter than a slot: on average. */
static void a_long_range(void **state)
{
	static struct covered c; /* some KiB */

	(void)state;
	covered_init(&c, NOW - 30 * 86400 * SECOND, NOW);
	for (uint64_t at = 0; at < 30 * 86400; at += 10)
		covered_note(&c, NOW - 30 * 86400 * SECOND + at * SECOND, 10 * SECOND);
	assert_near(&c, 30 * 86400 * SECOND);
	covered_init(&c, 0, NOW);
	covered_note(&c, NOW - 3600 * SECOND, 10 * SECOND);
	covered_note(&c, NOW - 3590 * SECOND, 10 * SECOND);
	assert_int_equal(covered_ms(&c), 20000); /* slots are of hours; the ends say more */
}

/* Hours of a minute: the latest end counts, however many overlap; the gap does not. */
static void longer_than_the_range(void **state)
{
	static struct covered c; /* some KiB */

	(void)state;
	covered_init(&c, NOW - 60 * SECOND, NOW);
	for (int series = 0; series < 2; series++)
		covered_note(&c, NOW - 60 * SECOND, 10 * SECOND);
	covered_note(&c, NOW - 30 * SECOND, 3600 * SECOND);
	assert_near(&c, 3610 * SECOND);
	covered_note(&c, NOW - 20 * SECOND, 1800 * SECOND);
	assert_near(&c, 3610 * SECOND);
	covered_note(&c, NOW - 10 * SECOND, 3600 * SECOND);
	assert_near(&c, 3630 * SECOND);
}

static void few_in_a_long_range(void **state)
{
	static struct covered c; /* some KiB */

	(void)state;
	covered_init(&c, NOW - 30 * 86400 * SECOND, NOW);
	covered_note(&c, NOW - 29 * 86400 * SECOND, 10 * SECOND);
	covered_note(&c, NOW - 2 * 86400 * SECOND, 10 * SECOND);
	assert_true(covered_ms(&c) <= 20000 && covered_ms(&c) > 0);
}

static void what_is_absurd(void **state)
{
	static const uint64_t times[] = { 0, 1, NOW, UINT64_MAX - 1, UINT64_MAX };
	static struct covered c; /* some KiB */

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(times); f++) {
		for (size_t t = f; t < ARRAY_SIZE(times); t++) {
			covered_init(&c, times[f], times[t]);
			for (size_t i = f; i <= t; i++)
				for (size_t k = 1; k < ARRAY_SIZE(times); k++)
					covered_note(&c, times[i], times[k]);
			/* No sum has wrapped around. */
			assert_true(covered_ms(&c) <= (UINT64_MAX - times[f]) / NSEC_PER_MSEC);
			if (f == 0)
				assert_true(covered_ms(&c) >= UINT64_MAX / NSEC_PER_MSEC / 2);
		}
	}
	covered_init(&c, NOW, NOW);
	covered_note(&c, NOW, SECOND);
	covered_note(&c, NOW, 0);
	assert_int_equal(covered_ms(&c), 0); /* one does not say */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_minute_of_an_hour),
		cmocka_unit_test(a_gap_is_not_covered),
		cmocka_unit_test(a_long_range),
		cmocka_unit_test(longer_than_the_range),
		cmocka_unit_test(few_in_a_long_range),
		cmocka_unit_test(what_is_absurd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
