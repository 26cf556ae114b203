/* SPDX-License-Identifier: Apache-2.0 */
/* Strings to dense ids: equal bytes, equal id. Id 0 is the empty string. */
#pragma once

#include "base/str.h"

struct intern {
	char *bytes; /* all strings end to end */
	size_t size, byte_cap, byte_max;
	size_t *ends; /* string i is bytes[ends[i-1] .. ends[i]) */
	size_t count, end_cap;
	uint32_t *slots;  /* open addressing: id + 1, or 0 */
	uint32_t *hashes; /* per id, so that growing needs no rehash */
	size_t slot_cap, hash_cap;
	uint64_t seed;
};

/** intern_init - @byte_max bounds the sum of all lengths. Allocates nothing. */
void intern_init(struct intern *in, size_t byte_max);
void intern_release(struct intern *in);
void intern_trim(struct intern *in); /* gives back room for strings to come */

/** intern_add - the id of @s, which may be new. Return: 0, -ENOMEM or -E2BIG; *out untouched on failure. */
int intern_add(struct intern *in, struct str s, uint32_t *out) warn_unused;
/** intern_find - Return: 0 and *out, or -ENOENT. */
int intern_find(const struct intern *in, struct str s, uint32_t *out);
/** intern_get - the text of @id; borrowed until the next intern_add(). @id must exist. */
struct str intern_get(const struct intern *in, uint32_t id);
/** intern_count - number of ids in use; at least 1, since id 0 always exists. */
size_t intern_count(const struct intern *in);
