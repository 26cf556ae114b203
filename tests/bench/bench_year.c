/* SPDX-License-Identifier: Apache-2.0 */
/* A year in a store: bench_year DIR LAST_DAY [DAYS [SEED]]. For each of the DAYS (365) days up to LAST_DAY (days since
 * 1970) two profiles of one service, "year", are put, and the day is closed: compacted and added to its year's sums. A
 * day has 5,000 of the service's 50,000 stacks, 40 deep (bench_bodies.h); its first profile has those with an even
 * number and every fourth of the others, the second the odd ones. The stacks move on by 123 a day. Prints one line. */
#include "base/clock.h"
#include "bench_bodies.h"
#include "store/store.h"

#define STACKS_ALL 50000
#define STACKS_A_DAY 5000
#define DAY_NS (UINT64_C(86400) * NSEC_PER_SEC)

struct year {
	struct store_state *s;
	struct bodies_service service;
	uint64_t now, puts, samples;
};

static uint64_t year_now(void *self)
{
	return ((struct year *)self)->now;
}

static bool is_in(uint64_t stack, unsigned int profile)
{
	return profile ? stack % 2 == 1 : stack % 2 == 0 || stack % 8 == 1;
}

static void put_profile(struct year *y, uint64_t first, unsigned int profile)
{
	scoped(window_release) struct window w = { 0 };
	struct store_upload upload = { .service = STR("year"), .type = STR("cpu"), .created_ns = y->now, .window = &w };
	struct model *all = &y->service.m;
	struct store_id id;

	all->samples_count = all->values_count = 0;
	all->time_ns = (int64_t)y->now;
	for (uint64_t i = first; i < first + STACKS_A_DAY; i++) {
		struct model_sample row = { .stack = y->service.stacks[i], .time_offset_ns = MODEL_NO_TIME };
		int64_t values[2] = { (int64_t)(1 + i % 7), (int64_t)(1 + i % 7) * 10000000 };

		if (i % 7 == 0)
			row.label_set = y->service.label_sets[i % BODIES_LABEL_SETS];
		if (is_in(i, profile))
			must(model_add_sample(all, &row, values) == 0);
	}
	must(window_init(&w, MIB(64)) == 0);
	must(model_merge(w.model, all) == 0); /* leaves out what no sample uses */
	w.start_ns = y->now;
	w.end_ns = y->now + 10 * NSEC_PER_SEC;
	must(store_sqlite.put(y->s, &upload, &id) == 0);
	y->puts++;
	y->samples += w.model->samples_count;
}

static void make_day(struct year *y, uint64_t day, uint64_t number, uint64_t days)
{
	uint64_t first = days > 1 ? number * (STACKS_ALL - STACKS_A_DAY) / (days - 1) : 0;

	for (unsigned int profile = 0; profile < 2; profile++) {
		y->now = day * DAY_NS + (8 + profile * 8) * 3600 * NSEC_PER_SEC;
		put_profile(y, first, profile);
	}
	y->now = (day + 1) * DAY_NS + 2 * 3600 * NSEC_PER_SEC; /* over and quiet */
	must(store_sqlite.maintain(y->s) == 0);
}

int main(int argc, char **argv)
{
	struct year y = { 0 };
	struct clock clock = { .monotonic_ns = year_now, .wall_ns = year_now, .self = &y };
	struct store_config config = { .clock = &clock };
	struct store_stats stats;
	uint64_t last, days = 365, seed = 1, start = clock_monotonic_ns(&clock_system);

	if (argc < 3 || argc > 5 || str_to_u64(str_of(argv[2]), 1000, 40000, &last) < 0 ||
	    (argc > 3 && str_to_u64(str_of(argv[3]), 1, 1000, &days) < 0) ||
	    (argc > 4 && str_to_u64(str_of(argv[4]), 0, UINT64_MAX, &seed) < 0)) {
		(void)fputs("usage: bench_year DIR LAST_DAY [DAYS [SEED]]\n", stderr);
		return 2;
	}
	config.path = argv[1];
	must(bodies_service_init(&y.service, seed, 0, STACKS_ALL) == 0);
	y.now = (last - days + 1) * DAY_NS;
	must(store_sqlite.open(&config, &y.s) == 0);
	for (uint64_t i = 0; i < days; i++)
		make_day(&y, last - days + 1 + i, i, days);
	must(store_sqlite.stats(y.s, &stats) == 0);
	printf("days %llu profiles %llu samples %llu partitions %llu bytes %llu seconds %.1f\n",
	       (unsigned long long)days, (unsigned long long)y.puts, (unsigned long long)y.samples,
	       (unsigned long long)stats.partitions, (unsigned long long)stats.bytes,
	       (double)(clock_monotonic_ns(&clock_system) - start) / 1e9);
	store_sqlite.close(y.s);
	bodies_service_release(&y.service);
	return 0;
}
