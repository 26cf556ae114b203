/* SPDX-License-Identifier: Apache-2.0 */
/* What a server sends of a tree, and two trees as one, beside sums over stacks one at a time: slow and obvious. */
#include "support.h"

#include "render/cut.h"

#define NAMES 8
#define STACKS 120
#define DEPTH 9
#define ROUNDS 12

/* What folded text writes, what a tree has, and how JSON shows it. */
static const struct {
	const char *folded, *raw, *shown;
	enum model_kind kind;
} names[NAMES] = {
	{ "a", "a", "a", MODEL_KIND_NATIVE },
	{ "b_[k]", "b", "b", MODEL_KIND_KERNEL },
	{ "b", "b", "b", MODEL_KIND_NATIVE },
	{ "ab", "ab", "ab", MODEL_KIND_NATIVE },
	{ "x\xff", "x\xff", "x\xef\xbf\xbd", MODEL_KIND_NATIVE },
	{ "<img src=x>", "<img src=x>", "<img src=x>", MODEL_KIND_NATIVE },
	{ "\xe2\x80\xae-odd", "\xe2\x80\xae-odd", "\xe2\x80\xae-odd", MODEL_KIND_NATIVE },
	{ "f_[j]", "f", "f", MODEL_KIND_JAVA },
};

struct path {
	size_t depth;
	uint8_t frame[DEPTH + 1];
};

struct stack {
	struct path path;
	uint64_t count;
};

struct stacks {
	struct stack items[2 * STACKS];
	size_t count;
};

static uint64_t state_of_random;

static uint32_t below(uint32_t n) /* xorshift64, G. Marsaglia 2003 */
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return (uint32_t)(state_of_random >> 11) % n;
}

static void fill(struct stacks *s, size_t count)
{
	s->count = count;
	for (size_t i = 0; i < count; i++) {
		struct stack *one = &s->items[i];

		one->count = 1 + below(50);
		one->path.depth = 1 + below(DEPTH);
		for (size_t d = 0; d < one->path.depth; d++) /* the first names are the frequent ones */
			one->path.frame[d] = (uint8_t)(below(NAMES) * below(NAMES) / NAMES);
	}
}

static void make_tree(const struct stacks *s, struct tree *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));
	uint64_t bad_line = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct path *p = &s->items[i].path;

		for (size_t d = 0; d < p->depth; d++)
			buf_addf(&text, "%s%s", d ? ";" : "", names[p->frame[d]].folded);
		buf_addf(&text, " %llu\n", (unsigned long long)s->items[i].count);
	}
	assert_int_equal(tree_from_folded(buf_str(&text), NULL, out, &bad_line), 0);
}

/* The slow way */

static bool begins(const struct path *p, const struct path *with)
{
	return p->depth >= with->depth && !memcmp(p->frame, with->frame, with->depth);
}

static uint64_t total_of(const struct stacks *s, const struct path *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += begins(&s->items[i].path, p) ? s->items[i].count : 0;
	return sum;
}

static uint64_t self_of(const struct stacks *s, const struct path *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].path.depth == p->depth && begins(&s->items[i].path, p))
			sum += s->items[i].count;
	return sum;
}

/* Is stack @i the first one that begins with its own first @depth frames? */
static bool is_first(const struct stacks *s, size_t i, size_t depth)
{
	struct path head = s->items[i].path;

	head.depth = depth;
	for (size_t k = 0; k < i; k++)
		if (begins(&s->items[k].path, &head))
			return false;
	return true;
}

/* How many nodes a tree of these has at and below @p. */
static size_t nodes_below(const struct stacks *s, const struct path *p)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		for (size_t depth = p->depth; begins(&s->items[i].path, p) && depth <= s->items[i].path.depth; depth++)
			count += is_first(s, i, depth);
	return count ? count : !p->depth; /* there always is a root */
}

/* Trees beside it */

static uint8_t name_of(const struct tree *t, uint32_t node)
{
	const struct tree_frame *f = &t->frames[t->frame[node]];

	for (uint8_t i = 0; i < NAMES; i++)
		if (f->kind == names[i].kind && str_eq(tree_frame_text(t, t->frame[node]), str_of(names[i].raw)))
			return i;
	fail_msg("a frame that nobody added");
	return 0;
}

