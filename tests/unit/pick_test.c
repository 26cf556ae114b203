/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a profile, beside going through its stacks and samples one at a time. */
#include "support.h"

#include "query/pick.h"

#define COLUMNS 3

/* Call sites: what stands below one is the tree of the stacks that begin with it. */

static const char *const stacks[] = {
	"main;a;b 3",   "main;a;b;c 4",   "main;a;b_[k];c 5",  "main;a 6",        "main;b 7",   "a;b 8",
	"main;a;c;b 9", "main;main;a 10", "main;a_[k];b;d 11", "main;a;b;b;b 12", "<b>;a;b 13", "main;ab;b 14",
};

static const struct {
	const char *name;
	size_t count;
	struct str names[4];
} sites[] = {
	{ "everything", 0, { { 0 } } },
	{ "one step", 1, { STR("main") } },
	{ "two steps, of any kind", 2, { STR("main"), STR("a") } },
	{ "three steps", 3, { STR("main"), STR("a"), STR("b") } },
	{ "the way to a leaf", 4, { STR("main"), STR("a"), STR("b"), STR("c") } },
	{ "recursion", 2, { STR("main"), STR("main") } },
	{ "a name like markup", 1, { STR("<b>") } },
	{ "a beginning is no name", 2, { STR("main"), STR("ab") } },
	{ "what is not there", 1, { STR("ain") } },
	{ "what ends before it", 4, { STR("main"), STR("a"), STR("c"), STR("x") } },
	{ "deeper than the tree", 4, { STR("a"), STR("b"), STR("b"), STR("b") } },
};

/* The name at @depth of a folded stack, without the suffix of a kind; empty behind the last. */
static struct str name_at(const char *stack, size_t depth)
{
	struct str rest = str_n(stack, (size_t)(strrchr(stack, ' ') - stack)), name = STR("");

	for (size_t i = 0; i <= depth; i++) {
		const char *end = rest.len ? memchr(rest.ptr, ';', rest.len) : NULL;

		name = end ? str_n(rest.ptr, (size_t)(end - rest.ptr)) : rest;
		rest = str_skip(rest, end ? name.len + 1 : rest.len);
	}
	return str_ends(name, STR("_[k]")) ? str_n(name.ptr, name.len - 4) : name;
}

static bool begins_with(const char *stack, const struct str *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!str_eq(name_at(stack, i), names[i]))
			return false;
	return true;
}

/* The tree of the stacks that begin with @names. */
static void make_tree(const struct str *names, size_t count, struct tree *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	uint64_t bad_line;

	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
		if (begins_with(stacks[i], names, count))
			buf_addf(&text, "%s\n", stacks[i]);
	assert_int_equal(tree_from_folded(buf_str(&text), NULL, out, &bad_line), 0);
}

static bool same_frame(const struct tree *a, uint32_t i, const struct tree *b, uint32_t k)
{
	return a->frames[a->frame[i]].kind == b->frames[b->frame[k]].kind &&
	       str_eq(tree_frame_text(a, a->frame[i]), tree_frame_text(b, b->frame[k]));
}

/* The child of @node with the frame of @of's @child. */
static uint32_t child_like(const struct tree *t, uint32_t node, const struct tree *of, uint32_t child)
{
	for (uint32_t i = node + 1; i < t->node_count && t->level[i] > t->level[node]; i++)
		if (t->level[i] == t->level[node] + 1 && same_frame(t, i, of, child))
			return i;
	fail_msg("a path is missing");
	return 0;
}

/* The same paths with the same totals; siblings may stand in another order, as those above a site do. */
static void assert_same(const struct tree *got, const struct tree *want)
{
	uint32_t path[16] = { 0 };

	assert_int_equal(got->node_count, want->node_count);
	assert_int_equal(got->total[0], want->total[0]);
	for (uint32_t i = 1; i < got->node_count; i++) {
		uint32_t level = got->level[i];

		assert_true(level && level < ARRAY_SIZE(path) && level <= got->level[i - 1] + 1);
		path[level] = child_like(want, path[level - 1], got, i);
		assert_int_equal(got->total[i], want->total[path[level]]);
	}
}

static void picks_call_sites(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		scoped(tree_release) struct tree got = { 0 }, want = { 0 };

		print_message("  %s\n", sites[i].name);
		make_tree(NULL, 0, &got);
		make_tree(sites[i].names, sites[i].count, &want);
		assert_int_equal(pick_call_site(&got, sites[i].names, sites[i].count), 0);
		assert_same(&got, &want);
	}
}

/* Columns and labels */

struct row {
	int64_t values[COLUMNS];
	const char *key, *text; /* NULL: the sample has no label */
};

static const struct row rows[] = {
	{ { 1, 10, 0 }, "span_id", "00aB" }, { { 2, 0, 5 }, "span_id", "00AB" }, { { 3, 30, 0 }, "span_id", "00ac" },
	{ { 4, -40, 7 }, NULL, NULL },       { { 0, 50, 0 }, "other", "00ab" },  { { 6, 0, 0 }, "span_id", "00abc" },
};

