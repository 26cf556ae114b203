/* SPDX-License-Identifier: Apache-2.0 */
/* The store under load: puts from several threads, then sums. bench_store DIR SERVICES PROFILES THREADS [SEED [STACKS
 * [SHARE]]] makes PROFILES pprof uploads for each service, one a minute of one day, and prints sizes and times; DIR
 * must not exist and stays. A service has STACKS distinct stacks (5,000), 40 deep; a run of neighbours shares
 * 36 frames (90 %); a profile has between a quarter and two thirds of them, or about SHARE percent. Nothing of it is
 * asserted. */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "bench_bodies.h"
#include "codec/pprof.h"
#include "store/store.h"

#define START (UINT64_C(20000) * 86400 * NSEC_PER_SEC)

struct bench {
	const struct store *store;
	struct store_state *s;
	uint64_t services, profiles, threads, seed, stacks, share, now;
	uint64_t sent, packed, samples; /* atomically: bytes of gzip, samples */
	_Atomic uint64_t next;
	uint64_t *latency_ns; /* per put */
};

static void put_one(struct bench *b, uint64_t number, const struct buf *body)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error;
	struct store_upload upload = { .type = STR("cpu"), .window = &w };
	struct store_id id;
	char service[32];
	uint64_t start = clock_monotonic_ns(&clock_system);

	(void)snprintf(service, sizeof(service), "service-%llu", (unsigned long long)(number % b->services));
	upload.service = str_of(service);
	upload.created_ns = START + number / b->services * 60 * NSEC_PER_SEC;
	must(codec_pprof.decode(buf_str(body), &w, &error) == 0);
	must(b->store->put(b->s, &upload, &id) == 0);
	b->latency_ns[number] = clock_monotonic_ns(&clock_system) - start;
	__atomic_fetch_add(&b->packed, body->len, __ATOMIC_RELAXED);
	__atomic_fetch_add(&b->samples, w.model->samples_count, __ATOMIC_RELAXED);
}

struct bodies {
	struct bench *b;
	struct buf *items; /* made before the clock runs */
	uint64_t first, count;
};

static void *put_all(void *arg)
{
	struct bodies *bodies = arg;

	for (;;) {
		uint64_t at = bodies->b->next++;

		if (at >= bodies->count)
			return NULL;
		put_one(bodies->b, bodies->first + at, &bodies->items[at]);
	}
}

static void make_all(struct bodies *bodies)
{
	struct bench *b = bodies->b;

	for (uint64_t service = 0; service < b->services; service++) {
		scoped(bodies_service_release) struct bodies_service base = { 0 };

		must(bodies_service_init(&base, b->seed, service, b->stacks) == 0);
		base.share = b->share;
		for (uint64_t at = 0; at < bodies->count; at++) {
			uint64_t number = bodies->first + at;

			if (number % b->services != service)
				continue;
			bodies->items[at] = (struct buf)BUF_INIT(MIB(64));
			bodies_upload(&base, number / b->services,
				      (int64_t)(START + number / b->services * 60 * NSEC_PER_SEC), &bodies->items[at]);
		}
	}
}

static void run_threads(struct bodies *bodies, uint64_t count, void *(*run)(void *))
{
	pthread_t threads[256];

	bodies->b->next = 0;
	must(count && count <= ARRAY_SIZE(threads));
	for (uint64_t i = 0; i < count; i++)
		must(pthread_create(&threads[i], NULL, run, bodies) == 0);
	for (uint64_t i = 0; i < count; i++)
		must(pthread_join(threads[i], NULL) == 0);
}

