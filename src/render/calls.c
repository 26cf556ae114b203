/* SPDX-License-Identifier: Apache-2.0 */
#include "render/calls.h"

#include "base/array.h"
#include "base/u64map.h"
#include "render/render.h"
#include "render/total.h"
#include "render/wait_leaf.h"

#define TEXT_MAX GIB(1)
#define TEXT_KEY (UINT64_C(1) << 63) /* in front of the number of a text */

static const struct frame_style usual_style = { 0 };

struct builder {
	const struct model *m;
	const struct frame_style *style;
	struct calls calls;
	struct u64map functions; /* name, module -> calls.functions */
	struct u64map children;  /* parent node, function -> calls.nodes */
	struct intern texts;     /* of the frames of language runtimes */
	uint32_t *text_of;       /* by line of the model: its text's number; 0: not asked for yet */
	uint32_t *node_of;       /* stack of the model -> calls.nodes */
};

static void builder_release(struct builder *b)
{
	calls_release(&b->calls);
	u64map_release(&b->functions);
	u64map_release(&b->children);
	intern_release(&b->texts);
	free(b->text_of);
	free(b->node_of);
}

void calls_release(struct calls *c)
{
	free(c->functions);
	free(c->nodes);
	*c = (struct calls){ 0 };
}

/* The number of what a frame of a language runtime is called. */
static int number_of_text(struct builder *b, uint32_t location, uint32_t line, uint32_t *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(TEXT_MAX);
	uint32_t *known = &b->text_of[b->m->locations[location].first_line + line];
	int r;

	if (!*known) {
		frame_text(b->m, b->style, location, line, &text);
		r = text.error ? text.error : intern_add(&b->texts, buf_str(&text), known);
		if (r < 0)
			return r;
	}
	*out = *known;
	return 0;
}

static int describe(struct builder *b, uint32_t location, uint32_t line, struct calls_function *out, uint64_t *key)
{
	const struct model_location *l = &b->m->locations[location];
	const struct model_function *f =
		line < l->line_count ? &b->m->functions[b->m->lines[l->first_line + line].function] : NULL;
	uint32_t text;
	int r;

	*out = (struct calls_function){ .name = f ? f->name : 0, .kind = f ? f->kind : MODEL_KIND_NATIVE };
	if (f && model_kind_is_function(f->kind) && f->filename) {
		out->location = location;
		out->line = line;
		r = number_of_text(b, location, line, &text);
		if (r == 0)
			*key = TEXT_KEY | text;
		return r;
	}
	out->module = out->name ? 0 : b->m->mappings[l->mapping].filename;
	*key = (uint64_t)out->module << 32 | out->name;
	return 0;
}

static int function_of(struct builder *b, uint32_t location, uint32_t line, uint32_t *out)
{
	struct calls_function function;
	struct calls *c = &b->calls;
	uint64_t key;
	int r = describe(b, location, line, &function, &key);

	if (r < 0)
		return r;
	if (u64map_get(&b->functions, key, out) == 0)
		return 0;
	r = array_grow(&c->functions, &c->function_cap, c->function_count, UINT32_MAX);
	if (r < 0)
		return r;
	r = u64map_put(&b->functions, key, (uint32_t)c->function_count);
	if (r < 0)
		return r;
	c->functions[c->function_count] = function;
	*out = (uint32_t)c->function_count++;
	return 0;
}

static int child_of(struct builder *b, uint32_t parent, uint32_t function, uint32_t *out)
{
	const uint64_t key = (uint64_t)parent << 32 | function;
	struct calls *c = &b->calls;
	int r;

	if (u64map_get(&b->children, key, out) == 0)
		return 0;
	r = array_grow(&c->nodes, &c->node_cap, c->node_count, UINT32_MAX);
	if (r < 0)
		return r;
	r = u64map_put(&b->children, key, (uint32_t)c->node_count);
	if (r < 0)
		return r;
	c->nodes[c->node_count] = (struct calls_node){ .parent = parent,
						       .function = function,
						       .next_sibling = c->nodes[parent].first_child };
	c->nodes[parent].first_child = (uint32_t)c->node_count;
	*out = (uint32_t)c->node_count++;
	return 0;
}

/* Adds the frames of one location under *node: the outermost function first, the innermost inlined one last. */
static int descend(struct builder *b, uint32_t location, uint32_t *node)
{
	const struct model_location *l = &b->m->locations[location];

	for (uint32_t left = MAX(l->line_count, UINT32_C(1)); left > 0; left--) {
		uint32_t function;
		int r = function_of(b, location, left - 1, &function);

		if (r == 0)
			r = child_of(b, *node, function, node);
		if (r < 0)
			return r;
	}
	return 0;
}