/* Samples stand in another order than their values. */
static void make_model(struct model *m)
{
	assert_int_equal(model_init(m, MIB(1)), 0);
	assert_int_equal(model_add_value_type(m, STR("samples"), STR("count")), 0);
	assert_int_equal(model_add_value_type(m, STR("cpu"), STR("nanoseconds")), 0);
	assert_int_equal(model_add_value_type(m, STR("cpu"), STR("count")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model_sample sample = { .time_offset_ns = (int64_t)i };
		struct model_label label = { 0 };

		if (rows[i].key) {
			assert_int_equal(model_add_string(m, str_of(rows[i].key), &label.key), 0);
			assert_int_equal(model_add_string(m, str_of(rows[i].text), &label.text), 0);
			assert_int_equal(model_add_label_set(m, &label, 1, &sample.label_set), 0);
		}
		assert_int_equal(model_add_sample(m, &sample, rows[i].values), 0);
	}
	for (size_t i = 0; i < m->samples_count / 2; i++) {
		struct model_sample first = m->samples[i];

		m->samples[i] = m->samples[m->samples_count - 1 - i];
		m->samples[m->samples_count - 1 - i] = first;
	}
}

static void finds_columns(void **state)
{
	struct model m;

	(void)state;
	make_model(&m);
	assert_int_equal(pick_column_of(&m, STR("samples"), STR("")), 0);
	assert_int_equal(pick_column_of(&m, STR("cpu"), STR("")), 1);
	assert_int_equal(pick_column_of(&m, STR("cpu"), STR("count")), 2);
	assert_int_equal(pick_column_of(&m, STR("cpu"), STR("bytes")), -1);
	assert_int_equal(pick_column_of(&m, STR("wall"), STR("")), -1);
	model_release(&m);
}

static void picks_columns(void **state)
{
	(void)state;
	for (size_t column = 0; column < COLUMNS; column++) {
		struct model m;
		size_t at = 0;

		make_model(&m);
		assert_int_equal(pick_column(&m, column), 0);
		assert_int_equal(m.value_type_count, 1);
		assert_true(str_eq(model_string(&m, m.value_types[0].type), column ? STR("cpu") : STR("samples")));
		assert_int_equal(model_default_value(&m), 0);
		for (size_t i = ARRAY_SIZE(rows); i-- > 0;) {
			if (!rows[i].values[column])
				continue;
			assert_true(at < m.samples_count);
			assert_int_equal(m.samples[at].time_offset_ns, i);
			assert_int_equal(*model_values(&m, &m.samples[at++]), rows[i].values[column]);
		}
		assert_int_equal(m.samples_count, at);
		model_release(&m);
	}
}

static void picks_labels(void **state)
{
	static const struct {
		const char *name, *key;
		size_t count;
		struct str values[2];
		unsigned int want; /* a bit for each row */
	} cases[] = {
		{ "in either case", "span_id", 1, { STR("00ab") }, 1 << 0 | 1 << 1 },
		{ "one of two", "span_id", 2, { STR("00AC"), STR("00abc") }, 1 << 2 | 1 << 5 },
		{ "another label", "other", 1, { STR("00ab") }, 1 << 4 },
		{ "no values", "span_id", 0, { { 0 } }, 0 },
		{ "an empty one", "span_id", 1, { STR("") }, 0 },
		{ "no such label", "span", 1, { STR("00ab") }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model m;
		unsigned int found = 0;

		print_message("  %s\n", cases[i].name);
		make_model(&m);
		assert_int_equal(pick_labelled(&m, str_of(cases[i].key), cases[i].values, cases[i].count), 0);
		for (size_t k = 0; k < m.samples_count; k++)
			found |= 1U << m.samples[k].time_offset_ns;
		assert_int_equal(found, cases[i].want);
		assert_int_equal(m.samples_count, __builtin_popcount(cases[i].want));
		model_release(&m);
	}
}

static void numbers_are_no_text(void **state)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	struct model_label label = { .is_number = true, .number = 7 };
	struct model m;

	(void)state;
	assert_int_equal(model_init(&m, MIB(1)), 0);
	assert_int_equal(model_add_value_type(&m, STR("cpu"), STR("count")), 0);
	assert_int_equal(model_add_string(&m, STR("span_id"), &label.key), 0);
	assert_int_equal(model_add_label_set(&m, &label, 1, &sample.label_set), 0);
	assert_int_equal(model_add_sample(&m, &sample, &(int64_t){ 1 }), 0);
	assert_int_equal(pick_labelled(&m, STR("span_id"), (struct str[]){ STR("7"), STR("") }, 2), 0);
	assert_int_equal(m.samples_count, 0);
	model_release(&m);
}

/* Each on its own: what they change is no use after a failure. */

static int site_once(void *ctx)
{
	scoped(tree_release) struct tree t = { 0 };

	(void)ctx;
	make_tree(NULL, 0, &t);
	fail_allocation(*(unsigned long *)ctx);
	return pick_call_site(&t, sites[2].names, sites[2].count);
}

static int column_once(void *ctx)
{
	struct model m;
	int r;

	make_model(&m);
	fail_allocation(*(unsigned long *)ctx);
	r = pick_column(&m, 1);
	model_release(&m);
	return r;
}

static int labels_once(void *ctx)
{
	struct model m;
	int r;

	make_model(&m);
	fail_allocation(*(unsigned long *)ctx);
	r = pick_labelled(&m, STR("span_id"), (struct str[]){ STR("00ab") }, 1);
	model_release(&m);
	return r;
}

static void without_memory(void **state)
{
	static int (*const all[])(void *ctx) = { site_once, column_once, labels_once };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned long n = 1;

		for (;; n++) {
			int r = all[i](&n);

			if (!allocation_failed())
				break;
			assert_int_equal(r, -ENOMEM);
		}
		assert_true(n > 1);
		fail_allocation(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picks_call_sites),    cmocka_unit_test(finds_columns),
		cmocka_unit_test(picks_columns),       cmocka_unit_test(picks_labels),
		cmocka_unit_test(numbers_are_no_text), cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
