/* SPDX-License-Identifier: Apache-2.0 */
/* A window's facts and counters in two comments of a pprof file, and the older form with one for each. */
#include "support.h"

#include "codec/pprof.h"
#include "codec_samples.h"
#include "model/model.h"

static int collect(void *ctx, struct str text)
{
	buf_adds(ctx, text);
	buf_addc(ctx, '\n');
	return 0;
}

static void start(struct window *w)
{
	assert_int_equal(window_init(w, MIB(64)), 0);
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
}

static void through_file(const struct window *w, struct window *back)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(MIB(64));
	struct codec_error error = { 0 };

	assert_int_equal(codec_pprof.encode(w, &bytes), 0);
	assert_int_equal(codec_pprof.decode(buf_str(&bytes), back, &error), 0);
}

/* What @comments become: the two lines that are written again, then what stays a comment. */
static void expect(const char *const *comments, const char *expected)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 }, again = { 0 };
	struct buf text = BUF_INIT(MIB(1)), second = BUF_INIT(MIB(1));

	start(&w);
	for (; *comments; comments++)
		assert_int_equal(model_add_comment(w.model, str_of(*comments)), 0);
	through_file(&w, &back);
	through_file(&back, &again);
	for (struct window *v = &back; v; v = v == &back ? &again : NULL) {
		struct buf *out = v == &back ? &text : &second;

		assert_int_equal(pprof_comments_each(v, collect, out), 0);
		for (size_t i = 0; i < v->model->comments_count; i++)
			(void)collect(out, model_string(v->model, v->model->comments[i]));
	}
	assert_string_equal(buf_cstr(&text), expected);
	assert_string_equal(buf_cstr(&second), expected);
	buf_release(&text);
	buf_release(&second);
}

#define EXPECT(expected, ...) expect((const char *const[]){ __VA_ARGS__, NULL }, expected)

static void writes_two_lines(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	struct buf text = BUF_INIT(MIB(1));

	(void)state;
	start(&w);
	assert_int_equal(window_set_text(&w.host, STR("web-1")), 0);
	assert_int_equal(window_set_text(&w.command, STR("a \"b\" c\\=\x7f\n\xff")), 0);
	w.frequency_hz = 99;
	w.cpu_average = 12.25;
	assert_int_equal(window_add_label(&w, STR("a b%=\"\t"), STR("")), 0);
	assert_int_equal(window_set_counter(&w, STR("user_samples"), 1000), 0);
	assert_int_equal(window_set_counter(&w, STR("complete"), 987), 0);
	assert_int_equal(window_set_counter(&w, STR("x y"), UINT64_MAX), 0);
	assert_int_equal(window_set_counter(&w, STR("complete_share"), 5), 0);
	assert_int_equal(pprof_comments_each(&w, collect, &text), 0);
	assert_string_equal(buf_cstr(&text),
			    "hearth facts: host=web-1 command=\"a \\\"b\\\" c\\\\=\\u007f\\u000a\xff\" frequency_hz=99"
			    " cpu_average=12.25 label.a%20b%25%3D%22%09=\"\"\n"
			    "hearth counters: user_samples=1000 complete=987 x%20y=18446744073709551615"
			    " complete_share=5 complete_share=98.70%\n");
	through_file(&w, &back);
	assert_int_equal(back.model->comments_count, 0);
	assert_string_equal(back.command, w.command);
	assert_int_equal(back.frequency_hz, 99);
	assert_true(str_eq(window_label(&back, STR("a b%=\"\t")), STR("")));
	assert_int_equal(back.label_count, 1);
	assert_true(window_counter(&back, STR("x y")) == UINT64_MAX);
	assert_int_equal(window_counter(&back, STR("complete_share")), 5);
	buf_release(&text);
}

static void hostile_names_come_back(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, false), 0);
	through_file(&w, &back);
	assert_int_equal(back.model->comments_count, w.model->comments_count);
	assert_int_equal(back.label_count, w.label_count);
	assert_int_equal(back.counter_count, w.counter_count);
	for (size_t i = 0; i < w.label_count; i++)
		assert_string_equal(back.labels[i].value, w.labels[i].value);
	for (size_t i = 0; i < w.counter_count; i++)
		assert_string_equal(back.counters[i].name, w.counters[i].name);
}

