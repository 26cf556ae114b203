/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that a compiler or a bundler wrote: their functions as the source map beside the script has them. */
#include "agent/build_int.h"
#include "base/array.h"

/* A function's own position is where its parameters begin, so its name stands just before, or before "=" (an arrow) or
 * "=function". */
static const uint8_t name_gaps[] = { 0, sizeof("=") - 1, sizeof("=function") - 1 };

#define LOOKS (2 + ARRAY_SIZE(name_gaps)) /* at the executing place, where the function begins, where its name may be \
					   */
#define FAR_COLUMN 160                    /* people do not write functions there */

/* Return: how many; 0: the function has no map. */
static size_t looks_of(const struct builder *b, const struct aggregate_function *f, const struct aggregate_place *place,
		       struct source_maps_place out[LOOKS])
{
	const struct aggregate_origin *origin = &b->a->origins[f->origin];
	const struct source_maps_place in = { .script = { .origin = origin->number,
							  .root_fd = origin->root_fd,
							  .path = intern_get(&b->a->strings, f->file),
							  .map_ns = f->map_ns } };
	int32_t before = f->first_column - (int32_t)MIN(intern_get(&b->a->strings, f->name).len, (size_t)INT32_MAX);

	if (!b->maps || !f->map_ns || f->kind != AGGREGATE_FUNCTION_NAMED)
		return 0;
	for (size_t i = 0; i < LOOKS; i++) {
		out[i] = in;
		out[i].line = i ? f->first_line : place->line;
		out[i].column = i > 1 ? before - name_gaps[i - 2] : i ? f->first_column : place->column;
	}
	return LOOKS;
}

int build_ask_maps(struct builder *b)
{
	scoped(freep) struct source_maps_place *places = NULL;
	size_t count = 0, cap = 0;
	int r = 0;

	for (size_t i = 0; i < b->a->frame_count && r == 0; i++) {
		const struct aggregate_frame *frame = &b->a->frames[i];
		size_t functions =
			b->used[i] && frame->kind == ABI_FRAME_RUNTIME ? aggregate_functions(b->a, frame) : 0;

		for (size_t n = 0; n < functions && r == 0; n++) {
			struct aggregate_place place;
			const struct aggregate_function *f = aggregate_function(b->a, frame, n, &place);

			if (count + LOOKS > cap)
				r = array_reserve(&places, &cap, MAX(2 * cap, (size_t)64));
			if (r == 0)
				count += looks_of(b, f, &place, places + count);
		}
	}
	return r < 0 || !count ? r : source_maps_ask(b->maps, places, count);
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
	struct source_maps_place looks[LOOKS];
	struct source_maps_found here, begin, name;
	size_t count = looks_of(b, f, place, looks);
	bool has_begin;

	*out = (struct build_function){ .name = intern_get(&b->a->strings, f->name),
					.file = intern_get(&b->a->strings, f->file),
					.first_line = f->first_line,
					.place = *place };
	if (!count || !source_maps_get(b->maps, &looks[0], &here))
		return add_place(f, out, room);
	has_begin = source_maps_get(b->maps, &looks[1], &begin) && str_eq(begin.file, here.file);
	out->file = here.file;
	out->first_line = has_begin ? begin.line : 0;
	out->place = (struct aggregate_place){ .line = here.line };
	for (size_t i = 2; i < count; i++) {
		if (!source_maps_get(b->maps, &looks[i], &name) || !name.name.len)
			continue;
		out->name = name.name;
		break;
	}
	return 0;
}
