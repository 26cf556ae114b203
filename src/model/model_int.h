/* SPDX-License-Identifier: Apache-2.0 */
/* Hash indexes over the model's tables, shared by model.c and merge.c. An index holds row numbers only (u32 slots, open
 * addressing, at most three quarters full); hashes are made again from the rows when it grows, so that a stack node
 * costs its 8 bytes, the slack of its array and 5 to 11 bytes of slots. */
#pragma once

#include "model/model.h"

struct row_index {
	uint32_t *slots; /* row number, or 0: row 0 is never looked up */
	size_t cap;      /* 0 or a power of two */
};

struct model_index {
	uint64_t seed;
	struct row_index mappings, functions, locations, stacks, processes, threads, label_sets, app_metadata;
	struct row_index samples; /* rows + 1; filled by model_merge() only */
	size_t samples_indexed;   /* rows before this one are in `samples` */
};

/* One step of a seeded multiply-fold hash: without the seed nobody can choose collisions. */
static inline uint64_t hash_step(uint64_t hash, uint64_t value)
{
	unsigned __int128 product =
		(unsigned __int128)(hash ^ UINT64_C(0x9e3779b97f4a7c15)) * (value ^ UINT64_C(0xd6e8feb86659fd93));

	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ (hash << 23 | hash >> 41);
}

static inline uint64_t hash_done(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

typedef uint64_t row_hash_fn(const struct model *m, uint32_t row);

/** model_grow - array_grow() within m->memory_max. */
int model_grow_(const struct model *m, void *items, size_t *cap, size_t count, size_t size) warn_unused;
#define model_grow(m, table, count) model_grow_((m), &(m)->table, &(m)->table##_cap, (count), sizeof(*(m)->table))
/** model_fits - Return: 0, or -E2BIG when @more bytes are over m->memory_max. */
int model_fits(const struct model *m, size_t more) warn_unused;

/** stacks_forget - the index of stacks is empty then, with as much room as before. */
void stacks_forget(struct model *m);

/** row_index_room - make room for one more than @count rows; @hash gives the hash of those already in. */
int row_index_room(const struct model *m, struct row_index *ix, size_t count, size_t first,
		   row_hash_fn *hash) warn_unused;