/* @at has the path of the node before; its beginning, of @from frames, is that of the tree's root. */
static void follow(const struct tree *t, uint32_t node, size_t from, struct path *at)
{
	assert_true(t->level[node] ? node && t->level[node] <= t->level[node - 1] + 1 : !node);
	at->depth = from + t->level[node];
	if (node)
		at->frame[at->depth - 1] = name_of(t, node);
}

static void assert_whole(const struct tree *t, const struct stacks *s)
{
	struct path at = { 0 }, root = { 0 };

	for (uint32_t i = 0; i < t->node_count; i++) {
		follow(t, i, 0, &at);
		assert_int_equal(t->total[i], total_of(s, &at));
	}
	assert_int_equal(t->node_count, nodes_below(s, &root));
}

static void path_of(const struct tree *t, uint32_t node, struct path *out)
{
	*out = (struct path){ 0 };
	for (uint32_t i = 0; i <= node; i++)
		follow(t, i, 0, out);
}

static int falling(const void *left, const void *right)
{
	const uint64_t *l = left, *r = right;

	return *l < *r ? 1 : *l > *r ? -1 : 0;
}

/* What is kept has the largest totals of what there is. */
static void assert_largest(const struct tree *whole, uint32_t root, size_t there, const struct tree *cut)
{
	uint64_t *all = calloc(there, sizeof(*all)), *kept = calloc(cut->node_count, sizeof(*kept));

	assert_true(all && kept && root + there <= whole->node_count);
	memcpy(all, whole->total + root, there * sizeof(*all));
	memcpy(kept, cut->total, cut->node_count * sizeof(*kept));
	qsort(all, there, sizeof(*all), falling);
	qsort(kept, cut->node_count, sizeof(*kept), falling);
	assert_memory_equal(all, kept, cut->node_count * sizeof(*kept));
	free(all);
	free(kept);
}

static uint64_t shown_below(const struct tree *t, const uint64_t *total, uint32_t node)
{
	uint64_t sum = 0;

	for (uint32_t i = node + 1; i < t->node_count && t->level[i] > t->level[node]; i++)
		sum += t->level[i] == t->level[node] + 1 ? total[i] : 0;
	return sum;
}

/* One side of a cut's node: both, or the base's. */
static void assert_node(const struct stacks *s, const struct path *at, const struct tree *cut, uint32_t node,
			const uint64_t *total, const uint64_t *self, const uint64_t *hidden)
{
	assert_int_equal(total[node], total_of(s, at));
	assert_int_equal(self[node], self_of(s, at));
	assert_int_equal(total[node], self[node] + hidden[node] + shown_below(cut, total, node));
}

/* @base: the stacks that are also in @all, of a comparison; or NULL */
static void check_cut(const struct tree *whole, const uint64_t *base_total, const struct stacks *all,
		      const struct stacks *base, uint32_t root, uint32_t max)
{
	scoped(tree_cut_release) struct tree_cut c = { 0 };
	struct path at, from;
	size_t there;

	path_of(whole, root, &from);
	there = nodes_below(all, &from);
	assert_int_equal(tree_cut_make(whole, base_total, root, max, &c), 0);
	assert_int_equal(c.tree.node_count, MIN(max, there));
	assert_true(!base == !c.base_total);
	at = from;
	for (uint32_t i = 0; i < c.tree.node_count; i++) {
		follow(&c.tree, i, from.depth, &at);
		assert_node(all, &at, &c.tree, i, c.tree.total, c.self, c.hidden);
		if (base)
			assert_node(base, &at, &c.tree, i, c.base_total, c.base_self, c.base_hidden);
		if (max >= there)
			assert_int_equal(c.hidden[i], 0);
	}
	assert_largest(whole, root, there, &c.tree);
}

static const uint32_t sizes[] = { 1, 2, 3, 10, 40, UINT32_MAX };