static double seconds_since(uint64_t start)
{
	return (double)(clock_monotonic_ns(&clock_system) - start) / 1e9;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A share of 1,000 uploads at a time: they fit in memory. */
static void put_day(struct bench *b)
{
	uint64_t all = b->services * b->profiles;
	double took = 0;
	struct rusage usage;
	double cpu = 0;

	for (uint64_t first = 0; first < all; first += 1000) {
		struct bodies bodies = { .b = b, .first = first, .count = MIN(all - first, UINT64_C(1000)) };
		uint64_t start;

		bodies.items = calloc(bodies.count, sizeof(*bodies.items));
		must(bodies.items);
		make_all(&bodies);
		must(getrusage(RUSAGE_SELF, &usage) == 0);
		cpu -= (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
		start = clock_monotonic_ns(&clock_system);
		run_threads(&bodies, b->threads, put_all);
		took += seconds_since(start);
		must(getrusage(RUSAGE_SELF, &usage) == 0);
		cpu += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
		for (uint64_t i = 0; i < bodies.count; i++)
			buf_release(&bodies.items[i]);
		free(bodies.items);
	}
	qsort(b->latency_ns, all, sizeof(*b->latency_ns), by_size);
	printf("put (decode, pack, commit): %.0f/s, p50 %.1f ms, p99 %.1f ms, max %.1f ms, %.2f ms of CPU each\n",
	       (double)all / took, (double)b->latency_ns[all / 2] / 1e6, (double)b->latency_ns[all * 99 / 100] / 1e6,
	       (double)b->latency_ns[all - 1] / 1e6, cpu / (double)all * 1e3);
}

static void print_sizes(struct bench *b, const char *when)
{
	struct store_stats stats;

	must(b->store->stats(b->s, &stats) == 0);
	printf("%s: %llu profiles, uploaded %.1f MB gzip, on disk %.2f MB: 1/%.1f; dictionaries %.1f MB; commits "
	       "%llu\n",
	       when, (unsigned long long)stats.profiles, (double)b->packed / 1e6, (double)stats.bytes / 1e6,
	       (double)b->packed / (double)stats.bytes, (double)stats.dictionary_bytes / 1e6,
	       (unsigned long long)stats.commits);
}

static double cpu_ms(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The first, and the best of five: a query runs in its caller's thread alone, so its CPU time is what an idle machine
 * would take. */
static void time_sum(struct bench *b, const char *what, struct store_selector sel)
{
	double best = 1e9, best_cpu = 1e9, first = 0;
	struct store_sum info = { 0 };
	size_t stacks = 0;

	sel.service = STR("service-0");
	for (int i = 0; i < 5; i++) {
		scoped(window_release) struct window w = { 0 };
		uint64_t start = clock_monotonic_ns(&clock_system);
		double cpu = cpu_ms(), took;

		must(b->store->sum(b->s, &sel, &w, &info) == 0);
		took = seconds_since(start) * 1e3;
		first = i ? first : took;
		best = MIN(best, took);
		best_cpu = MIN(best_cpu, cpu_ms() - cpu);
		stacks = w.model->samples_count;
	}
	printf("sum of %s: %llu profiles, %zu stacks: first %.1f ms, best %.1f ms, %.1f ms of CPU\n", what,
	       (unsigned long long)info.profiles, stacks, first, best, best_cpu);
}

static uint64_t bench_now(void *self)
{
	return ((struct bench *)self)->now;
}

static void print_memory(void)
{
	scoped(buf_release) struct buf status = BUF_INIT(KIB(64));
	ptrdiff_t at;

	must(io_read_file("/proc/self/status", &status) == 0);
	at = str_search(buf_str(&status), STR("RssAnon"));
	must(at >= 0);
	printf(STR_FMT "\n", (int)strcspn(buf_cstr(&status) + at, "\n"), buf_cstr(&status) + at);
}

int main(int argc, char **argv)
{
	struct bench b = { .store = &store_sqlite, .seed = 1, .stacks = 5000, .now = START };
	struct clock clock = { .monotonic_ns = bench_now, .wall_ns = bench_now, .self = &b };
	struct store_config config = { .clock = &clock };
	uint64_t start;

	if (argc < 5 || argc > 8 || str_to_u64(str_of(argv[2]), 1, 1000, &b.services) < 0 ||
	    str_to_u64(str_of(argv[3]), 1, 1440, &b.profiles) < 0 ||
	    str_to_u64(str_of(argv[4]), 1, 256, &b.threads) < 0 ||
	    (argc > 5 && str_to_u64(str_of(argv[5]), 0, UINT64_MAX, &b.seed) < 0) ||
	    (argc > 6 && str_to_u64(str_of(argv[6]), 1, 1000000, &b.stacks) < 0) ||
	    (argc > 7 && str_to_u64(str_of(argv[7]), 1, 100, &b.share) < 0)) {
		(void)fputs("usage: bench_store DIR SERVICES PROFILES THREADS [SEED [STACKS [SHARE]]]\n", stderr);
		return 2;
	}
	printf("seed %llu, %llu services x %llu profiles, %llu stacks of %d frames, %d of them shared by %d, %llu "
	       "threads\n",
	       (unsigned long long)b.seed, (unsigned long long)b.services, (unsigned long long)b.profiles,
	       (unsigned long long)b.stacks, BODIES_DEPTH, BODIES_SHARED, BODIES_FAMILY, (unsigned long long)b.threads);
	config.path = argv[1];
	b.latency_ns = calloc(b.services * b.profiles, sizeof(*b.latency_ns));
	must(b.latency_ns && b.store->open(&config, &b.s) == 0);
	put_day(&b);
	print_sizes(&b, "open");
	print_memory();
	time_sum(&b, "the last 1,000", (struct store_selector){ .to_ns = UINT64_MAX, .limit = 1000 });
	time_sum(&b, "the day, profile by profile", (struct store_selector){ .to_ns = START + 86399 * NSEC_PER_SEC });
	start = clock_monotonic_ns(&clock_system);
	b.now = START + UINT64_C(86400) * NSEC_PER_SEC - 1;
	must(b.store->maintain(b.s) == 0);
	printf("hourly sums and the next day's dictionaries: %.2f s\n", seconds_since(start));
	time_sum(&b, "the day, by hours", (struct store_selector){ .to_ns = START + 86399 * NSEC_PER_SEC });
	start = clock_monotonic_ns(&clock_system);
	b.now = START + UINT64_C(50) * 3600 * NSEC_PER_SEC; /* the day made ahead, to which nothing came, goes too */
	must(b.store->maintain(b.s) == 0);
	printf("closing: %.2f s\n", seconds_since(start));
	print_sizes(&b, "closed");
	b.store->close(b.s);
	start = clock_monotonic_ns(&clock_system);
	must(b.store->open(&config, &b.s) == 0);
	printf("opening: %.1f ms\n", seconds_since(start) * 1e3);
	time_sum(&b, "the day after opening", (struct store_selector){ .to_ns = START + 86399 * NSEC_PER_SEC });
	time_sum(&b, "a long range, by days", (struct store_selector){ .to_ns = START * 2 });
	b.store->close(b.s);
	print_memory();
	free(b.latency_ns);
	return 0;
}
