/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes come in preorder, so every level's list grows from left to right. */
#include "query/flamebearer.h"

#include "base/array.h"
#include "query/proto.h"

#define NUMBERS_MAX 7 /* of a cell */

struct maker {
	const struct tree *whole;
	struct flamebearer *b;
	const uint64_t *left; /* of the whole tree's nodes, or NULL */
	uint64_t *self[2];    /* the same */
	uint32_t *open;       /* nodes whose children are being laid out, by level */
	uint32_t other_name;
	int sides;
};

static void maker_release(struct maker *m)
{
	free(m->open);
	free(m->self[0]);
	free(m->self[1]);
}

void flamebearer_release(struct flamebearer *b)
{
	for (size_t i = 0; b->rows && i < b->row_cap; i++)
		free(b->rows[i].cells);
	free(b->rows);
	tree_release(&b->pruned);
	*b = (struct flamebearer){ 0 };
}

static uint64_t total_of(const struct maker *m, uint32_t node, int side)
{
	if (!m->left)
		return m->whole->total[node];
	return side == 0 ? m->left[node] : m->whole->total[node] - m->left[node];
}

static int add_cell(struct maker *m, size_t level, const struct flamebearer_cell *cell)
{
	struct flamebearer_row *row = &m->b->rows[level];
	int r = array_grow(&row->cells, &row->cap, row->count, SIZE_MAX / sizeof(*cell));

	if (r == 0)
		row->cells[row->count++] = *cell;
	for (int side = 0; side < m->sides; side++)
		m->b->max_self = MAX(m->b->max_self, cell->self[side]);
	return r;
}

static uint32_t origin_of(const struct maker *m, uint32_t node)
{
	return m->b->t->origin ? m->b->t->origin[node] : node;
}

/* The node that is open at @level gets no more children: what was cut of it is the last one. */
static int close_node(struct maker *m, size_t level)
{
	uint32_t origin = origin_of(m, m->open[level]);
	const struct flamebearer_row *row = &m->b->rows[level], *below = row + 1;
	struct flamebearer_cell cell = { .name = m->other_name };
	bool is_cut = false;

	for (int side = 0; side < m->sides; side++) {
		cell.x[side] = below->next_x[side];
		cell.total[side] = cell.self[side] = row->next_x[side] - m->self[side][origin] - cell.x[side];
		is_cut |= cell.total[side] != 0;
	}
	return is_cut ? add_cell(m, level + 1, &cell) : 0;
}

static int add_node(struct maker *m, uint32_t node)
{
	const struct tree *t = m->b->t;
	struct flamebearer_row *row = &m->b->rows[t->level[node]];
	struct flamebearer_cell cell = { .name = node ? t->frame[node] + 1 : 0 };
	uint32_t origin = origin_of(m, node);

	for (int side = 0; side < m->sides; side++) {
		cell.x[side] = row->next_x[side];
		cell.total[side] = total_of(m, origin, side);
		cell.self[side] = m->self[side][origin];
		row->next_x[side] += cell.total[side];
		row[1].next_x[side] = cell.x[side];
	}
	m->open[t->level[node]] = node;
	return add_cell(m, t->level[node], &cell);
}

static int lay_out(struct maker *m)
{
	const struct tree *t = m->b->t;
	size_t depth = 0; /* levels that are open */
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < t->node_count; node++) {
		while (r == 0 && depth > t->level[node])
			r = close_node(m, --depth);
		r = r ? r : add_node(m, node);
		depth = (size_t)t->level[node] + 1;
	}
	while (r == 0 && depth)
		r = close_node(m, --depth);
	while (m->b->row_count < m->b->row_cap && m->b->rows[m->b->row_count].count)
		m->b->row_count++;
	return r;
}

/* Total less what the children have. */
static int find_self(struct maker *m, int side)
{
	const struct tree *t = m->whole;
	uint64_t *self = m->self[side] = calloc(t->node_count, sizeof(*self));
	uint32_t *path = m->open; /* not in use yet */

	for (uint32_t node = 0; self && node < t->node_count; node++) {
		path[t->level[node]] = node;
		self[node] = total_of(m, node, side);
		if (node)
			self[path[t->level[node] - 1]] -= total_of(m, node, side);
	}
	return self ? 0 : -ENOMEM;
}

int flamebearer_make(const struct tree *t, const uint64_t *left, uint32_t max_nodes, struct flamebearer *out)
{
	scoped(flamebearer_release) struct flamebearer b = { .t = t, .is_double = left };
	scoped(maker_release) struct maker m = { .whole = t, .b = &b, .left = left, .sides = left ? 2 : 1 };
	int r = 0;

	if (max_nodes && max_nodes < t->node_count) {
		r = tree_prune(t, max_nodes, &b.pruned);
		b.t = &b.pruned;
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < t->node_count; i++)
		b.row_cap = MAX(b.row_cap, (size_t)t->level[i] + 2);
	b.rows = calloc(b.row_cap, sizeof(*b.rows));
	m.open = calloc(b.row_cap, sizeof(*m.open));
	m.other_name = b.t->frame_count + 1;
	r = b.rows && m.open ? 0 : -ENOMEM;
	for (int side = 0; r == 0 && side < m.sides; side++) {
		b.total[side] = total_of(&m, 0, side);
		r = find_self(&m, side);
	}
	r = r ? r : lay_out(&m);
	if (r < 0)
		return r;
	*out = b;
	if (out->t != t)
		out->t = &out->pruned;
	b = (struct flamebearer){ 0 };
	return 0;
}

