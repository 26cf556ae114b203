/* SPDX-License-Identifier: Apache-2.0 */
/* Which days go, and that no others do. */
#include "store/expiry.h"
#include "support.h"

#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define TODAY 20000 /* 2024-10-04 */
#define NOW (TODAY * DAY + 8 * HOUR)
#define HERE 7 /* seconds on the monotonic clock */

/* A day whose newest upload came on the day @uploaded, in the morning; 0: none. */
#define AT(number, uploaded, mib)                                                                                     \
	{                                                                                                             \
		.day = (number), .days = 1, .newest_ns = (uploaded) ? (uploaded)*DAY + 7 * HOUR : 0, .size = MIB(mib) \
	}
#define YEAR(first, mib)                                                       \
	{                                                                      \
		.day = (first), .days = 366, .is_year = true, .size = MIB(mib) \
	}
#define DISK(size_mib, free_mib)                      \
	{                                             \
		true, MIB(size_mib), MIB(free_mib), 0 \
	}

struct choice_case {
	const char *name;
	struct expiry_rules rules;
	struct expiry_disk disk;
	struct expiry_entry entries[8];
	const char *gone; /* a letter for each entry: a, s, f by reason, - stays */
	bool lowered, over;
};

static const struct choice_case cases[] = {
	{ "nothing is kept", { .free_min = EXPIRY_FREE_AUTO }, DISK(300, 0), { { 0 } }, "", .lowered = true },
	{ "room enough", { .free_min = EXPIRY_FREE_AUTO }, DISK(300, 16), { AT(TODAY - 1, TODAY - 1, 20) }, "-" },
	{ "1 GiB where 300 MB are all there is: 5 % of these",
	  { .free_min = EXPIRY_FREE_AUTO },
	  DISK(300, 10),
	  { AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY, TODAY, 20) },
	  "f--" },
	{ "1 GiB asked for in so many words: lowered",
	  { .free_min = GIB(1) },
	  DISK(300, 200),
	  { AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY, TODAY, 20) },
	  "---",
	  .lowered = true },
	{ "lowered, and the disk is full: one day gives room",
	  { .free_min = GIB(1) },
	  DISK(300, 0),
	  { AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY, TODAY, 20) },
	  "f--",
	  .lowered = true },
	{ "what others fill cannot be won",
	  { .free_min = EXPIRY_FREE_AUTO },
	  DISK(100000, 100),
	  { AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY, TODAY, 20) },
	  "---",
	  .lowered = true },
	{ "a goal that can be reached is",
	  { .free_min = MIB(120) },
	  DISK(1000, 61),
	  { AT(TODAY - 4, TODAY - 4, 20), AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20),
	    AT(TODAY - 1, TODAY - 1, 20), AT(TODAY, TODAY, 20) },
	  "fff--" },
	{ "what is on its way out counts as free",
	  { .free_min = MIB(120) },
	  { true, MIB(1000), MIB(61), MIB(60) },
	  { AT(TODAY - 1, TODAY - 1, 20), AT(TODAY, TODAY, 20) },
	  "--" },
	{ "today stays, whatever its size",
	  { .size_max = MIB(10) },
	  { 0 },
	  { AT(TODAY - 1, TODAY - 1, 5), AT(TODAY, TODAY, 500) },
	  "s-",
	  .over = true },
	{ "today stays before a day to come",
	  { .size_max = MIB(30) },
	  { 0 },
	  { AT(TODAY, TODAY - 1, 20), AT(TODAY + 300, TODAY, 20) },
	  "-s" },
	{ "by the newest upload, not by date",
	  { .size_max = MIB(50) },
	  { 0 },
	  { AT(TODAY - 3000, TODAY, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY - 1, TODAY - 1, 20) },
	  "-s-" },
	{ "no more than is needed",
	  { .size_max = MIB(70) },
	  { 0 },
	  { AT(TODAY - 3, TODAY - 3, 20), AT(TODAY - 2, TODAY - 2, 20), AT(TODAY - 1, TODAY - 1, 20),
	    AT(TODAY, TODAY, 20) },
	  "s---" },
	{ "tomorrow's file, made ahead",
	  { .size_max = MIB(10) },
	  { 0 },
	  { AT(TODAY, TODAY, 20), AT(TODAY + 1, 0, 1) },
	  "--",
	  .over = true },
	{ "sums count for the size, and stay",
	  { .size_max = MIB(30) },
	  { 0 },
	  { AT(TODAY - 1, TODAY - 1, 10), AT(TODAY, TODAY, 10), YEAR(TODAY - 600, 20) },
	  "s--" },
	{ "an unknown disk",
	  { .free_min = GIB(1) },
	  { 0 },
	  { AT(TODAY - 1, TODAY - 1, 20), AT(TODAY, TODAY, 20) },
	  "--" },
	{ "the oldest by age, and only one",
	  { .age_max_ns = 14 * DAY },
	  { 0 },
	  { AT(TODAY - 40, TODAY - 20, 1), AT(TODAY - 30, TODAY - 30, 1), AT(TODAY - 25, TODAY - 25, 1),
	    AT(TODAY, TODAY, 1) },
	  "-a--" },
	{ "none is old",
	  { .age_max_ns = 14 * DAY },
	  { 0 },
	  { AT(TODAY - 3000, TODAY - 13, 1), AT(TODAY, TODAY, 1) },
	  "--" },
	{ "today by the clock is never old", { .age_max_ns = DAY }, { 0 }, { AT(TODAY, TODAY - 30, 1) }, "-" },
	{ "a year goes when no day does",
	  { .age_max_ns = 14 * DAY, .rollup_age_max_ns = 400 * DAY },
	  { 0 },
	  { YEAR(TODAY - 1000, 1), YEAR(TODAY - 1366, 1), YEAR(TODAY - 100, 1), AT(TODAY, TODAY, 1) },
	  "-a--" },
	{ "days before years",
	  { .age_max_ns = 14 * DAY, .rollup_age_max_ns = 400 * DAY },
	  { 0 },
	  { YEAR(TODAY - 1366, 1), AT(TODAY - 30, TODAY - 30, 1) },
	  "-a" },
	{ "this year is never old", { .rollup_age_max_ns = DAY }, { 0 }, { YEAR(TODAY - 10, 1) }, "-" },
	{ "age and room together",
	  { .age_max_ns = 14 * DAY, .size_max = MIB(30) },
	  { 0 },
	  { AT(TODAY - 30, TODAY - 30, 20), AT(TODAY - 20, TODAY - 20, 20), AT(TODAY - 1, TODAY - 1, 20),
	    AT(TODAY, TODAY, 5) },
	  "as--" },
};

