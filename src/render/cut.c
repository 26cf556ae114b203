/* SPDX-License-Identifier: Apache-2.0 */
#include "render/cut.h"

#include "base/u64map.h"
#include "base/utf8.h"
#include "render/tree_int.h"

void tree_cut_release(struct tree_cut *c)
{
	tree_release(&c->tree);
	free(c->self);
	free(c->hidden);
	free(c->base_self);
	free(c->base_hidden);
	free(c->base_total);
}

static uint32_t subtree_end(const struct tree *t, uint32_t node)
{
	uint32_t end = node + 1;

	while (end < t->node_count && t->level[end] > t->level[node])
		end++;
	return end;
}

/* Selves of a preorder's nodes, from behind: @below sums totals of children by level. */
static int find_selves(const uint32_t *level, const uint64_t *total, uint32_t count, uint64_t *self)
{
	uint32_t deepest = 0;
	uint64_t *below;

	for (uint32_t i = 0; i < count; i++)
		deepest = MAX(deepest, level[i]);
	below = calloc((size_t)deepest + 2, sizeof(*below));
	if (!below)
		return -ENOMEM;
	for (uint32_t i = count; i-- > 0;) {
		self[i] = total[i] - below[level[i] + 1];
		below[level[i] + 1] = 0;
		below[level[i]] += total[i];
	}
	free(below);
	return 0;
}

/* Of one column of totals: the selves of the whole subtree, then what of the cut's nodes is neither self nor shown. */
static int split_total(const struct tree *view, const uint64_t *whole_total, const struct tree *cut,
		       const uint64_t *cut_total, uint64_t **self, uint64_t **hidden)
{
	scoped(freep) uint64_t *whole_self = calloc(view->node_count, sizeof(*whole_self));
	int r;

	*self = calloc(cut->node_count, sizeof(**self));
	*hidden = calloc(cut->node_count, sizeof(**hidden));
	if (!whole_self || !*self || !*hidden)
		return -ENOMEM;
	r = find_selves(view->level, whole_total, view->node_count, whole_self);
	r = r ? r : find_selves(cut->level, cut_total, cut->node_count, *hidden);
	for (uint32_t i = 0; r == 0 && i < cut->node_count; i++) {
		(*self)[i] = whole_self[cut->origin[i]];
		(*hidden)[i] -= (*self)[i];
	}
	return r;
}

static int add_base(const struct tree *view, const uint64_t *base_total, struct tree_cut *c)
{
	c->base_total = calloc(c->tree.node_count, sizeof(*c->base_total));
	if (!c->base_total)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->tree.node_count; i++)
		c->base_total[i] = base_total[c->tree.origin[i]];
	return split_total(view, base_total, &c->tree, c->base_total, &c->base_self, &c->base_hidden);
}

/* @view borrows from @whole but for its levels. */
static int open_view(const struct tree *whole, uint32_t root, struct tree *view)
{
	uint32_t count = subtree_end(whole, root) - root;

	*view = *whole;
	view->node_count = count;
	view->frame = whole->frame + root;
	view->total = whole->total + root;
	view->origin = view->frame_origin = NULL;
	view->level = calloc(count, sizeof(*view->level));
	for (uint32_t i = 0; view->level && i < count; i++)
		view->level[i] = whole->level[root + i] - whole->level[root];
	return view->level ? 0 : -ENOMEM;
}

int tree_cut_make(const struct tree *whole, const uint64_t *base_total, uint32_t root, uint32_t max,
		  struct tree_cut *out)
{
	scoped(tree_cut_release) struct tree_cut c = { 0 };
	struct tree view;
	int r;

	if (root >= whole->node_count || !max)
		return -EINVAL;
	r = open_view(whole, root, &view);
	r = r ? r : tree_prune(&view, max, &c.tree);
	r = r ? r : split_total(&view, view.total, &c.tree, c.tree.total, &c.self, &c.hidden);
	if (r == 0 && base_total)
		r = add_base(&view, base_total + root, &c);
	free(view.level);
	if (r < 0)
		return r;
	*out = c;
	c = (struct tree_cut){ 0 };
	return 0;
}

