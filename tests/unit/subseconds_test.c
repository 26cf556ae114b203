/* SPDX-License-Identifier: Apache-2.0 */
/* The heat map of offsets in the second, and the flame graph of a block of it: on both engines, beside a loop over the
 * samples that were put. */
#include "support.h"

#include "collector_support.h"

#define MS NSEC_PER_MSEC
#define S NSEC_PER_SEC
#define START_S UINT64_C(1795000000)
#define START (START_S * S)
#define ROWS 50

/* A sample that was put. */
struct put {
	uint64_t at_ns; /* 0: it has no time */
	int64_t value;
	uint32_t pid;
	char service;
};

struct scene {
	struct served served;
	struct put puts[4096];
	size_t count;
};

static int begin(int (*fixture)(void **), void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	return s ? served_open(fixture, START + 3600 * S, 0, &s->served) : -1;
}

static int on_memory(void **state)
{
	return begin(fixture_memory, state);
}

static int on_sqlite(void **state)
{
	return begin(fixture_sqlite, state);
}

static int end(void **state)
{
	struct scene *s = *state;
	int r = served_close(&s->served);

	free(s);
	return r;
}

/* Profiles */

struct profile {
	struct window w;
	char service;
	uint64_t created_ns;
};

static void open_profile(struct profile *p, char service, uint64_t start_ns, uint64_t duration_ns)
{
	*p = (struct profile){ .service = service, .created_ns = start_ns };
	assert_int_equal(window_init(&p->w, MIB(1)), 0);
	assert_int_equal(model_add_value_type(p->w.model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(p->w.model, STR("cpu"), STR("nanoseconds")), 0);
	p->w.start_ns = start_ns;
	p->w.end_ns = start_ns + duration_ns;
	p->w.model->time_ns = (int64_t)start_ns;
	p->w.model->duration_ns = (int64_t)duration_ns;
}

static void add(struct scene *s, struct profile *p, uint64_t offset_ns, int64_t value, uint32_t pid, bool has_time)
{
	struct model *m = p->w.model;
	struct model_function function = { .kind = MODEL_KIND_NATIVE };
	struct model_line line = { 0 };
	struct model_location location = { .line_count = 1 };
	struct model_process process = { .pid = pid };
	struct model_thread thread = { .tid = pid };
	struct model_sample row = { .time_offset_ns = offset_ns };
	const int64_t values[] = { 1, value };
	char name[32];
	uint32_t at;

	(void)snprintf(name, sizeof(name), "f%u", (unsigned int)(value % 5));
	assert_int_equal(model_add_string(m, str_of(name), &function.name), 0);
	function.system_name = function.name;
	assert_int_equal(model_add_function(m, &function, &line.function), 0);
	assert_int_equal(model_add_location(m, &location, &line, &at), 0);
	assert_int_equal(model_add_stack(m, 0, at, &row.stack), 0);
	assert_int_equal(model_add_process(m, &process, &row.process), 0);
	thread.process = row.process;
	assert_int_equal(model_add_thread(m, &thread, &row.thread), 0);
	assert_int_equal(model_add_sample(m, &row, values), 0);
	assert_true(s->count < ARRAY_SIZE(s->puts));
	s->puts[s->count++] = (struct put){ has_time ? p->w.start_ns + offset_ns : 0, value, pid, p->service };
}

static void put(struct scene *s, struct profile *p)
{
	const char name[2] = { p->service };

	(void)fixture_put(s->served.f, name, "cpu", "host=h", p->created_ns, &p->w);
	window_release(&p->w);
}

/* Asking */

static uint64_t cell(const json_t *answer, size_t at)
{
	return (uint64_t)json_integer_value(json_array_get(json_object_get(answer, "cells"), at));
}

static json_t *map(struct scene *s, const char *more)
{
	char query[256];

	(void)snprintf(query, sizeof(query), "from=%llu&to=%llu&%s", (unsigned long long)START,
		       (unsigned long long)(START + 60 * S - 1), more);
	return served_ask(&s->served, view_subseconds, query, 200);
}

/* The whole value of a flame graph of a time; 0: nothing is found. */
static uint64_t flame(struct scene *s, uint64_t from_ns, uint64_t to_ns, const char *more, uint64_t *untimed)
{
	char query[256];
	json_t *answer, *again, *meta;
	uint64_t total;

	(void)snprintf(query, sizeof(query), "within=%llu-%llu&%s", (unsigned long long)(from_ns / MS),
		       (unsigned long long)(to_ns / MS), more);
	answer = served_ask(&s->served, view_flame, query, 200);
	again = served_ask(&s->served, view_flame, query, 200); /* it is kept from the question before */
	assert_true(json_equal(answer, again));
	json_decref(again);
	meta = json_object_get(answer, "meta");
	total = json_number(meta, "total");
	*untimed = json_number(meta, "untimed");
	json_decref(answer);
	return total;
}

/* Six profiles of ten seconds and one that began before, of two services and processes; every fifth sample has no
 * time. */
static void fill(struct scene *s)
{
	for (uint64_t i = 0; i < 14; i++) {
		struct profile p;

		open_profile(&p, i % 2 ? 'a' : 'b', START - 5 * S + i / 2 * 10 * S + 3 * MS, 10 * S);
		for (uint64_t k = 0; k < 100; k++) {
			uint64_t offset = (k * k * 7919 + i * 31) % 500 * 20 * MS;
			bool has_time = k % 5 != 4;

			add(s, &p, has_time ? offset : MODEL_NO_TIME, (int64_t)(k * 1000 + i + 1), 10 + (uint32_t)k % 2,
			    has_time);
		}
		put(s, &p);
	}
}

static bool fits(const struct put *p, char service, uint32_t pid)
{
	return (!service || p->service == service) && (!pid || p->pid == pid);
}

static void cells_are_what_was_put(void **state)
{
	static const struct {
		const char *query;
		char service;
		uint32_t pid;
	} cases[] = {
		{ "", 0, 0 }, { "service=a", 'a', 0 }, { "service=b&process=11", 'b', 11 }, { "labels=host%3Dh", 0, 0 }
	};
	struct scene *s = *state;

	fill(s);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *answer = map(s, cases[i].query);
		uint64_t *want = calloc(60 * ROWS, sizeof(*want)), total = 0, untimed = 0;

		assert_non_null(want);
		for (size_t k = 0; k < s->count; k++) {
			const struct put *p = &s->puts[k];

			if (!fits(p, cases[i].service, cases[i].pid))
				continue;
			untimed += p->at_ns ? 0 : (uint64_t)p->value;
			if (p->at_ns < START || p->at_ns >= START + 60 * S)
				continue;
			want[(p->at_ns - START) / (20 * MS)] += (uint64_t)p->value;
			total += (uint64_t)p->value;
		}
		assert_int_equal(json_number(answer, "start_ms"), START / MS);
		assert_int_equal(json_number(answer, "columns"), 60);
		assert_int_equal(json_number(answer, "rows"), ROWS);
		assert_int_equal(json_number(answer, "step_ms"), 20);
		assert_int_equal(json_array_size(json_object_get(answer, "cells")), 60 * ROWS);
		for (size_t k = 0; k < 60 * ROWS; k++)
			assert_int_equal(cell(answer, k), want[k]);
		assert_true(total > 0);
		assert_int_equal(json_number(answer, "total"), total);
		assert_int_equal(json_number(answer, "untimed"), untimed);
		assert_true(json_is_false(json_object_get(answer, "partial")));
		assert_string_equal(json_string_value(json_object_get(answer, "sample")), "cpu");
		free(want);
		json_decref(answer);
	}
}

