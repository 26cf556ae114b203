/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of Python in tables and trees: those that are written the same are one function, all others are not. */
#include "support.h"

#include "codec/codec.h"
#include "python_samples.h"
#include "render/render.h"
#include "render/tree.h"

static const struct python_frame lambdas[] = {
	{ "a.<lambda>", "<lambda>", "/a.py", 3, 3, MODEL_KIND_PYTHON, "[python]" },
	{ "b.<lambda>", "<lambda>", "/b.py", 3, 3, MODEL_KIND_PYTHON, "[python]" },
	{ "a.<lambda>", "<lambda>", "/a.py", 9, 9, MODEL_KIND_PYTHON, "[python]" },
	{ "a.<lambda>", "<lambda>", "/a.py", 3, 4, MODEL_KIND_PYTHON, "[python]" },
	{ "a.<lambda>", "<lambda>", "/a.py", 3, 4, MODEL_KIND_PYTHON, "[python:a==1]" },
};

static void lambda_window(struct window *w)
{
	assert_int_equal(window_init(w, KIB(64)), 0);
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lambdas); i++) {
		struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
		int64_t count = 1 << i;
		uint32_t location;

		assert_int_equal(python_location(w->model, &lambdas[i], &location), 0);
		assert_int_equal(model_add_stack(w->model, 0, location, &row.stack), 0);
		assert_int_equal(model_add_sample(w->model, &row, &count), 0);
	}
}

static void groups_what_is_written_the_same(void **state)
{
	static const struct {
		const char *name;
		struct frame_style style;
		const char *want;
	} cases[] = {
		{ "first lines",
		  { 0 },
		  "16 a.<lambda> (/a.py:3 [a==1])\n9 a.<lambda> (/a.py:3)\n4 a.<lambda> (/a.py:9)\n2 b.<lambda> "
		  "(/b.py:3)\n" },
		{ "no versions, as py-spy",
		  { .names = FRAME_NAMES_PYSPY, .no_versions = true },
		  "25 <lambda> (/a.py:3)\n4 <lambda> (/a.py:9)\n2 <lambda> (/b.py:3)\n" },
		{ "executing lines",
		  { .lines = FRAME_LINES_EXECUTING, .no_versions = true },
		  "24 a.<lambda> (/a.py:4)\n4 a.<lambda> (/a.py:9)\n2 b.<lambda> (/b.py:3)\n1 a.<lambda> (/a.py:3)\n" },
	};
	scoped(window_release) struct window w = { 0 };

	(void)state;
	lambda_window(&w);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(freep) struct render_top_row *rows = NULL;
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
		size_t count;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(render_top(w.model, 0, &cases[i].style, &rows, &count), 0);
		for (size_t k = 0; k < count; k++) {
			buf_addf(&out, "%lld ", (long long)rows[k].self);
			render_top_name(w.model, &cases[i].style, &rows[k], &out);
			buf_addc(&out, '\n');
		}
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

#define DECODE                                                                          \
	"json.decoder.JSONDecoder.raw_decode (/usr/lib/python3.11/json/decoder.py:343 " \
	"[standard-library==3.11.2])_[p]\n"

static void says_frames_in_the_report(void **state)
{
	static const char *const want[] = {
		DECODE,
		"app.Worker.run (/srv/app.py:12)_[p]\n",
		"[Lost Symbol]_[pe]\n",
		"do_user_addr_fault_[k]\n",
		" scan_once\n",
	};
	const struct render_text_config cfg = { .top_count = 20, .tree_min_percent = 0 };
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(16));

	(void)state;
	assert_int_equal(python_window(&w), 0);
	assert_int_equal(render_text(&w, &cfg, &out), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const char *first = strstr(buf_cstr(&out), want[i]);

		print_message("  %s", want[i]);
		assert_non_null(first);                      /* in the table */
		assert_non_null(strstr(first + 1, want[i])); /* and in the tree */
	}
}

/* The page made of a profile has the frames of the page made of its .col. */
static void says_frames_in_pages_as_in_files(void **state)
{
	const struct codec_options options = { { .names = FRAME_NAMES_PYSPY } };
	scoped(window_release) struct window w = { 0 };
	scoped(buf_release) struct buf folded = BUF_INIT(KIB(16));
	scoped(tree_release) struct tree model = { 0 }, text = { 0 };
	uint64_t bad_line;

	(void)state;
	assert_int_equal(python_window(&w), 0);
	for (size_t i = 1; i < w.model->processes_count; i++) /* folded stacks have no such frames */
		w.model->processes[i].container = w.model->processes[i].app_id = 0;
	assert_int_equal(codec_encode(codec_find(STR("folded")), &w, &options, &folded), 0);
	assert_int_equal(tree_from_folded(buf_str(&folded), NULL, &text, &bad_line), 0);
	assert_int_equal(tree_from_model(w.model, 0, 1, &options.frames, &model), 0);
	assert_int_equal(model.node_count, text.node_count);
	for (uint32_t i = 1; i < model.node_count; i++) {
		assert_true(str_eq(tree_frame_text(&model, model.frame[i]), tree_frame_text(&text, text.frame[i])));
		assert_int_equal(model.total[i], text.total[i]);
	}
	for (uint32_t i = 0; i < model.frame_count; i++)
		if (model.frames[i].kind == MODEL_KIND_PYTHON &&
		    str_starts(tree_frame_text(&model, i), STR("raw_decode (")))
			assert_true(str_eq(tree_frame_module(&model, i), STR("standard-library==3.11.2")));
}

static int render_all(void *ctx)
{
	const struct render_text_config cfg = { .top_count = 20, .tree_min_percent = 0 };
	const struct frame_style style = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(16));
	scoped(tree_release) struct tree tree = { 0 };
	int r = render_text(ctx, &cfg, &out);

	return r ? r : tree_from_model(((struct window *)ctx)->model, 0, 1, &style, &tree);
}

static void survives_failing_allocations(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	assert_int_equal(python_window(&w), 0);
	for_each_failing_allocation(render_all, &w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_what_is_written_the_same),
		cmocka_unit_test(says_frames_in_the_report),
		cmocka_unit_test(says_frames_in_pages_as_in_files),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
