/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that a compiler or a bundler wrote: their functions as the source map beside the script has them. */
#include "agent/build_int.h"
#include "base/array.h"

#define FAR_COLUMN 160 /* people do not begin functions behind it */
#define ASKED_MAX 262144

static bool has_map(const struct builder *b, const struct aggregate_function *f)
{
	return b->maps && f->map_id && f->kind == AGGREGATE_FUNCTION_NAMED;
}

static struct source_maps_place place_in(const struct builder *b, const struct aggregate_function *f, int32_t line,
					 int32_t column)
{
	const struct aggregate_origin *origin = &b->a->origins[f->origin];

	return (struct source_maps_place){ .script = { .origin = origin->number,
						       .root_fd = origin->root_fd,
						       .path = intern_get(&b->a->strings, f->file),
						       .map_id = f->map_id },
					   .line = line,
					   .column = column };
}

struct asked {
	struct source_maps_place *items;
	size_t count, cap;
};

/* What is too much is shown as it runs. */
static int ask(struct asked *a, const struct builder *b, const struct aggregate_function *f, int32_t line,
	       int32_t column)
{
	int r = line > 0 && column > 0 ? array_grow(&a->items, &a->cap, a->count, ASKED_MAX) : -ENOENT;

	if (r == 0)
		a->items[a->count++] = place_in(b, f, line, column);
	return r == -ENOMEM ? r : 0;
}

/* Where functions begin, and where their names stand. */
static int ask_functions(struct asked *a, const struct builder *b)
{
	int r = 0;

	for (size_t i = 0; i < b->a->function_count && r == 0; i++) {
		const struct aggregate_function *f = &b->a->functions[i];

		if (!has_map(b, f))
			continue;
		r = ask(a, b, f, f->first_line, f->first_column);
		if (r == 0)
			r = ask(a, b, f, f->first_line, f->name_column);
	}
	return r;
}

static int ask_frame(struct asked *a, const struct builder *b, const struct aggregate_frame *frame)
{
	size_t count = aggregate_functions(b->a, frame);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct aggregate_place place;
		const struct aggregate_function *f = aggregate_function(b->a, frame, i, &place);

		if (has_map(b, f))
			r = ask(a, b, f, place.line, place.column);
	}
	return r;
}

int build_ask_maps(struct builder *b)
{
	struct asked a = { 0 };
	int r = b->maps ? ask_functions(&a, b) : 0;

	for (size_t i = 0; a.count && i < b->a->frame_count && r == 0; i++)
		if (b->used[i] && b->a->frames[i].kind == ABI_FRAME_RUNTIME)
			r = ask_frame(&a, b, &b->a->frames[i]);
	if (r == 0 && a.count)
		r = source_maps_ask(b->maps, a.items, a.count);
	free(a.items);
	return r;
}

static bool find(const struct builder *b, const struct aggregate_function *f, int32_t line, int32_t column,
		 struct source_maps_found *out)
{
	const struct source_maps_place place = place_in(b, f, line, column);

	return has_map(b, f) && source_maps_get(b->maps, &place, out);
}

/* Functions of one line of a thousand others: their names, of a letter, are those of others there. */
static int add_place(const struct aggregate_function *f, struct build_function *out, struct buf *room)
{
	if (f->first_line <= 0 || f->first_column <= FAR_COLUMN)
		return 0;
	buf_adds(room, out->name);
	buf_addf(room, ":%d:%d", f->first_line, f->first_column);
	if (!room->error)
		out->name = buf_str(room);
	return room->error;
}

int build_map_function(struct builder *b, const struct aggregate_function *f, const struct aggregate_place *place,
		       struct buf *room, struct build_function *out)
{
	struct source_maps_found here, begin, name;
	bool has_begin;

	*out = (struct build_function){ .name = intern_get(&b->a->strings, f->name),
					.file = intern_get(&b->a->strings, f->file),
					.first_line = f->first_line,
					.place = *place };
	if (!find(b, f, place->line, place->column, &here))
		return add_place(f, out, room);
	has_begin = find(b, f, f->first_line, f->first_column, &begin) && str_eq(begin.file, here.file);
	out->file = here.file;
	out->first_line = has_begin ? begin.line : 0;
	out->place = (struct aggregate_place){ .line = here.line };
	if (f->name_column && find(b, f, f->first_line, f->name_column, &name) && name.name.len)
		out->name = name.name;
	return 0;
}
