/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/stack_text.h"

#include "base/array.h"
#include "base/u64map.h"
#include "base/utf8.h"

#define TEXT_MAX GIB(4)

void stack_text_name(struct buf *out, struct str name)
{
	utf8_clean(out, name, '|');
}

static int add_location(struct stack_text *t, uint32_t location, stack_suffix_fn *suffix, struct buf *name)
{
	const struct model *m = t->m;
	const struct model_location *row = &m->locations[location];
	enum model_kind kind = model_location_kind(m, location);

	/* the outermost line first; a location without lines has one frame too */
	for (uint32_t left = MAX(row->line_count, UINT32_C(1)); left > 0; left--) {
		bool is_inlined = left < row->line_count;

		if (row->line_count)
			kind = m->functions[m->lines[row->first_line + left - 1].function].kind;
		buf_clear(name);
		model_frame_name(m, location, left - 1, name);
		if (name->error)
			return name->error;
		buf_addc(&t->text, ';');
		stack_text_name(&t->text, buf_str(name));
		buf_adds(&t->text, suffix(kind, is_inlined));
	}
	return t->text.error;
}

int stack_text_init(struct stack_text *t, const struct model *m, stack_suffix_fn *suffix)
{
	scoped(buf_release) struct buf name = BUF_INIT(TEXT_MAX);

	*t = (struct stack_text){ .m = m, .text = BUF_INIT(TEXT_MAX) };
	t->ends = calloc(m->locations_count, sizeof(*t->ends));
	if (!t->ends)
		return -ENOMEM;
	for (size_t i = 1; i < m->locations_count; i++) {
		int r = add_location(t, (uint32_t)i, suffix, &name);

		if (r < 0)
			return r;
		t->ends[i] = t->text.len;
	}
	return 0;
}

void stack_text_release(struct stack_text *t)
{
	buf_release(&t->text);
	free(t->ends);
	free(t->path);
}

int stack_text_add(struct stack_text *t, uint32_t stack, struct buf *out)
{
	size_t depth = 0;

	for (; stack; stack = t->m->stacks[stack].parent) {
		int r = array_grow(&t->path, &t->path_cap, depth, UINT32_MAX);

		if (r < 0)
			return r;
		t->path[depth++] = t->m->stacks[stack].location;
	}
	while (depth) {
		uint32_t location = t->path[--depth];
		size_t start = location ? t->ends[location - 1] : 0;

		buf_add(out, t->text.ptr + start, t->ends[location] - start);
	}
	return 0;
}

/* Reading */

struct stack_reader *stack_reader_new(struct model *m)
{
	struct stack_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->m = m;
	r->names = calloc(1, sizeof(*r->names));
	if (!r->names) {
		free(r);
		return NULL;
	}
	u64map_init(r->names, UINT32_MAX);
	return r;
}

void stack_reader_free(struct stack_reader **r)
{
	if (!*r)
		return;
	u64map_release((*r)->names);
	free((*r)->names);
	free(*r);
}

static int new_location(struct stack_reader *sr, uint32_t name, enum model_kind kind, uint32_t *out)
{
	struct model_function function = { .name = name, .system_name = name, .kind = kind };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	int r = model_add_function(sr->m, &function, &line.function);

	return r ? r : model_add_location(sr->m, &location, &line, out);
}

int stack_reader_frame(struct stack_reader *sr, uint32_t parent, struct str name, enum model_kind kind, uint32_t *out)
{
	uint32_t id, location;
	uint64_t key;
	int r = model_add_string(sr->m, name, &id);

	if (r < 0)
		return r;
	key = (uint64_t)id << 8 | (uint64_t)kind;
	if (u64map_get(sr->names, key, &location) < 0) {
		r = new_location(sr, id, kind, &location);
		r = r ? r : u64map_put(sr->names, key, location);
		if (r < 0)
			return r;
	}
	return model_add_stack(sr->m, parent, location, out);
}
