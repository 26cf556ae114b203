/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every format: write, read and write again gives the same bytes; failures leave nothing behind. */
#include "support.h"

#include "codec/pprof.h"
#include "codec_samples.h"

#define OUT_MAX MIB(64)

static size_t first_difference(struct str a, struct str b)
{
	size_t at = 0;

	while (at < a.len && at < b.len && a.ptr[at] == b.ptr[at])
		at++;
	return at;
}

static void assert_same(const struct codec *codec, struct str a, struct str b)
{
	size_t at = first_difference(a, b);

	if (!str_eq(a, b)) {
		print_message("%s: %zu and %zu bytes differ at %zu: '" STR_FMT "' and '" STR_FMT "'\n", codec->name,
			      a.len, b.len, at, STR_ARG(str_first(str_skip(a, at > 20 ? at - 20 : 0), 60)),
			      STR_ARG(str_first(str_skip(b, at > 20 ? at - 20 : 0), 60)));
		fail();
	}
}

/* Return: what the first failing step returned, or 0. */
static int round_trip(const struct codec *codec, const struct window *w)
{
	scoped(buf_release) struct buf once = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX);
	scoped(window_release) struct window second = { 0 };
	struct codec_error error = { 0 };
	struct cur in;
	int r = codec->encode(w, &once);

	if (r < 0)
		return r;
	in = guard_page(once.ptr, once.len);
	r = codec->decode(str_n((const char *)in.pos, once.len), &second, &error);
	if (r < 0) {
		if (r != -ENOMEM)
			print_message("%s: %s at %llu\n", codec->name, error.reason,
				      (unsigned long long)error.position);
		return r;
	}
	r = codec->encode(&second, &again);
	if (r == 0)
		assert_same(codec, buf_str(&once), buf_str(&again));
	return r;
}

static bool goes_both_ways(const struct codec *c)
{
	return c->encode && c->decode;
}

static void writes_the_same_again(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	for (size_t i = 0; codec_at(i); i++) {
		if (!goes_both_ways(codec_at(i)))
			continue;
		print_message("  %s\n", codec_at(i)->name);
		assert_int_equal(round_trip(codec_at(i), &w), 0);
	}
}

/* Every sample at two moments when @timed, with a part of its values each. */
static void make_timed(bool timed, struct window *out)
{
	struct model_sample *rows;
	struct model *m;
	int64_t *values;
	size_t count;

	assert_int_equal(hostile_window(out, false), 0);
	m = out->model;
	rows = calloc(m->samples_count, sizeof(*rows));
	values = calloc(m->values_count, sizeof(*values));
	assert_non_null(rows);
	assert_non_null(values);
	memcpy(rows, m->samples, m->samples_count * sizeof(*rows));
	memcpy(values, m->values, m->values_count * sizeof(*values));
	count = m->samples_count;
	m->samples_count = m->values_count = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t first[2] = { values[2 * i] / 2, values[2 * i + 1] / 2 };
		int64_t rest[2] = { values[2 * i] - first[0], values[2 * i + 1] - first[1] };

		rows[i].time_offset_ns = timed ? 20 * NSEC_PER_MSEC : MODEL_NO_TIME;
		assert_int_equal(model_add_sample(m, &rows[i], timed ? first : &values[2 * i]), 0);
		rows[i].time_offset_ns = 40 * NSEC_PER_MSEC;
		if (timed)
			assert_int_equal(model_add_sample(m, &rows[i], rest), 0);
	}
	free(rows);
	free(values);
}