/* Two trees as one */

struct same_frame {
	struct tree_builder *b;
	const struct tree_frame *frame;
	struct str module;
	size_t name_len;
	int error;
};

static size_t classify_same(struct str key, struct tree_frame *frame, void *ctx)
{
	struct same_frame *of = ctx;

	(void)key;
	frame->kind = of->frame->kind;
	of->error = intern_add(&of->b->modules, of->module, &frame->module);
	return of->name_len;
}

/* For every frame of @t its number in the builder. */
static int add_frames(struct tree_builder *b, const struct tree *t, uint32_t *place)
{
	scoped(buf_release) struct buf key = BUF_INIT(TREE_TEXT_MAX);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->frame_count; i++) {
		struct str name = tree_frame_text(t, i), module = tree_frame_module(t, i);
		struct same_frame of = { b, &t->frames[i], module, name.len, 0 };
		char tail[] = { 0, (char)t->frames[i].kind };

		buf_clear(&key);
		buf_adds(&key, name);
		buf_add(&key, tail, sizeof(tail));
		buf_adds(&key, module);
		buf_add(&key, &name.len, sizeof(name.len));
		r = key.error;
		r = r ? r : tree_builder_frame(b, buf_str(&key), classify_same, &of, &place[i]);
		r = r ? r : of.error;
	}
	return r;
}

struct place {
	uint32_t node;
	uint64_t hash;
};

static int add_nodes(struct tree_builder *b, const struct tree *t, const uint32_t *frame_of, const uint64_t *self,
		     struct place *path)
{
	int r = 0;

	tree_builder_add(b, 0, self[0]);
	path[0] = (struct place){ 0, b->seed };
	for (uint32_t i = 1; r == 0 && i < t->node_count; i++) {
		const struct place *above = &path[t->level[i] - 1];
		uint32_t frame = frame_of[t->frame[i]];
		uint64_t hash = tree_path_hash(above->hash, frame);
		uint32_t node;

		r = tree_builder_room(b, 1);
		if (r < 0)
			break;
		node = tree_builder_child(b, above->node, frame, tree_path_tag(hash));
		path[t->level[i]] = (struct place){ node, hash };
		tree_builder_add(b, node, self[i]);
	}
	return r;
}

static uint32_t depth_of(const struct tree *t)
{
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		deepest = MAX(deepest, t->level[i]);
	return deepest + 1;
}

static int add_tree(struct tree_builder *b, const struct tree *t)
{
	scoped(freep) uint32_t *frame_of = calloc((size_t)t->frame_count + 1, sizeof(*frame_of));
	scoped(freep) uint64_t *self = calloc(t->node_count, sizeof(*self));
	scoped(freep) struct place *path = calloc(depth_of(t), sizeof(*path));
	int r = frame_of && self && path ? find_selves(t->level, t->total, t->node_count, self) : -ENOMEM;

	r = r ? r : add_frames(b, t, frame_of);
	return r ? r : add_nodes(b, t, frame_of, self, path);
}

static int frame_cmp(const struct tree *a, uint32_t i, const struct tree *b, uint32_t k)
{
	int order = str_cmp(tree_frame_text(a, i), tree_frame_text(b, k));

	if (!order)
		order = a->frames[i].kind - b->frames[k].kind;
	return order ? order : str_cmp(tree_frame_module(a, i), tree_frame_module(b, k));
}

static uint32_t find_frame(const struct tree *in, const struct tree *t, uint32_t frame)
{
	uint32_t from = 0, end = in->frame_count;

	while (from < end) {
		uint32_t middle = from + (end - from) / 2;
		int order = frame_cmp(in, middle, t, frame);

		if (!order)
			return middle;
		if (order < 0)
			from = middle + 1;
		else
			end = middle;
	}
	return in->frame_count;
}

