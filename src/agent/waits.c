/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/waits.h"

#include "base/array.h"
#include "base/u64map.h"

/* About 200 bytes are the least a stack takes. */
#define STACKS_MAX (WAITS_BYTES_MAX / 200)
#define NOBODY UINT32_MAX

struct stack {
	struct abi_sample *sample; /* owned; NULL: the place is free */
	uint32_t newer, older;     /* by last use */
};

struct waits {
	struct stack *stacks;
	size_t count, cap;
	uint32_t newest, oldest, free; /* free: first of a chain by `older` */
	size_t bytes;
	struct u64map by_id;
	struct abi_wait held[WAITS_HELD_MAX];
	size_t held_count;
};

int waits_new(struct waits **out)
{
	struct waits *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	u64map_init(&w->by_id, STACKS_MAX);
	w->newest = w->oldest = w->free = NOBODY;
	*out = w;
	return 0;
}

void waits_free(struct waits *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->count; i++)
		free(w->stacks[i].sample);
	free(w->stacks);
	u64map_release(&w->by_id);
	free(w);
}

static void take_out(struct waits *w, uint32_t at)
{
	const struct stack *s = &w->stacks[at];

	*(s->newer == NOBODY ? &w->newest : &w->stacks[s->newer].older) = s->older;
	*(s->older == NOBODY ? &w->oldest : &w->stacks[s->older].newer) = s->newer;
}

static void put_first(struct waits *w, uint32_t at)
{
	w->stacks[at].newer = NOBODY;
	w->stacks[at].older = w->newest;
	*(w->newest == NOBODY ? &w->oldest : &w->stacks[w->newest].newer) = at;
	w->newest = at;
}

static void free_place(struct waits *w, uint32_t at)
{
	w->stacks[at].older = w->free;
	w->free = at;
}

static void drop_oldest(struct waits *w)
{
	uint32_t at = w->oldest;
	struct stack *s = &w->stacks[at];

	u64map_remove(&w->by_id, s->sample->stack_id);
	take_out(w, at);
	w->bytes -= s->sample->header.size;
	free(s->sample);
	s->sample = NULL;
	free_place(w, at);
}

static int take_place(struct waits *w, uint32_t *out)
{
	int r;

	if (w->free != NOBODY) {
		*out = w->free;
		w->free = w->stacks[w->free].older;
		return 0;
	}
	r = array_grow(&w->stacks, &w->cap, w->count, STACKS_MAX);
	if (r < 0)
		return r;
	*out = (uint32_t)w->count;
	w->stacks[w->count++] = (struct stack){ 0 };
	return 0;
}

int waits_define(struct waits *w, const struct abi_sample *sample)
{
	struct abi_sample *copy;
	uint32_t at;
	int r;

	if (u64map_get(&w->by_id, sample->stack_id, &at) == 0) { /* told again: equal frames */
		take_out(w, at);
		put_first(w, at);
		return 0;
	}
	copy = malloc(sample->header.size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, sample, sample->header.size);
	while (w->oldest != NOBODY && w->bytes + copy->header.size > WAITS_BYTES_MAX)
		drop_oldest(w);
	r = take_place(w, &at);
	if (r == 0) {
		r = u64map_put(&w->by_id, copy->stack_id, at);
		if (r < 0)
			free_place(w, at);
	}
	if (r < 0) {
		free(copy);
		return r;
	}
	w->stacks[at].sample = copy;
	w->bytes += copy->header.size;
	put_first(w, at);
	return 0;
}

const struct abi_sample *waits_find(struct waits *w, uint64_t stack_id)
{
	uint32_t at;

	if (u64map_get(&w->by_id, stack_id, &at) < 0)
		return NULL;
	take_out(w, at);
	put_first(w, at);
	return w->stacks[at].sample;
}

bool waits_hold(struct waits *w, const struct abi_wait *wait)
{
	if (w->held_count == WAITS_HELD_MAX)
		return false;
	w->held[w->held_count++] = *wait;
	return true;
}

bool waits_take_held(struct waits *w, uint64_t before_ns, struct abi_wait *out)
{
	for (size_t i = 0; i < w->held_count; i++) {
		if (w->held[i].header.time_ns >= before_ns && !waits_find(w, w->held[i].stack_id))
			continue;
		*out = w->held[i];
		w->held[i] = w->held[--w->held_count];
		return true;
	}
	return false;
}