static int build_nodes(struct builder *b)
{
	const struct model *m = b->m;
	struct calls *c = &b->calls;
	int r;

	r = array_grow(&c->nodes, &c->node_cap, 0, UINT32_MAX);
	if (r < 0)
		return r;
	c->nodes[0] = (struct calls_node){ 0 };
	c->node_count = 1;
	for (size_t i = 1; i < m->stacks_count; i++) {
		must(m->stacks[i].parent < i); /* a stack is built from the root (model.h) */
		b->node_of[i] = b->node_of[m->stacks[i].parent];
		r = descend(b, m->stacks[i].location, &b->node_of[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static void add_values(struct builder *b, size_t value)
{
	const struct model *m = b->m;
	struct calls *c = &b->calls;
	const bool is_wait = wait_leaf_value(m, value);

	c->total = render_total(m, value);
	for (size_t i = 0; i < m->samples_count; i++) {
		const int64_t v = model_values(m, &m->samples[i])[value];
		uint32_t stack = m->samples[i].stack;
		struct calls_node *leaf = &c->nodes[b->node_of[is_wait ? wait_leaf_stack(m, stack) : stack]];

		leaf->self = saturating_add(leaf->self, v);
	}
	for (size_t i = c->node_count; i-- > 0;) {
		struct calls_node *node = &c->nodes[i], *parent = &c->nodes[node->parent];

		node->total = saturating_add(node->total, node->self);
		if (i)
			parent->total = saturating_add(parent->total, node->total);
	}
}

/* A function's total is that of its outermost frames. The walk goes along the links of the nodes: depth costs nothing.
 */
static int add_function_totals(struct calls *c)
{
	scoped(freep) uint32_t *open = calloc(c->function_count + 1, sizeof(*open)); /* frames of it on the path */
	uint32_t at = c->nodes[0].first_child;

	if (!open)
		return -ENOMEM;
	while (at) {
		struct calls_node *node = &c->nodes[at];
		struct calls_function *f = &c->functions[node->function];

		f->self = saturating_add(f->self, node->self);
		if (open[node->function]++ == 0)
			f->total = saturating_add(f->total, node->total);
		if (node->first_child) {
			at = node->first_child;
			continue;
		}
		for (; at && !c->nodes[at].next_sibling; at = c->nodes[at].parent)
			open[c->nodes[at].function]--;
		if (at) {
			open[c->nodes[at].function]--;
			at = c->nodes[at].next_sibling;
		}
	}
	return 0;
}

int calls_build(const struct model *m, size_t value, const struct frame_style *style, struct calls *out)
{
	scoped(builder_release) struct builder b = { .m = m, .style = style ? style : &usual_style };
	int r;

	u64map_init(&b.functions, UINT32_MAX);
	u64map_init(&b.children, UINT32_MAX);
	intern_init(&b.texts, TEXT_MAX);
	if (value >= m->value_type_count)
		return -EINVAL;
	b.node_of = calloc(m->stacks_count + 1, sizeof(*b.node_of));
	b.text_of = calloc(m->lines_count + 1, sizeof(*b.text_of));
	if (!b.node_of || !b.text_of)
		return -ENOMEM;
	r = build_nodes(&b);
	if (r < 0)
		return r;
	add_values(&b, value);
	r = add_function_totals(&b.calls);
	if (r < 0)
		return r;
	*out = b.calls;
	b.calls = (struct calls){ 0 };
	return 0;
}

static int compare_rows(const void *a, const void *b, void *model)
{
	const struct render_top_row *x = a, *y = b;
	const int64_t self_x = saturating_abs(x->self), self_y = saturating_abs(y->self);
	const int64_t total_x = saturating_abs(x->total), total_y = saturating_abs(y->total);
	int order;

	if (self_x != self_y)
		return self_x > self_y ? -1 : 1;
	if (total_x != total_y)
		return total_x > total_y ? -1 : 1;
	order = str_cmp(model_string(model, x->function_name), model_string(model, y->function_name));
	order = order ? order : str_cmp(model_string(model, x->module), model_string(model, y->module));
	return order ? order : (x->location > y->location) - (x->location < y->location);
}

int render_top(const struct model *m, size_t value, const struct frame_style *style, struct render_top_row **out,
	       size_t *count)
{
	scoped(calls_release) struct calls c = { 0 };
	struct render_top_row *rows;
	size_t used = 0;
	int r = calls_build(m, value, style, &c);

	if (r < 0)
		return r;
	rows = calloc(c.function_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < c.function_count; i++) {
		const struct calls_function *f = &c.functions[i];

		if (f->self || f->total)
			rows[used++] = (struct render_top_row){ f->name, f->module, f->kind, f->location,
								f->line, f->self,   f->total };
	}
	qsort_r(rows, used, sizeof(*rows), compare_rows, (void *)(uintptr_t)m);
	*out = rows;
	*count = used;
	return 0;
}

void render_top_name(const struct model *m, const struct frame_style *style, const struct render_top_row *row,
		     struct buf *out)
{
	if (row->location) {
		frame_text(m, style ? style : &usual_style, row->location, row->line, out);
	} else if (row->function_name) {
		buf_adds(out, model_string(m, row->function_name));
	} else if (row->module) {
		buf_addc(out, '[');
		buf_adds(out, str_base(model_string(m, row->module)));
		buf_addc(out, ']');
	} else {
		buf_adds(out, STR("[unknown]"));
	}
}
