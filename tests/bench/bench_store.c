/* SPDX-License-Identifier: Apache-2.0 */
/* The store under load: puts from several threads, then sums. bench_store DIR SERVICES PROFILES THREADS [SEED [STACKS]]
 * makes PROFILES pprof uploads for each service, one a minute of one day, and prints sizes and times; DIR must not
 * exist and stays. A service has STACKS distinct stacks (5,000), 40 deep, of which a run of neighbours shares 36 frames
 * (90 %); a profile has between a quarter and two thirds of them. Nothing of it is asserted. */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "codec/pprof.h"
#include "store/store.h"

#define DEPTH 40
#define SHARED 36 /* frames that the stacks of a family share */
#define FAMILY 50
#define FUNCTIONS 8000
#define LABEL_SETS 32
#define START (UINT64_C(20000) * 86400 * NSEC_PER_SEC)

struct bench {
	const struct store *store;
	struct store_state *s;
	uint64_t services, profiles, threads, seed, stacks, now;
	uint64_t sent, packed, samples; /* atomically: bytes of gzip, samples */
	_Atomic uint64_t next;
	uint64_t *latency_ns; /* per put */
};

static uint64_t next_random(uint64_t *state) /* xorshift64, G. Marsaglia 2003 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t mix(uint64_t a, uint64_t b) /* the end of MurmurHash3 (A. Appleby, public domain) over both */
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;

	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static int frame(struct model *m, uint32_t mapping, uint64_t base, uint64_t number, uint32_t *out)
{
	struct model_function function = { .start_line = (int64_t)(number % 900) };
	struct model_location location = { .mapping = mapping, .line_count = 1, .address = base + number * 48 };
	struct model_line line = { .line = (int64_t)(number % 900 + number % 40) };
	char name[96];
	int size = snprintf(name, sizeof(name), "example.com/service/internal/package%llu.(*Type%llu).Method%llu",
			    (unsigned long long)number % 120, (unsigned long long)number % 700,
			    (unsigned long long)number);
	int r = model_add_string(m, str_n(name, (size_t)size), &function.name);

	function.system_name = function.name;
	size = snprintf(name, sizeof(name), "/src/service/internal/package%llu/file%llu.go",
			(unsigned long long)number % 120, (unsigned long long)number % 500);
	r = r ? r : model_add_string(m, str_n(name, (size_t)size), &function.filename);
	r = r ? r : model_add_function(m, &function, &line.function);
	return r ? r : model_add_location(m, &location, &line, out);
}

/* Stack @number of a service: the same in all of its profiles. */
static int stack(struct model *m, uint32_t mapping, uint64_t base, uint64_t service, uint64_t number, uint32_t *out)
{
	uint32_t node = 0, location;
	int r = 0;

	for (uint64_t depth = 0; r == 0 && depth < DEPTH; depth++) {
		uint64_t who = depth < SHARED ? number / FAMILY : number;

		r = frame(m, mapping, base, mix(mix(service, who), depth) % FUNCTIONS, &location);
		r = r ? r : model_add_stack(m, node, location, &node);
	}
	*out = node;
	return r;
}

/* All that a service can show: made once, since naming 200,000 frames takes longer than everything else. */
struct service_base {
	struct model m;
	uint32_t *stacks;
	uint32_t label_sets[LABEL_SETS];
};

#define BASE_START UINT64_C(0x400000)

static int header(struct model *m, uint32_t *mapping)
{
	struct model_mapping row = { .start = BASE_START, .limit = BASE_START + MIB(8), .flags = MODEL_HAS_FUNCTIONS };
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	r = r ? r : model_add_value_type(m, STR("cpu"), STR("nanoseconds"));
	r = r ? r : model_add_string(m, STR("/srv/service"), &row.filename);
	r = r ? r : model_add_mapping(m, &row, mapping);
	m->period_type = m->value_types[1];
	m->period = 10000000;
	m->duration_ns = 10 * (int64_t)NSEC_PER_SEC;
	return r;
}