static void a_block_is_its_flame_graph(void **state)
{
	static const char *const queries[] = { "", "service=a", "process=11", "group=host", "group=thread&service=b" };
	static const struct {
		size_t first, last; /* cells */
	} blocks[] = { { 0, 60 * ROWS - 1 }, { 0, ROWS - 1 }, { 7, 7 + ROWS }, { 490, 1510 }, { 2900, 60 * ROWS - 1 } };
	struct scene *s = *state;

	fill(s);
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		json_t *answer = map(s, queries[i]);

		for (size_t k = 0; k < ARRAY_SIZE(blocks); k++) {
			uint64_t want = 0, untimed = 0, got;

			for (size_t at = blocks[k].first; at <= blocks[k].last; at++)
				want += cell(answer, at);
			got = flame(s, START + blocks[k].first * 20 * MS, START + (blocks[k].last + 1) * 20 * MS,
				    queries[i], &untimed);
			assert_true(want > 0);
			assert_int_equal(got, want);
			assert_true(untimed > 0);
			if (k == 0)
				assert_int_equal(untimed, json_number(answer, "untimed"));
		}
		json_decref(answer);
	}
}

static void two_blocks_are_compared(void **state)
{
	struct scene *s = *state;
	uint64_t untimed, main, base;
	char query[256];
	json_t *answer, *meta;

	fill(s);
	main = flame(s, START + 10 * S, START + 12 * S, "service=a", &untimed);
	base = flame(s, START + 20 * S, START + 21 * S, "service=a", &untimed);
	(void)snprintf(query, sizeof(query), "service=a&within=%llu-%llu&base-within=%llu-%llu",
		       (unsigned long long)(START / MS + 10000), (unsigned long long)(START / MS + 12000),
		       (unsigned long long)(START / MS + 20000), (unsigned long long)(START / MS + 21000));
	answer = served_ask(&s->served, view_compare, query, 200);
	meta = json_object_get(answer, "meta");
	assert_int_equal(json_number(meta, "base_total"), base);
	assert_int_equal(json_number(meta, "base_untimed"), untimed);
	assert_int_equal(json_number(meta, "total"), main + base);
	json_decref(answer);
}