static void chooses(void **state)
{
	const struct expiry_memory m = { .last_wall_ns = NOW - 2 * HOUR };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct choice_case *c = &cases[i];
		struct expiry_entry entries[8];
		struct expiry_plan plan;
		char gone[9] = "";
		size_t count = strlen(c->gone), went = 0;

		memcpy(entries, c->entries, sizeof(entries));
		expiry_decide(&c->rules, &c->disk, &m, NOW, HERE * SECOND, entries, count, &plan);
		for (size_t at = 0; at < count; at++) {
			gone[at] = entries[at].goes ? expiry_reason_text(entries[at].reason)[0] : '-';
			went += entries[at].goes;
		}
		print_message("  %s\n", c->name);
		assert_string_equal(gone, c->gone);
		assert_int_equal(plan.count, went);
		assert_int_equal(plan.is_lowered, c->lowered);
		assert_int_equal(plan.is_over, c->over);
	}
}

/* A store of a month, looked at once a minute. Return: how many days went by age. */
struct month {
	struct expiry_memory memory;
	struct expiry_entry days[30];
	uint64_t wall_ns, monotonic_ns;
};

static void month_init(struct month *m)
{
	*m = (struct month){ .memory.last_wall_ns = NOW - 2 * HOUR, .wall_ns = NOW, .monotonic_ns = HERE * SECOND };
	for (int64_t i = 0; i < 30; i++)
		m->days[i] = (struct expiry_entry)AT(TODAY - 29 + i, (uint64_t)(TODAY - 29 + i), 1);
}

static size_t pass(struct month *m, uint64_t ns)
{
	const struct expiry_rules rules = { .age_max_ns = 60 * DAY };
	size_t went = 0;

	for (uint64_t at = 0; at < ns; at += 60 * SECOND) {
		struct expiry_plan plan;

		m->wall_ns += 60 * SECOND;
		m->monotonic_ns += 60 * SECOND;
		(void)expiry_tick(&m->memory, m->wall_ns, m->monotonic_ns);
		expiry_decide(&rules, &(struct expiry_disk){ 0 }, &m->memory, m->wall_ns, m->monotonic_ns, m->days,
			      ARRAY_SIZE(m->days), &plan);
		for (size_t i = 0; i < ARRAY_SIZE(m->days); i++)
			if (m->days[i].goes) {
				expiry_removed(&m->memory, m->wall_ns, m->monotonic_ns);
				m->days[i] = m->days[ARRAY_SIZE(m->days) - 1]; /* it is gone: today twice */
				went++;
			}
	}
	return went;
}

