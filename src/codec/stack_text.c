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

static enum model_kind line_kind(const struct model *m, uint32_t location, uint32_t line)
{
	const struct model_location *row = &m->locations[location];

	if (!row->line_count)
		return model_location_kind(m, location);
	return m->functions[m->lines[row->first_line + line].function].kind;
}

/* Text does not tell these apart: they have no suffix. */
static bool is_native(enum model_kind kind)
{
	return kind == MODEL_KIND_NATIVE || kind == MODEL_KIND_JIT || kind == MODEL_KIND_JAVASCRIPT;
}

static bool is_python(enum model_kind kind)
{
	return kind == MODEL_KIND_PYTHON || kind == MODEL_KIND_PYTHON_ERROR;
}

static enum model_kind kind_as_written(const struct stack_text *t, enum model_kind kind, bool beside_python)
{
	if (beside_python && is_native(kind))
		return MODEL_KIND_PYTHON_NATIVE;
	if (kind == MODEL_KIND_PYTHON_NATIVE && !t->cfg.mark_python_native)
		return MODEL_KIND_NATIVE;
	return kind;
}

static int add_location(struct stack_text *t, uint32_t location, bool beside_python, struct buf *name)
{
	const struct model_location *row = &t->m->locations[location];

	/* the outermost line first; a location without lines has one frame too */
	for (uint32_t left = MAX(row->line_count, UINT32_C(1)); left > 0; left--) {
		bool is_inlined = left < row->line_count;
		enum model_kind kind = line_kind(t->m, location, left - 1);

		buf_clear(name);
		frame_text(t->m, &t->cfg.style, location, left - 1, name);
		if (name->error)
			return name->error;
		buf_addc(&t->text, ';');
		stack_text_name(&t->text, buf_str(name));
		buf_adds(&t->text, t->cfg.suffix(kind_as_written(t, kind, beside_python), is_inlined));
	}
	return t->text.error;
}

static bool has_kind(const struct model *m, uint32_t location, bool (*test)(enum model_kind kind))
{
	for (uint32_t line = 0; line < MAX(m->locations[location].line_count, UINT32_C(1)); line++)
		if (test(line_kind(m, location, line)))
			return true;
	return false;
}

/* Most profiles have no Python: then there is nothing to tell apart. */
static int find_python(struct stack_text *t)
{
	bool any = false;

	if (!t->cfg.mark_python_native)
		return 0;
	t->is_python = calloc(t->m->locations_count, sizeof(*t->is_python));
	if (!t->is_python)
		return -ENOMEM;
	for (size_t i = 1; i < t->m->locations_count; i++) {
		t->is_python[i] = has_kind(t->m, (uint32_t)i, is_python);
		any |= t->is_python[i];
	}
	if (!any) {
		free(t->is_python);
		t->is_python = NULL;
	}
	return 0;
}

int stack_text_init(struct stack_text *t, const struct model *m, const struct stack_text_config *cfg)
{
	scoped(buf_release) struct buf name = BUF_INIT(TEXT_MAX);
	int r;

	*t = (struct stack_text){ .m = m, .cfg = *cfg, .text = BUF_INIT(TEXT_MAX) };
	t->ends = calloc(m->locations_count, sizeof(*t->ends));
	if (!t->ends)
		return -ENOMEM;
	r = find_python(t);
	for (size_t i = 1; r == 0 && i < m->locations_count; i++) {
		r = add_location(t, (uint32_t)i, false, &name);
		t->ends[i].usual = t->text.len;
		if (r == 0 && t->is_python && has_kind(m, (uint32_t)i, is_native))
			r = add_location(t, (uint32_t)i, true, &name);
		t->ends[i].beside_python = t->text.len;
	}
	return r;
}

void stack_text_release(struct stack_text *t)
{
	buf_release(&t->text);
	free(t->ends);
	free(t->is_python);
	free(t->path);
}

static void add_text(const struct stack_text *t, uint32_t location, bool beside_python, struct buf *out)
{
	size_t start = location ? t->ends[location - 1].beside_python : 0, end = t->ends[location].usual;

	if (beside_python && t->ends[location].beside_python > end) {
		start = end;
		end = t->ends[location].beside_python;
	}
	buf_add(out, t->text.ptr + start, end - start);
}

int stack_text_add(struct stack_text *t, uint32_t stack, struct buf *out)
{
	bool beside_python = false;
	size_t depth = 0;

	for (; stack; stack = t->m->stacks[stack].parent) {
		uint32_t location = t->m->stacks[stack].location;
		int r = array_grow(&t->path, &t->path_cap, depth, UINT32_MAX);

		if (r < 0)
			return r;
		beside_python |= t->is_python && t->is_python[location];
		t->path[depth++] = location;
	}
	while (depth)
		add_text(t, t->path[--depth], beside_python, out);
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

/* The mapping that says which distribution a Python function belongs to. */
static int add_distribution(struct model *m, struct str distribution, uint32_t *out)
{
	scoped(buf_release) struct buf name = BUF_INIT(TEXT_MAX);
	struct model_mapping row = { .flags = MODEL_HAS_FUNCTIONS };
	int r;

	if (!distribution.len)
		return 0;
	buf_addf(&name, "[python:" STR_FMT "]", STR_ARG(distribution));
	r = name.error ? name.error : model_add_string(m, buf_str(&name), &row.filename);
	return r ? r : model_add_mapping(m, &row, out);
}

static int add_python(struct stack_reader *sr, const struct frame_parts *parts, struct model_function *function,
		      struct model_location *location)
{
	int r = model_add_string(sr->m, parts->name, &function->name);

	function->system_name = 0; /* not told: the name has the package in front */
	function->start_line = parts->line;
	r = r ? r : model_add_string(sr->m, parts->file, &function->filename);
	return r ? r : add_distribution(sr->m, parts->distribution, &location->mapping);
}

static int new_location(struct stack_reader *sr, struct str text, uint32_t name, enum model_kind kind, uint32_t *out)
{
	struct model_function function = { .name = name, .system_name = name, .kind = kind };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	struct frame_parts parts;
	int r = 0;

	if (kind == MODEL_KIND_PYTHON && frame_text_parse(text, &parts))
		r = add_python(sr, &parts, &function, &location);
	r = r ? r : model_add_function(sr->m, &function, &line.function);
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
		r = new_location(sr, name, id, kind, &location);
		r = r ? r : u64map_put(sr->names, key, location);
		if (r < 0)
			return r;
	}
	return model_add_stack(sr->m, parent, location, out);
}
