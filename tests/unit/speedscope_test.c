/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope's JSON: what others write is read with the totals they show, what we write comes back. */
#include "support.h"

#include "codec/firefox.h"
#include "codec/folded.h"
#include "codec/speedscope.h"
#include "codec_samples.h"
#include "model_samples.h"

#define FRAMES                                                                                                       \
	"\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"b.c\",\"line\":7,\"col\":3},{\"name\":" \
	"\"c\"}]}"

static void decode(const char *text, struct window *out)
{
	struct codec_error error = { 0 };
	struct cur in = guard_page(text, strlen(text));
	int r = speedscope_decode(str_n((const char *)in.pos, strlen(text)), &(struct codec_limits){ 0 }, out, &error);

	if (r < 0)
		print_message("%s at %llu\n", error.reason, (unsigned long long)error.position);
	assert_int_equal(r, 0);
}

static void add_folded(const struct window *w, const char *value, struct buf *out)
{
	const struct codec_options options = { .value = value };

	assert_int_equal(codec_encode(&codec_folded, w, &options, out), 0);
}

static void reads_what_others_write(void **state)
{
	static const struct {
		const char *name, *text, *value, *folded;
	} cases[] = {
		{ "sampled",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0,1],[0],[0, 1 "
		  "]],\"weights\":[1,2,3]}]}",
		  "samples", "a 2\na;b 4\n" },
		{ "profiles first, slashes escaped, bytes",
		  "{\"$schema\":\"https:\\/\\/www.speedscope.app\\/"
		  "x\",\"profiles\":[{\"samples\":[[2]],\"weights\":[5],\"unit\":\"bytes\",\"type\":\"sampled\"}]"
		  "," FRAMES "}",
		  "space", "c 5\n" },
		{ "fractions of seconds are nanoseconds",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"seconds\",\"samples\":[[0],[1],[2]],"
		  "\"weights\":[0.01,1e-9,2.5e+0]}]}",
		  "time", "a 10000000\nb 1\nc 2500000000\n" },
		{ "what is less than a nanosecond adds up",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"nanoseconds\",\"samples\":[[0],[0],[0],["
		  "0]],\"weights\":[0.25,0.25,0.25,0.25]}]}",
		  "time", "a 1\n" },
		{ "evented: nested, one after the other, a gap, open at the end",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"milliseconds\",\"startValue\":10,"
		  "\"endValue\":30,\"events\":["
		  "{\"type\":\"O\",\"frame\":0,\"at\":10},{\"type\":\"O\",\"frame\":1,\"at\":12.5},{\"type\":\"C\","
		  "\"frame\":1,\"at\":13},"
		  "{\"type\":\"O\",\"at\":13,\"frame\":1},{\"type\":\"O\",\"frame\":1,\"at\":13},{\"type\":\"C\","
		  "\"frame\":1,\"at\":15},"
		  "{\"type\":\"C\",\"frame\":1,\"at\":15},{\"type\":\"C\",\"frame\":0,\"at\":16},{\"type\":\"O\","
		  "\"frame\":2,\"at\":20}]}]}",
		  "time", "a 3500000\na;b 500000\na;b;b 2000000\nc 10000000\n" },
		{ "threads of one unit are one column",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"none\",\"samples\":[[0]]"
		  ",\"weights\":[1]},"
		  "{\"type\":\"sampled\",\"name\":\"two\",\"unit\":\"none\",\"samples\":[[0],[2]],\"weights\":[2,3]}]}",
		  "samples", "a 3\nc 3\n" },
		{ "units of their own are columns",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"name\":\"objects\",\"unit\":\"none\",\"samples\":["
		  "[0]],\"weights\":[1]},"
		  "{\"type\":\"sampled\",\"name\":\"held\",\"unit\":\"bytes\",\"samples\":[[0],[2]],\"weights\":[20,30]"
		  "}]}",
		  "held", "a 20\nc 30\n" },
		{ "whole numbers are exact",
		  "{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0],[1],[2]],"
		  "\"weights\":[9007199254740993,9223372036854775807,1e300]}]}",
		  "samples", "a 9007199254740993\nb 9223372036854775807\nc 9223372036854775807\n" },
		{ "a byte order mark, an empty stack",
		  "\xef\xbb\xbf{" FRAMES
		  ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[],[0]],\"weights\":[4,1]}]}",
		  "samples", "[unknown] 4\na 1\n" },
		{ "duplicate and unknown members",
		  "{\"x\":[1,{\"y\":null}]," FRAMES ",\"profiles\":[],\"profiles\":[{\"type\":\"sampled\",\"unit\":"
		  "\"eggs\",\"samples\":[[1]],\"weights\":[1]}]}",
		  "samples", "b 1\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf folded = BUF_INIT(MIB(1));

		print_message("  %s\n", cases[i].name);
		decode(cases[i].text, &w);
		add_folded(&w, cases[i].value, &folded);
		assert_string_equal(buf_cstr(&folded), cases[i].folded);
	}
}

