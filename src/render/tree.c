/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes in the order they were found to preorder columns, heaviest sibling first. */
#include "render/tree.h"

#include "base/array.h"
#include "render/tree_int.h"

#define SMALL_GROUP 16u

void tree_release(struct tree *t)
{
	free(t->text);
	free(t->frames);
	intern_release(&t->modules);
	free(t->frame);
	free(t->level);
	free(t->total);
	free(t->origin);
	free(t->frame_origin);
	*t = (struct tree){ 0 };
}

void tree_trim(struct tree *t)
{
	char *text = t->text ? realloc(t->text, t->text_len + 1) : NULL;

	if (text)
		t->text = text;
	intern_trim(&t->modules);
}

size_t tree_memory(const struct tree *t)
{
	const struct intern *in = &t->modules;
	size_t node = sizeof(*t->frame) + sizeof(*t->level) + sizeof(*t->total) + (t->origin ? sizeof(*t->origin) : 0);
	size_t frame = sizeof(*t->frames) + (t->frame_origin ? sizeof(*t->frame_origin) : 0);

	return t->text_len + 1 + t->node_count * node + ((size_t)t->frame_count + 1) * frame + in->byte_cap +
	       in->end_cap * sizeof(*in->ends) + in->slot_cap * sizeof(*in->slots) + in->hash_cap * sizeof(*in->hashes);
}

struct str tree_kind_name(unsigned kind)
{
	static const struct str names[TREE_KIND_COUNT] = {
#define X(id, name, suffix) [MODEL_KIND_##id] = { name, sizeof(name) - 1 },
		MODEL_KINDS(X)
#undef X
			[TREE_KIND_PROCESS] = { "process", 7 },
		[TREE_KIND_CONTAINER] = { "container", 9 },
		[TREE_KIND_THREAD] = { "thread", 6 },
		[TREE_KIND_HOST] = { "host", 4 },
		[TREE_KIND_LABEL] = { "label", 5 },
	};

	return kind < TREE_KIND_COUNT ? names[kind] : STR("native");
}

struct frame_sort {
	const struct tree_builder *b;
	uint32_t frame;
};

static int frame_order(const void *left, const void *right)
{
	const struct frame_sort *l = left, *r = right;
	const struct tree_builder *b = l->b;
	const struct tree_frame *x = &b->frames[l->frame], *y = &b->frames[r->frame];
	int order = str_cmp(str_n(b->text + x->text_at, b->label_len[l->frame]),
			    str_n(b->text + y->text_at, b->label_len[r->frame]));

	if (order)
		return order;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return str_cmp(intern_get(&b->modules, x->module), intern_get(&b->modules, y->module));
}

/* Frames by name: rank[frame] is the new place of one. The order they were met in leaves no trace. */
static int order_frames(struct tree_builder *b, struct tree *t, uint32_t *rank)
{
	scoped(freep) struct frame_sort *sorted = calloc(b->frame_count + 1, sizeof(*sorted));

	t->frames = calloc(b->frame_count + 1, sizeof(*t->frames));
	if (!sorted || !t->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->frame_count; i++)
		sorted[i] = (struct frame_sort){ b, i };
	qsort(sorted, b->frame_count, sizeof(*sorted), frame_order);
	for (uint32_t i = 0; i < b->frame_count; i++) {
		t->frames[i] = b->frames[sorted[i].frame];
		t->frames[i].text_len = b->label_len[sorted[i].frame];
		rank[sorted[i].frame] = i;
	}
	t->frame_count = (uint32_t)b->frame_count;
	t->text = b->text;
	t->text_len = b->text_len;
	b->text = NULL;
	t->modules = b->modules;
	intern_init(&b->modules, 0);
	return 0;
}

/* Would all values together fit, if none was above @top? *sum: of these. */
static bool fits(const struct tree_builder *b, uint64_t top, uint64_t *sum)
{
	*sum = 0;
	for (size_t i = 0; i < b->node_count; i++) {
		uint64_t value = MIN(b->value[i], top);

		if (value > b->most - *sum)
			return false;
		*sum += value;
	}
	return true;
}

