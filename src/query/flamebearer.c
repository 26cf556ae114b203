/* SPDX-License-Identifier: Apache-2.0 */
/* A node is four numbers: where it begins, counted from the end of the one before it on its level; total; self; its
 * name. Nodes come in preorder, so every level's list grows from left to right. */
#include "query/flamebearer.h"

#include "base/array.h"

struct cell {
	uint64_t x, total, self;
	uint32_t name;
};

struct row {
	struct cell *cells;
	size_t count, cap;
	uint64_t next_x; /* where the next node of this level begins, below the open parent */
};

struct bearer {
	const struct tree *whole, *t;
	uint64_t *self; /* of the whole tree's nodes */
	struct row *rows;
	size_t row_count;
	uint32_t *open; /* nodes whose children are being laid out, by level */
	uint64_t max_self;
	uint32_t other_name;
};

static void bearer_release(struct bearer *b)
{
	for (size_t i = 0; b->rows && i < b->row_count; i++)
		free(b->rows[i].cells);
	free(b->rows);
	free(b->open);
	free(b->self);
}

static int add_cell(struct bearer *b, size_t level, const struct cell *cell)
{
	struct row *row = &b->rows[level];
	int r = array_grow(&row->cells, &row->cap, row->count, SIZE_MAX / sizeof(*cell));

	if (r == 0)
		row->cells[row->count++] = *cell;
	b->max_self = MAX(b->max_self, cell->self);
	return r;
}

/* The node that is open at @level gets no more children: what was cut of it is the last one. */
static int close_node(struct bearer *b, size_t level)
{
	const struct tree *t = b->t;
	uint32_t node = b->open[level];
	uint32_t origin = t->origin ? t->origin[node] : node;
	const struct row *row = &b->rows[level];
	uint64_t end = row->next_x - b->self[origin], at = b->rows[level + 1].next_x;
	struct cell cell = { .x = at, .total = end - at, .self = end - at, .name = b->other_name };

	return end > at ? add_cell(b, level + 1, &cell) : 0;
}

static int add_node(struct bearer *b, uint32_t node)
{
	const struct tree *t = b->t;
	size_t level = t->level[node];
	uint32_t origin = t->origin ? t->origin[node] : node;
	struct cell cell = { .x = b->rows[level].next_x, .total = t->total[node], .self = b->self[origin] };

	cell.name = node ? t->frame[node] + 1 : 0;
	b->rows[level].next_x += cell.total;
	b->rows[level + 1].next_x = cell.x;
	b->open[level] = node;
	return add_cell(b, level, &cell);
}

static int lay_out(struct bearer *b)
{
	const struct tree *t = b->t;
	size_t depth = 0; /* levels that are open */
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < t->node_count; node++) {
		while (r == 0 && depth > t->level[node])
			r = close_node(b, --depth);
		r = r ? r : add_node(b, node);
		depth = (size_t)t->level[node] + 1;
	}
	while (r == 0 && depth)
		r = close_node(b, --depth);
	return r;
}

/* Total less what the children have. */
static int find_self(struct bearer *b)
{
	const struct tree *t = b->whole;
	uint32_t *path;

	b->self = calloc(t->node_count, sizeof(*b->self));
	path = calloc(b->row_count, sizeof(*path));
	for (uint32_t node = 0; b->self && path && node < t->node_count; node++) {
		path[t->level[node]] = node;
		b->self[node] = t->total[node];
		if (node)
			b->self[path[t->level[node] - 1]] -= t->total[node];
	}
	free(path);
	return b->self && path ? 0 : -ENOMEM;
}

static void write_names(struct json_out *json, const struct tree *t)
{
	json_out_key(json, STR("names"));
	json_out_begin(json, '[');
	json_out_string(json, STR("total"));
	for (uint32_t i = 0; i < t->frame_count; i++)
		json_out_string(json, tree_frame_text(t, i));
	json_out_string(json, STR("other"));
	json_out_end(json, ']');
}

static void write_levels(struct json_out *json, const struct bearer *b)
{
	json_out_key(json, STR("levels"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < b->row_count && b->rows[i].count; i++) {
		uint64_t end = 0;

		json_out_begin(json, '[');
		for (size_t j = 0; j < b->rows[i].count; j++) {
			const struct cell *cell = &b->rows[i].cells[j];

			json_out_u64(json, cell->x - end);
			json_out_u64(json, cell->total);
			json_out_u64(json, cell->self);
			json_out_u64(json, cell->name);
			end = cell->x + cell->total;
		}
		json_out_end(json, ']');
	}
	json_out_end(json, ']');
}

int flamebearer_write(struct json_out *json, const struct tree *t, uint32_t max_nodes)
{
	scoped(tree_release) struct tree pruned = { 0 };
	scoped(bearer_release) struct bearer b = { .whole = t, .t = t };
	int r = 0;

	if (max_nodes && max_nodes < t->node_count) {
		r = tree_prune(t, max_nodes, &pruned);
		b.t = &pruned;
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < t->node_count; i++)
		b.row_count = MAX(b.row_count, (size_t)t->level[i] + 2);
	b.rows = calloc(b.row_count, sizeof(*b.rows));
	b.open = calloc(b.row_count, sizeof(*b.open));
	b.other_name = b.t->frame_count + 1;
	r = b.rows && b.open ? find_self(&b) : -ENOMEM;
	r = r ? r : lay_out(&b);
	if (r < 0)
		return r;
	json_out_begin(json, '{');
	write_names(json, b.t);
	write_levels(json, &b);
	json_out_key(json, STR("numTicks"));
	json_out_u64(json, t->total[0]);
	json_out_key(json, STR("maxSelf"));
	json_out_u64(json, b.max_self);
	json_out_end(json, '}');
	return json->out->error;
}