/* Another process: it knows what was written down, and another monotonic clock. */
static void restart(struct month *m)
{
	m->memory = (struct expiry_memory){ .last_wall_ns = m->memory.last_wall_ns };
	m->monotonic_ns = HERE * SECOND;
}

static void survives_a_wrong_clock(void **state)
{
	struct month m;

	(void)state;
	month_init(&m);
	assert_int_equal(pass(&m, 2 * HOUR), 0);
	m.wall_ns += 100 * DAY;
	assert_int_equal(pass(&m, 60 * SECOND), 0);
	m.wall_ns -= 100 * DAY;
	assert_int_equal(pass(&m, 2 * DAY), 0);
	print_message("  restarts meanwhile\n");
	restart(&m);
	m.wall_ns += 100 * DAY;
	assert_int_equal(pass(&m, 60 * SECOND), 1); /* the first look cannot know */
	for (int i = 0; i < 50; i++) {
		restart(&m);
		assert_int_equal(pass(&m, 30 * SECOND), 0);
	}
	m.wall_ns -= 100 * DAY;
	restart(&m);
	assert_int_equal(pass(&m, 2 * DAY), 0);
	print_message("  a clock that stays ahead\n");
	m.wall_ns += 100 * DAY;
	assert_int_equal(pass(&m, 30 * 60 * SECOND), 0);
	assert_in_range(pass(&m, 10 * HOUR), 9, 10);
}

static void begins_slowly(void **state)
{
	struct month m;

	(void)state;
	month_init(&m);
	m.wall_ns += 100 * DAY;
	m.memory.last_wall_ns = 0; /* nothing is known: an older version wrote the store, or the note was lost */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pass(&m, 60 * SECOND), 0);
		restart(&m);
	}
	assert_int_equal(pass(&m, HOUR), 1);
}

/* What is next by age, and when: as many hours behind NOW. */
static void looks_ahead(void **state)
{
	static const struct {
		const char *name;
		struct expiry_rules rules;
		struct expiry_entry entries[3];
		uint64_t last_hours; /* before NOW something went; 0: never */
		int at;              /* -1: nothing ever */
		uint64_t hours;
	} next[] = {
		{ "no rule", { .size_max = 1 }, { AT(TODAY - 9, TODAY - 9, 1) }, 0, -1, 0 },
		{ "nothing is kept", { .age_max_ns = DAY }, { { 0 } }, 0, -1, 0 },
		/* uploads of the morning are an hour old */
		{ "the oldest",
		  { .age_max_ns = 9 * DAY },
		  { AT(TODAY, TODAY, 1), AT(TODAY - 4, TODAY - 4, 1) },
		  9,
		  1,
		  4 * 24 + 23 },
		{ "by upload, not by date",
		  { .age_max_ns = 9 * DAY },
		  { AT(TODAY - 8, TODAY, 1), AT(TODAY - 4, TODAY - 4, 1) },
		  9,
		  1,
		  4 * 24 + 23 },
		{ "old enough, one just went", { .age_max_ns = DAY }, { AT(TODAY - 8, TODAY - 8, 1) }, 0, 0, 1 },
		{ "a day is over first", { .age_max_ns = HOUR }, { AT(TODAY, TODAY, 1) }, 9, 0, 16 },
		{ "tomorrow's file has nothing yet", { .age_max_ns = HOUR }, { AT(TODAY + 1, 0, 1) }, 9, -1, 0 },
		{ "a year",
		  { .age_max_ns = 30 * DAY, .rollup_age_max_ns = DAY },
		  { YEAR(TODAY - 366, 1), AT(TODAY, TODAY, 1) },
		  9,
		  0,
		  16 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
		const struct expiry_memory m = { .last_wall_ns =
							 next[i].last_hours ? NOW - next[i].last_hours * HOUR : 0 };
		size_t count = 0, at = 99;
		uint64_t when = 0;
		bool any;

		print_message("  %s\n", next[i].name);
		while (count < ARRAY_SIZE(next[i].entries) && next[i].entries[count].days)
			count++;
		any = expiry_next(&next[i].rules, &m, next[i].entries, count, NOW, &at, &when);
		assert_int_equal(any, next[i].at >= 0);
		if (!any)
			continue;
		assert_int_equal(at, next[i].at);
		assert_int_equal(when, NOW + next[i].hours * HOUR);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses),
		cmocka_unit_test(survives_a_wrong_clock),
		cmocka_unit_test(begins_slowly),
		cmocka_unit_test(looks_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
