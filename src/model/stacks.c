/* SPDX-License-Identifier: Apache-2.0 */
/* The table of stacks: the hot one, so its look-up is written out, and many stacks at once are looked up side by side.
 */
#include <sys/mman.h>

#include "model/model_int.h"

#define BATCH 16 /* memory accesses under way at once: about what a core keeps track of */

static inline uint64_t stack_hash(const struct model *m, uint32_t parent, uint32_t location)
{
	return hash_done(hash_step(m->index->seed, (uint64_t)parent << 32 | location));
}

/* A slot is a row number with part of the hash above it: as many bits as the row number leaves free (a row is always
 * below cap). So probing stays within a line of slots and looks at a row only when it is very likely the right one. */
static inline uint32_t stack_tag(const struct row_index *ix, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & ~(uint32_t)(ix->cap - 1);
}

static inline uint32_t *home(const struct row_index *ix, uint64_t hash)
{
	return &ix->slots[hash & (ix->cap - 1)];
}

/* Huge pages for a large table that is read at random: fewer TLB misses. Only advice, so failure does not matter. */
static void advise_huge(void *at, size_t size)
{
	uintptr_t start = align_up((uintptr_t)at, MIB(2)), end = ((uintptr_t)at + size) & ~(uintptr_t)(MIB(2) - 1);

	if (start < end)
		ignore(madvise((char *)at + (start - (uintptr_t)at), end - start, MADV_HUGEPAGE)); /* as above */
}

static inline void put_row(const struct row_index *ix, uint64_t hash, uint32_t row)
{
	size_t at = hash & (ix->cap - 1);

	while (ix->slots[at])
		at = (at + 1) & (ix->cap - 1);
	ix->slots[at] = stack_tag(ix, hash) | row;
}

/* The table of slots stays. */
void stacks_forget(struct model *m)
{
	struct row_index *ix = &m->index->stacks;

	if (ix->cap)
		memset(ix->slots, 0, ix->cap * sizeof(*ix->slots));
}

/* Growth walks the rows, not the slots: in order. */
static void put_all(const struct model *m, const struct row_index *ix)
{
	uint64_t hashes[BATCH];

	for (size_t row = 1; row < m->stacks_count; row += BATCH) {
		size_t count = MIN(m->stacks_count - row, (size_t)BATCH);

		for (size_t i = 0; i < count; i++) {
			hashes[i] = stack_hash(m, m->stacks[row + i].parent, m->stacks[row + i].location);
			__builtin_prefetch(home(ix, hashes[i]), 1);
		}
		for (size_t i = 0; i < count; i++)
			put_row(ix, hashes[i], (uint32_t)(row + i));
	}
}

/* Room for @extra more stacks in table and index. */
static int stack_room(struct model *m, size_t extra)
{
	struct row_index *ix = &m->index->stacks, grown = { .cap = MAX(ix->cap, (size_t)16) };

	while (m->stacks_cap - m->stacks_count < extra) {
		int r = model_grow(m, stacks, m->stacks_cap);

		if (r < 0)
			return r;
		advise_huge(m->stacks, m->stacks_cap * sizeof(*m->stacks));
	}
	while (m->stacks_count + extra > grown.cap / 4 * 3)
		grown.cap *= 2;
	if (grown.cap == ix->cap)
		return 0;
	if ((uint64_t)grown.cap > UINT64_C(1) << 32)
		return -E2BIG;
	if (model_fits(m, grown.cap * sizeof(*grown.slots)) < 0)
		return -E2BIG;
	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	advise_huge(grown.slots, grown.cap * sizeof(*grown.slots));
	put_all(m, &grown);
	free(ix->slots);
	*ix = grown;
	return 0;
}

/* Return: the node, or 0 when there is none. */
static inline uint32_t find_stack(const struct model *m, uint64_t hash, uint32_t parent, uint32_t location)
{
	const struct row_index *ix = &m->index->stacks;
	uint32_t tag = stack_tag(ix, hash), slot;

	for (size_t at = hash & (ix->cap - 1); (slot = ix->slots[at]); at = (at + 1) & (ix->cap - 1)) {
		uint32_t node = slot & (uint32_t)(ix->cap - 1);

		if ((slot ^ tag) == node && m->stacks[node].parent == parent && m->stacks[node].location == location)
			return node;
	}
	return 0;
}

/* There is room. */
static inline uint32_t append_stack(struct model *m, uint64_t hash, uint32_t parent, uint32_t location)
{
	uint32_t row = (uint32_t)m->stacks_count++;

	m->stacks[row] = (struct model_stack){ parent, location };
	put_row(&m->index->stacks, hash, row);
	return row;
}

int model_add_stack(struct model *m, uint32_t parent, uint32_t location, uint32_t *out)
{
	uint64_t hash;
	uint32_t node;
	int r;

	must(parent < m->stacks_count && location < m->locations_count);
	/* The first child of a node mostly came right behind it: no look-up. */
	if (parent + 1 < m->stacks_count && m->stacks[parent + 1].parent == parent &&
	    m->stacks[parent + 1].location == location) {
		*out = parent + 1;
		return 0;
	}
	r = stack_room(m, 1);
	if (r < 0)
		return r;
	hash = stack_hash(m, parent, location);
	node = find_stack(m, hash, parent, location);
	*out = node ? node : append_stack(m, hash, parent, location);
	return 0;
}

int model_append_stack(struct model *m, uint32_t parent, uint32_t location, uint32_t *out)
{
	size_t cap = m->stacks_cap;
	int r;

	must(parent < m->stacks_count && location < m->locations_count);
	if (m->index->stacks.cap)
		return model_add_stack(m, parent, location, out);
	r = model_grow(m, stacks, m->stacks_count);
	if (r < 0)
		return r;
	if (m->stacks_cap != cap)
		advise_huge(m->stacks, m->stacks_cap * sizeof(*m->stacks));
	*out = (uint32_t)m->stacks_count;
	m->stacks[m->stacks_count++] = (struct model_stack){ parent, location };
	return 0;
}