static void cuts(void **state)
{
	static struct stacks s;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		scoped(tree_release) struct tree whole = { 0 };
		scoped(tree_cut_release) struct tree_cut c = { 0 };

		print_message("  seed %llu\n", (unsigned long long)seed);
		state_of_random = seed;
		fill(&s, 1 + below(STACKS));
		make_tree(&s, &whole);
		assert_whole(&whole, &s);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			check_cut(&whole, NULL, &s, NULL, 0, sizes[i]);
			check_cut(&whole, NULL, &s, NULL, below(whole.node_count), sizes[i]);
		}
		assert_int_equal(tree_cut_make(&whole, NULL, whole.node_count, 5, &c), -EINVAL);
		assert_int_equal(tree_cut_make(&whole, NULL, 0, 0, &c), -EINVAL);
	}
}

/* A node that was cut is opened by its call path, as a page names it: all that was hidden is there. */
static void opens_what_is_hidden(void **state)
{
	static struct stacks s;
	scoped(tree_release) struct tree whole = { 0 };

	(void)state;
	state_of_random = 99;
	fill(&s, STACKS);
	make_tree(&s, &whole);
	for (uint32_t node = 0; node < whole.node_count; node++) {
		struct tree_step steps[DEPTH] = { 0 };
		struct path at;
		uint32_t found;

		path_of(&whole, node, &at);
		for (size_t i = 0; i < at.depth; i++)
			steps[i] = (struct tree_step){ str_of(names[at.frame[i]].shown),
						       tree_kind_name(names[at.frame[i]].kind), STR("") };
		assert_int_equal(tree_find(&whole, steps, at.depth, &found), 0);
		assert_int_equal(found, node);
		if (!at.depth)
			continue;
		steps[at.depth - 1].kind = STR("php");
		assert_int_equal(tree_find(&whole, steps, at.depth, &found), -ENOENT);
		steps[at.depth - 1] = (struct tree_step){ STR("nobody"), STR("native"), STR("") };
		assert_int_equal(tree_find(&whole, steps, at.depth, &found), -ENOENT);
	}
}

static void pairs(void **state)
{
	static struct stacks base, other, both;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		scoped(tree_release) struct tree left = { 0 }, right = { 0 }, sum = { 0 };
		scoped(freep) uint64_t *base_total = NULL;
		struct path at = { 0 };

		print_message("  seed %llu\n", (unsigned long long)seed);
		state_of_random = seed * 1000;
		fill(&base, seed == 1 ? 0 : 1 + below(STACKS)); /* also a base of nothing */
		fill(&other, seed == 2 ? 0 : 1 + below(STACKS));
		both = base;
		memcpy(&both.items[both.count], other.items, other.count * sizeof(other.items[0]));
		both.count += other.count;
		make_tree(&base, &left);
		make_tree(&other, &right);
		assert_int_equal(tree_pair(&left, &right, &sum, &base_total), 0);
		assert_whole(&sum, &both);
		for (uint32_t i = 0; i < sum.node_count; i++) {
			follow(&sum, i, 0, &at);
			assert_int_equal(base_total[i], total_of(&base, &at));
		}
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			check_cut(&sum, base_total, &both, &base, below(sum.node_count), sizes[i]);
	}
}

/* Modules come with models only. */

static void add_call(struct model *m, const char *name, const char *file, uint32_t *stack)
{
	struct model_function f = { .kind = MODEL_KIND_NATIVE };
	struct model_mapping mapping = { .start = (uint64_t)file[1] << 12, .limit = (uint64_t)(file[1] + 1) << 12 };
	struct model_location location = { .line_count = 1, .address = mapping.start };
	struct model_line line = { 0 };
	uint32_t id;

	assert_int_equal(model_add_string(m, str_of(name), &f.name), 0);
	assert_int_equal(model_add_string(m, str_of(file), &mapping.filename), 0);
	assert_int_equal(model_add_mapping(m, &mapping, &location.mapping), 0);
	assert_int_equal(model_add_function(m, &f, &line.function), 0);
	assert_int_equal(model_add_location(m, &location, &line, &id), 0);
	assert_int_equal(model_add_stack(m, *stack, id, stack), 0);
}

