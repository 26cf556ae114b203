/* SPDX-License-Identifier: Apache-2.0 */
/* The Firefox Profiler's processed profile: stacks and weights are computed anew from the file by the rules of that
 * format (src/types/profile.ts of firefox-devtools/profiler, version 70), and compared with folded stacks. */
#include "support.h"

#include <jansson.h>
#include <math.h>

#include "codec/firefox.h"
#include "codec/folded.h"
#include "codec_samples.h"

struct file {
	json_t *root, *shared, *threads;
};

static void file_release(struct file *f)
{
	json_decref(f->root);
}

static json_t *member(json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	if (!value)
		print_message("no '%s'\n", name);
	assert_non_null(value);
	return value;
}

static json_t *at(json_t *table, const char *column, size_t row)
{
	json_t *value = json_array_get(member(table, column), row);

	assert_non_null(value);
	return value;
}

static size_t number(json_t *value)
{
	assert_true(json_is_integer(value) && json_integer_value(value) >= 0);
	return (size_t)json_integer_value(value);
}

static size_t length(json_t *table)
{
	return number(member(table, "length"));
}

/* Every column of a table has as many rows as it says. */
static void check_table(json_t *table)
{
	const char *name;
	json_t *column;

	json_object_foreach(table, name, column)
	{
		if (!json_is_array(column))
			continue;
		if (json_array_size(column) != length(table))
			print_message("column %s\n", name);
		assert_int_equal(json_array_size(column), length(table));
	}
}

/* An index into a table, or the value that stands for none. */
static void check_indexes(json_t *table, const char *column, size_t rows, int none)
{
	for (size_t i = 0; i < length(table); i++) {
		json_t *value = at(table, column, i);

		if (none < 0 ? json_integer_value(value) == -1 : none && json_is_null(value))
			continue;
		assert_true(number(value) < rows);
	}
}

static void check_shared(json_t *shared, size_t categories)
{
	static const char *const tables[] = { "stackTable",    "frameTable", "funcTable",          "resourceTable",
					      "nativeSymbols", "sources",    "sourceLocationTable" };
	json_t *stacks = member(shared, "stackTable"), *frames = member(shared, "frameTable"),
	       *funcs = member(shared, "funcTable"), *resources = member(shared, "resourceTable"),
	       *sources = member(shared, "sources");
	size_t strings = json_array_size(member(shared, "stringArray"));

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		check_table(member(shared, tables[i]));
	check_indexes(stacks, "frame", length(frames), 0);
	for (size_t i = 0; i < length(stacks); i++)
		assert_true(number(at(stacks, "prefixOffset", i)) <= i);
	check_indexes(frames, "func", length(funcs), 0);
	check_indexes(frames, "category", categories, 0);
	check_indexes(funcs, "name", strings, 0);
	check_indexes(funcs, "resource", length(resources), -1);
	check_indexes(funcs, "source", length(sources), 1);
	check_indexes(resources, "name", strings, 0);
	check_indexes(sources, "filename", strings, 0);
}

static void check_thread(json_t *thread, json_t *shared)
{
	static const char *const members[] = { "processType",  "processStartupTime", "processShutdownTime",
					       "registerTime", "unregisterTime",     "pausedRanges",
					       "processName" };
	json_t *samples = member(thread, "samples");
	double before = -1;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		(void)member(thread, members[i]);
	assert_true(json_is_string(member(thread, "name")) && json_is_string(member(thread, "pid")));
	assert_true(json_is_integer(member(thread, "tid")) && json_is_boolean(member(thread, "isMainThread")));
	check_table(samples);
	check_table(member(thread, "markers"));
	check_indexes(samples, "stack", length(member(shared, "stackTable")), 1);
	for (size_t i = 0; i < length(samples); i++) {
		double time = json_number_value(at(samples, "time", i));

		assert_true(time >= before);
		before = time;
	}
}

