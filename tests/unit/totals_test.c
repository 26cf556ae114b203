/* SPDX-License-Identifier: Apache-2.0 */
/* Round steps of time: where they begin, how long they are, what they cover. Answers about totals with more names than
 * there is room for. */
#include "support.h"

#include <inttypes.h>

#include "collector/totals.h"
#include "collector_support.h"

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

/* Answers */

#define START_NS (NOW_MS * NSEC_PER_MSEC)

static int begin(void **state, size_t names_max)
{
	struct served *s = calloc(1, sizeof(*s));

	*state = s;
	return s ? served_open(fixture_memory, START_NS + 3600 * NSEC_PER_SEC, names_max, s) : -1;
}

static int begin_tight(void **state)
{
	return begin(state, 200);
}

static int begin_wide(void **state)
{
	return begin(state, 0);
}

static int end(void **state)
{
	int r = served_close(*state);

	free(*state);
	return r;
}

struct profile {
	const char *service, *type, *labels;
	uint64_t after_ns;
	uint32_t pid;
};

/* One sample of one millisecond, in a profile that took as long. */
static void put(struct served *s, const struct profile *p)
{
	scoped(window_release) struct window w = { 0 };
	struct model_sample sample = { 0 };
	const int64_t value = (int64_t)NSEC_PER_MSEC;

	assert_int_equal(window_init(&w, MIB(1)), 0);
	w.start_ns = START_NS + p->after_ns;
	w.end_ns = w.start_ns + NSEC_PER_MSEC;
	w.model->time_ns = (int64_t)w.start_ns;
	w.model->duration_ns = (int64_t)NSEC_PER_MSEC;
	assert_int_equal(model_add_value_type(w.model, STR("cpu"), STR("nanoseconds")), 0);
	assert_int_equal(model_add_process(w.model, &(struct model_process){ .pid = p->pid }, &sample.process), 0);
	assert_int_equal(model_add_sample(w.model, &sample, &value), 0);
	(void)fixture_put(s->f, p->service, p->type, p->labels, w.start_ns, &w);
}

static json_t *ask(struct served *s, call_fn *what, const char *more, unsigned int want)
{
	char query[256];

	(void)snprintf(query, sizeof(query), "from=%" PRIu64 "&to=%" PRIu64 "%s", NOW_MS, NOW_MS + 3600 * SECOND, more);
	return served_ask(s, what, query, want);
}

static uint64_t sum_of(const json_t *array, const char *key)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < json_array_size(array); i++)
		sum += json_number(json_array_get(array, i), key);
	return sum;
}

#define MANY 40 /* names of 20 bytes, three times as many as there is room for */

static void put_many(struct served *s)
{
	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int i = 0; i < MANY; i++) {
			char service[32], type[32], labels[64];

			(void)snprintf(service, sizeof(service), "service-%012u", i);
			(void)snprintf(type, sizeof(type), "type%u", i);
			(void)snprintf(labels, sizeof(labels), "host=%012u", i);
			put(s, &(struct profile){ service, "cpu", labels, turn * NSEC_PER_SEC, 7 });
			put(s, &(struct profile){ "types", type, "", turn * NSEC_PER_SEC, 7 });
		}
}

static uint64_t failures(struct served *s)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	const char *at;

	metrics_write(s->c->metrics, &text);
	at = strstr(buf_cstr(&text), "\nhearth_store_failed_total ");
	assert_non_null(at);
	return strtoul(strchr(at, ' '), NULL, 10);
}

static void services_beyond_the_room_are_folded(void **state)
{
	struct served *s = *state;
	json_t *answer, *folded;

	put_many(s);
	answer = ask(s, view_services, "&type=cpu&before=1h", 200);
	folded = json_object_get(answer, "folded");
	assert_int_equal(json_array_size(json_object_get(answer, "services")), 10);
	assert_int_equal(json_number(folded, "services"), 1);
	assert_int_equal(json_number(folded, "total"), (MANY - 10) * 2 * NSEC_PER_MSEC);
	assert_int_equal(json_number(answer, "total"), MANY * 2 * NSEC_PER_MSEC);
	assert_int_equal(sum_of(json_object_get(answer, "services"), "total"), 10 * 2 * NSEC_PER_MSEC);
	json_decref(answer);
	assert_int_equal(failures(s), 0);
}