static void reads_the_old_form(void **state)
{
	(void)state;
	EXPECT("hearth facts: host=\"a b\" cpu_count=2 cpu_average=1.50 label.k%3D%25=\"v w\"\n"
	       "hearth counters: user_samples=10 complete=9 x%20y=0 complete_share=90.00%\n",
	       "hearth: host=a b", "hearth: cpu_count=2", "hearth: cpu_average=1.50", "hearth: label.k%3D%25=v w",
	       "hearth: counter.user_samples=10", "hearth: counter.complete=9", "hearth: counter.x y=0",
	       "hearth: complete_share=90.00%");
	EXPECT("hearth facts: host=a\nhearth: host=b\nhearth: counter.x%20y=1\nhearth: cpu_count=02\nhearth:\nhearth: "
	       "\n",
	       "hearth: host=a", "hearth: host=b", "hearth: counter.x%20y=1", "hearth: cpu_count=02",
	       "hearth:", "hearth: ");
	/* Beside a line of the new form they are another window's. */
	EXPECT("hearth facts: host=a\nhearth: cpu_count=2\nhearth: counter.samples=5\n", "hearth: cpu_count=2",
	       "hearth facts: host=a", "hearth: counter.samples=5");
}

static void leaves_what_it_did_not_write(void **state)
{
	(void)state;
	/* Of two windows: one is read whole, no counter of the other is mixed in. */
	EXPECT("hearth counters: samples=5\nhearth counters: samples=6 lost_ring_full=1\n",
	       "hearth counters: samples=5", "hearth counters: samples=6 lost_ring_full=1");
	/* What a newer version may say stays. */
	EXPECT("hearth facts: host=a\nhearth facts: mood=fine x\n", "hearth facts: mood=fine host=a x");
	EXPECT("hearth facts: cpu_count=3\nhearth facts: mood=fine\n", "hearth facts: mood=fine",
	       "hearth facts: cpu_count=3");
	/* Not as it is written: numbers, escapes, quotes, the share. */
	EXPECT("hearth facts: cpu_count=\"3\" frequency_hz=0 busy_ns=007 host=a\\b host=\"a\" sampler=\"a\\nb\" "
	       "unwinder=\"x "
	       "cpu_average=1e3 label.%41=1 label.%3d=1 command=\"\\u0000\" host= =\n",
	       "hearth facts: cpu_count=\"3\" frequency_hz=0 busy_ns=007 host=a\\b host=\"a\" sampler=\"a\\nb\" "
	       "unwinder=\"x "
	       "cpu_average=1e3 label.%41=1 label.%3d=1 command=\"\\u0000\" host= =");
	EXPECT("hearth counters: user_samples=2 complete=1 complete_share=50.00%\n"
	       "hearth counters: complete_share=99.00% a=-1 b=18446744073709551616\n",
	       "hearth counters: user_samples=2 complete=1 complete_share=99.00% a=-1 b=18446744073709551616");
	EXPECT("hearth counters:samples=1\nhearth counters:\nhearth counters: \nhearth facts\n",
	       "hearth counters:samples=1", "hearth counters:", "hearth counters: ", "hearth facts");
}

static void keeps_counters_that_have_no_room(void **state)
{
	struct buf line = BUF_INIT(MIB(1));
	scoped(window_release) struct window w = { 0 }, back = { 0 };

	(void)state;
	buf_adds(&line, STR("hearth counters:"));
	for (int i = 0; i < 3000; i++)
		buf_addf(&line, " c%d=%d", i, i);
	start(&w);
	assert_int_equal(model_add_comment(w.model, buf_str(&line)), 0);
	through_file(&w, &back);
	assert_int_equal(back.counter_count, WINDOW_COUNTERS_MAX);
	assert_int_equal(back.model->comments_count, 1);
	assert_true(str_starts(model_string(back.model, back.model->comments[0]), STR("hearth counters: c1024=1024 ")));
	buf_release(&line);
}

static int lifts(void *ctx)
{
	scoped(window_release) struct window back = { 0 };
	struct codec_error error = { 0 };

	return codec_pprof.decode(buf_str(ctx), &back, &error);
}

static void survives_failing_allocations(void **state)
{
	scoped(window_release) struct window w = { 0 };
	struct buf bytes = BUF_INIT(MIB(1));

	(void)state;
	start(&w);
	assert_int_equal(model_add_comment(w.model, STR("hearth facts: host=\"a b\" mood=1 label.x%20y=z")), 0);
	assert_int_equal(model_add_comment(w.model, STR("hearth counters: a=1 b=2 c=x")), 0);
	assert_int_equal(codec_pprof.encode(&w, &bytes), 0);
	for_each_failing_allocation(lifts, &bytes);
	buf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_two_lines),
		cmocka_unit_test(hostile_names_come_back),
		cmocka_unit_test(reads_the_old_form),
		cmocka_unit_test(leaves_what_it_did_not_write),
		cmocka_unit_test(keeps_counters_that_have_no_room),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
