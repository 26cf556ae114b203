/* SPDX-License-Identifier: Apache-2.0 */
/* A month in a store: bench_month DIR END [DAYS [SERVICES [SEED]]]. For each of the DAYS (30) days up to END (Unix
 * seconds) the first of SERVICES (10) services has a profile a minute, the others one every ten minutes; days that are
 * over are closed. A profile has about 200 of its service's 5,000 stacks, 40 deep (bench_bodies.h); a service has 16
 * different ones, from three hosts in turn. Prints one line. */
#include <pthread.h>

#include "base/clock.h"
#include "bench_bodies.h"
#include "codec/pprof.h"
#include "store/store.h"

#define SERVICES_MAX 100
#define BODIES 16
#define STACKS 5000
#define SHARE 4 /* percent of them in a profile */
#define HOSTS 3
#define RARE 10 /* minutes between profiles of all services but the first */
#define THREADS 16
#define DAY_NS (UINT64_C(86400) * NSEC_PER_SEC)
#define MINUTE_NS (60 * NSEC_PER_SEC)

struct month {
	struct store_state *s;
	struct window (*bodies)[BODIES]; /* by service */
	uint64_t services, end_ns, day, now;
	_Atomic uint64_t next, puts; /* next: minute of the day and service, of what is put next */
};

static uint64_t month_now(void *self)
{
	return ((struct month *)self)->now;
}

static void make_bodies(struct month *m, uint64_t seed)
{
	for (uint64_t service = 0; service < m->services; service++) {
		scoped(bodies_service_release) struct bodies_service base = { 0 };

		must(bodies_service_init(&base, seed, service, STACKS) == 0);
		base.share = SHARE;
		for (uint64_t i = 0; i < BODIES; i++) {
			scoped(buf_release) struct buf body = BUF_INIT(MIB(64));
			struct codec_error error;

			bodies_upload(&base, i, 0, &body);
			must(codec_pprof.decode(buf_str(&body), &m->bodies[service][i], &error) == 0);
		}
	}
}

static void put(struct month *m, uint64_t service, uint64_t minute)
{
	char name[32], host[16];
	struct store_label labels[] = { { STR("host"), STR("") }, { STR("service_kind"), STR("unit") } };
	struct store_upload upload = { .type = STR("cpu"), .labels = labels, .label_count = ARRAY_SIZE(labels) };
	struct store_id id;

	upload.created_ns = m->day * DAY_NS + minute * MINUTE_NS;
	if (upload.created_ns >= m->end_ns)
		return;
	(void)snprintf(name, sizeof(name), "service-%llu", (unsigned long long)service);
	(void)snprintf(host, sizeof(host), "node-%llu", (unsigned long long)(minute % HOSTS));
	upload.service = str_of(name);
	labels[0].value = str_of(host);
	upload.window = &m->bodies[service][(minute * 7 + m->day) % BODIES];
	must(store_sqlite.put(m->s, &upload, &id) == 0);
	m->puts++;
}

static void *put_some(void *arg)
{
	struct month *m = arg;

	for (;;) {
		uint64_t at = m->next++, minute = at / m->services, service = at % m->services;

		if (minute >= 1440)
			return NULL;
		if (!service || minute % RARE == service % RARE)
			put(m, service, minute);
	}
}

static void make_day(struct month *m, uint64_t day)
{
	pthread_t threads[THREADS];

	m->day = day;
	m->next = 0;
	m->now = MIN(day * DAY_NS + DAY_NS / 2, m->end_ns);
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, put_some, m) == 0);
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_join(threads[i], NULL) == 0);
	m->now = MIN((day + 1) * DAY_NS + 2 * 3600 * NSEC_PER_SEC, m->end_ns); /* over and quiet */
	must(store_sqlite.maintain(m->s) == 0);
}

int main(int argc, char **argv)
{
	struct month m = { .services = 10 };
	struct clock clock = { .monotonic_ns = month_now, .wall_ns = month_now, .self = &m };
	struct store_config config = { .clock = &clock };
	struct store_stats stats;
	uint64_t end, days = 30, seed = 1, start = clock_monotonic_ns(&clock_system);

	if (argc < 3 || argc > 6 || str_to_u64(str_of(argv[2]), 100000000, 4000000000, &end) < 0 ||
	    (argc > 3 && str_to_u64(str_of(argv[3]), 1, 1000, &days) < 0) ||
	    (argc > 4 && str_to_u64(str_of(argv[4]), 1, SERVICES_MAX, &m.services) < 0) ||
	    (argc > 5 && str_to_u64(str_of(argv[5]), 0, UINT64_MAX, &seed) < 0)) {
		(void)fputs("usage: bench_month DIR END [DAYS [SERVICES [SEED]]]\n", stderr);
		return 2;
	}
	config.path = argv[1];
	m.end_ns = end * NSEC_PER_SEC;
	m.bodies = calloc(m.services, sizeof(*m.bodies));
	must(m.bodies);
	make_bodies(&m, seed);
	m.now = m.end_ns - days * DAY_NS;
	must(store_sqlite.open(&config, &m.s) == 0);
	for (uint64_t day = m.end_ns / DAY_NS - days + 1; day <= m.end_ns / DAY_NS; day++)
		make_day(&m, day);
	must(store_sqlite.stats(m.s, &stats) == 0);
	printf("days %llu profiles %llu partitions %llu bytes %llu seconds %.1f\n", (unsigned long long)days,
	       (unsigned long long)m.puts, (unsigned long long)stats.partitions, (unsigned long long)stats.bytes,
	       (double)(clock_monotonic_ns(&clock_system) - start) / 1e9);
	store_sqlite.close(m.s);
	for (uint64_t i = 0; i < m.services * BODIES; i++)
		window_release(&m.bodies[i / BODIES][i % BODIES]);
	free(m.bodies);
	return 0;
}