static void samples_without_times_are_counted(void **state)
{
	struct scene *s = *state;
	struct profile p;
	json_t *answer;
	char query[96];

	open_profile(&p, 'a', START, 10 * S);
	for (int i = 0; i < 10; i++)
		add(s, &p, MODEL_NO_TIME, 7, 1, false);
	put(s, &p);
	answer = map(s, "");
	assert_int_equal(json_number(answer, "total"), 0);
	assert_int_equal(json_number(answer, "untimed"), 70);
	assert_int_equal(json_number(answer, "profiles"), 1);
	assert_int_equal(json_number(answer, "profiles_timed"), 0);
	json_decref(answer);
	(void)snprintf(query, sizeof(query), "within=%llu-%llu", (unsigned long long)(START / MS),
		       (unsigned long long)(START / MS + 1000));
	answer = served_ask(&s->served, view_flame, query, 404);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "--sample-times"));
	json_decref(answer);
}

/* Whoever uploads says what he likes: nothing lies outside the cells, nothing overflows. */
static void absurd_times(void **state)
{
	static const uint64_t offsets[] = { 0,
					    20 * MS,
					    10 * S,
					    11 * S,
					    11 * S + 1,
					    600 * S,
					    INT64_MAX,
					    UINT64_MAX - START,
					    UINT64_MAX - START + 1,
					    UINT64_MAX - 1 };
	static const uint64_t starts[] = { START, 0, 1, START - 86400 * S, START + 86400 * S, INT64_MAX };
	static const int64_t durations[] = { (int64_t)(10 * S), 0, -1, INT64_MIN, INT64_MAX };
	struct scene *s = *state;
	uint64_t sum = 0, untimed, got, all = 0;
	json_t *answer;

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(durations); k++) {
			struct profile p;

			open_profile(&p, 'a', START, 10 * S);
			for (size_t n = 0; n < ARRAY_SIZE(offsets); n++) {
				add(s, &p, offsets[n], 1000 + (int64_t)n, 1, true);
				all += 1000 + n;
			}
			p.w.start_ns = starts[i];
			p.w.end_ns = starts[i];
			p.w.model->duration_ns = durations[k];
			put(s, &p);
		}
	}
	answer = map(s, "");
	for (size_t k = 0; k < 60 * ROWS; k++)
		sum += cell(answer, k);
	assert_int_equal(sum, json_number(answer, "total"));
	assert_true(sum > 0 && sum + json_number(answer, "untimed") <= all);
	got = flame(s, START, START + 60 * S, "", &untimed);
	assert_int_equal(got, sum);
	assert_int_equal(untimed, json_number(answer, "untimed"));
	json_decref(answer);
}

