/* SPDX-License-Identifier: Apache-2.0 */
/* What the profiles of one service in one partition share: the tables of a model, and keys: (stack, process, thread,
 * label set, end of the walk) as one dense number, which is what a profile's rows carry. Append-only: what a stored
 * profile refers to never changes. Mappings are kept without their addresses, so that ASLR multiplies nothing: start is
 * 0, or a small number that tells equal mappings of one profile apart. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"
#include "model/model.h"

struct dictionary_key {
	uint32_t stack, process, thread, label_set, end;
};

struct dictionary {
	struct model m;              /* without samples */
	struct dictionary_key *keys; /* row 0 is a key like any other */
	size_t keys_count, keys_cap;
	uint32_t *slots; /* of keys: row + 1 */
	size_t slots_cap;
	uint64_t seed;
};

/* How much of each table there was at some moment. */
struct dictionary_mark {
	uint32_t strings, mappings, functions, locations, stacks, app_metadata, processes, threads, label_sets, keys;
};

#define DICTIONARY_BYTES_MAX GIB(1) /* of strings */
#define DICTIONARY_CHUNK_MAX MIB(512)

int dictionary_init(struct dictionary *d) warn_unused;
void dictionary_release(struct dictionary *d); /* a zeroed one is fine */

/** dictionary_key - the row of @key, which may be new. Return: 0, -ENOMEM or -E2BIG. */
int dictionary_key(struct dictionary *d, const struct dictionary_key *key, uint32_t *out) warn_unused;

struct dictionary_mark dictionary_end(const struct dictionary *d);
bool dictionary_same_mark(const struct dictionary_mark *a, const struct dictionary_mark *b);
void dictionary_trim(struct dictionary *d);         /* gives back the room for rows to come */
size_t dictionary_size(const struct dictionary *d); /* bytes of memory, roughly */

/** dictionary_encode - append what came after @from, up to now. Errors stick to @out. */
void dictionary_encode(const struct dictionary *d, const struct dictionary_mark *from, struct buf *out);

/**
 * dictionary_decode - add a chunk that dictionary_encode() wrote; chunks come in their order
 *
 * Every reference and number is checked: the bytes may come from a damaged file. Return: 0, -EBADMSG, -E2BIG, -ENOMEM;
 * on failure @d holds a part and is good for dictionary_release() only.
 */
int dictionary_decode(struct str bytes, struct dictionary *d) warn_unused;

/* The strings of a dictionary and how many mappings it has: what the headers of its profiles can be read with. */
struct dictionary_strings {
	struct buf texts;       /* one behind the other */
	size_t *ends;           /* by row; NULL as long as there is no row but 0 */
	size_t cap;             /* of ends */
	size_t count, mappings; /* rows, those that mean "none" too */
};

void dictionary_strings_init(struct dictionary_strings *s);
void dictionary_strings_clear(struct dictionary_strings *s);   /* back to none; its memory is used again */
void dictionary_strings_release(struct dictionary_strings *s); /* a zeroed one is fine */

/**
 * dictionary_strings_add - what dictionary_decode() would add of strings and mappings; nothing behind them is looked at
 *
 * Return: 0, -EBADMSG, -E2BIG, -ENOMEM; on failure @s can only be cleared or released.
 */
int dictionary_strings_add(struct dictionary_strings *s, struct str bytes) warn_unused;
/** dictionary_strings_get - one row's text, borrowed until the next call of the others; empty when there is none. */
struct str dictionary_strings_get(const struct dictionary_strings *s, uint32_t row);