/* The first grey category is the one of frames that have none. */
static size_t check_meta(json_t *meta)
{
	json_t *categories = member(meta, "categories"), *category;
	bool has_grey = false;
	size_t i;

	assert_int_equal(number(member(meta, "preprocessedProfileVersion")), 70);
	assert_true(json_number_value(member(meta, "interval")) > 0);
	assert_true(json_is_number(member(meta, "startTime")) && json_is_string(member(meta, "product")));
	assert_true(json_is_array(member(meta, "markerSchema")) && json_is_integer(member(meta, "version")));
	json_array_foreach(categories, i, category)
	{
		assert_true(json_is_string(member(category, "name")));
		assert_true(json_array_size(member(category, "subcategories")) > 0);
		has_grey |= !strcmp(json_string_value(member(category, "color")), "grey");
	}
	assert_true(has_grey);
	return json_array_size(categories);
}

static void read_file(struct str text, struct file *out)
{
	json_error_t error;
	json_t *thread;
	size_t i;

	out->root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &error);
	if (!out->root)
		print_message("%s at %d\n", error.text, error.position);
	assert_non_null(out->root);
	out->shared = member(out->root, "shared");
	out->threads = member(out->root, "threads");
	assert_true(json_is_array(member(out->root, "libs")));
	check_shared(out->shared, check_meta(member(out->root, "meta")));
	json_array_foreach(out->threads, i, thread) check_thread(thread, out->shared);
}

/* ";root;...;leaf" of a stack; a category "kernel" is written as folded stacks have it. */
static void add_stack(const struct file *f, size_t stack, struct buf *out)
{
	json_t *stacks = member(f->shared, "stackTable"), *frames = member(f->shared, "frameTable");
	size_t offset = number(at(stacks, "prefixOffset", stack)), frame = number(at(stacks, "frame", stack));
	size_t func = number(at(frames, "func", frame)), category = number(at(frames, "category", frame));
	size_t name = number(at(member(f->shared, "funcTable"), "name", func));
	json_t *kind = json_array_get(member(member(f->root, "meta"), "categories"), category);

	if (offset)
		add_stack(f, stack - offset, out);
	buf_addc(out, ';');
	buf_adds(out, str_of(json_string_value(json_array_get(member(f->shared, "stringArray"), name))));
	if (!strcmp(json_string_value(member(kind, "name")), "kernel"))
		buf_adds(out, STR("_[k]"));
}

static void add_thread(const struct file *f, json_t *thread, double unit, struct buf *out)
{
	json_t *samples = member(thread, "samples");

	for (size_t i = 0; i < length(samples); i++) {
		buf_adds(out, str_of(json_string_value(member(thread, "processName"))));
		add_stack(f, number(at(samples, "stack", i)), out);
		buf_addf(out, " %lld\n", llround(json_number_value(at(samples, "weight", i)) * unit));
	}
}

static void read_folded(struct str text, struct window *out)
{
	struct codec_error error;

	assert_int_equal(codec_folded.decode(text, out, &error), 0);
}

/* @unit: of a weight in the file, so that it becomes the model's value again */
static void assert_same_stacks(const struct window *w, const char *value, double unit)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(64)), lines = BUF_INIT(MIB(64)), want = BUF_INIT(MIB(64)),
				       got = BUF_INIT(MIB(64));
	const struct codec_options options = { .value = value };
	scoped(window_release) struct window back = { 0 };
	scoped(file_release) struct file f = { 0 };
	json_t *thread;
	size_t i;

	assert_int_equal(codec_encode(&codec_firefox, w, &options, &text), 0);
	read_file(buf_str(&text), &f);
	json_array_foreach(f.threads, i, thread) add_thread(&f, thread, unit, &lines);
	read_folded(buf_str(&lines), &back); /* sorts and adds up */
	assert_int_equal(codec_folded.encode(&back, &got), 0);
	assert_int_equal(codec_encode(&codec_folded, w, &options, &want), 0);
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
}

