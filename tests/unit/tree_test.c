/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "render/render.h"
#include "render/tree.h"

static struct str guarded(const char *text)
{
	struct cur c = guard_page(text, strlen(text));

	return cur_rest(&c);
}

/* "name total" per node in preorder, indented by level. */
static void print_tree(const struct tree *t, struct buf *out)
{
	for (uint32_t i = 1; i < t->node_count; i++) {
		for (uint32_t l = 1; l < t->level[i]; l++)
			buf_addc(out, ' ');
		buf_adds(out, tree_frame_text(t, t->frame[i]));
		buf_addf(out, ":%u %llu\n", t->frames[t->frame[i]].kind, (unsigned long long)t->total[i]);
	}
}

struct folded_case {
	const char *name, *text, *want; /* want NULL: refused */
	uint64_t bad_line;
};

static const struct folded_case folded_cases[] = {
	{ "nothing", "", "", 0 },
	{ "one stack", "a;b 3\n", "a:0 3\n b:0 3\n", 0 },
	{ "no newline at the end", "a 1\nb 2", "b:0 2\na:0 1\n", 0 },
	{ "CRLF", "a 1\r\n\r\nb 2\r\n", "b:0 2\na:0 1\n", 0 },
	{ "heaviest first, then by name", "c 1\nb 1\na 1\nd 9\n", "d:0 9\na:0 1\nb:0 1\nc:0 1\n", 0 },
	{ "blanks in names", "a b;c d 2\n", "a b:0 2\n c d:0 2\n", 0 },
	{ "a prefix is no parent", "ab;c 1\na;c 1\nab 1\n", "ab:0 2\n c:0 1\na:0 1\n c:0 1\n", 0 },
	{ "the line before is a prefix", "a;b 1\na;b;c 1\na 1\n", "a:0 3\n b:0 2\n  c:0 1\n", 0 },
	{ "suffixes are kinds", "f_[k];f;f_[j] 1\n", "f:1 1\n f:0 1\n  f:6 1\n", 0 },
	{ "a suffix alone is a name", "_[k] 1\n", "_[k]:0 1\n", 0 },
	{ "empty frames", "a;;b 1\n", "a:0 1\n :0 1\n  b:0 1\n", 0 },
	{ "zero counts are nothing", "a;b 0\na 1\n", "a:0 1\n", 0 },
	{ "comment of .col", "#{\"x\": 1}\na 1\n", "a:0 1\n", 0 },
	{ "no count", "a 1\na;b\n", NULL, 2 },
	{ "only a count", "5\n", NULL, 1 },
	{ "no stack", " 5\n", NULL, 1 },
	{ "negative", "a -5\n", NULL, 1 },
	{ "too big", "a 99999999999999999999\n", NULL, 1 },
	{ "sum too big", "a 9223372036854775807\nb 1\n", NULL, 2 },
};

static void reads_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(folded_cases); i++) {
		const struct folded_case *c = &folded_cases[i];
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
		scoped(tree_release) struct tree t = { 0 };
		uint64_t bad_line = 0;
		int r = tree_from_folded(guarded(c->text), NULL, &t, &bad_line);

		print_message("  %s\n", c->name);
		assert_int_equal(r, c->want ? 0 : -EBADMSG);
		assert_int_equal(bad_line, c->bad_line);
		print_tree(&t, &out);
		assert_string_equal(buf_cstr(&out), c->want ? c->want : "");
	}
}

static void fill_many(struct buf *text)
{
	for (unsigned i = 0; i < 3000; i++)
		buf_addf(text, "main;part_%u;step_%u;leaf_%u %u\n", i % 7, i % 61, i, 1 + i % 13);
}

static void prunes_to_the_largest(void **state)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	scoped(tree_release) struct tree t = { 0 };
	uint64_t bad_line;

	(void)state;
	fill_many(&text);
	assert_int_equal(tree_from_folded(buf_str(&text), NULL, &t, &bad_line), 0);
	for (uint32_t max = 1; max < t.node_count + 10; max += 97) {
		scoped(tree_release) struct tree p = { 0 };

		assert_int_equal(tree_prune(&t, max, &p), 0);
		assert_int_equal(p.node_count, MIN(max, t.node_count));
		for (uint32_t i = 1; i < p.node_count; i++) {
			assert_true(p.level[i] <= p.level[i - 1] + 1); /* no parent is missing */
			assert_true(p.origin[i] > p.origin[i - 1]);
			assert_int_equal(p.total[i], t.total[p.origin[i]]);
			assert_true(str_eq(tree_frame_text(&p, p.frame[i]), tree_frame_text(&t, t.frame[p.origin[i]])));
		}
	}
}