/* Where a format has no times, samples that were told apart by them alone are one, and so is the file. */
static void times_do_not_multiply_samples(void **state)
{
	static const char *const timed_formats[] = { "window", "firefox", "speedscope", "otlp" };
	scoped(window_release) struct window plain = { 0 }, timed = { 0 };
	size_t same = 0;

	(void)state;
	make_timed(false, &plain);
	make_timed(true, &timed);
	assert_int_equal(timed.model->samples_count, 2 * plain.model->samples_count);
	for (size_t i = 0; codec_at(i); i++) {
		scoped(buf_release) struct buf want = BUF_INIT(OUT_MAX), got = BUF_INIT(OUT_MAX);
		bool has_times = false;

		for (size_t k = 0; k < ARRAY_SIZE(timed_formats); k++)
			has_times |= !strcmp(timed_formats[k], codec_at(i)->name);
		if (!codec_at(i)->encode)
			continue;
		print_message("  %s\n", codec_at(i)->name);
		assert_int_equal(codec_at(i)->encode(&plain, &want), 0);
		assert_int_equal(codec_at(i)->encode(&timed, &got), 0);
		if (has_times)
			assert_true(got.len > want.len);
		else if (!strcmp(codec_at(i)->name,
				 "col")) /* without times there are equal lines that are kept apart */
			assert_true(got.len <= want.len);
		else
			assert_same(codec_at(i), buf_str(&got), buf_str(&want));
		same += !has_times;
	}
	assert_true(same >= 3);
}

static void writes_an_empty_window(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(window_init(&w, KIB(1)), 0);
	for (size_t i = 0; codec_at(i); i++)
		if (goes_both_ways(codec_at(i)))
			assert_int_equal(round_trip(codec_at(i), &w), 0);
}

/* From every format to every other and back: still a fixed point, and no sample is lost on the way. */
static void converts(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	for (size_t i = 0; codec_at(i); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
		scoped(window_release) struct window read = { 0 };
		struct codec_error error;

		if (!goes_both_ways(codec_at(i)))
			continue;
		assert_int_equal(codec_at(i)->encode(&w, &bytes), 0);
		assert_ptr_equal(codec_sniff(buf_str(&bytes)), codec_at(i));
		assert_int_equal(codec_at(i)->decode(buf_str(&bytes), &read, &error), 0);
		for (size_t j = 0; codec_at(j); j++)
			if (goes_both_ways(codec_at(j)))
				assert_int_equal(round_trip(codec_at(j), &read), 0);
	}
}

static int round_trip_all(void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	const struct codec *codec = ctx;
	int r = hostile_window(&w, false);

	return r ? r : round_trip(codec, &w);
}

/* In pieces of a line, of some, of all: the same bytes as at once. */
static void in_pieces_it_is_the_same(void **state)
{
	static const size_t sizes[] = { 1, 100, 10000, SIZE_MAX };
	const struct codec_options usual = { 0 };
	scoped(window_release) struct window w = { 0 };
	size_t formats = 0;

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	for (size_t i = 0; codec_at(i); i++)
		for (size_t k = 0; codec_at(i)->begin && k < ARRAY_SIZE(sizes); k++) {
			scoped(buf_release) struct buf whole = BUF_INIT(MIB(64)), all = BUF_INIT(MIB(64));
			void *at = NULL;
			size_t pieces = 0;
			int r;

			formats++;
			assert_int_equal(codec_encode(codec_at(i), &w, &usual, &whole), 0);
			assert_int_equal(codec_at(i)->begin(&w, &usual, &at), 0);
			do {
				scoped(buf_release) struct buf piece = BUF_INIT(MIB(64));

				r = codec_at(i)->next(at, sizes[k], &piece);
				assert_true(r == 0 || (r == 1 && piece.len >= sizes[k]));
				buf_adds(&all, buf_str(&piece));
				pieces++;
			} while (r > 0);
			codec_at(i)->end(at);
			assert_true(str_eq(buf_str(&all), buf_str(&whole)));
			assert_true(sizes[k] > 1 || pieces > 10);
		}
	assert_true(formats >= 2 * ARRAY_SIZE(sizes));
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for (size_t i = 0; codec_at(i); i++)
		if (goes_both_ways(codec_at(i)))
			for_each_failing_allocation(round_trip_all, (void *)codec_at(i));
}

static int write_only(void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	const struct codec *codec = ctx;
	int r = hostile_window(&w, false);

	return r ? r : codec->encode(&w, &bytes);
}