/* Cuts the largest values, so that all together are b->most. */
static void saturate(struct tree_builder *b)
{
	uint64_t top = 0, above = b->most, sum, rest;

	if (b->sum <= b->most || fits(b, b->most, &sum)) /* one node's own values may have been all that was too much */
		return;
	while (above - top > 1) { /* @top fits, @above does not */
		uint64_t middle = top + (above - top) / 2;

		if (fits(b, middle, &sum))
			top = middle;
		else
			above = middle;
	}
	(void)fits(b, top, &sum);
	rest = b->most - sum; /* less than the number of values that are cut */
	for (size_t i = 0; i < b->node_count; i++) {
		if (b->value[i] <= top)
			continue;
		b->value[i] = top + (rest ? 1 : 0);
		rest -= rest ? 1 : 0;
	}
}

struct sibling {
	uint64_t total;
	uint32_t frame, node;
};

static int sibling_order(const void *left, const void *right)
{
	const struct sibling *l = left, *r = right;

	if (l->total != r->total)
		return l->total > r->total ? -1 : 1;
	return l->frame < r->frame ? -1 : l->frame > r->frame;
}

static void insertion_sort(struct sibling *s, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct sibling moving = s[i];
		size_t j = i;

		for (; j && sibling_order(&moving, &s[j - 1]) < 0; j--)
			s[j] = s[j - 1];
		s[j] = moving;
	}
}

/* The children of one node at a time, in room that grows to the widest. */
struct family {
	struct sibling *siblings;
	size_t count, cap;
};

static void family_release(struct family *f)
{
	free(f->siblings);
}

struct pending {
	uint32_t node, level;
};

struct walk {
	struct pending *items;
	size_t count, cap;
};

static void walk_release(struct walk *w)
{
	free(w->items);
}

/* Totals, and the children of each node as a list: head[parent], then the field that held the parent, which nothing
 * asks for once its children are linked. A parent was always made before its children. */
static void link_children(struct tree_builder *b, uint32_t *head)
{
	for (size_t i = b->node_count - 1; i; i--) {
		uint32_t parent = b->nodes[i].parent;

		b->value[parent] += b->value[i];
		b->nodes[i].parent = head[parent];
		head[parent] = (uint32_t)i;
	}
}

/* Heaviest first, by name among equals. */
static int sort_children(const struct tree_builder *b, const uint32_t *rank, uint32_t first, struct family *family)
{
	family->count = 0;
	for (uint32_t kid = first; kid; kid = b->nodes[kid].parent) {
		int r = array_grow(&family->siblings, &family->cap, family->count, TREE_NODES_MAX);

		if (r < 0)
			return r;
		family->siblings[family->count++] = (struct sibling){ b->value[kid], rank[b->nodes[kid].frame], kid };
	}
	if (family->count <= SMALL_GROUP)
		insertion_sort(family->siblings, family->count);
	else
		qsort(family->siblings, family->count, sizeof(*family->siblings), sibling_order);
	return 0;
}

static int push_family(struct walk *w, const struct family *family, uint32_t level)
{
	for (size_t i = family->count; i; i--) {
		int r = array_grow(&w->items, &w->cap, w->count, TREE_NODES_MAX);

		if (r < 0)
			return r;
		w->items[w->count++] = (struct pending){ family->siblings[i - 1].node, level };
	}
	return 0;
}

static void emit(const struct tree_builder *b, const uint32_t *rank, struct pending at, struct tree *t)
{
	t->frame[t->node_count] = at.node ? rank[b->nodes[at.node].frame] : t->frame_count;
	t->level[t->node_count] = at.level;
	t->total[t->node_count++] = b->value[at.node];
}

static int emit_preorder(const struct tree_builder *b, const uint32_t *rank, const uint32_t *head, struct tree *t)
{
	scoped(walk_release) struct walk walk = { 0 };
	scoped(family_release) struct family family = { 0 };
	struct pending at = { 0, 0 };

	for (;;) {
		uint32_t first = head[at.node];
		int r;

		emit(b, rank, at, t);
		if (first && !b->nodes[first].parent) { /* an only child: most nodes are one */
			at = (struct pending){ first, at.level + 1 };
			continue;
		}
		if (first) {
			r = sort_children(b, rank, first, &family);
			if (!r)
				r = push_family(&walk, &family, at.level + 1);
			if (r < 0)
				return r;
		}
		if (!walk.count)
			return 0;
		at = walk.items[--walk.count];
	}
}

