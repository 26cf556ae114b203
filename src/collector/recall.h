/* SPDX-License-Identifier: Apache-2.0 */
/* Finished work that is likely to be asked for again, under keys that say all that it was made of, so that nothing in
 * here is ever out of date: what is asked of other profiles has another key. Bounded in bytes and in number; what was
 * asked for longest ago goes first. All functions may be called from several threads at once, but recall_free(). */
#pragma once

#include "base/base.h"

#define RECALL_ITEMS 512
#define RECALL_ITEM_COST 256 /* counted for each besides its own size */

struct recall_key {
	uint8_t bytes[32]; /* SHA-256 */
};

/* The first member of what is kept, which nobody changes once it was put. Its maker holds one reference. */
struct recalled {
	size_t size;           /* bytes that it takes, all of them */
	size_t refs;           /* 1 at first; only recall.c looks at it then */
	struct recalled *next; /* recall.c's */
	void (*free)(struct recalled *item);
};

struct recall_stats {
	size_t count, bytes, bytes_max;
	uint64_t hits, misses;
};

struct recall;

/** recall_new - @bytes_max: of all that is kept; 0: nothing is. Return: 0 or -ENOMEM. */
int recall_new(size_t bytes_max, struct recall **out) warn_unused;
void recall_free(struct recall *r); /* NULL is fine; no item is in use */
/** recall_fits - whether something of @size bytes would be kept: it takes at most three quarters of the room. */
bool recall_fits(const struct recall *r, size_t size);
/** recall_get - a reference to what was put under @key, for recall_done(); NULL: it is not there. Counts. */
struct recalled *recall_get(struct recall *r, const struct recall_key *key);
/** recall_put - keep @item, in place of what was there, unless it does not fit. The caller's reference stays its own.
 */
void recall_put(struct recall *r, const struct recall_key *key, struct recalled *item);
/** recall_done - give a reference back; the last one frees. NULL is fine. */
void recall_done(struct recall *r, struct recalled *item);
void recall_stats(struct recall *r, struct recall_stats *out);
