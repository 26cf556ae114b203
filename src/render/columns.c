/* SPDX-License-Identifier: Apache-2.0 */
/* A tree as the page reads it. All integers are LEB128 unless said otherwise; web/data.js is the reader.
 *
 *   header   version, flags, frames, modules, nodes, deepest level, total, then the size of each column in bytes
 *   columns  module lengths | module bytes | name heads (bytes shared with the name before, bytes of its own) |
 *            name bytes | kinds (a byte each) | frame's module |
 *            callee counts (per frame, the root's last) | callees |
 *            per node but the root: levels popped | index into the callees of the parent's frame | self
 *            flag 1 only: frame and node of the whole tree, each as the difference to the one before
 *            flag 2 only: hidden, of every node: what its children have that are not here; self is true then
 *            flag 4 only: of every node the part of self, then of hidden, that is of the base of a comparison
 *
 * There are 13 columns, 14 with flag 2, 16 with flags 2 and 4.
 *
 * A callee list holds the frames ever seen below a frame, the most frequent first: real call graphs are narrow, so most
 * nodes take one small byte, which deflate then halves. */
#include "base/array.h"
#include "base/u64map.h"
#include "render/cut.h"

#define COLUMNS_VERSION 1
#define COLUMNS_PRUNED 1
#define COLUMNS_CUT 2
#define COLUMNS_BASE 4
#define COLUMNS_MAX_BYTES GIB(2)
#define PREFIX_MAX 4096u

enum column {
	COLUMN_MODULE_SIZES,
	COLUMN_MODULE_BYTES,
	COLUMN_NAME_HEADS,
	COLUMN_NAME_BYTES,
	COLUMN_KINDS,
	COLUMN_FRAME_MODULES,
	COLUMN_CALLEE_COUNTS,
	COLUMN_CALLEES,
	COLUMN_POPS,
	COLUMN_CALLS,
	COLUMN_SELVES,
	COLUMN_FRAME_ORIGINS,
	COLUMN_ORIGINS,
	COLUMN_PLAIN_COUNT,
	COLUMN_HIDDEN = COLUMN_PLAIN_COUNT,
	COLUMN_CUT_COUNT,
	COLUMN_BASE_SELVES = COLUMN_CUT_COUNT,
	COLUMN_BASE_HIDDEN,
	COLUMN_COUNT,
};

struct edge {
	uint32_t caller, callee, count, index; /* index in the caller's list */
};

struct encoder {
	struct buf columns[COLUMN_COUNT];
	struct u64map edge_of; /* caller and callee -> edges */
	struct edge *edges;
	size_t edge_count, edge_cap;
	uint32_t *call;   /* per node: its edge */
	uint32_t *path;   /* by level: the frame open there */
	uint32_t *recent; /* per caller: its edge used last, + 1; most calls repeat it */
};

static void encoder_release(struct encoder *e)
{
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		buf_release(&e->columns[i]);
	u64map_release(&e->edge_of);
	free(e->edges);
	free(e->call);
	free(e->path);
	free(e->recent);
}

static void add_uvarint(struct buf *b, uint64_t value)
{
	uint8_t *p;
	size_t n = 0;

	if (b->cap - b->len < 10 && !buf_reserve(b, MAX((size_t)10, b->len / 2)))
		return;
	p = (uint8_t *)b->ptr + b->len;
	for (; value >= 0x80; value >>= 7)
		p[n++] = (uint8_t)(value | 0x80);
	p[n++] = (uint8_t)value;
	buf_commit(b, n);
}

static void encode_names(const struct tree *t, struct encoder *e)
{
	struct str before = STR("");

	for (uint32_t i = 1; i < intern_count(&t->modules); i++) {
		struct str module = intern_get(&t->modules, i);

		add_uvarint(&e->columns[COLUMN_MODULE_SIZES], module.len);
		buf_adds(&e->columns[COLUMN_MODULE_BYTES], module);
	}
	for (uint32_t i = 0; i < t->frame_count; i++) {
		struct str name = tree_frame_text(t, i);
		size_t shared = 0, most = MIN(MIN(before.len, name.len), PREFIX_MAX);

		while (shared < most && before.ptr[shared] == name.ptr[shared])
			shared++;
		add_uvarint(&e->columns[COLUMN_NAME_HEADS], shared);
		add_uvarint(&e->columns[COLUMN_NAME_HEADS], name.len - shared);
		buf_adds(&e->columns[COLUMN_NAME_BYTES], str_skip(name, shared));
		buf_addc(&e->columns[COLUMN_KINDS], (char)t->frames[i].kind);
		add_uvarint(&e->columns[COLUMN_FRAME_MODULES], t->frames[i].module);
		before = name;
	}
}

