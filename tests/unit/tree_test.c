/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/io.h"
#include "base/utf8.h"
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
	{ "sum too big: the largest is cut", "a 9223372036854775807\nb 1\n", "a:0 9223372036854775806\nb:0 1\n", 0 },
	{ "in any order", "b 1\na 9223372036854775807\n", "a:0 9223372036854775806\nb:0 1\n", 0 },
	{ "several large ones", "b 5\na 9223372036854775807\na;c 9223372036854775807\na;d 9223372036854775807\n",
	  "a:0 9223372036854775802\n c:0 3074457345618258601\n d:0 3074457345618258600\nb:0 5\n", 0 },
	{ "all of one stack", "a 9223372036854775807\na 9223372036854775807\n", "a:0 9223372036854775807\n", 0 },
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

static uint32_t add_labels(struct model *m, const char *key, const char *value, int64_t number)
{
	struct model_label labels[2] = { { 0 }, { .is_number = true, .number = number } };
	uint32_t set;

	assert_int_equal(model_add_string(m, str_of(key), &labels[0].key), 0);
	assert_int_equal(model_add_string(m, str_of(value), &labels[0].text), 0);
	assert_int_equal(model_add_string(m, STR("size"), &labels[1].key), 0);
	assert_int_equal(model_add_string(m, STR("b"), &labels[1].unit), 0);
	assert_int_equal(model_add_label_set(m, labels, 2, &set), 0);
	return set;
}

static uint32_t add_thread(struct model *m, uint32_t process, const char *name, uint32_t tid)
{
	struct model_thread thread = { .process = process, .tid = tid };
	uint32_t row;

	assert_int_equal(model_add_string(m, str_of(name), &thread.name), 0);
	assert_int_equal(model_add_thread(m, &thread, &row), 0);
	return row;
}

/* Three more samples of the same stack: a thread with a name, one without, and labels. */
static void make_grouped(struct window *w)
{
	int64_t values[2] = { 1, 10000000 };
	struct model_sample sample;

	make_window(w);
	sample = w->model->samples[0];
	sample.thread = add_thread(w->model, sample.process, "worker;1 <b>", 8);
	assert_int_equal(model_add_sample(w->model, &sample, values), 0);
	sample.thread = add_thread(w->model, sample.process, "", 9);
	sample.label_set = add_labels(w->model, "env", "prod", 5);
	assert_int_equal(model_add_sample(w->model, &sample, values), 0);
	sample.label_set = add_labels(w->model, "host", "", 7);
	assert_int_equal(model_add_sample(w->model, &sample, values), 0);
}

struct group_case {
	struct tree_group groups[2];
	size_t count;
	const char *want; /* the two outermost frames */
};

static const struct group_case group_cases[] = {
	{ { { TREE_KIND_THREAD } }, 1, "(no thread):17 3\nthread 9:17 2\nworker;1 <b>:17 1\n" },
	{ { { TREE_KIND_LABEL, { "env", 3 } } }, 1, "(no env):19 5\nenv=prod:19 1\n" },
	{ { { TREE_KIND_LABEL, { "env", 3 }, { "test", 4 } } }, 1, "env=test:19 5\nenv=prod:19 1\n" },
	{ { { TREE_KIND_LABEL, { "size", 4 } } }, 1, "(no size):19 4\nsize=5b:19 1\nsize=7b:19 1\n" },
	{ { { TREE_KIND_HOST, { "host", 4 }, { "h1", 2 } } }, 1, "h1:18 5\n:18 1\n" },
	{ { { TREE_KIND_HOST, { "host", 4 }, { "", 0 } } }, 1, ":18 6\n" },
	{ { { TREE_KIND_HOST, { "host", 4 } }, { TREE_KIND_THREAD } },
	  2,
	  "(no host):18 5\n (no thread):17 3\n thread 9:17 1\n worker;1 <b>:17 1\n:18 1\n thread 9:17 1\n" },
};

