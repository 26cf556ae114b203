/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/aggregate.h"

#include "base/array.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* About 64 bytes a stack node and 48 a frame with their indexes: the whole stays below 100 MiB at the very worst. */
#define FRAMES_MAX (512u << 10)
#define STACKS_MAX (1u << 20)
#define PROCESSES_MAX (256u << 10)
#define SAMPLES_MAX (512u << 10)
#define STRING_BYTES_MAX MIB(8)

int aggregate_new(struct aggregate **out)
{
	struct aggregate *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	intern_init(&a->strings, STRING_BYTES_MAX);
	u64map_init(&a->frame_index, FRAMES_MAX);
	u64map_init(&a->stack_index, STACKS_MAX);
	u64map_init(&a->process_index, PROCESSES_MAX);
	u64map_init(&a->sample_index, SAMPLES_MAX);
	r = array_grow(&a->stacks, &a->stack_cap, 0, STACKS_MAX);
	if (r < 0) {
		aggregate_free(a);
		return r;
	}
	a->stacks[a->stack_count++] = (struct aggregate_stack){ 0, AGGREGATE_NO_FRAME };
	*out = a;
	return 0;
}

void aggregate_free(struct aggregate *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->process_count; i++)
		closep(&a->processes[i].perf_map_fd);
	intern_release(&a->strings);
	free(a->frames);
	free(a->stacks);
	free(a->processes);
	free(a->samples);
	u64map_release(&a->frame_index);
	u64map_release(&a->stack_index);
	u64map_release(&a->process_index);
	u64map_release(&a->sample_index);
	free(a);
}

void aggregate_freep(struct aggregate **a)
{
	aggregate_free(*a);
}

typedef bool equal_fn(const void *table, uint32_t index, const void *row);

/* The index of the row equal to @row, or -ENOENT with *key at the free place for it: hashes that meet by chance are
 * told apart by comparing, and the next one takes the next key. */
static int find(const struct u64map *index, const void *table, const void *row, equal_fn *equal, uint64_t *key,
		uint32_t *out)
{
	for (;; ++*key) {
		uint32_t at;

		if (u64map_get(index, *key, &at) < 0)
			return -ENOENT;
		if (!equal(table, at, row))
			continue;
		*out = at;
		return 0;
	}
}

static bool process_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_process *a = (const struct aggregate_process *)table + index, *b = row;

	return a->pid == b->pid && a->start_ns == b->start_ns && a->generation == b->generation && a->comm == b->comm &&
	       a->container == b->container;
}

int aggregate_add_process(struct aggregate *a, const struct aggregate_process *row, uint32_t *out)
{
	const uint64_t words[] = { row->pid, row->start_ns, row->generation, row->comm, row->container };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	int r;

	if (find(&a->process_index, a->processes, row, process_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->processes, &a->process_cap, a->process_count, PROCESSES_MAX);
	if (r == 0)
		r = u64map_put(&a->process_index, key, (uint32_t)a->process_count);
	if (r < 0)
		return r;
	a->processes[a->process_count] = *row;
	*out = (uint32_t)a->process_count++;
	return 0;
}

static bool frame_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_frame *a = (const struct aggregate_frame *)table + index, *b = row;

	return a->kind == b->kind && a->flags == b->flags && a->owner == b->owner && a->at == b->at;
}

int aggregate_add_frame(struct aggregate *a, const struct aggregate_frame *row, uint32_t *out)
{
	const uint64_t words[] = { (uint64_t)row->kind << 40 | (uint64_t)row->flags << 32 | row->owner, row->at };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	int r;

	if (find(&a->frame_index, a->frames, row, frame_equal, &key, out) == 0)
		return 0;
	r = array_grow(&a->frames, &a->frame_cap, a->frame_count, FRAMES_MAX);
	if (r == 0)
		r = u64map_put(&a->frame_index, key, (uint32_t)a->frame_count);
	if (r < 0)
		return r;
	a->frames[a->frame_count] = *row;
	*out = (uint32_t)a->frame_count++;
	return 0;
}

int aggregate_add_stack(struct aggregate *a, uint32_t parent, uint32_t frame, uint32_t *out)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	int r;

	must(parent < a->stack_count && frame < a->frame_count);
	if (u64map_get(&a->stack_index, key, out) == 0)
		return 0;
	r = array_grow(&a->stacks, &a->stack_cap, a->stack_count, STACKS_MAX);
	if (r == 0)
		r = u64map_put(&a->stack_index, key, (uint32_t)a->stack_count);
	if (r < 0)
		return r;
	a->stacks[a->stack_count] = (struct aggregate_stack){ parent, frame };
	*out = (uint32_t)a->stack_count++;
	return 0;
}

static bool sample_equal(const void *table, uint32_t index, const void *row)
{
	const struct aggregate_sample *a = (const struct aggregate_sample *)table + index, *b = row;

	return a->stack == b->stack && a->process == b->process && a->tid == b->tid &&
	       a->thread_name == b->thread_name && a->user_end == b->user_end && a->has_user == b->has_user &&
	       a->kernel_cut == b->kernel_cut && a->is_wait == b->is_wait && a->root_frame == b->root_frame;
}

static void count_one(struct aggregate *a, struct aggregate_sample *sample, uint64_t wait_ns)
{
	sample->count++;
	if (!sample->is_wait) {
		a->total++;
		return;
	}
	sample->wait_ns += wait_ns;
	a->waits++;
}

int aggregate_add_sample(struct aggregate *a, const struct aggregate_sample *row)
{
	const uint64_t words[] = { (uint64_t)row->stack << 32 | row->process,
				   (uint64_t)row->tid << 32 | row->thread_name,
				   (uint64_t)row->root_frame << 32 | (uint64_t)row->is_wait << 24 |
					   (uint64_t)row->kernel_cut << 16 | (uint64_t)row->has_user << 8 |
					   row->user_end };
	uint64_t key = XXH3_64bits(words, sizeof(words));
	uint32_t at;
	int r;

	must(row->stack < a->stack_count && row->process < a->process_count);
	if (find(&a->sample_index, a->samples, row, sample_equal, &key, &at) == 0) {
		count_one(a, &a->samples[at], row->wait_ns);
		return 0;
	}
	r = array_grow(&a->samples, &a->sample_cap, a->sample_count, SAMPLES_MAX);
	if (r == 0)
		r = u64map_put(&a->sample_index, key, (uint32_t)a->sample_count);
	if (r < 0)
		return r;
	a->samples[a->sample_count] = *row;
	a->samples[a->sample_count].count = 0;
	a->samples[a->sample_count].wait_ns = 0;
	count_one(a, &a->samples[a->sample_count++], row->wait_ns);
	return 0;
}