static void keeps_threads_files_and_times(void **state)
{
	scoped(window_release) struct window w = { 0 };
	const struct model *m;

	(void)state;
	decode("{\"name\":\"title\"," FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":"
	       "\"microseconds\",\"samples\":[[0],[1]],\"weights\":[1,2]},"
	       "{\"type\":\"evented\",\"name\":\"two\",\"unit\":\"seconds\",\"startValue\":1,\"endValue\":9,\"events\":"
	       "[{\"type\":\"O\",\"frame\":1,\"at\":5},{\"type\":\"C\",\"frame\":1,\"at\":6}]}]}",
	       &w);
	m = w.model;
	assert_string_equal(w.command, "title");
	assert_int_equal(m->samples_count, 3);
	assert_true(str_eq(model_string(m, m->threads[m->samples[0].thread].name), STR("one")));
	assert_true(str_eq(model_string(m, m->threads[m->samples[2].thread].name), STR("two")));
	assert_int_equal(m->samples[0].time_offset_ns, 0);
	assert_int_equal(m->samples[1].time_offset_ns, 1000);
	assert_int_equal(m->samples[2].time_offset_ns, 4 * NSEC_PER_SEC);
	assert_int_equal(m->functions_count, 3);
	assert_true(str_eq(model_string(m, m->functions[2].filename), STR("b.c")));
	assert_int_equal(m->functions[2].start_line, 7);
}

static void says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *reason;
		uint64_t position;
	} cases[] = {
		{ "", "malformed", 0 },
		{ "{\"shared\":", "malformed", 10 },
		{ "[1,,2]", "malformed", 3 },
		{ "{\"shared\":{\"frames\":[]},\"profiles\":[]} x", "follows", 38 },
		{ "{}", "lacks", 0 },
		{ "{\"shared\":{},\"profiles\":[]}", "list of frames", 10 },
		{ "{\"shared\":{\"frames\":[]},\"profiles\":[5]}", "neither", 36 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[[0]],\"weights\":[1]}],\"shared\":{\"frames\":[]}"
		  "}",
		  "no frame", 43 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[[1.5]],\"weights\":[1]}],\"shared\":{\"frames\":[{"
		  "},{}]}}",
		  "no frame", 44 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[[-1]],\"weights\":[1]}],\"shared\":{\"frames\":[{}"
		  ",{}]}}",
		  "no frame", 43 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[\"0\"],\"weights\":[1]}],\"shared\":{\"frames\":[{"
		  "}]}}",
		  "list of frames", 42 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[[0]],\"weights\":[]}],\"shared\":{\"frames\":[{}]}"
		  "}",
		  "more samples", 42 },
		{ "{\"profiles\":[{\"type\":\"sampled\",\"samples\":[[0]],\"weights\":[null]}],\"shared\":{\"frames\":["
		  "{}]}}",
		  "no number", 58 },
		{ "{\"profiles\":[{\"type\":\"evented\",\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":0}]}],"
		  "\"shared\":{\"frames\":[{}]}}",
		  "innermost", 41 },
		{ "{\"profiles\":[{\"type\":\"evented\",\"events\":[{\"type\":\"X\",\"frame\":0,\"at\":0}]}],"
		  "\"shared\":{\"frames\":[{}]}}",
		  "neither opens", 41 },
		{ "{\"profiles\":[{\"type\":\"evented\",\"events\":[{\"type\":\"O\",\"frame\":0}]}],\"shared\":{"
		  "\"frames\":[{}]}}",
		  "no time", 41 },
		{ "{\"profiles\":[{\"type\":\"evented\",\"startValue\":5,\"events\":[{\"type\":\"O\",\"frame\":0,"
		  "\"at\":4}]}],\"shared\":{\"frames\":[{}]}}",
		  "earlier", 56 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct window out = { .frequency_hz = 77 };
		struct codec_error error = { 0 };
		struct cur in = guard_page(cases[i].text, strlen(cases[i].text));

		print_message("  %s\n", cases[i].text);
		assert_int_equal(
			codec_speedscope.decode(str_n((const char *)in.pos, strlen(cases[i].text)), &out, &error),
			-EBADMSG);
		assert_non_null(strstr(error.reason, cases[i].reason));
		assert_int_equal(error.position, cases[i].position);
		assert_false(error.is_line);
		assert_null(out.model);
	}
}