static void groups_stand_above(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	make_grouped(&w);
	for (size_t i = 0; i < ARRAY_SIZE(group_cases); i++) {
		const struct group_case *c = &group_cases[i];
		scoped(buf_release) struct buf out = BUF_INIT(KIB(4)), top = BUF_INIT(KIB(4));
		scoped(tree_release) struct tree t = { 0 };
		struct str rest, line;
		struct tree_maker *maker;

		assert_int_equal(tree_maker_new(&maker), 0);
		assert_int_equal(tree_maker_add(maker, w.model, 0, c->groups, c->count), 0);
		assert_int_equal(tree_maker_finish(maker, &t), 0);
		tree_maker_free(maker);
		print_tree(&t, &out);
		for (rest = buf_str(&out); str_next(&rest, '\n', &line);)
			if (line.len && (line.ptr[0] != ' ' || (c->count > 1 && line.ptr[1] != ' ')))
				buf_addf(&top, STR_FMT "\n", STR_ARG(line));
		assert_string_equal(buf_cstr(&top), c->want);
		assert_int_equal(t.total[0], 6);
	}
}

/* Several models are one tree; each may go once it was added. */
static void makes_one_tree_of_several_models(void **state)
{
	static const struct tree_group hosts[] = { { TREE_KIND_HOST, { "host", 4 }, { "a", 1 } },
						   { TREE_KIND_HOST, { "host", 4 }, { "b", 1 } } };
	scoped(tree_release) struct tree t = { 0 }, empty = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
	struct tree_maker *maker;

	(void)state;
	assert_int_equal(tree_maker_new(&maker), 0);
	for (size_t i = 0; i < 3; i++) {
		struct window w = { 0 };

		make_window(&w);
		assert_int_equal(tree_maker_add(maker, w.model, 0, &hosts[i % 2], 1), 0);
		window_release(&w);
	}
	assert_int_equal(tree_maker_finish(maker, &t), 0);
	tree_maker_free(maker);
	print_tree(&t, &out);
	assert_string_equal(buf_cstr(&out), "a:18 6\n </script>:15 6\n  main:0 6\n   read:1 6\n"
					    "b:18 3\n </script>:15 3\n  main:0 3\n   read:1 3\n");
	assert_int_equal(tree_maker_new(&maker), 0);
	assert_int_equal(tree_maker_finish(maker, &empty), 0);
	tree_maker_free(maker);
	assert_int_equal(empty.node_count, 1);
}

