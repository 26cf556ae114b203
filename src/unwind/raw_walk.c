/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/raw_walk.h"

#include "unwind/unwind.h"
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

void unwind_strip(struct abi_sample *sample)
{
	struct abi_frame *last = &sample->frames[sample->frame_count];
	struct abi_raw raw;

	if (!(sample->flags & ABI_SAMPLE_RAW))
		return;
	memcpy(&raw, last, sizeof(raw));
	if (sample->frame_count < ABI_FRAMES_MAX) {
		*last = (struct abi_frame){
			.kind = ABI_FRAME_USER,
			.flags = (uint8_t)((raw.is_return ? ABI_FRAME_RETURN : 0) |
					   (raw.guessed ? ABI_FRAME_GUESSED : 0)),
			.a = raw.pc,
		};
		sample->frame_count++;
	}
	sample->flags &= (uint16_t)~ABI_SAMPLE_RAW;
	sample->header.size = (uint32_t)(sizeof(*sample) + sample->frame_count * sizeof(sample->frames[0]));
}

/* Does the walk stand in front of a frame that it cannot leave? */
static bool is_stuck(const struct walk *w)
{
	return w->end == ABI_END_NO_MAPPING || w->end == ABI_END_NO_PROCESS || w->end == ABI_END_NO_TABLE;
}

/* What a walk goes on with. */
struct rest {
	struct abi_raw raw;
	const uint8_t *stack;
};

/* Where the walk stands now, and the bytes of the copied stack from there on; none when it has left them. */
static struct rest rest_of(const struct walk *w, const struct abi_raw *before, const uint8_t *stack)
{
	uint64_t gone = w->sp - before->sp;
	struct rest rest = { .raw = *before, .stack = stack };

	memcpy(rest.raw.regs, w->leaf, sizeof(rest.raw.regs));
	rest.raw.pc = w->pc;
	rest.raw.sp = w->sp;
	rest.raw.fp = w->fp;
	rest.raw.lr = w->lr;
	rest.raw.is_return = w->is_return;
	rest.raw.is_leaf = w->is_leaf;
	rest.raw.guessed = w->guessed;
	rest.raw.at_signal = w->at_signal;
	rest.raw.vma = (struct abi_vma){ 0 }; /* that of another address */
	if (gone > before->stack_size || gone % 8) {
		rest.raw.stack_size = 0;
	} else {
		rest.raw.stack_size -= (uint32_t)gone;
		rest.stack += gone;
	}
	return rest;
}

static struct abi_sample *sample_of(const struct walk *w, const struct rest *rest)
{
	size_t head = sizeof(struct abi_sample) + w->count * sizeof(struct abi_frame);
	size_t size = head + (is_stuck(w) ? sizeof(rest->raw) + rest->raw.stack_size : 0);
	struct abi_sample *sample = malloc(size);
	uint8_t *bytes = (uint8_t *)sample;

	if (!sample)
		return NULL;
	memcpy(sample, w->head, sizeof(*sample));
	memcpy(sample->frames, w->frames, w->count * sizeof(struct abi_frame));
	sample->header.size = (uint32_t)size;
	sample->frame_count = (uint16_t)w->count;
	sample->user_end = w->end;
	if (is_stuck(w)) {
		memcpy(bytes + head, &rest->raw, sizeof(rest->raw));
		memcpy(bytes + head + sizeof(rest->raw), rest->stack, rest->raw.stack_size);
	} else {
		sample->flags &= (uint16_t)~ABI_SAMPLE_RAW;
	}
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
	struct rest rest;

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
	w->world = NULL;
	rest = rest_of(w, &raw, copy.stack);
	*out = sample_of(w, &rest);
	return *out ? 0 : -ENOMEM;
}