/* What is only written is the same each time, and survives what the others do. */
static void writes_without_reading(void **state)
{
	scoped(window_release) struct window w = { 0 }, empty = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	assert_int_equal(window_init(&empty, KIB(1)), 0);
	for (size_t i = 0; codec_at(i); i++) {
		scoped(buf_release) struct buf once = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX),
					       none = BUF_INIT(OUT_MAX);

		if (codec_at(i)->decode)
			continue;
		print_message("  %s\n", codec_at(i)->name);
		assert_int_equal(codec_at(i)->encode(&w, &once), 0);
		assert_int_equal(codec_at(i)->encode(&w, &again), 0);
		assert_same(codec_at(i), buf_str(&once), buf_str(&again));
		assert_int_equal(codec_at(i)->encode(&empty, &none), 0);
		for_each_failing_allocation(write_only, (void *)codec_at(i));
	}
}

static void leaves_output_alone_on_failure(void **state)
{
	static const char rubbish[] = "\x1f\x8b rubbish";

	(void)state;
	for (size_t i = 0; codec_at(i); i++) {
		struct window out = { .frequency_hz = 77 };
		struct codec_error error = { 0 };
		struct cur in = guard_page(rubbish, sizeof(rubbish));

		if (!codec_at(i)->decode)
			continue;
		assert_int_equal(codec_at(i)->decode(str_n((const char *)in.pos, sizeof(rubbish)), &out, &error),
				 -EBADMSG);
		assert_int_equal(out.frequency_hz, 77);
		assert_null(out.model);
		assert_true(error.reason[0]);
	}
}

/* The header of a .col file: what was counted and how often, written, read and written again. */
static void col_says_what_was_sampled(void **state)
{
	static const struct {
		const char *type, *unit, *sampler;
		int64_t period;
		uint32_t rate;
		const char *says;
	} rows[] = {
		{ "cpu", "nanoseconds", "bpf", 10101010, 99,
		  "\"sampling_event\": \"cpu-time\", \"sampling_mode\": \"frequency\", \"sampling_frequency\": 99}" },
		{ "cpu", "nanoseconds", "bpf", 5000000, 0,
		  "\"sampling_event\": \"cpu-time\", \"sampling_mode\": \"period\", \"sampling_period\": 5000000}" },
		{ "cpu", "nanoseconds", NULL, 10000000, 0, /* a foreign profile: nobody said how it was sampled */
		  "\"sampling_event\": \"cpu-time\", \"sampling_mode\": \"frequency\", \"sampling_frequency\": null}" },
		{ "page-faults", "count", "bpf", 100, 0,
		  "\"sampling_event\": \"page-faults\", \"sampling_mode\": \"period\", \"sampling_period\": 100}" },
		{ "a\"b", "count", "bpf", 0, 49,
		  "\"sampling_event\": \"a\\\"b\", \"sampling_mode\": \"frequency\", \"sampling_frequency\": 49}" },
	};
	const struct codec *col = codec_find(STR("col"));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		scoped(window_release) struct window w = { 0 }, back = { 0 };
		scoped(buf_release) struct buf once = BUF_INIT(MIB(1)), again = BUF_INIT(MIB(1));
		struct codec_error error = { 0 };

		assert_int_equal(window_init(&w, MIB(1)), 0);
		w.frequency_hz = rows[i].rate;
		w.model->period = rows[i].period;
		assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
		assert_int_equal(model_add_string(w.model, str_of(rows[i].type), &w.model->period_type.type), 0);
		assert_int_equal(model_add_string(w.model, str_of(rows[i].unit), &w.model->period_type.unit), 0);
		if (rows[i].sampler)
			assert_int_equal(window_set_text(&w.sampler, str_of(rows[i].sampler)), 0);
		assert_int_equal(col->encode(&w, &once), 0);
		print_message("  " STR_FMT "\n", STR_ARG(buf_str(&once)));
		assert_true(str_search(buf_str(&once), str_of(rows[i].says)) >= 0);
		assert_int_equal(col->decode(buf_str(&once), &back, &error), 0);
		if (strcmp(rows[i].type, "cpu") != 0) {
			assert_true(
				str_eq(model_string(back.model, back.model->period_type.type), str_of(rows[i].type)));
			assert_int_equal(back.model->period, rows[i].period);
		}
		assert_int_equal(back.frequency_hz, rows[i].rate);
		assert_int_equal(col->encode(&back, &again), 0);
		if (strcmp(rows[i].type, "cpu") != 0)
			assert_true(str_search(buf_str(&again), str_of(rows[i].says)) >= 0);
	}
}

