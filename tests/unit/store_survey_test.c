/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, day by day, and what will go: survey() says before what maintain() does. */
#include "support.h"

#include "store_support.h"

#define DAY (UINT64_C(86400) * NSEC_PER_SEC)
#define HOUR (UINT64_C(3600) * NSEC_PER_SEC)
#define FIRST UINT64_C(20000)
#define MORNING (FIRST * DAY + 8 * HOUR)

struct surveyed {
	struct store_day days[16];
	size_t count;
	struct store_outlook outlook;
};

static int note(void *ctx, const struct store_day *day)
{
	struct surveyed *s = ctx;

	assert_true(s->count < ARRAY_SIZE(s->days));
	s->days[s->count++] = *day;
	return 0;
}

static void survey(struct fixture *f, struct surveyed *out)
{
	*out = (struct surveyed){ 0 };
	assert_int_equal(f->store->survey(f->s, note, out, &out->outlook), 0);
}

static void begin(struct fixture *f, uint64_t age_max_ns, uint64_t size_max)
{
	f->now = MORNING;
	f->config.age_max_ns = age_max_ns;
	f->config.size_max = size_max;
	fixture_reopen(f);
}

/* The days of the profiles, in their order; those of sums come last. */
static size_t days_of(const struct surveyed *s)
{
	size_t count = 0;

	while (count < s->count && !s->days[count].is_year)
		count++;
	for (size_t i = count; i < s->count; i++)
		assert_true(s->days[i].is_year);
	return count;
}

static void tells_of_age(void **state)
{
	struct fixture *f = *state;
	struct surveyed s;

	begin(f, 14 * DAY, 0);
	survey(f, &s);
	assert_int_equal(s.count, 0);
	assert_false(s.outlook.any_next);
	for (uint64_t i = 0; i < 3; i++, f->now += DAY)
		for (uint64_t of_day = 0; of_day <= i; of_day++)
			fixture_put_random(f, "api", i * 10 + of_day + 1, f->now);
	f->now -= DAY;
	for (int again = 0; again < 2; again++) { /* looking changes nothing */
		survey(f, &s);
		assert_int_equal(s.count, 3);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(s.days[i].day, FIRST + i);
			assert_int_equal(s.days[i].profiles, i + 1);
			assert_int_equal(s.days[i].newest_ns, MORNING + i * DAY);
			assert_true(s.days[i].is_open && s.days[i].bytes && !s.days[i].reason);
		}
		assert_int_equal(s.outlook.age_max_ns, 14 * DAY);
		assert_true(s.outlook.bytes >= s.days[0].bytes + s.days[1].bytes + s.days[2].bytes);
		assert_true(s.outlook.any_next && !s.outlook.next_is_year && !s.outlook.is_over);
		assert_int_equal(s.outlook.next_day, FIRST);
		assert_int_equal(s.outlook.next_ns, MORNING + 14 * DAY);
	}
	f->now = MORNING + 14 * DAY + HOUR / 2;
	assert_int_equal(f->store->maintain(f->s), 0); /* the clock went on: the hour begins */
	survey(f, &s);
	assert_int_equal(days_of(&s), 3);
	assert_null(s.days[0].reason);
	assert_int_equal(s.outlook.next_day, FIRST);
	assert_true(s.outlook.next_ns <= f->now + HOUR);
	f->now += HOUR + 1;
	for (int again = 0; again < 2; again++) {
		survey(f, &s);
		assert_string_equal(s.days[0].reason, "age");
		assert_null(s.days[1].reason);
	}
	assert_int_equal(f->store->maintain(f->s), 0);
	survey(f, &s);
	assert_int_equal(days_of(&s), 2);
	assert_int_equal(s.days[0].day, FIRST + 1);
	assert_int_equal(s.outlook.next_day, FIRST + 1);
	assert_int_equal(s.outlook.next_ns, MORNING + 15 * DAY);
}

static void tells_of_size(void **state)
{
	struct fixture *f = *state;
	struct surveyed s;

	begin(f, 0, 1);
	fixture_put_random(f, "api", 1, f->now - DAY);
	fixture_put_random(f, "api", 2, f->now);
	survey(f, &s);
	assert_int_equal(s.count, 2);
	assert_string_equal(s.days[0].reason, "size");
	assert_null(s.days[1].reason); /* today stays */
	assert_true(s.outlook.is_over && !s.outlook.any_next);
	assert_int_equal(s.outlook.size_max, 1);
	assert_int_equal(f->store->maintain(f->s), 0);
	survey(f, &s);
	assert_int_equal(days_of(&s), 1);
	assert_int_equal(s.days[0].day, FIRST);
}

static int refuse(void *ctx, const struct store_day *day)
{
	(void)ctx;
	(void)day;
	return -ECANCELED;
}

static void ends_when_told_to(void **state)
{
	struct store_outlook outlook = { .size_max = 7 };
	struct fixture *f = *state;

	begin(f, 0, 0);
	fixture_put_random(f, "api", 1, f->now);
	assert_int_equal(f->store->survey(f->s, refuse, NULL, &outlook), -ECANCELED);
	assert_int_equal(outlook.size_max, 7); /* untouched */
}

#define ON_BOTH(case)                                                     \
	{ "memory: " #case, case, fixture_memory, fixture_end, NULL },    \
	{                                                                 \
		"sqlite: " #case, case, fixture_sqlite, fixture_end, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = { ON_BOTH(tells_of_age), ON_BOTH(tells_of_size), ON_BOTH(ends_when_told_to) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