/* One profile with very large values does not take the tree of all others. */
static void saturates(void **state)
{
	int64_t values[2] = { INT64_MAX, INT64_MAX };
	scoped(window_release) struct window w = { 0 }, other = { 0 };
	scoped(tree_release) struct tree t = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(KIB(4));
	struct tree_maker *maker;
	struct model_sample sample;

	(void)state;
	make_window(&w);
	make_window(&other);
	sample = w.model->samples[0];
	sample.stack = add_frame(w.model, 0, "huge", MODEL_KIND_NATIVE);
	assert_int_equal(model_add_sample(w.model, &sample, values), 0);
	assert_int_equal(tree_maker_new(&maker), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(tree_maker_add(maker, w.model, 1, NULL, 0), 0);
	assert_int_equal(tree_maker_add(maker, other.model, 1, NULL, 0), 0);
	assert_int_equal(tree_maker_finish(maker, &t), 0);
	tree_maker_free(maker);
	assert_true(t.total[0] == INT64_MAX);
	print_tree(&t, &out);
	assert_string_equal(buf_cstr(&out), "</script>:15 9223372036854775807\n huge:0 9223372036764775807\n"
					    " main:0 90000000\n  read:1 90000000\n");
}

static void counts_what_is_below_zero(void **state)
{
	int64_t below[2] = { -5, -50000000 }, most[2] = { INT64_MIN, -1 };
	scoped(window_release) struct window w = { 0 };
	struct model_sample sample;

	(void)state;
	make_window(&w);
	sample = w.model->samples[0];
	sample.stack = add_frame(w.model, 0, "gone", MODEL_KIND_NATIVE);
	assert_int_equal(model_add_sample(w.model, &sample, below), 0);
	for (size_t column = 0; column < 2; column++) {
		scoped(tree_release) struct tree t = { 0 };

		assert_int_equal(
			tree_from_model(w.model, column, column ? 10000000 : 1, &(struct frame_style){ 0 }, &t), 0);
		assert_int_equal(t.total[0], 3);
		assert_int_equal(t.frame_count, 3);
		assert_int_equal(t.negative.samples, 1);
		assert_int_equal(t.negative.value, -below[column]);
	}
	sample.stack = add_frame(w.model, 0, "gone, too", MODEL_KIND_NATIVE);
	assert_int_equal(model_add_sample(w.model, &sample, most), 0);
	{
		scoped(tree_release) struct tree t = { 0 };

		assert_int_equal(tree_from_model(w.model, 0, 1, &(struct frame_style){ 0 }, &t), 0);
		assert_int_equal(t.negative.samples, 2);
		assert_true(t.negative.value == INT64_MAX);
	}
}

static int group_once(void *ctx)
{
	const struct window *w = ctx;
	scoped(tree_release) struct tree t = { 0 };
	struct tree_maker *maker;
	int r = tree_maker_new(&maker);

	if (r < 0)
		return r;
	r = tree_maker_add(maker, w->model, 0, group_cases[6].groups, 2);
	r = r ? r : tree_maker_finish(maker, &t);
	tree_maker_free(maker);
	return r;
}

static void groups_survive_failing_allocations(void **state)
{
	scoped(window_release) struct window w = { 0 };

	(void)state;
	make_grouped(&w);
	for_each_failing_allocation(group_once, &w);
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

/* One \uNNNN at the beginning of @s. */
static bool take_code(struct str *s, uint32_t *out)
{
	uint64_t code;

	if (!str_starts(*s, STR("\\u")) || s->len < 6)
		return false;
	code = strtoul(s->ptr + 2, NULL, 16);
	*s = str_skip(*s, 6);
	*out = (uint32_t)code;
	return true;
}

/* Every character that web/format.js makes visible: raw to @raw, as it is to be shown to @shown. Return: how many. */
static size_t hidden_by_the_viewer(struct buf *raw, struct buf *shown)
{
	scoped(buf_release) struct buf script = BUF_INIT(MIB(1));
	const char *root = getenv("HEARTH_SOURCE_ROOT");
	const struct str before = STR("VISIBLE_ESCAPES = /[");
	uint32_t first, last;
	size_t count = 0;
	struct str list;
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/web/format.js", root ? root : ".");
	assert_int_equal(io_read_file(path, &script), 0);
	list = buf_str(&script);
	assert_true(str_search(list, before) > 0);
	list = str_skip(list, (size_t)str_search(list, before) + before.len);
	while (take_code(&list, &first)) {
		last = first;
		if (str_starts(list, STR("-"))) {
			list = str_skip(list, 1);
			assert_true(take_code(&list, &last));
		}
		for (uint32_t code = MAX(first, 1U); code <= last; code++, count++) { /* a title ends at 0 */
			utf8_add(raw, code);
			buf_addf(shown, "\\u{%x}", code);
		}
	}
	assert_true(str_starts(list, STR("]")));
	return count;
}

static void shows_what_hides_as_the_viewer_does(void **state)
{
	scoped(buf_release) struct buf raw = BUF_INIT(KIB(16)), shown = BUF_INIT(KIB(16)), page = BUF_INIT(MIB(4));
	scoped(window_release) struct window w = { 0 };
	struct render_html_config cfg = { 0 };

	(void)state;
	make_window(&w);
	buf_adds(&shown, STR("<title>"));
	assert_true(hidden_by_the_viewer(&raw, &shown) > 80);
	buf_adds(&shown, STR("</title>"));
	cfg.title = buf_cstr(&raw);
	assert_int_equal(render_html(&w, &cfg, &page), 0);
	assert_true(str_search(buf_str(&page), buf_str(&shown)) > 0);
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
		cmocka_unit_test(groups_stand_above),
		cmocka_unit_test(makes_one_tree_of_several_models),
		cmocka_unit_test(saturates),
		cmocka_unit_test(counts_what_is_below_zero),
		cmocka_unit_test(groups_survive_failing_allocations),
		cmocka_unit_test(writes_the_page_of_a_window),
		cmocka_unit_test(shows_what_hides_as_the_viewer_does),
		cmocka_unit_test(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