static int edge_add(struct encoder *e, uint32_t caller, uint32_t callee, uint32_t *out)
{
	uint64_t key = (uint64_t)caller << 32 | callee;
	uint32_t recent = e->recent[caller];
	int r;

	if (recent && e->edges[recent - 1].callee == callee) {
		*out = recent - 1;
		e->edges[*out].count++;
		return 0;
	}
	if (!u64map_get(&e->edge_of, key, out)) {
		e->edges[*out].count++;
		e->recent[caller] = *out + 1;
		return 0;
	}
	r = array_grow(&e->edges, &e->edge_cap, e->edge_count, TREE_NODES_MAX);
	if (!r)
		r = u64map_put(&e->edge_of, key, (uint32_t)e->edge_count);
	if (r < 0)
		return r;
	e->edges[e->edge_count] = (struct edge){ caller, callee, 1, 0 };
	*out = (uint32_t)e->edge_count++;
	e->recent[caller] = *out + 1;
	return 0;
}

struct edge_sort {
	const struct edge *edges;
	uint32_t edge;
};

static int edge_order(const void *left, const void *right)
{
	const struct edge_sort *l = left, *r = right;
	const struct edge *x = &l->edges[l->edge], *y = &r->edges[r->edge];

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int encode_callees(const struct tree *t, struct encoder *e)
{
	scoped(freep) struct edge_sort *sorted = calloc(e->edge_count + 1, sizeof(*sorted));
	size_t at = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->edge_count; i++)
		sorted[i] = (struct edge_sort){ e->edges, i };
	qsort(sorted, e->edge_count, sizeof(*sorted), edge_order);
	for (uint32_t frame = 0; frame <= t->frame_count; frame++) {
		uint32_t count = 0;

		for (; at < e->edge_count && e->edges[sorted[at].edge].caller == frame; at++) {
			e->edges[sorted[at].edge].index = count++;
			add_uvarint(&e->columns[COLUMN_CALLEES], e->edges[sorted[at].edge].callee);
		}
		add_uvarint(&e->columns[COLUMN_CALLEE_COUNTS], count);
	}
	return 0;
}

static int find_edges(const struct tree *t, struct encoder *e)
{
	e->path[0] = t->frame_count;
	for (uint32_t i = 1; i < t->node_count; i++) {
		int r = edge_add(e, e->path[t->level[i] - 1], t->frame[i], &e->call[i]);

		if (r < 0)
			return r;
		e->path[t->level[i]] = t->frame[i];
	}
	return 0;
}

static void encode_nodes(const struct tree *t, struct encoder *e)
{
	for (uint32_t i = 1; i < t->node_count; i++) {
		add_uvarint(&e->columns[COLUMN_POPS], t->level[i - 1] + 1 - t->level[i]);
		add_uvarint(&e->columns[COLUMN_CALLS], e->edges[e->call[i]].index);
	}
}