static void numbers_locations_by_use(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(1));
	struct model_sample sample = { 0 };
	struct codec_error error = { 0 };
	uint32_t locations[4];
	int64_t value = 1;

	(void)state;
	assert_int_equal(window_init(&w, MIB(1)), 0);
	assert_int_equal(model_add_value_type(w.model, STR("samples"), STR("count")), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct model_location row = { .address = 0x10 + i };

		assert_int_equal(model_add_location(w.model, &row, NULL, &locations[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++) /* from the root on; the last one is in no stack */
		assert_int_equal(model_add_stack(w.model, sample.stack, locations[i], &sample.stack), 0);
	assert_int_equal(model_add_sample(w.model, &sample, &value), 0);
	assert_int_equal(pprof_encode_level(&w, 1, &bytes), 0);
	assert_int_equal(codec_find(STR("pprof"))->decode(buf_str(&bytes), &back, &error), 0);
	assert_int_equal(back.model->locations_count, 5);
	assert_int_equal(back.model->locations[1].address, 0x12);
	assert_int_equal(back.model->locations[2].address, 0x11);
	assert_int_equal(back.model->locations[3].address, 0x10);
	assert_int_equal(back.model->locations[4].address, 0x13);
	assert_int_equal(back.model->locations[back.model->stacks[back.model->samples[0].stack].location].address,
			 0x12);
}

static void finds_by_name_and_path(void **state)
{
	(void)state;
	for (size_t i = 0; codec_at(i); i++)
		assert_ptr_equal(codec_find(str_of(codec_at(i)->name)), codec_at(i));
	assert_null(codec_find(STR("nothing")));
	assert_null(codec_for_path(STR("x.html")));
	assert_ptr_equal(codec_for_path(STR("/tmp/x.pb.gz")), codec_find(STR("pprof")));
	assert_ptr_equal(codec_for_path(STR("x.pprof")), codec_find(STR("pprof")));
	assert_ptr_equal(codec_for_path(STR("x.col")), codec_find(STR("col")));
	assert_ptr_equal(codec_for_path(STR("x.collapsed")), codec_find(STR("folded")));
	assert_ptr_equal(codec_for_path(STR("x.speedscope.json")), codec_find(STR("speedscope")));
	assert_ptr_equal(codec_for_path(STR("x.profile.json")), codec_find(STR("firefox")));
	assert_ptr_equal(codec_for_path(STR("x.cpuprofile")), codec_find(STR("cpuprofile")));
}

static void says_losses_in_one_line(void **state)
{
	struct codec_lost lost = { 0 };
	char wide[sizeof(lost.text)];

	(void)state;
	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = 0;
	codec_lose(NULL, "%s", "nobody asks");
	codec_lose(&lost, "%d frames", 3);
	codec_lose(&lost, "%d texts", 4);
	codec_lose(&lost, "%s", wide); /* no room: all of it or nothing */
	codec_lose(&lost, "%s", "last");
	assert_string_equal(lost.text, "3 frames; 4 texts; last");
	for (int i = 0; i < 1000; i++)
		codec_lose(&lost, "%s", "one more");
	assert_true(strlen(lost.text) < sizeof(lost.text));
	assert_true(str_ends(str_of(lost.text), STR("; one more")));
	lost.text[0] = 0;
	codec_lose(&lost, "%s%s", wide, wide);
	assert_int_equal(strlen(lost.text), sizeof(lost.text) - 1);
	codec_lose(&lost, "%s", "y");
	assert_int_equal(strlen(lost.text), sizeof(lost.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_same_again),          cmocka_unit_test(times_do_not_multiply_samples),
		cmocka_unit_test(writes_an_empty_window),         cmocka_unit_test(converts),
		cmocka_unit_test(survives_failing_allocations),   cmocka_unit_test(writes_without_reading),
		cmocka_unit_test(leaves_output_alone_on_failure), cmocka_unit_test(col_says_what_was_sampled),
		cmocka_unit_test(numbers_locations_by_use),       cmocka_unit_test(finds_by_name_and_path),
		cmocka_unit_test(says_losses_in_one_line),        cmocka_unit_test(in_pieces_it_is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