static bool stop_at_once(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static void keeps_to_the_limits(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(8));
	scoped(window_release) struct window w = { 0 }, events = { 0 };
	struct codec_error error = { 0 };
	int asked = 0;

	(void)state;
	buf_adds(&text, STR("{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0"));
	for (size_t i = 0; i < 100000; i++)
		buf_adds(&text, STR(",1"));
	buf_adds(&text, STR(",2]"));
	for (size_t i = 0; i < 200; i++)
		buf_adds(&text, STR(",[0]"));
	buf_adds(&text, STR("],\"weights\":[1"));
	for (size_t i = 0; i < 200; i++)
		buf_adds(&text, STR(",1"));
	buf_adds(&text, STR("]}]}"));
	assert_int_equal(text.error, 0);
	assert_int_equal(speedscope_decode(buf_str(&text), &(struct codec_limits){ .depth_max = 3 }, &w, &error), 0);
	assert_int_equal(w.model->stacks_count, 1 + 3 + 1);
	assert_true(str_eq(model_string(w.model, w.model->samples[0].end), STR(CODEC_STACK_CUT)));
	assert_int_equal(w.model->samples[1].end, 0);
	assert_int_equal(speedscope_decode(buf_str(&text), &(struct codec_limits){ .samples_max = 100 }, &w, &error),
			 -E2BIG);
	assert_non_null(strstr(error.reason, "more than 100"));
	assert_int_equal(speedscope_decode(buf_str(&text), &(struct codec_limits){ .memory_max = KIB(64) }, &w, &error),
			 -E2BIG);
	assert_int_equal(speedscope_decode(buf_str(&text),
					   &(struct codec_limits){ .stop = stop_at_once, .stop_ctx = &asked }, &w,
					   &error),
			 -ECANCELED);
	assert_int_equal(asked, 1);

	buf_clear(&text); /* frames that are opened one in the other, each a sample of its own */
	buf_adds(&text, STR("{" FRAMES ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":"
			    "\"O\",\"frame\":0,\"at\":0}"));
	for (int i = 1; i < 1000; i++)
		buf_addf(&text, ",{\"type\":\"O\",\"frame\":%d,\"at\":%d}", i % 3, i);
	buf_adds(&text, STR("]}]}"));
	assert_int_equal(speedscope_decode(buf_str(&text), &(struct codec_limits){ .depth_max = 3 }, &events, &error),
			 0);
	assert_true(events.model->stacks_count < 15);
	assert_true(str_eq(model_string(events.model, events.model->functions[1].name), STR("a")));
}