static const char folded[] = "web;main 1\n"
			     "web;main;f 20\n"
			     "web;main;f;g 300\n"
			     "web;main;f;g;f 4000\n"
			     "web;main;read;sys_read_[k] 50000\n"
			     "db;main;f 9007199254740993\n"
			     "db;start;main;f 7\n";

static void has_the_stacks_and_weights(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	read_folded(str_of(folded), &w);
	w.model->values[5] = 6; /* a double cannot hold that many */
	assert_same_stacks(&w, NULL, 1);
}

static void nanoseconds_become_milliseconds(void **state)
{
	static const struct {
		const char *unit;
		int64_t value;
		const char *text;
	} cases[] = {
		{ "nanoseconds", 10101010, "[10.10101]" },
		{ "nanoseconds", 1, "[0.000001]" },
		{ "nanoseconds", INT64_MAX, "[9223372036854.775807]" },
		{ "nanoseconds", 3000000, "[3]" },
		{ "microseconds", 1500, "[1.5]" },
		{ "milliseconds", 12, "[12]" },
		{ "seconds", 12, "[12000]" },
		{ "bytes", 12, "[12]" },
		{ "count", INT64_MAX, "[9223372036854775807]" },
		{ "nanoseconds", -1500000, "[-1.5]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
		char want[64];

		print_message("  %lld %s\n", (long long)cases[i].value, cases[i].unit);
		read_folded(STR("web;main 1\n"), &w);
		assert_int_equal(model_add_string(w.model, str_of(cases[i].unit), &w.model->value_types[0].unit), 0);
		w.model->values[0] = cases[i].value;
		assert_int_equal(codec_firefox.encode(&w, &text), 0);
		(void)snprintf(want, sizeof(want), "\"weight\": %s", cases[i].text);
		assert_non_null(strstr(buf_cstr(&text), want));
		(void)snprintf(want, sizeof(want), "\"weightType\": \"%s\"",
			       !strcmp(cases[i].unit, "bytes")   ? "bytes"
			       : !strcmp(cases[i].unit, "count") ? "samples"
								 : "tracing-ms");
		assert_non_null(strstr(buf_cstr(&text), want));
	}
}

/* Processes are told apart also where they have one number, or none; each has one first thread. */
static void has_threads_of_processes(void **state)
{
	static const struct {
		uint32_t pid, tid;
		const char *pid_text;
	} rows[] = { { 7, 8, "7" }, { 7, 7, "7" }, { 9, 0, "9" }, { 0, 0, "0.4" }, { 7, 7, "7.5" } };
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	scoped(file_release) struct file f = { 0 };
	json_t *meta, *thread;
	size_t i;

	(void)state;
	read_folded(STR("main 1\n"), &w);
	w.model->samples_count = 0;
	for (uint32_t row = 0; row < ARRAY_SIZE(rows); row++) {
		struct model_process process = { .pid = rows[row].pid, .start_ns = row < 2 ? 1 : row + 1 };
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
		struct model_thread of = { .tid = rows[row].tid };

		assert_int_equal(model_add_process(w.model, &process, &sample.process), 0);
		of.process = sample.process;
		if (of.tid)
			assert_int_equal(model_add_thread(w.model, &of, &sample.thread), 0);
		assert_int_equal(model_add_sample(w.model, &sample, (int64_t[]){ 100 - row }), 0);
	}
	assert_int_equal(codec_firefox.encode(&w, &text), 0);
	read_file(buf_str(&text), &f);
	assert_int_equal(json_array_size(f.threads), ARRAY_SIZE(rows));
	json_array_foreach(f.threads, i, thread)
	{
		size_t row = i < 2 ? 1 - i : i; /* the process's first thread is in front of heavier ones */

		assert_int_equal(number(json_array_get(member(member(thread, "samples"), "weight"), 0)), 100 - row);
		assert_string_equal(json_string_value(member(thread, "pid")), rows[row].pid_text);
		assert_int_equal(json_is_true(member(thread, "isMainThread")), i != 1);
	}
	meta = member(f.root, "meta");
	assert_int_equal(json_array_size(member(meta, "initialVisibleThreads")), 5);
	assert_int_equal(json_array_size(member(meta, "initialSelectedThreads")), 1);
}

/* The second row is a wait: it has a value in the other column, and no time. */
static void has_times_where_all_that_is_shown_has(void **state)
{
	static const int64_t values[][2] = { { 3, 0 }, { 0, 9 }, { 1, 0 } };
	static const uint64_t times[] = { 20 * NSEC_PER_MSEC, MODEL_NO_TIME, 0 };
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf cpu = BUF_INIT(MIB(1)), waits = BUF_INIT(MIB(1));
	const struct codec_options first = { .value = "samples" }, second = { .value = "waits" };

	(void)state;
	assert_int_equal(window_init(&w, KIB(4)), 0);
	w.frequency_hz = 100;
	assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(w.model, STR("waits"), STR("count")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		assert_int_equal(
			model_add_sample(w.model, &(struct model_sample){ .time_offset_ns = times[i] }, values[i]), 0);
	assert_int_equal(codec_encode(&codec_firefox, &w, &first, &cpu), 0);
	assert_non_null(strstr(buf_cstr(&cpu), "\"time\": [0,20]"));
	assert_non_null(strstr(buf_cstr(&cpu), "\"weight\": [1,3]"));
	assert_int_equal(codec_encode(&codec_firefox, &w, &second, &waits), 0);
	assert_non_null(strstr(buf_cstr(&waits), "\"time\": [0]"));
	assert_non_null(strstr(buf_cstr(&waits), "\"weight\": [9]"));
}

static double sum_of_weights(const struct file *f)
{
	json_t *thread, *weight;
	double sum = 0;
	size_t i, k;

	json_array_foreach(f->threads, i, thread) json_array_foreach(member(member(thread, "samples"), "weight"), k,
								     weight) sum += json_number_value(weight);
	return sum;
}

static void hostile_names_keep_the_totals(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_lost lost = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	for (size_t column = 0; column < 2; column++) {
		const struct codec_options options = { .value = column ? "cpu" : "samples", .lost = &lost };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(64));
		scoped(file_release) struct file f = { 0 };
		int64_t sum = 0;

		assert_int_equal(codec_encode(&codec_firefox, &w, &options, &text), 0);
		read_file(buf_str(&text), &f);
		for (size_t i = 0; i < w.model->samples_count; i++)
			sum += model_values(w.model, &w.model->samples[i])[column];
		assert_int_equal(llround(sum_of_weights(&f) * (column ? 1e6 : 1)), sum);
	}
	assert_non_null(strstr(lost.text, "'samples' is written"));
}

static void writes_an_empty_window(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	scoped(file_release) struct file f = { 0 };

	(void)state;
	assert_int_equal(window_init(&w, KIB(1)), 0);
	assert_int_equal(codec_firefox.encode(&w, &text), 0);
	read_file(buf_str(&text), &f);
	assert_int_equal(json_array_size(f.threads), 0);
}

static int encode_hostile(void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(64));
	int r = hostile_window(&w, false);

	(void)ctx;
	return r ? r : codec_firefox.encode(&w, &text);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(encode_hostile, NULL);
}

static void is_known_but_not_read(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	(void)state;
	read_folded(STR("main 1\n"), &w);
	assert_int_equal(codec_firefox.encode(&w, &text), 0);
	assert_ptr_equal(codec_sniff(buf_str(&text)), &codec_firefox);
	assert_null(codec_firefox.decode);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_stacks_and_weights),
		cmocka_unit_test(nanoseconds_become_milliseconds),
		cmocka_unit_test(has_threads_of_processes),
		cmocka_unit_test(hostile_names_keep_the_totals),
		cmocka_unit_test(has_times_where_all_that_is_shown_has),
		cmocka_unit_test(writes_an_empty_window),
		cmocka_unit_test(survives_failing_allocations),
		cmocka_unit_test(is_known_but_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