static void refuses(void **state)
{
	const struct scene *s = *state;
	static const struct {
		call_fn *what;
		const char *query, *words;
	} cases[] = {
		{ view_subseconds, "from=now-11m&to=now", "ten minutes" },
		{ view_subseconds, "from=0&to=now", "ten minutes" },
		{ view_subseconds, "from=0&to=now&last=0s", "last" },
		{ view_subseconds, "from=0&to=now&last=11m", "last" },
		{ view_subseconds, "from=0&to=now&last=x", "last" },
		{ view_subseconds, "type=nope", "type" },
		{ view_flame, "within=1-600002", "ten minutes" },
		{ view_flame, "within=2-1", "FROM-TO" },
		{ view_flame, "within=1-2&snapshot=x", "snapshot" },
		{ view_compare, "base-within=2-1", "FROM-TO" },
		{ view_export, "as=pprof&within=x", "FROM-TO" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *answer = served_ask(&s->served, cases[i].what, cases[i].query, 400);

		assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), cases[i].words));
		json_decref(answer);
	}
}

static void takes_the_end_of_a_long_range(void **state)
{
	struct scene *s = *state;
	json_t *answer;
	char query[128];

	fill(s);
	(void)snprintf(query, sizeof(query), "from=0&to=%llu&last=1m", (unsigned long long)(START + 60 * S));
	answer = served_ask(&s->served, view_subseconds, query, 200);
	assert_true(json_is_true(json_object_get(answer, "last")));
	assert_int_equal(json_number(answer, "start_ms"), START / MS);
	assert_int_equal(json_number(answer, "columns"), 60);
	json_decref(answer);
	answer = map(s, "last=5s");
	assert_true(json_is_false(json_object_get(answer, "last")));
	assert_int_equal(json_number(answer, "columns"), 60); /* it is short enough as it is */
	json_decref(answer);
}

static void the_longest_range(void **state)
{
	const struct scene *s = *state;
	json_t *answer =
		served_ask(&s->served, view_subseconds, "from=1795000000999999999&to=1795000600999999999", 200);

	assert_int_equal(json_number(answer, "columns"), 601);
	json_decref(answer);
	answer = served_ask(&s->served, view_subseconds, "from=1795000000000000000&to=1795000000000000000", 200);
	assert_int_equal(json_number(answer, "columns"), 1);
	json_decref(answer);
	answer = served_ask(&s->served, view_subseconds, "from=9223372036854775807&to=9223372036854775807", 200);
	assert_int_equal(json_number(answer, "columns"), 1);
	json_decref(answer);
}

#define CASES(X)                             \
	X(cells_are_what_was_put)            \
	X(a_block_is_its_flame_graph)        \
	X(two_blocks_are_compared)           \
	X(samples_without_times_are_counted) \
	X(absurd_times)                      \
	X(refuses)                           \
	X(takes_the_end_of_a_long_range)     \
	X(the_longest_range)

#define ON_MEMORY(case) { "memory: " #case, case, on_memory, end, NULL },
#define ON_SQLITE(case) { "sqlite: " #case, case, on_sqlite, end, NULL },

int main(void)
{
	const struct CMUnitTest tests[] = { CASES(ON_MEMORY) CASES(ON_SQLITE) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
