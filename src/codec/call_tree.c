/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/call_tree.h"

#include "base/array.h"
#include "base/utf8.h"

#define TEXT_MAX GIB(4)

#define X(id, name, suffix) STR(name),
static const struct str kind_names[] = { MODEL_KINDS(X) STR("process"), STR("container") };
#undef X
static_assert(ARRAY_SIZE(kind_names) == CALL_KIND_COUNT, "one name for each kind");
static_assert(sizeof(struct call_frame) == 40, "no padding: its bytes are compared");

struct str call_kind_name(uint32_t kind)
{
	must(kind < CALL_KIND_COUNT);
	return kind_names[kind];
}

uint32_t call_kind_of(struct str name)
{
	for (uint32_t kind = 0; kind < CALL_KIND_COUNT; kind++)
		if (str_eq(kind_names[kind], name))
			return kind;
	return MODEL_KIND_NATIVE;
}

int call_tree_init(struct call_tree *t, const struct model *m, const struct call_tree_config *cfg)
{
	*t = (struct call_tree){ .m = m, .cfg = *cfg, .text = BUF_INIT(TEXT_MAX), .clean = BUF_INIT(TEXT_MAX) };
	intern_init(&t->texts, TEXT_MAX);
	intern_init(&t->keys, TEXT_MAX);
	u64map_init(&t->children, UINT32_MAX);
	u64map_init(&t->known, UINT32_MAX);
	t->first = calloc(m->locations_count, sizeof(*t->first));
	if (!t->first || array_grow(&t->nodes, &t->nodes_cap, 0, UINT32_MAX) < 0)
		return -ENOMEM;
	t->nodes[t->nodes_count++] = (struct call_node){ 0 };
	return 0;
}

void call_tree_release(struct call_tree *t)
{
	intern_release(&t->texts);
	intern_release(&t->keys);
	u64map_release(&t->children);
	u64map_release(&t->known);
	free(t->frames);
	free(t->nodes);
	free(t->first);
	free(t->row);
	free(t->path);
	buf_release(&t->text);
	buf_release(&t->clean);
}

/* Texts that differ only in bytes that are no UTF-8 are one: readers could not tell them apart. */
static int add_text(struct call_tree *t, struct str text, uint32_t *out)
{
	if (utf8_valid(text))
		return intern_add(&t->texts, text, out);
	buf_clear(&t->clean);
	while (text.len) {
		int32_t code = utf8_next(&text);

		utf8_add(&t->clean, code < 0 ? 0xfffd : (uint32_t)code);
	}
	return t->clean.error ? t->clean.error : intern_add(&t->texts, buf_str(&t->clean), out);
}

static int add_frame(struct call_tree *t, const struct call_frame *frame, uint32_t *out)
{
	uint32_t id;
	int r = array_grow(&t->frames, &t->frames_cap, t->frames_count, UINT32_MAX);

	r = r ? r : intern_add(&t->keys, str_n((const char *)frame, sizeof(*frame)), &id);
	if (r < 0)
		return r;
	if (id - 1 == t->frames_count)
		t->frames[t->frames_count++] = *frame;
	*out = id - 1;
	return 0;
}

static void set_lines(const struct call_tree *t, const struct model_function *function, const struct model_line *line,
		      struct call_frame *out)
{
	out->first_line = MAX(function->start_line, INT64_C(0));
	if (t->cfg.lines == CALL_LINES_FIRST || line->line <= 0)
		return;
	out->line = line->line;
	out->column = MAX(line->column, INT64_C(0));
	if (t->cfg.lines == CALL_LINES_EXECUTING)
		out->first_line = 0;
}

static int make_frame(struct call_tree *t, uint32_t location, uint32_t line, struct call_frame *out)
{
	const struct model_location *row = &t->m->locations[location];
	struct str file = STR(""), module = model_string(t->m, t->m->mappings[row->mapping].filename);

	buf_clear(&t->text);
	if (line < row->line_count) {
		const struct model_line *l = &t->m->lines[row->first_line + line];
		const struct model_function *f = &t->m->functions[l->function];

		out->kind = f->kind;
		set_lines(t, f, l, out);
		file = model_string(t->m, f->filename);
		frame_text_name(t->m, &t->cfg.style, f, &t->text);
	} else {
		out->kind = model_location_kind(t->m, location);
		model_frame_name(t->m, location, line, &t->text);
	}
	if (t->text.error)
		return t->text.error;
	if (add_text(t, buf_str(&t->text), &out->name) < 0 || add_text(t, file, &out->file) < 0 ||
	    add_text(t, module, &out->module) < 0)
		return -ENOMEM;
	if (out->file == out->module) /* that says no more than the module does */
		out->file = 0;
	return 0;
}