static int make_base(const struct bench *b, uint64_t service, struct service_base *base)
{
	struct model *m = &base->m;
	uint32_t mapping;
	int r = model_init(m, MIB(64));

	base->stacks = calloc(b->stacks, sizeof(*base->stacks));
	must(base->stacks);
	r = r ? r : header(m, &mapping);
	for (uint64_t i = 0; r == 0 && i < b->stacks; i++)
		r = stack(m, mapping, BASE_START, service, i, &base->stacks[i]);
	for (unsigned int i = 0; r == 0 && i < LABEL_SETS; i++) {
		struct model_label label = { 0 };
		char text[32];

		(void)snprintf(text, sizeof(text), "/api/%u", i);
		r = model_add_string(m, STR("endpoint"), &label.key);
		r = r ? r : model_add_string(m, str_of(text), &label.text);
		r = r ? r : model_add_label_set(m, &label, 1, &base->label_sets[i]);
	}
	return r;
}

static void base_release(struct service_base *base)
{
	model_release(&base->m);
	free(base->stacks);
}

/* The binary lies elsewhere in every process. Nothing is looked up in @m any more. */
static void move_mapping(struct model *m, uint64_t by)
{
	m->mappings[1].start += by;
	m->mappings[1].limit += by;
	for (size_t i = 1; i < m->locations_count; i++)
		m->locations[i].address += by;
}

static int make_profile(const struct bench *b, struct service_base *base, uint64_t service, uint64_t number,
			struct model *m)
{
	uint64_t state = mix(b->seed + service, number + 1) | 1;
	uint64_t share = 25 + next_random(&state) % 42; /* percent */
	int r = 0;

	base->m.samples_count = base->m.values_count = 0;
	base->m.time_ns = (int64_t)(START + number * 60 * NSEC_PER_SEC);
	for (uint64_t i = 0; r == 0 && i < b->stacks; i++) {
		struct model_sample row = { .stack = base->stacks[i], .time_offset_ns = MODEL_NO_TIME };
		int64_t values[2] = { 1 + (int64_t)(next_random(&state) % 100 * (next_random(&state) % 100) / 100), 0 };

		values[1] = values[0] * 10000000;
		if (i % 7 == 0)
			row.label_set = base->label_sets[i % LABEL_SETS];
		if (next_random(&state) % 100 < share)
			r = model_add_sample(&base->m, &row, values);
	}
	r = r ? r : model_merge(m, &base->m); /* leaves out what no sample uses */
	if (r == 0)
		move_mapping(m, mix(service, number) % 4096 * 4096);
	return r;
}

/* An upload as it comes: gzip of level 1, as Go writes it. */
static void make_upload(const struct bench *b, struct service_base *base, uint64_t service, uint64_t number,
			struct buf *out)
{
	scoped(window_release) struct window w = { 0 };

	must(window_init(&w, MIB(64)) == 0);
	must(make_profile(b, base, service, number, w.model) == 0);
	must(pprof_encode_level(&w, 1, out) == 0);
}

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
		scoped(base_release) struct service_base base = { 0 };

		must(make_base(b, service, &base) == 0);
		for (uint64_t at = 0; at < bodies->count; at++) {
			uint64_t number = bodies->first + at;

			if (number % b->services != service)
				continue;
			bodies->items[at] = (struct buf)BUF_INIT(MIB(64));
			make_upload(b, &base, service, number / b->services, &bodies->items[at]);
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

	if (argc < 5 || argc > 7 || str_to_u64(str_of(argv[2]), 1, 1000, &b.services) < 0 ||
	    str_to_u64(str_of(argv[3]), 1, 1440, &b.profiles) < 0 ||
	    str_to_u64(str_of(argv[4]), 1, 256, &b.threads) < 0 ||
	    (argc > 5 && str_to_u64(str_of(argv[5]), 0, UINT64_MAX, &b.seed) < 0) ||
	    (argc > 6 && str_to_u64(str_of(argv[6]), 1, 1000000, &b.stacks) < 0)) {
		(void)fputs("usage: bench_store DIR SERVICES PROFILES THREADS [SEED [STACKS]]\n", stderr);
		return 2;
	}
	printf("seed %llu, %llu services x %llu profiles, %llu stacks of %d frames, %d of them shared by %d, %llu "
	       "threads\n",
	       (unsigned long long)b.seed, (unsigned long long)b.services, (unsigned long long)b.profiles,
	       (unsigned long long)b.stacks, DEPTH, SHARED, FAMILY, (unsigned long long)b.threads);
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
	b.now = START + UINT64_C(2) * 86400 * NSEC_PER_SEC;
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