static size_t uvarint_size(uint64_t value)
{
	return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

static uint8_t *put_before(uint8_t *end, uint64_t value)
{
	uint8_t *start = end - uvarint_size(value);

	for (uint8_t *p = start; p < end; p++, value >>= 7)
		*p = (uint8_t)(value | (p + 1 < end ? 0x80 : 0));
	return start;
}

/* Self is what the children leave. From behind, the children of a node come before it: @below sums them by level, and
 * the column is written from its end, so that no array of the selves is needed. Only what is written costs memory. */
static int encode_selves(const struct tree *t, struct encoder *e, uint32_t deepest)
{
	scoped(freep) uint64_t *below = calloc((size_t)deepest + 1, sizeof(*below));
	size_t room = t->node_count * uvarint_size(t->total[0]);
	scoped(freep) uint8_t *bytes = malloc(room);
	uint8_t *at;

	if (!below || !bytes)
		return -ENOMEM;
	at = bytes + room;
	for (uint32_t i = t->node_count; i-- > 1;) {
		at = put_before(at, t->total[i] - below[t->level[i]]);
		below[t->level[i]] = 0;
		below[t->level[i] - 1] += t->total[i];
	}
	buf_add(&e->columns[COLUMN_SELVES], at, (size_t)(bytes + room - at));
	return 0;
}

static void encode_origins(const struct tree *t, struct encoder *e)
{
	for (uint32_t i = 0; i < t->frame_count; i++)
		add_uvarint(&e->columns[COLUMN_FRAME_ORIGINS], t->frame_origin[i] - (i ? t->frame_origin[i - 1] : 0));
	for (uint32_t i = 1; i < t->node_count; i++)
		add_uvarint(&e->columns[COLUMN_ORIGINS], t->origin[i] - t->origin[i - 1]);
}

static void encode_values(const uint64_t *values, uint32_t from, uint32_t count, struct buf *out)
{
	for (uint32_t i = from; i < count; i++)
		add_uvarint(out, values[i]);
}

static void encode_cut(const struct tree_cut *c, struct encoder *e)
{
	encode_values(c->self, 1, c->tree.node_count, &e->columns[COLUMN_SELVES]);
	encode_values(c->hidden, 0, c->tree.node_count, &e->columns[COLUMN_HIDDEN]);
	if (!c->base_total)
		return;
	encode_values(c->base_self, 0, c->tree.node_count, &e->columns[COLUMN_BASE_SELVES]);
	encode_values(c->base_hidden, 0, c->tree.node_count, &e->columns[COLUMN_BASE_HIDDEN]);
}

static int join_columns(const struct tree *t, const struct tree_cut *cut, struct encoder *e, uint32_t deepest,
			struct buf *out)
{
	size_t columns = !cut ? COLUMN_PLAIN_COUNT : cut->base_total ? COLUMN_COUNT : COLUMN_CUT_COUNT;

	add_uvarint(out, COLUMNS_VERSION);
	if (cut)
		add_uvarint(out, COLUMNS_CUT | (cut->base_total ? COLUMNS_BASE : 0));
	else
		add_uvarint(out, t->origin ? COLUMNS_PRUNED : 0);
	add_uvarint(out, t->frame_count);
	add_uvarint(out, intern_count(&t->modules) - 1);
	add_uvarint(out, t->node_count);
	add_uvarint(out, deepest);
	add_uvarint(out, t->total[0]);
	for (size_t i = 0; i < columns; i++)
		add_uvarint(out, e->columns[i].len);
	for (size_t i = 0; i < columns; i++) {
		if (e->columns[i].error)
			return e->columns[i].error;
		buf_adds(out, buf_str(&e->columns[i]));
		buf_release(&e->columns[i]);
	}
	return out->error;
}

/* @cut: what @t is the tree of, or NULL */
static int encode_tree(const struct tree *t, const struct tree_cut *cut, struct buf *out)
{
	scoped(encoder_release) struct encoder e = { 0 };
	uint32_t deepest = 0;
	int r;

	for (uint32_t i = 0; i < t->node_count; i++)
		deepest = MAX(deepest, t->level[i]);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		e.columns[i].max = COLUMNS_MAX_BYTES;
	u64map_init(&e.edge_of, TREE_NODES_MAX);
	e.call = calloc(t->node_count, sizeof(*e.call));
	e.path = calloc((size_t)deepest + 1, sizeof(*e.path));
	e.recent = calloc((size_t)t->frame_count + 1, sizeof(*e.recent));
	if (!e.call || !e.path || !e.recent)
		return -ENOMEM;
	encode_names(t, &e);
	r = find_edges(t, &e);
	if (!r && cut)
		encode_cut(cut, &e);
	else if (!r)
		r = encode_selves(t, &e, deepest);
	if (!r)
		r = encode_callees(t, &e);
	if (r < 0)
		return r;
	encode_nodes(t, &e);
	if (t->origin && !cut)
		encode_origins(t, &e);
	return join_columns(t, cut, &e, deepest, out);
}

int tree_encode(const struct tree *t, struct buf *out)
{
	return encode_tree(t, NULL, out);
}

int tree_cut_encode(const struct tree_cut *c, struct buf *out)
{
	return encode_tree(&c->tree, c, out);
}