static int push(struct call_tree *t, uint32_t value)
{
	int r = array_grow(&t->row, &t->row_cap, t->row_count, UINT32_MAX - 1);

	if (r == 0)
		t->row[t->row_count++] = value;
	return r;
}

/* Return: 0 and the frames of a location, behind their count. */
static int location_frames(struct call_tree *t, uint32_t location, uint32_t *out)
{
	uint32_t count = MAX(t->m->locations[location].line_count, UINT32_C(1)), number;
	size_t start = t->row_count;
	int r = 0;

	if (!t->first[location]) {
		r = push(t, count);
		for (uint32_t left = count; r == 0 && left > 0; left--) {
			struct call_frame frame = { 0 };

			r = make_frame(t, location, left - 1, &frame);
			r = r ? r : add_frame(t, &frame, &number);
			r = r ? r : push(t, number);
		}
		if (r < 0) {
			t->row_count = start;
			return r;
		}
		t->first[location] = (uint32_t)start + 1;
	}
	*out = t->first[location] - 1;
	return 0;
}

static int add_child(struct call_tree *t, uint32_t parent, uint32_t frame, uint32_t *out)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	int r;

	if (u64map_get(&t->children, key, out) == 0)
		return 0;
	r = array_grow(&t->nodes, &t->nodes_cap, t->nodes_count, UINT32_MAX - 1);
	r = r ? r : u64map_put(&t->children, key, (uint32_t)t->nodes_count);
	if (r < 0)
		return r;
	t->nodes[t->nodes_count] = (struct call_node){ parent, frame };
	*out = (uint32_t)t->nodes_count++;
	return 0;
}

static int add_owner(struct call_tree *t, uint32_t kind, struct str prefix, uint32_t text, uint32_t *at)
{
	struct call_frame frame = { .kind = kind };
	uint32_t number;
	int r;

	if (!model_string(t->m, text).len)
		return 0;
	buf_clear(&t->text);
	buf_adds(&t->text, prefix);
	buf_adds(&t->text, model_string(t->m, text));
	r = t->text.error ? t->text.error : add_text(t, buf_str(&t->text), &frame.name);
	r = r ? r : add_frame(t, &frame, &number);
	return r ? r : add_child(t, *at, number, at);
}

static int add_owners(struct call_tree *t, const struct model_process *p, uint32_t *at)
{
	int r = add_owner(t, CALL_KIND_CONTAINER, STR(""), p->container, at);

	r = r ? r : add_owner(t, CALL_KIND_PROCESS, STR(""), p->comm, at);
	return r ? r : add_owner(t, CALL_KIND_PROCESS, STR(CALL_APP_ID), p->app_id, at);
}

static int add_unknown(struct call_tree *t, uint32_t *at)
{
	struct call_frame frame = { 0 };
	uint32_t number;
	int r = intern_add(&t->texts, STR("[unknown]"), &frame.name);

	r = r ? r : add_frame(t, &frame, &number);
	return r ? r : add_child(t, *at, number, at);
}

static int add_location(struct call_tree *t, uint32_t location, uint32_t *at)
{
	uint32_t first;
	int r = location_frames(t, location, &first);

	for (uint32_t i = 1; r == 0 && i <= t->row[first]; i++)
		r = add_child(t, *at, t->row[first + i], at);
	return r;
}