/* Writing */

/* The numbers of one cell. @end: where the one before it ends, on each side. Return: how many. */
static size_t cell_numbers(const struct flamebearer *b, const struct flamebearer_cell *cell, uint64_t end[2],
			   uint64_t out[NUMBERS_MAX])
{
	size_t count = 0;

	for (int side = 0; side < (b->is_double ? 2 : 1); side++) {
		out[count++] = cell->x[side] - end[side];
		out[count++] = cell->total[side];
		out[count++] = cell->self[side];
		end[side] = cell->x[side] + cell->total[side];
	}
	out[count++] = cell->name;
	return count;
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

static void write_levels(struct json_out *json, const struct flamebearer *b)
{
	json_out_key(json, STR("levels"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < b->row_count; i++) {
		uint64_t end[2] = { 0 }, numbers[NUMBERS_MAX];

		json_out_begin(json, '[');
		for (size_t j = 0; j < b->rows[i].count; j++) {
			size_t count = cell_numbers(b, &b->rows[i].cells[j], end, numbers);

			for (size_t k = 0; k < count; k++)
				json_out_u64(json, numbers[k]);
		}
		json_out_end(json, ']');
	}
	json_out_end(json, ']');
}

/* Of both sides; readers take 63 bits. */
static uint64_t sum_of_sides(const struct flamebearer *b)
{
	return MIN(b->total[0] + b->total[1], (uint64_t)INT64_MAX); /* each is below 2^63 */
}

int flamebearer_json(const struct flamebearer *b, struct json_out *json)
{
	json_out_begin(json, '{');
	write_names(json, b->t);
	write_levels(json, b);
	json_out_key(json, STR("numTicks"));
	json_out_u64(json, sum_of_sides(b));
	json_out_key(json, STR("maxSelf"));
	json_out_u64(json, b->max_self);
	json_out_end(json, '}');
	return json->out->error;
}

/* Protobuf: numbers as in querier.proto */

enum {
	GRAPH_NAMES = 1,
	GRAPH_LEVELS = 2,
	GRAPH_TOTAL = 3,
	GRAPH_MAX_SELF = 4,
	GRAPH_LEFT_TICKS = 5,
	GRAPH_RIGHT_TICKS = 6,
	LEVEL_VALUES = 1
};

static void add_level(const struct flamebearer *b, const struct flamebearer_row *row, struct buf *scratch,
		      struct buf *out)
{
	uint64_t end[2] = { 0 }, numbers[NUMBERS_MAX];

	buf_clear(scratch);
	for (size_t j = 0; j < row->count; j++) {
		size_t count = cell_numbers(b, &row->cells[j], end, numbers);

		for (size_t k = 0; k < count; k++)
			wire_add_varint(scratch, numbers[k]);
	}
	wire_add_tag(out, GRAPH_LEVELS, WIRE_BYTES);
	wire_add_varint(out, wire_tag_size(LEVEL_VALUES) + wire_varint_size(scratch->len) + scratch->len);
	wire_add_bytes(out, LEVEL_VALUES, buf_str(scratch));
	if (scratch->error)
		out->error = scratch->error;
}

int flamebearer_proto(const struct flamebearer *b, uint32_t number, struct buf *out)
{
	scoped(buf_release) struct buf graph = BUF_INIT(out->max), scratch = BUF_INIT(out->max);

	wire_add_bytes(&graph, GRAPH_NAMES, STR("total"));
	for (uint32_t i = 0; i < b->t->frame_count; i++)
		proto_add_text(&graph, GRAPH_NAMES, tree_frame_text(b->t, i));
	wire_add_bytes(&graph, GRAPH_NAMES, STR("other"));
	for (size_t i = 0; i < b->row_count; i++)
		add_level(b, &b->rows[i], &scratch, &graph);
	wire_add_number(&graph, GRAPH_TOTAL, sum_of_sides(b));
	wire_add_number(&graph, GRAPH_MAX_SELF, b->max_self);
	if (b->is_double) {
		wire_add_number(&graph, GRAPH_LEFT_TICKS, b->total[0]);
		wire_add_number(&graph, GRAPH_RIGHT_TICKS, b->total[1]);
	}
	if (graph.error)
		return graph.error;
	wire_add_bytes(out, number, buf_str(&graph));
	return out->error;
}