static void make_modules(const char *file, int64_t value, struct tree *out)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	struct model m;

	assert_int_equal(model_init(&m, MIB(1)), 0);
	assert_int_equal(model_add_value_type(&m, STR("cpu"), STR("count")), 0);
	add_call(&m, "main", "/app", &sample.stack);
	add_call(&m, "work", file, &sample.stack);
	assert_int_equal(model_add_sample(&m, &sample, &value), 0);
	assert_int_equal(tree_from_model(&m, 0, 1, &(struct frame_style){ 0 }, out), 0);
	model_release(&m);
}

/* Functions of one name in two libraries stay two, each with its part of the base. */
static void modules_stay_apart(void **state)
{
	static const struct tree_step wanted[] = { { STR("main"), STR("native"), STR("app") },
						   { STR("work"), STR("native"), STR("b.so") } };
	scoped(tree_release) struct tree left = { 0 }, right = { 0 }, sum = { 0 };
	scoped(freep) uint64_t *base_total = NULL;
	uint32_t node;

	(void)state;
	make_modules("/lib/b.so", 5, &left);
	make_modules("/usr/c.so", 8, &right);
	assert_int_equal(tree_pair(&left, &right, &sum, &base_total), 0);
	assert_int_equal(sum.node_count, 4); /* the root, main, work and work */
	assert_int_equal(tree_find(&sum, wanted, 2, &node), 0);
	assert_int_equal(sum.total[node], 5);
	assert_int_equal(base_total[node], 5);
	assert_int_equal(base_total[1], 5);
	assert_int_equal(sum.total[1], 13);
	assert_int_equal(tree_find(&right, wanted, 2, &node), -ENOENT);
}

static void pairs_have_room_for_both(void **state)
{
	static const char text[] = "a 9223372036854775807\n";
	scoped(tree_release) struct tree t = { 0 }, sum = { 0 };
	scoped(freep) uint64_t *base_total = NULL;
	uint64_t bad_line;

	(void)state;
	assert_int_equal(tree_from_folded(str_of(text), NULL, &t, &bad_line), 0);
	t.negative = (struct tree_negative){ 2, 5 };
	assert_int_equal(tree_pair(&t, &t, &sum, &base_total), 0);
	assert_int_equal(sum.negative.samples, 4);
	assert_int_equal(sum.negative.value, 10);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(base_total[i] == INT64_MAX);
		assert_true(sum.total[i] == UINT64_MAX - 1);
	}
}

/* Without memory: -ENOMEM, nothing left behind. */

static int cut_all(void *ctx)
{
	const struct tree *t = ctx;
	scoped(tree_cut_release) struct tree_cut c = { 0 };
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	int r = tree_cut_make(t, t->total, 1, 20, &c);

	return r ? r : tree_cut_encode(&c, &out);
}

static int pair_all(void *ctx)
{
	scoped(tree_release) struct tree sum = { 0 };
	scoped(freep) uint64_t *base_total = NULL;

	return tree_pair(ctx, ctx, &sum, &base_total);
}

static int find_odd(void *ctx)
{
	static const struct tree_step odd[] = { { STR("x\xef\xbf\xbd"), STR("native"), STR("") } };
	uint32_t node;
	int r = tree_find(ctx, odd, 1, &node);

	assert_true(r == 0 || r == -ENOMEM);
	return r;
}

static void without_memory(void **state)
{
	static struct stacks s;
	scoped(tree_release) struct tree t = { 0 };

	(void)state;
	state_of_random = 5;
	fill(&s, 40);
	s.items[0].path = (struct path){ .depth = 1, .frame = { 4 } }; /* the name that is no UTF-8 */
	make_tree(&s, &t);
	for_each_failing_allocation(cut_all, &t);
	for_each_failing_allocation(pair_all, &t);
	for_each_failing_allocation(find_odd, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),
		cmocka_unit_test(opens_what_is_hidden),
		cmocka_unit_test(pairs),
		cmocka_unit_test(modules_stay_apart),
		cmocka_unit_test(pairs_have_room_for_both),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