static int order_nodes(struct tree_builder *b, const uint32_t *rank, struct tree *t)
{
	scoped(freep) uint32_t *head = calloc(b->node_count, sizeof(*head));

	t->frame = malloc(b->node_count * sizeof(*t->frame));
	t->level = malloc(b->node_count * sizeof(*t->level));
	t->total = malloc(b->node_count * sizeof(*t->total));
	if (!head || !t->frame || !t->level || !t->total)
		return -ENOMEM;
	tree_huge_pages(head, b->node_count * sizeof(*head));
	tree_huge_pages(t->frame, b->node_count * sizeof(*t->frame));
	tree_huge_pages(t->level, b->node_count * sizeof(*t->level));
	tree_huge_pages(t->total, b->node_count * sizeof(*t->total));
	link_children(b, head);
	return emit_preorder(b, rank, head, t);
}

int tree_builder_finish(struct tree_builder *b, struct tree *out)
{
	scoped(tree_release) struct tree t = { 0 };
	scoped(freep) uint32_t *rank = calloc(b->frame_count + 1, sizeof(*rank));
	int r = rank ? 0 : -ENOMEM;

	free(b->slots);
	b->slots = NULL;
	free(b->name_slots);
	b->name_slots = NULL;
	intern_init(&t.modules, 0);
	t.negative = b->negative;
	saturate(b);
	if (!r)
		r = order_frames(b, &t, rank);
	if (!r)
		r = order_nodes(b, rank, &t);
	tree_builder_release(b);
	if (r < 0)
		return r;
	*out = t;
	t = (struct tree){ 0 };
	return 0;
}

struct standing {
	size_t count, cap;
	uint32_t *frame; /* by level: the frame open there */
};

static void standing_release(struct standing *s)
{
	free(s->frame);
}

static uint64_t child_sum(const struct tree *t, uint32_t node, uint64_t *below)
{
	uint64_t sum = below[t->level[node]];

	below[t->level[node]] = 0;
	return sum;
}

static int top_order(const void *left, const void *right)
{
	const struct tree_top_row *l = left, *r = right;

	if (l->self != r->self)
		return l->self > r->self ? -1 : 1;
	return l->frame < r->frame ? -1 : l->frame > r->frame;
}

static void add_selves(const struct tree *t, struct tree_top_row *rows, uint64_t *below)
{
	for (uint32_t i = t->node_count; i-- > 1;) { /* from behind: the children of a node come before it */
		rows[t->frame[i]].self += t->total[i] - child_sum(t, i, below);
		below[t->level[i] - 1] += t->total[i];
	}
}

static void add_totals(const struct tree *t, struct tree_top_row *rows, struct standing *open, uint32_t *depth)
{
	for (uint32_t i = 1; i < t->node_count; i++) {
		while (open->count >= t->level[i])
			depth[open->frame[--open->count]]--;
		if (!depth[t->frame[i]]++)
			rows[t->frame[i]].total += t->total[i];
		open->frame[open->count++] = t->frame[i];
	}
}

int tree_top(const struct tree *t, size_t max, struct tree_top_row **out, size_t *count)
{
	scoped(freep) struct tree_top_row *rows = calloc((size_t)t->frame_count + 1, sizeof(*rows));
	scoped(freep) uint32_t *depth = calloc((size_t)t->frame_count + 1, sizeof(*depth));
	scoped(standing_release) struct standing open = { 0 };
	scoped(freep) uint64_t *below = NULL;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		deepest = MAX(deepest, t->level[i]);
	open.frame = calloc((size_t)deepest + 1, sizeof(*open.frame));
	below = calloc((size_t)deepest + 1, sizeof(*below));
	if (!rows || !depth || !open.frame || !below)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->frame_count; i++)
		rows[i].frame = i;
	add_selves(t, rows, below);
	add_totals(t, rows, &open, depth);
	qsort(rows, t->frame_count, sizeof(*rows), top_order);
	*count = MIN(max, t->frame_count);
	*out = rows;
	rows = NULL;
	return 0;
}