int call_tree_add(struct call_tree *t, const struct model_sample *s, uint32_t *out)
{
	uint32_t owner = 0, at, stack = s->stack;
	size_t depth = 0;
	int r = t->cfg.with_owners ? add_owners(t, &t->m->processes[s->process], &owner) : 0;

	at = owner;
	for (; r == 0 && stack; stack = t->m->stacks[stack].parent) {
		if (u64map_get(&t->known, (uint64_t)owner << 32 | stack, &at) == 0)
			break; /* the rest was added before */
		r = array_grow(&t->path, &t->path_cap, depth, UINT32_MAX);
		if (r == 0)
			t->path[depth++] = stack;
	}
	while (r == 0 && depth) {
		stack = t->path[--depth];
		r = add_location(t, t->m->stacks[stack].location, &at);
		r = r ? r : u64map_put(&t->known, (uint64_t)owner << 32 | stack, at);
	}
	if (r == 0 && !at && t->cfg.name_empty)
		r = add_unknown(t, &at);
	if (r == 0)
		*out = at;
	return r;
}

/* Sorting */

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int frame_order(const void *a, const void *b, void *ctx)
{
	const struct call_tree *t = ctx;
	const struct call_frame *x = &t->frames[*(const uint32_t *)a], *y = &t->frames[*(const uint32_t *)b];
	int r = str_cmp(call_tree_text(t, x->name), call_tree_text(t, y->name));

	r = r ? r : compare(x->kind, y->kind);
	r = r ? r : str_cmp(call_tree_text(t, x->file), call_tree_text(t, y->file));
	r = r ? r : str_cmp(call_tree_text(t, x->module), call_tree_text(t, y->module));
	r = r ? r : compare(x->first_line, y->first_line);
	r = r ? r : compare(x->line, y->line);
	return r ? r : compare(x->column, y->column);
}

static int sort_frames(struct call_tree *t)
{
	scoped(freep) uint32_t *order = calloc(t->frames_count + 1, sizeof(*order));
	scoped(freep) uint32_t *rank = calloc(t->frames_count + 1, sizeof(*rank));
	struct call_frame *sorted = calloc(t->frames_count + 1, sizeof(*sorted));

	if (!order || !rank || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->frames_count; i++)
		order[i] = i;
	qsort_r(order, t->frames_count, sizeof(*order), frame_order, t);
	for (uint32_t i = 0; i < t->frames_count; i++) {
		sorted[i] = t->frames[order[i]];
		rank[order[i]] = i;
	}
	for (size_t i = 1; i < t->nodes_count; i++)
		t->nodes[i].frame = rank[t->nodes[i].frame];
	free(t->frames);
	t->frames = sorted;
	t->frames_cap = t->frames_count + 1;
	return 0;
}

static int node_order(const void *a, const void *b, void *nodes)
{
	const struct call_node *x = (const struct call_node *)nodes + *(const uint32_t *)a,
			       *y = (const struct call_node *)nodes + *(const uint32_t *)b;

	return x->parent == y->parent ? compare(x->frame, y->frame) : compare(x->parent, y->parent);
}

/* @order has the nodes by parent and frame, @first where the children of each begin in it. */
static void walk_down(struct call_tree *t, const uint32_t *order, uint32_t *first, struct call_node *sorted,
		      uint32_t *moved)
{
	uint32_t at = 0, count = 0;

	moved[0] = count++;
	for (;;) {
		uint32_t next = first[at] < t->nodes_count ? order[first[at]] : 0;

		if (next && t->nodes[next].parent == at) {
			first[at]++;
			sorted[count] = (struct call_node){ moved[at], t->nodes[next].frame };
			moved[next] = count++;
			at = next;
		} else if (at) {
			at = t->nodes[at].parent;
		} else {
			break;
		}
	}
	must(count == t->nodes_count);
}

int call_tree_sort(struct call_tree *t, uint32_t *moved)
{
	size_t count = t->nodes_count;
	scoped(freep) uint32_t *order = calloc(count, sizeof(*order));
	scoped(freep) uint32_t *first = calloc(count, sizeof(*first));
	struct call_node *sorted = calloc(count, sizeof(*sorted));

	if (!order || !first || !sorted || sort_frames(t) < 0) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	/* node 0, which is its own parent, stays in front */
	qsort_r(order + 1, count - 1, sizeof(*order), node_order, t->nodes);
	for (size_t i = 0; i < count; i++)
		first[i] = UINT32_MAX;
	for (size_t i = count; i-- > 1;)
		first[t->nodes[order[i]].parent] = (uint32_t)i;
	walk_down(t, order, first, sorted, moved);
	free(t->nodes);
	t->nodes = sorted;
	t->nodes_cap = count;
	return 0;
}
