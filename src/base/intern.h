/* SPDX-License-Identifier: Apache-2.0 */
/* Strings to dense ids: equal bytes, equal id. Id 0 is the empty string. */
#pragma once

#include "base/str.h"

struct intern {
	char *bytes; /* all strings end to end */
	size_t size, byte_cap, byte_max;
	size_t *ends; /* string i is bytes[ends[i-1] .. ends[i]) */
	size_t count, end_cap;
	uint32_t *slots;  /* open addressing: id and part of the hash, or 0 */
	uint32_t *hashes; /* per id, so that growing needs no rehash */
	size_t slot_cap, hash_cap;
	uint64_t seed;
};

/** intern_init - @byte_max bounds the sum of all lengths. Allocates nothing. */
void intern_init(struct intern *in, size_t byte_max);
void intern_release(struct intern *in);
void intern_trim(struct intern *in); /* gives back room for strings to come */

/** intern_reserve - make room for @count strings with @size bytes in all, so that they are added without growing. Only
 * where none is in yet. Return: 0, -ENOMEM or -E2BIG. */
int intern_reserve(struct intern *in, size_t count, size_t size) warn_unused;

/** intern_add - the id of @s, which may be new. Return: 0, -ENOMEM or -E2BIG; *out untouched on failure. */
int intern_add(struct intern *in, struct str s, uint32_t *out) warn_unused;
/** intern_find - Return: 0 and *out, or -ENOENT. */
int intern_find(const struct intern *in, struct str s, uint32_t *out);
/** intern_find_all - for every string of @from but the empty one: its id in @in goes to @out[its id in @from], 0 when
 * @in does not have it. Faster than one after the other: nothing is hashed again, memory is fetched ahead. */
void intern_find_all(const struct intern *in, const struct intern *from, uint32_t *out);
/** intern_get - the text of @id; borrowed until the next intern_add(). @id must exist. */
static inline struct str intern_get(const struct intern *in, uint32_t id)
{
	size_t start;

	must(id <= in->count);
	if (id == 0) /* has no entry: ends[] starts at id 1 */
		return str_n("", 0);
	start = id == 1 ? 0 : in->ends[id - 2];
	return str_n(in->bytes + start, in->ends[id - 1] - start);
}

/** intern_count - number of ids in use; at least 1, since id 0 always exists. */
size_t intern_count(const struct intern *in);
