/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "codec/folded.h"
#include "codec/folded_lines.h"
#include "codec/pprof.h"
#include "render/diff.h"
#include "render/render.h"
#include "render/total.h"

#define OUT_MAX MIB(64)

struct two {
	struct window before, now;
};

static void two_release(struct two *t)
{
	window_release(&t->before);
	window_release(&t->now);
}

static int read_two(const char *before, const char *now, struct two *out)
{
	scoped(two_release) struct two t = { 0 };
	int r = codec_folded.decode(str_of(before), &t.before, NULL);

	r = r ? r : codec_folded.decode(str_of(now), &t.now, NULL);
	if (r < 0)
		return r;
	*out = t;
	t = (struct two){ 0 };
	return 0;
}

static const char before_text[] = "p;main;gone 10\np;main;less 30\np;main;same 20\n",
		  now_text[] = "p;main;less 15\np;main;new 40\np;main;same 20\n";

static void pairs(void **state)
{
	static const struct {
		bool normalize;
		const char *want;
	} cases[] = {
		{ false, "p;main;gone 10 0\np;main;less 30 15\np;main;new 0 40\np;main;same 20 20\n" },
		{ true,
		  "p;main;gone 12 0\np;main;less 37 15\np;main;new 0 40\np;main;same 25 20\n" }, /* times 75 / 60 */
	};
	const struct codec_options usual = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(two_release) struct two t = { 0 };
		scoped(diff_pairs_release) struct diff_pairs p = { 0 };
		scoped(window_release) struct window again = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX), twice = BUF_INIT(OUT_MAX);

		assert_int_equal(read_two(before_text, now_text, &t), 0);
		assert_int_equal(diff_pairs_make(&t.before, &t.now, &usual, cases[i].normalize, &p), 0);
		assert_int_equal(p.gone, 1);
		assert_int_equal(codec_folded.encode(&p.window, &out), 0);
		assert_string_equal(buf_cstr(&out), cases[i].want);
		assert_int_equal(codec_folded.decode(buf_str(&out), &again, NULL), 0);
		assert_int_equal(codec_folded.encode(&again, &twice), 0);
		assert_string_equal(buf_cstr(&twice), cases[i].want);
	}
}

/* A column that is asked for is one count a line. */
static void one_of_a_pair(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	const struct codec_options before = { .value = FOLDED_BEFORE };

	(void)state;
	assert_int_equal(codec_folded.decode(STR("a 3 4\nb 0 2\n"), &w, NULL), 0);
	assert_int_equal(codec_folded.encode_as(&w, &before, &out), 0);
	assert_string_equal(buf_cstr(&out), "a 3\n");
}

static void nothing_in_common(void **state)
{
	scoped(two_release) struct two t = { 0 };
	scoped(diff_pairs_release) struct diff_pairs p = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
	const struct codec_options usual = { 0 };

	(void)state;
	assert_int_equal(read_two("", "", &t), 0);
	assert_int_equal(diff_pairs_make(&t.before, &t.now, &usual, true, &p), 0);
	assert_int_equal(codec_folded.encode(&p.window, &out), 0);
	assert_int_equal(out.len, 0);
}

static int64_t sum_of(const struct model *m, const char *label)
{
	int64_t sum = 0;

	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_label_set *set = &m->label_sets[m->samples[i].label_set];
		bool has = false;

		for (uint32_t k = 0; k < set->count; k++)
			has |= str_eq(model_string(m, m->labels[set->first + k].key), STR(TOTAL_BASE_LABEL)) &&
			       str_eq(model_string(m, m->labels[set->first + k].text), STR("true"));
		if (has == !!label)
			sum += model_values(m, &m->samples[i])[0];
	}
	return sum;
}

static void profile(void **state)
{
	static const struct {
		bool normalize;
		int64_t now, base;
	} cases[] = { { false, 75, -60 }, { true, 60, -60 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(two_release) struct two t = { 0 };
		scoped(window_release) struct window d = { 0 }, back = { 0 };
		scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);

		assert_int_equal(read_two(before_text, now_text, &t), 0);
		assert_int_equal(diff_profile(&t.before, &t.now, cases[i].normalize, &d), 0);
		assert_int_equal(sum_of(d.model, NULL), cases[i].now);
		assert_int_equal(sum_of(d.model, TOTAL_BASE_LABEL), cases[i].base);
		assert_int_equal(codec_pprof.encode(&d, &bytes), 0);
		assert_int_equal(codec_pprof.decode(buf_str(&bytes), &back, NULL), 0);
		assert_int_equal(sum_of(back.model, TOTAL_BASE_LABEL), cases[i].base);
		assert_int_equal(sum_of(t.before.model, NULL), 60); /* both are as they were */
		assert_int_equal(sum_of(t.now.model, NULL), 75);
	}
}

static void other_types(void **state)
{
	scoped(two_release) struct two t = { 0 };
	scoped(window_release) struct window d = { 0 };

	(void)state;
	assert_int_equal(read_two("a 1 2\n", "a 1\n", &t), 0);
	assert_int_equal(diff_profile(&t.before, &t.now, true, &d), -EINVAL);
	assert_null(d.model);
}