/* Folded stacks say which functions were inlined, speedscope does not. */
static void forget_inlined(struct buf *text)
{
	scoped(window_release) struct window w = { 0 };
	struct codec_error error;
	char *found;

	while ((found = strstr(buf_cstr(text), "_[i]"))) {
		memmove(found, found + 4, text->len - (size_t)(found - text->ptr) - 4);
		text->len -= 4;
	}
	assert_int_equal(codec_folded.decode(buf_str(text), &w, &error), 0);
	buf_clear(text);
	assert_int_equal(codec_folded.encode(&w, text), 0);
}

/* The text of every column, before and after: frames, kinds, owners and weights. */
static void comes_back(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		scoped(window_release) struct window w = { 0 }, back = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(4));

		w.model = calloc(1, sizeof(*w.model));
		assert_non_null(w.model);
		assert_int_equal(random_model(seed, w.model), 0);
		assert_int_equal(codec_speedscope.encode(&w, &text), 0);
		decode(buf_cstr(&text), &back);
		assert_int_equal(back.model->value_type_count, w.model->value_type_count);
		for (size_t i = 0; i < w.model->value_type_count; i++) {
			scoped(buf_release) struct buf before = BUF_INIT(MIB(4)), after = BUF_INIT(MIB(4));
			const struct model_value_type *type = &w.model->value_types[i];
			scoped(freep) char *name = str_dup(model_string(w.model, type->type));

			add_folded(&w, name, &before);
			add_folded(&back, name, &after);
			forget_inlined(&before);
			forget_inlined(&after);
			assert_string_equal(buf_cstr(&before), buf_cstr(&after));
			assert_true(str_eq(model_string(w.model, type->unit),
					   model_string(back.model, back.model->value_types[i].unit)));
		}
	}
}

static int64_t sum_of(const struct window *w, size_t column)
{
	int64_t sum = 0;

	for (size_t i = 0; i < w->model->samples_count; i++)
		sum += model_values(w->model, &w->model->samples[i])[column];
	return sum;
}

static void hostile_names_keep_the_totals(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(64));
	struct codec_error error = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	assert_int_equal(codec_speedscope.encode(&w, &text), 0);
	assert_int_equal(codec_speedscope.decode(buf_str(&text), &back, &error), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sum_of(&w, i), sum_of(&back, i));
}

/* A sample with its time is told apart from others of its stack, and is the same one in each column. */
static void samples_with_times_stay_in_order(void **state)
{
	static const struct {
		uint64_t time_ns;
		int64_t values[2];
		const char *folded;
	} rows[] = { { 30, { 3, 0 }, "c" }, { 10, { 1, 10 }, "a" }, { 20, { 2, -5 }, "c" }, { 40, { 0, 7 }, "a" } };
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1)), again = BUF_INIT(MIB(1));
	struct codec_lost lost = { 0 };
	const struct codec_options options = { .lost = &lost };

	(void)state;
	decode("{\"exporter\":\"hearth\"," FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"name\":\"x\",\"unit\":"
	       "\"none\",\"samples\":[[0],[2]],\"weights\":[1,1]},"
	       "{\"type\":\"sampled\",\"name\":\"y\",\"unit\":\"none\",\"valueUnit\":\"eggs\",\"samples\":[],"
	       "\"weights\":[]}]}",
	       &w);
	assert_int_equal(w.model->value_type_count, 2);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model_sample sample = { .stack = rows[i].folded[0] == 'a' ? 1 : 2,
					       .time_offset_ns = rows[i].time_ns };

		if (i < 2) {
			sample = w.model->samples[i];
			w.model->samples[i].stack = rows[i].folded[0] == 'a' ? 1 : 2;
			w.model->samples[i].time_offset_ns = rows[i].time_ns;
			memcpy(w.model->values + sample.first_value, rows[i].values, sizeof(rows[i].values));
		} else {
			assert_int_equal(model_add_sample(w.model, &sample, rows[i].values), 0);
		}
	}
	assert_int_equal(speedscope_encode(&w, &options, &text), 0);
	assert_non_null(strstr(lost.text, "1 sample"));
	assert_non_null(strstr(buf_cstr(&text), "\"weights\": [1,2,3,0]"));
	assert_non_null(strstr(buf_cstr(&text), "\"weights\": [10,0,0,7]"));
	assert_non_null(strstr(buf_cstr(&text), "\"times\": [10,20,30,40]"));
	assert_non_null(strstr(buf_cstr(&text), "\"endValue\": 17,"));
	decode(buf_cstr(&text), &back);
	assert_int_equal(back.model->samples_count, 4);
	assert_int_equal(back.model->samples[3].time_offset_ns, 40);
	assert_int_equal(model_values(back.model, &back.model->samples[3])[1], 7);
	assert_true(str_eq(model_string(back.model, back.model->value_types[1].unit), STR("eggs")));
	assert_int_equal(speedscope_encode(&back, &options, &again), 0);
	assert_string_equal(buf_cstr(&text), buf_cstr(&again));
}

