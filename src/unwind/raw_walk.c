/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/raw_walk.h"

#include "unwind/full_walk.h"
#include "unwind/unwind.h"
#include "walk/walk_native.h"

struct raw_walk {
	struct rows *rows;
	struct files *files;
	struct full_walk *full;
	struct world_tables tables;
	struct in_line runtimes;
	bool has_runtimes;
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

int raw_walk_new(struct rows *rows, struct files *files, uint8_t mode, const struct in_line *runtimes,
		 struct raw_walk **out)
{
	struct raw_walk *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	e = full_walk_new(files, &r->full);
	if (e < 0) {
		free(r);
		return e;
	}
	r->rows = rows;
	r->files = files;
	r->mode = mode;
	r->has_runtimes = runtimes != NULL;
	if (runtimes)
		r->runtimes = *runtimes;
	r->tables = (struct world_tables){ .file = file, .table = table, .element = element, .self = rows };
	*out = r;
	return 0;
}

void raw_walk_free(struct raw_walk *r)
{
	if (r)
		full_walk_free(r->full);
	free(r);
}

/* The address where the walk stands as a frame in front of the runtime's, which move up by one. */
static void add_last(struct abi_sample *sample, const struct abi_raw *raw)
{
	struct abi_frame *last = &sample->frames[sample->frame_count];
	uint64_t words = (raw->sp - sample->stack_pointer) / 8;

	memmove(last + 1, last, sample->runtime_count * sizeof(*last));
	*last = (struct abi_frame){
		.kind = ABI_FRAME_USER,
		.flags = (uint8_t)((raw->is_return ? ABI_FRAME_RETURN : 0) | (raw->guessed ? ABI_FRAME_GUESSED : 0)),
		.extra = (uint32_t)MIN(words, UINT32_MAX),
		.a = raw->pc,
	};
	sample->frame_count++;
}

struct abi_raw unwind_raw_state(const struct abi_sample *sample)
{
	struct abi_raw raw;

	memcpy(&raw, sample->frames + sample->frame_count + sample->runtime_count, sizeof(raw));
	return raw;
}

void unwind_strip(struct abi_sample *sample)
{
	size_t count = (size_t)sample->frame_count + sample->runtime_count;
	struct abi_raw raw;

	if (!(sample->flags & ABI_SAMPLE_RAW))
		return;
	raw = unwind_raw_state(sample);
	if (count < ABI_FRAMES_MAX) { /* and the raw part is longer than a frame */
		add_last(sample, &raw);
		count++;
	}
	sample->flags &= (uint16_t)~ABI_SAMPLE_RAW;
	sample->header.size = (uint32_t)(sizeof(*sample) + count * sizeof(sample->frames[0]));
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

/* The frames of a runtime came with the sample: there has to be room for them, and they go behind what was walked now.
 */
static struct abi_sample *sample_of(struct walk *w, const struct abi_sample *before, const struct rest *rest)
{
	size_t frames, raw_size, size;
	struct abi_sample *sample;
	uint8_t *to;

	if (w->count + before->runtime_count > ABI_FRAMES_MAX) {
		w->count = ABI_FRAMES_MAX - before->runtime_count;
		w->end = ABI_END_FRAME_LIMIT;
	}
	frames = w->count * sizeof(struct abi_frame);
	raw_size = is_stuck(w) ? sizeof(rest->raw) + rest->raw.stack_size : 0;
	size = sizeof(*sample) + frames + before->runtime_count * sizeof(struct abi_frame) + raw_size;
	sample = malloc(size);
	if (!sample)
		return NULL;
	memcpy(sample, w->head, sizeof(*sample));
	memcpy(sample->frames, w->frames, frames);
	memcpy(sample->frames + w->count, before->frames + before->frame_count,
	       before->runtime_count * sizeof(struct abi_frame));
	sample->header.size = (uint32_t)size;
	sample->frame_count = (uint16_t)w->count;
	sample->user_end = w->end;
	if (!raw_size) {
		sample->flags &= (uint16_t)~ABI_SAMPLE_RAW;
		return sample;
	}
	to = (uint8_t *)(sample->frames + w->count + before->runtime_count);
	memcpy(to, &rest->raw, sizeof(rest->raw));
	memcpy(to + sizeof(rest->raw), rest->stack, rest->raw.stack_size);
	return sample;
}

static void set_up(struct walk *w, const struct abi_sample *sample, uint8_t mode)
{
	memcpy(w->head, sample, sizeof(*sample));
	memcpy(w->frames, sample->frames, sample->frame_count * sizeof(struct abi_frame));
	w->count = sample->frame_count;
	w->pid = sample->pid;
	w->mode = mode;
}

/* Return: whether it holds. @with_runtimes: their steps take part. */
static bool walk_once(struct raw_walk *r, const struct abi_sample *sample, const struct mappings *maps,
		      struct world_copy *copy, const struct abi_raw *raw, bool with_runtimes)
{
	const struct program program = { .pid = sample->pid,
					 .exec_id = sample->exec_id,
					 .start_ns = sample->process_start_ns };
	struct walk *w = &r->walk;
	struct in_line_world world;
	bool holds;

	set_up(w, sample, r->mode);
	in_line_begin(&world, with_runtimes ? &r->runtimes : NULL, &program, maps, &r->tables, copy, w);
	walk_native_resume(w, raw);
	full_walk(r->full, w);
	holds = in_line_holds(&world);
	w->world = NULL;
	return holds;
}

int raw_walk_finish(struct raw_walk *r, const struct abi_sample *sample, const struct mappings *maps,
		    struct abi_sample **out)
{
	const uint8_t *behind = (const uint8_t *)(sample->frames + sample->frame_count + sample->runtime_count);
	struct world_copy copy = { .maps = maps, .files = r->files };
	struct walk *w = &r->walk;
	struct abi_raw raw;
	struct rest rest;

	must(sample->flags & ABI_SAMPLE_RAW && sample->frame_count <= ABI_FRAMES_MAX);
	memcpy(&raw, behind, sizeof(raw));
	copy.stack = behind + sizeof(raw);
	copy.at = raw.sp;
	copy.size = raw.stack_size;
	if (!walk_once(r, sample, maps, &copy, &raw, r->has_runtimes))
		ignore(walk_once(r, sample, maps, &copy, &raw, false)); /* reads nothing of the living process */
	if (copy.ran_out && w->end == ABI_END_READ_FAILED)
		w->end = ABI_END_COPY_END;
	rest = rest_of(w, &raw, copy.stack);
	*out = sample_of(w, sample, &rest);
	return *out ? 0 : -ENOMEM;
}