int model_copy_stacks(struct model *into, const struct model *from)
{
	size_t size = from->stacks_count * sizeof(*from->stacks);

	must(into->stacks_count == 1 && !into->index->stacks.cap && into->locations_count >= from->locations_count);
	if (from->stacks_count > into->stacks_cap) {
		struct model_stack *rows = model_fits(into, size) < 0 ? NULL : malloc(size);

		if (!rows)
			return model_fits(into, size) < 0 ? -E2BIG : -ENOMEM;
		advise_huge(rows, size);
		free(into->stacks);
		into->stacks = rows;
		into->stacks_cap = from->stacks_count;
	}
	memcpy(into->stacks, from->stacks, size);
	into->stacks_count = from->stacks_count;
	return 0;
}

int model_index_stacks(struct model *m)
{
	return m->index->stacks.cap ? 0 : stack_room(m, 1);
}

/* Several paths at once. First all walk down the nodes that are there already, one step of each in turn, so that the
 * memory of one is on its way while the others work. Then one after the other goes on to its end: a node that is new
 * has no children yet, so what follows it need not be looked for, and its number is known before. */

struct walk {
	size_t at;     /* steps done */
	uint64_t hash; /* of the next step */
	uint32_t node;
	bool over; /* at the end, or the next step is not there yet */
};

static inline uint32_t step_location(const struct model_path *p, size_t at)
{
	return p->locations[p->count - 1 - at];
}

static void aim(const struct model *m, const struct model_path *p, struct walk *w)
{
	w->over = w->at == p->count;
	if (w->over)
		return;
	w->hash = stack_hash(m, w->node, step_location(p, w->at));
	__builtin_prefetch(home(&m->index->stacks, w->hash));
}

static void walk_together(const struct model *m, const struct model_path *paths, struct walk *walks, size_t count)
{
	const struct row_index *ix = &m->index->stacks;

	for (bool any = true; any;) {
		any = false;
		for (size_t i = 0; i < count; i++) /* the slot has come: fetch the row it very likely names */
			if (!walks[i].over)
				__builtin_prefetch(&m->stacks[*home(ix, walks[i].hash) & (uint32_t)(ix->cap - 1)]);
		for (size_t i = 0; i < count; i++) {
			struct walk *w = &walks[i];
			uint32_t node;

			if (w->over)
				continue;
			node = find_stack(m, w->hash, w->node, step_location(&paths[i], w->at));
			w->over = !node;
			if (!node)
				continue;
			w->node = paths[i].nodes[w->at++] = node;
			aim(m, &paths[i], w);
			any = true;
		}
	}
}

static void append_rest(struct model *m, const struct model_path *p, size_t at, uint32_t parent)
{
	uint64_t hashes[BATCH];

	while (at < p->count) {
		size_t count = MIN(p->count - at, (size_t)BATCH);

		for (size_t i = 0; i < count; i++) {
			hashes[i] = stack_hash(m, i ? (uint32_t)(m->stacks_count + i - 1) : parent,
					       step_location(p, at + i));
			__builtin_prefetch(home(&m->index->stacks, hashes[i]), 1);
		}
		for (size_t i = 0; i < count; i++)
			p->nodes[at + i] = parent = append_stack(m, hashes[i], parent, step_location(p, at + i));
		at += count;
	}
}

/* From where the walk ended: another path of the batch may have added nodes since. */
static void finish_path(struct model *m, const struct model_path *p, size_t at, uint32_t node)
{
	for (; at < p->count; at++) {
		uint32_t location = step_location(p, at),
			 next = find_stack(m, stack_hash(m, node, location), node, location);

		if (!next)
			break;
		node = p->nodes[at] = next;
	}
	append_rest(m, p, at, node);
}

/* Return: how many steps from the root the two share. */
static size_t shared_steps(const struct model_path *a, const struct model_path *b)
{
	size_t same = 0, most = MIN(a->count, b->count);

	while (same < most && step_location(a, same) == step_location(b, same))
		same++;
	return same;
}

static int add_batch(struct model *m, const struct model_path *paths, size_t count)
{
	struct walk walks[BATCH] = { 0 };
	size_t shared[BATCH] = { 0 }, steps = 0;
	int r;

	for (size_t i = 0; i < count; i++)
		steps += paths[i].count;
	r = stack_room(m, steps);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		shared[i] = i ? shared_steps(&paths[i], &paths[i - 1]) : 0;
		if (2 * shared[i] > paths[i].count)
			walks[i].over = true; /* its neighbour's nodes are the shorter way */
		else
			aim(m, &paths[i], &walks[i]);
	}
	walk_together(m, paths, walks, count);
	for (size_t i = 0; i < count; i++) {
		if (shared[i] > walks[i].at) {
			memcpy(paths[i].nodes, paths[i - 1].nodes, shared[i] * sizeof(*paths[i].nodes));
			walks[i] = (struct walk){ .at = shared[i], .node = paths[i].nodes[shared[i] - 1] };
		}
		finish_path(m, &paths[i], walks[i].at, walks[i].node);
	}
	return 0;
}

int model_add_paths(struct model *m, const struct model_path *paths, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < paths[i].count; at++)
			must(paths[i].locations[at] < m->locations_count);
	for (size_t at = 0; r == 0 && at < count; at += BATCH)
		r = add_batch(m, paths + at, MIN(count - at, (size_t)BATCH));
	return r;
}