static void text(void **state)
{
	static const struct {
		const char *name;
		struct diff_text_config cfg;
		const char *want;
	} cases[] = {
		{ "as measured",
		  { .top_count = 9 },
		  "before           60  a\x5cx1b.folded\n"
		  "now              75  b.folded\n"
		  "change          +15  +25.00%\n"
		  "\n"
		  "Functions by change of flat (samples, 5 of 5, 1 new, 1 gone)\n"
		  "  flat was   flat now     change    share cum change    share      function\n"
		  "         0         40        +40  +53.33%        +40  +53.33% new  new\n"
		  "        30         15        -15  -30.00%        -15  -30.00%      less\n"
		  "        10          0        -10  -16.67%        -10  -16.67% gone gone\n"
		  "         0          0          0    0.00%        +15    0.00%      main\n"
		  "        20         20          0   -6.67%          0   -6.67%      same\n" },
		{ "by cum, two, scaled",
		  { .top_count = 2, .order = DIFF_BY_CUM, .normalize = true },
		  "before           60  a\x5cx1b.folded\n"
		  "now              75  b.folded\n"
		  "change          +15  +25.00%\n"
		  "scaled   what was is shown times 1.25\n"
		  "\n"
		  "Functions by change of cum (samples, 2 of 5, 1 new, 1 gone)\n"
		  "  flat was   flat now     change    share cum change    share      function\n"
		  "         0         40        +40  +53.33%        +40  +53.33% new  new\n"
		  "        38         15        -23  -30.00%        -23  -30.00%      less\n" },
		{ "no table",
		  { .top_count = 0 },
		  "before           60  a\x5cx1b.folded\nnow              75  b.folded\nchange          +15  "
		  "+25.00%\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(two_release) struct two t = { 0 };
		scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);
		struct diff_text_config cfg = cases[i].cfg;

		print_message("  %s\n", cases[i].name);
		cfg.before_name = "a\x1b.folded";
		cfg.now_name = "b.folded";
		assert_int_equal(read_two(before_text, now_text, &t), 0);
		assert_int_equal(diff_text(&t.before, &t.now, &cfg, &out), 0);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

static void report(void **state)
{
	scoped(two_release) struct two t = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX);

	(void)state;
	assert_int_equal(read_two("p;a\"\\;b 3\np;a\"\\ 1\n", "", &t), 0);
	assert_int_equal(window_set_counter(&t.before, STR("lost_ring_full"), 7), 0);
	assert_int_equal(render_report_json(&t.before, 0, NULL, &out), 0);
	assert_string_equal(buf_cstr(&out),
			    "{\"version\": 1, \"samples\": 2, "
			    "\"values\": [{\"type\": \"samples\", \"unit\": \"count\", \"total\": 4, \"sum\": 4}], "
			    "\"value\": {\"type\": \"samples\", \"unit\": \"count\", \"total\": 4, \"sum\": 4}, "
			    "\"counters\": {\"lost_ring_full\": 7}, \"ends\": {\"unknown\": 4}, "
			    "\"functions\": [{\"name\": \"b\", \"kind\": \"native\", \"flat\": 3, \"cum\": 3}, "
			    "{\"name\": \"a\\\"\\\\\", \"kind\": \"native\", \"flat\": 1, \"cum\": 4}], "
			    "\"processes\": [{\"pid\": 0, \"command\": \"p\", \"value\": 4}]}\n");
	assert_int_equal(render_report_json(&t.before, 1, NULL, &out), -EINVAL);
}

static int compare_once(void *ctx)
{
	scoped(two_release) struct two t = { 0 };
	scoped(diff_pairs_release) struct diff_pairs p = { 0 };
	scoped(window_release) struct window d = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(OUT_MAX), page = BUF_INIT(OUT_MAX), json = BUF_INIT(OUT_MAX);
	const struct codec_options usual = { 0 };
	const struct diff_text_config cfg = { .top_count = 5, .before_name = "a", .now_name = "b" };
	const struct render_html_config html = { .compression_level = 1 };
	struct render_html_diff both = { .before_name = "a", .now_name = "b" };
	int r = read_two(before_text, now_text, &t);

	(void)ctx;
	r = r ? r : diff_pairs_make(&t.before, &t.now, &usual, true, &p);
	r = r ? r : diff_profile(&t.before, &t.now, true, &d);
	r = r ? r : diff_text(&t.before, &t.now, &cfg, &out);
	both.before = &t.before;
	both.now = &t.now;
	r = r ? r : render_html_diff(&both, &html, &page);
	return r ? r : render_report_json(&t.now, 0, NULL, &json);
}

static void failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(compare_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs),   cmocka_unit_test(one_of_a_pair),       cmocka_unit_test(nothing_in_common),
		cmocka_unit_test(profile), cmocka_unit_test(other_types),         cmocka_unit_test(text),
		cmocka_unit_test(report),  cmocka_unit_test(failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
