/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/smart.h"

#define PIDS_MAX (1U << 20)
#define STACKS_MAX (1U << 24)

struct score {
	uint64_t frames[2], stacks[2]; /* [by_chain] */
};

struct scores {
	struct u64map index;   /* pid -> position in items */
	struct u64map seen[2]; /* pid and stack -> 0, [by_chain] */
	struct score *items;
	size_t count;
};

static void scores_release(struct scores *s)
{
	u64map_release(&s->index);
	u64map_release(&s->seen[0]);
	u64map_release(&s->seen[1]);
	free(s->items);
}

static bool is_known(const struct aggregate *a, const struct aggregate_frame *f)
{
	return f->kind != ABI_FRAME_USER && (f->kind != ABI_FRAME_JIT || a->processes[f->owner].perf_map_fd >= 0);
}

/* The user frames of a stack that say what they are, and one. */
static uint64_t frames_of(const struct aggregate *a, uint32_t stack)
{
	uint64_t frames = 1;

	for (; stack; stack = a->stacks[stack].parent) {
		const struct aggregate_frame *f = &a->frames[a->stacks[stack].frame];

		frames += f->kind != ABI_FRAME_KERNEL && is_known(a, f);
	}
	return frames;
}

static int score_of(struct scores *s, uint32_t pid, struct score **out)
{
	uint32_t at;
	int r;

	if (u64map_get(&s->index, pid, &at) < 0) {
		at = (uint32_t)s->count;
		r = u64map_put(&s->index, pid, at);
		if (r < 0)
			return r;
		s->count++;
	}
	*out = &s->items[at];
	return 0;
}

static int add(struct scores *s, const struct aggregate *a, const struct aggregate_sample *row)
{
	uint32_t pid = a->processes[row->process].pid, ignored;
	uint64_t key = (uint64_t)pid << 32 | row->stack;
	struct score *score = NULL;
	int r = score_of(s, pid, &score);

	if (r < 0 || u64map_get(&s->seen[row->by_chain], key, &ignored) == 0)
		return r;
	r = u64map_put(&s->seen[row->by_chain], key, 0);
	if (r < 0)
		return r;
	score->stacks[row->by_chain]++;
	score->frames[row->by_chain] += frames_of(a, row->stack);
	return 0;
}

/* Compares two means without dividing. */
static bool chain_wins(const struct score *s)
{
	if (!s->stacks[0] || !s->stacks[1])
		return !s->stacks[0];
	return (unsigned __int128)s->frames[1] * s->stacks[0] > (unsigned __int128)s->frames[0] * s->stacks[1];
}

int smart_choose(struct aggregate *a)
{
	scoped(scores_release) struct scores s = { 0 };
	struct score *score;
	int r = 0;

	u64map_init(&s.index, PIDS_MAX);
	u64map_init(&s.seen[0], STACKS_MAX);
	u64map_init(&s.seen[1], STACKS_MAX);
	s.items = calloc(a->process_count + 1, sizeof(*s.items));
	if (!s.items)
		return -ENOMEM;
	for (size_t i = 0; i < a->sample_count && r == 0; i++)
		if (!a->samples[i].is_wait)
			r = add(&s, a, &a->samples[i]);
	if (r < 0)
		return r;
	a->total = 0;
	for (size_t i = 0; i < a->sample_count; i++) {
		struct aggregate_sample *row = &a->samples[i];

		if (row->is_wait)
			continue;
		if (score_of(&s, a->processes[row->process].pid, &score) == 0 && chain_wins(score) != row->by_chain)
			row->count = 0;
		a->total += row->count;
	}
	return 0;
}