static void groups_beyond_the_room_are_others(void **state)
{
	struct served *s = *state;
	json_t *answer, *series;

	put_many(s);
	answer = ask(s, view_timeline, "&type=cpu&group=service&limit=4", 200);
	series = json_object_get(answer, "series");
	assert_int_equal(json_array_size(series), 5);
	assert_int_equal(json_number(answer, "folded"), 7);
	assert_int_equal(json_number(json_array_get(series, 4), "total"), (MANY - 4) * 2 * NSEC_PER_MSEC);
	assert_int_equal(sum_of(series, "total"), MANY * 2 * NSEC_PER_MSEC);
	json_decref(answer);
	assert_int_equal(failures(s), 0);
}

static void labels_and_types_say_that_there_are_more(void **state)
{
	struct served *s = *state;
	json_t *answer, *host;

	put_many(s);
	answer = ask(s, view_labels, "&type=cpu", 200);
	host = json_array_get(json_object_get(answer, "labels"), 0);
	assert_int_equal(json_number(host, "count"), 11); /* of host, a byte, and 12 digits */
	assert_int_equal(sum_of(json_object_get(host, "values"), "total"), 11 * 2 * NSEC_PER_MSEC);
	assert_true(json_is_true(json_object_get(answer, "more")));
	json_decref(answer);
	answer = ask(s, view_labels, "&service=service-000000000001", 200);
	assert_null(json_object_get(answer, "more"));
	json_decref(answer);
	answer = ask(s, view_types, "", 200);
	assert_true(json_is_true(json_object_get(answer, "more")));
	assert_true(json_array_size(json_object_get(answer, "types")) > 2);
	json_decref(answer);
	assert_int_equal(failures(s), 0);
}

static void what_cannot_be_folded_is_refused_in_words(void **state)
{
	struct served *s = *state;
	json_t *answer;

	for (uint32_t pid = 1; pid <= MANY; pid++)
		put(s, &(struct profile){ "one", "cpu", "", 0, pid });
	answer = ask(s, view_processes, "&type=cpu", 429);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "too many rows"));
	json_decref(answer);
	assert_int_equal(failures(s), 0);
}

/* Where so many services are listed that their points need a reading of their own. All begin in one of two instants,
 * and are shorter than what covered.h tells apart: the sum says how much is covered. */
static void covered_is_noted_once(void **state)
{
	struct served *s = *state;
	const unsigned int count = 4200;
	json_t *answer;

	for (unsigned int i = 0; i < count; i++) {
		char service[32];

		(void)snprintf(service, sizeof(service), "s%u", i);
		put(s, &(struct profile){ service, "cpu", "", i % 2 ? 0 : 3000 * NSEC_PER_SEC, 7 });
	}
	answer = ask(s, view_services, "&type=cpu&limit=5", 200);
	assert_int_equal(json_number(answer, "covered_ms"), count);
	assert_int_equal(sum_of(json_object_get(answer, "services"), "total"), 5 * NSEC_PER_MSEC);
	json_decref(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(covers_the_range),
		cmocka_unit_test(is_as_short_as_it_may_be),
		cmocka_unit_test(is_no_shorter_than_profiles),
		cmocka_unit_test_setup_teardown(covered_is_noted_once, begin_wide, end),
		cmocka_unit_test_setup_teardown(services_beyond_the_room_are_folded, begin_tight, end),
		cmocka_unit_test_setup_teardown(groups_beyond_the_room_are_others, begin_tight, end),
		cmocka_unit_test_setup_teardown(labels_and_types_say_that_there_are_more, begin_tight, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_folded_is_refused_in_words, begin_tight, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