static void counts_recursion_once(void **state)
{
	scoped(tree_release) struct tree t = { 0 };
	scoped(freep) struct tree_top_row *rows = NULL;
	size_t count = 0;
	uint64_t bad_line;

	(void)state;
	assert_int_equal(tree_from_folded(guarded("a;b;a;b 4\na;b 2\nb;c 1\n"), NULL, &t, &bad_line), 0);
	assert_int_equal(tree_top(&t, 2, &rows, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal("b", t.text[t.frames[rows[0].frame].text_at] == 'b' ? "b" : "");
	assert_int_equal(rows[0].self, 6);
	assert_int_equal(rows[0].total, 7);
	assert_int_equal(rows[1].self, 1);
}

static uint32_t add_frame(struct model *m, uint32_t parent, const char *name, enum model_kind kind)
{
	struct model_function f = { .kind = kind };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	uint32_t stack;

	assert_int_equal(model_add_string(m, str_of(name), &f.name), 0);
	assert_int_equal(model_add_function(m, &f, &line.function), 0);
	assert_int_equal(model_add_location(m, &location, &line, &stack), 0);
	assert_int_equal(model_add_stack(m, parent, stack, &stack), 0);
	return stack;
}

static void make_window(struct window *w)
{
	struct model_process process = { .pid = 7 };
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	int64_t values[2] = { 3, 30000000 };

	w->model = calloc(1, sizeof(*w->model));
	assert_non_null(w->model);
	assert_int_equal(model_init(w->model, MIB(1)), 0);
	assert_int_equal(model_add_value_type(w->model, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(w->model, STR("cpu"), STR("nanoseconds")), 0);
	assert_int_equal(model_add_string(w->model, STR("</script>"), &process.comm), 0);
	assert_int_equal(model_add_process(w->model, &process, &sample.process), 0);
	sample.stack =
		add_frame(w->model, add_frame(w->model, 0, "main", MODEL_KIND_NATIVE), "read", MODEL_KIND_KERNEL);
	assert_int_equal(model_add_sample(w->model, &sample, values), 0);
	assert_int_equal(window_set_text(&w->host, STR("<b>host")), 0);
	assert_int_equal(window_set_counter(w, STR("samples"), 3), 0);
	assert_int_equal(window_set_counter(w, STR("lost_ring_full"), 1), 0);
	w->frequency_hz = 99;
}

static void builds_from_a_model(void **state)
{
	scoped(window_release) struct window w = { 0 };
	scoped(tree_release) struct tree t = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
	char expected[80];

	(void)state;
	make_window(&w);
	assert_int_equal(tree_from_model(w.model, 1, 10000000, &(struct frame_style){ 0 }, &t), 0);
	print_tree(&t, &out);
	snprintf(expected, sizeof(expected), "</script>:%d 3\n main:%d 3\n  read:%d 3\n", TREE_KIND_PROCESS,
		 MODEL_KIND_NATIVE, MODEL_KIND_KERNEL);
	assert_string_equal(buf_cstr(&out), expected);
}

static void writes_the_page_of_a_window(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	make_window(&w);
	for (size_t value = 0; value < 2; value++) {
		struct render_html_config cfg = { .value = value, .title = "</title>\xff\x01" };
		scoped(buf_release) struct buf once = BUF_INIT(MIB(4)), again = BUF_INIT(MIB(4));
		struct str page;

		assert_int_equal(render_html(&w, &cfg, &once), 0);
		assert_int_equal(render_html(&w, &cfg, &again), 0);
		page = buf_str(&once);
		assert_true(str_eq(page, buf_str(&again)));
		assert_true(str_search(page, STR("<dd>&lt;b&gt;host</dd>")) > 0);
		assert_true(str_search(page, STR("<title>&lt;/title&gt;\xef\xbf\xbd\\u{1}</title>")) > 0);
		assert_true(str_search(page, STR("<dd>1 (25.00\xc2\xa0%)</dd>")) > 0);
		/* both columns say the same, so counts are shown and time is the multiplier */
		assert_true(str_search(page, STR("\"unit\":\"samples\",\"scale\":1,\"nanoseconds\":10000000")) > 0);
		assert_true(str_search(page, STR("{{")) < 0);
	}
}

static int render_once(void *ctx)
{
	struct render_html_config cfg = { .title = "t" };
	scoped(buf_release) struct buf html = BUF_INIT(MIB(4));
	uint64_t bad_line = 0;

	return render_html_folded(str_of(ctx), &cfg, &html, &bad_line);
}

static void survives_failing_allocations(void **state)
{
	(void)state;
	for_each_failing_allocation(render_once, "a;b;c 1\na;b_[k] 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_folded),
		cmocka_unit_test(prunes_to_the_largest),
		cmocka_unit_test(counts_recursion_once),
		cmocka_unit_test(builds_from_a_model),
		cmocka_unit_test(writes_the_page_of_a_window),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