static int map_children(const struct tree *t, struct u64map *child, uint32_t *path)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->node_count; i++) {
		if (i)
			r = u64map_put(child, (uint64_t)path[t->level[i] - 1] << 32 | t->frame[i], i);
		path[t->level[i]] = i;
	}
	return r;
}

/* Every path of @part is one of @sum. */
static int note_totals(const struct tree *sum, const struct tree *part, uint64_t *out)
{
	scoped(u64map_release) struct u64map child = { 0 };
	scoped(freep) uint32_t *path = calloc(depth_of(sum), sizeof(*path));
	scoped(freep) uint32_t *frame_of = calloc((size_t)part->frame_count + 1, sizeof(*frame_of));
	int r;

	u64map_init(&child, TREE_NODES_MAX);
	if (!path || !frame_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < part->frame_count; i++)
		frame_of[i] = find_frame(sum, part, i);
	r = map_children(sum, &child, path);
	path[0] = 0;
	out[0] = part->total[0];
	for (uint32_t i = 1; r == 0 && i < part->node_count; i++) {
		uint32_t *at = &path[part->level[i]];

		r = u64map_get(&child, (uint64_t)at[-1] << 32 | frame_of[part->frame[i]], at);
		must(r == 0); /* they were put together from it */
		out[*at] = part->total[i];
	}
	return r;
}

int tree_pair(const struct tree *base, const struct tree *other, struct tree *out, uint64_t **base_total)
{
	scoped(tree_release) struct tree sum = { 0 };
	scoped(freep) uint64_t *totals = NULL;
	struct tree_builder b;
	int r = tree_builder_init(&b, 0);

	if (r < 0)
		return r;
	b.most = UINT64_MAX; /* two that are saturated fit */
	b.negative = base->negative;
	tree_negative_add(&b.negative, other->negative.samples, other->negative.value);
	r = add_tree(&b, base);
	r = r ? r : add_tree(&b, other);
	if (r < 0) {
		tree_builder_release(&b);
		return r;
	}
	r = tree_builder_finish(&b, &sum);
	if (r < 0)
		return r;
	totals = calloc(sum.node_count, sizeof(*totals));
	r = totals ? note_totals(&sum, base, totals) : -ENOMEM;
	if (r < 0)
		return r;
	*out = sum;
	*base_total = totals;
	sum = (struct tree){ 0 };
	totals = NULL;
	return 0;
}

/* Paths */

static void add_as_json_has_it(struct buf *out, struct str s)
{
	while (s.len) {
		int32_t c = utf8_next(&s);

		utf8_add(out, c < 0 ? 0xfffd : (uint32_t)c);
	}
}

static bool same_text(struct str raw, struct str shown, struct buf *scratch)
{
	if (str_eq(raw, shown))
		return true;
	if (utf8_valid(raw))
		return false;
	buf_clear(scratch);
	add_as_json_has_it(scratch, raw);
	return str_eq(buf_str(scratch), shown);
}

bool tree_step_fits(const struct tree_step *step, struct str name, unsigned int kind, struct str module,
		    struct buf *scratch)
{
	return str_eq(tree_kind_name(kind), step->kind) && same_text(name, step->name, scratch) &&
	       same_text(module, step->module, scratch);
}

static bool is_step(const struct tree *t, uint32_t frame, const struct tree_step *step, struct buf *scratch)
{
	return tree_step_fits(step, tree_frame_text(t, frame), t->frames[frame].kind, tree_frame_module(t, frame),
			      scratch);
}

int tree_find(const struct tree *t, const struct tree_step *steps, size_t count, uint32_t *out)
{
	scoped(buf_release) struct buf scratch = BUF_INIT(TREE_TEXT_MAX * (size_t)3);
	uint32_t node = 0, at = 1;

	for (size_t i = 0; i < count; i++) {
		for (; at < t->node_count && t->level[at] > i; at++)
			if (t->level[at] == i + 1 && is_step(t, t->frame[at], &steps[i], &scratch))
				break;
		if (at == t->node_count || t->level[at] != i + 1)
			return scratch.error ? scratch.error : -ENOENT;
		node = at++;
	}
	*out = node;
	return 0;
}
