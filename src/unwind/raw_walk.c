/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/raw_walk.h"

#include "walk/walk_native.h"

struct raw_walk {
	struct rows *rows;
	struct files *files;
	struct world_tables tables;
	struct walk walk;
	uint8_t mode;
};

static int file(void *self, uint32_t file_id, struct abi_map *out)
{
	return rows_describe(self, file_id, true, out);
}

static const void *table(void *self, uint32_t number)
{
	return rows_table(self, number);
}

static const union abi_element *element(void *self, const void *of, uint32_t index)
{
	(void)self;
	return rows_element(of, index);
}

int raw_walk_new(struct rows *rows, struct files *files, uint8_t mode, struct raw_walk **out)
{
	struct raw_walk *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->rows = rows;
	r->files = files;
	r->mode = mode;
	r->tables = (struct world_tables){ .file = file, .table = table, .element = element, .self = rows };
	*out = r;
	return 0;
}

void raw_walk_free(struct raw_walk *r)
{
	free(r);
}

void raw_walk_strip(struct abi_sample *sample)
{
	sample->flags &= (uint16_t)~ABI_SAMPLE_RAW;
	sample->header.size = (uint32_t)(sizeof(*sample) + sample->frame_count * sizeof(sample->frames[0]));
}

/* The walk stops in front of a frame it can't leave. Nothing more will be learnt of it here, but where it is is known:
 * the mapping may be, or whoever reads the profile may know the address. */
static void push_last(struct walk *w)
{
	uint8_t end = w->end;
	uint8_t flags = (w->is_return ? ABI_FRAME_RETURN : 0) | (w->guessed ? ABI_FRAME_GUESSED : 0);

	if (end != ABI_END_NO_MAPPING && end != ABI_END_NO_PROCESS && end != ABI_END_NO_TABLE)
		return;
	if (walk_push(w, ABI_FRAME_USER, flags, w->pc) == 0)
		w->end = end;
}

static struct abi_sample *sample_of(const struct walk *w)
{
	size_t size = sizeof(struct abi_sample) + w->count * sizeof(struct abi_frame);
	struct abi_sample *sample = malloc(size);

	if (!sample)
		return NULL;
	memcpy(sample, w->head, sizeof(*sample));
	memcpy(sample->frames, w->frames, w->count * sizeof(struct abi_frame));
	sample->frame_count = (uint16_t)w->count;
	sample->user_end = w->end;
	raw_walk_strip(sample);
	return sample;
}

int raw_walk_finish(struct raw_walk *r, const struct abi_sample *sample, const struct mappings *maps,
		    struct abi_sample **out)
{
	const uint8_t *behind = (const uint8_t *)(sample->frames + sample->frame_count);
	struct world_copy copy = { .maps = maps, .files = r->files };
	struct walk *w = &r->walk;
	struct abi_raw raw;
	struct world world;

	must(sample->flags & ABI_SAMPLE_RAW && sample->frame_count <= ABI_FRAMES_MAX);
	memcpy(&raw, behind, sizeof(raw));
	copy.stack = behind + sizeof(raw);
	copy.at = raw.sp;
	copy.size = raw.stack_size;
	world_init(&world, maps, &r->tables, (struct world_memory){ .read = world_copy_read, .self = &copy });
	memcpy(w->head, sample, sizeof(*sample));
	memcpy(w->frames, sample->frames, sample->frame_count * sizeof(struct abi_frame));
	w->count = sample->frame_count;
	w->pid = sample->pid;
	w->mode = r->mode;
	w->world = &world.walk;
	walk_native_resume(w, &raw);
	unwind_walk(w);
	if (copy.ran_out && w->end == ABI_END_READ_FAILED)
		w->end = ABI_END_COPY_END;
	push_last(w);
	w->world = NULL;
	*out = sample_of(w);
	return *out ? 0 : -ENOMEM;
}