/* Where one sample has no time, the times of all others are lost, and that is said. */
static void times_that_are_left_out_are_said(void **state)
{
	static const struct codec *const codecs[] = { &codec_speedscope, &codec_firefox };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(codecs); i++) {
		scoped(window_release) struct window w = { 0 };
		scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
		struct codec_lost lost = { 0 };
		const struct codec_options options = { .lost = &lost };

		decode("{" FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0],[1],[2]],"
		       "\"weights\":[1,2,3]}]}",
		       &w);
		assert_int_equal(w.model->samples_count, 3);
		for (size_t k = 0; k < 2 + i / 2; k++)
			w.model->samples[k].time_offset_ns = k;
		assert_int_equal(codec_encode(codecs[i % 2], &w, &options, &text), 0);
		assert_string_equal(lost.text,
				    i / 2 ? "" : "the times of 2 samples are left out, because others have none");
	}
}

/* An application id that is long and begins every stack: copied for each, this would take minutes. */
static void long_owners_are_read_once(void **state)
{
	enum { SIZE = 2000000, SAMPLES = 200000 };
	scoped(buf_release) struct buf text = BUF_INIT(MIB(8));
	scoped(window_release) struct window w = { 0 };

	(void)state;
	buf_adds(&text, STR("{\"shared\":{\"frames\":[{\"name\":\"appid: "));
	for (int i = 0; i < SIZE; i++)
		buf_addc(&text, 'x');
	buf_adds(&text, STR("\",\"kind\":\"process\"},{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"sampled\",\"unit\":"
			    "\"none\",\"samples\":["));
	for (int i = 0; i < SAMPLES; i++)
		buf_adds(&text, i ? STR(",[0,1]") : STR("[0,1]"));
	buf_adds(&text, STR("],\"weights\":["));
	for (int i = 0; i < SAMPLES; i++)
		buf_adds(&text, i ? STR(",1") : STR("1"));
	buf_adds(&text, STR("]}]}"));
	decode(buf_cstr(&text), &w);
	assert_int_equal(w.model->samples_count, 1);
	assert_int_equal(w.model->values[w.model->samples[0].first_value], SAMPLES);
	assert_int_equal(model_string(w.model, w.model->processes[w.model->samples[0].process].app_id).len, SIZE);
}

static void is_known_by_its_content(void **state)
{
	(void)state;
	assert_ptr_equal(
		codec_sniff(STR(
			"{\"version\":\"0.0.1\",\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}")),
		&codec_speedscope);
	assert_ptr_equal(
		codec_sniff(STR(" \n{\"$schema\":\"https:\\/\\/www.speedscope.app\\/file-format-schema.json\"")),
		&codec_speedscope);
	assert_ptr_not_equal(codec_sniff(STR("{\"$schema\":\"https://example.org\"}")), &codec_speedscope);
	assert_ptr_not_equal(codec_sniff(STR("www.speedscope.app \"$schema\" 5\n")), &codec_speedscope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_others_write),
		cmocka_unit_test(keeps_threads_files_and_times),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(keeps_to_the_limits),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(hostile_names_keep_the_totals),
		cmocka_unit_test(samples_with_times_stay_in_order),
		cmocka_unit_test(long_owners_are_read_once),
		cmocka_unit_test(times_that_are_left_out_are_said),
		cmocka_unit_test(is_known_by_its_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
