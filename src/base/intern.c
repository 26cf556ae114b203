/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include <stdatomic.h>

#include "base/array.h"
#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* One for all tables of the process, so that what was hashed for one need not be hashed again for another. */
static uint64_t seed(void)
{
	static _Atomic uint64_t kept;
	uint64_t now = kept, fresh;

	if (now)
		return now;
	fresh = random_u64() | 1;
	return atomic_compare_exchange_strong(&kept, &now, fresh) ? fresh : now;
}

void intern_init(struct intern *in, size_t byte_max)
{
	*in = (struct intern){ .byte_max = byte_max, .seed = seed() };
}

void intern_release(struct intern *in)
{
	free(in->bytes);
	free(in->ends);
	free(in->slots);
	free(in->hashes);
	intern_init(in, in->byte_max);
}

void intern_trim(struct intern *in)
{
	array_trim(&in->bytes, &in->byte_cap, in->size);
	array_trim(&in->ends, &in->end_cap, in->count);
	array_trim(&in->hashes, &in->hash_cap, in->count);
}

size_t intern_count(const struct intern *in)
{
	return in->count + 1;
}

static uint32_t hash_of(const struct intern *in, struct str s)
{
	return (uint32_t)XXH3_64bits_withSeed(s.ptr, s.len, in->seed);
}

/* A slot is an id with the part of the hash above it: an id is always below slot_cap. So probing stays within a line of
 * slots and looks at a text only when it is very likely the right one. */
static inline uint32_t slot_tag(const struct intern *in, uint32_t hash)
{
	return hash & ~(uint32_t)(in->slot_cap - 1);
}

static inline uint32_t slot_id(const struct intern *in, size_t i)
{
	return in->slots[i] & (uint32_t)(in->slot_cap - 1);
}

static inline bool is_text(const struct intern *in, uint32_t id, struct str s)
{
	size_t start = id == 1 ? 0 : in->ends[id - 2];

	return in->ends[id - 1] - start == s.len && !memcmp(in->bytes + start, s.ptr, s.len);
}

/* Return: the slot that holds @s, or the free slot where it belongs. @s is not empty. */
static inline size_t slot_of(const struct intern *in, struct str s, uint32_t hash)
{
	uint32_t tag = slot_tag(in, hash), slot;
	size_t i = hash & (in->slot_cap - 1);

	while ((slot = in->slots[i])) {
		if (slot_tag(in, slot) == tag && is_text(in, slot_id(in, i), s))
			break;
		i = (i + 1) & (in->slot_cap - 1);
	}
	return i;
}

int intern_find(const struct intern *in, struct str s, uint32_t *out)
{
	uint32_t id;

	if (!s.len) {
		*out = 0;
		return 0;
	}
	if (!in->slot_cap)
		return -ENOENT;
	id = slot_id(in, slot_of(in, s, hash_of(in, s)));
	if (!id)
		return -ENOENT;
	*out = id;
	return 0;
}

#define BATCH 16 /* memory accesses under way at once: about what a core keeps track of */

void intern_find_all(const struct intern *in, const struct intern *from, uint32_t *out)
{
	uint32_t hashes[BATCH];

	for (size_t first = 1; first <= from->count && in->slot_cap; first += BATCH) {
		size_t count = MIN(from->count + 1 - first, (size_t)BATCH);

		for (size_t i = 0; i < count; i++) {
			hashes[i] = from->hashes[first + i - 1];
			__builtin_prefetch(&in->slots[hashes[i] & (in->slot_cap - 1)]);
		}
		for (size_t i = 0; i < count; i++) { /* the slot has come: what it very likely names */
			uint32_t id = slot_id(in, hashes[i] & (in->slot_cap - 1));

			if (id)
				__builtin_prefetch(&in->ends[id - 1]);
		}
		for (size_t i = 0; i < count; i++) {
			uint32_t id = slot_id(in, hashes[i] & (in->slot_cap - 1));

			if (id > 1)
				__builtin_prefetch(in->bytes + in->ends[id - 2]);
		}
		for (size_t i = 0; i < count; i++)
			out[first + i] = slot_id(in, slot_of(in, intern_get(from, (uint32_t)(first + i)), hashes[i]));
	}
}

/* Return: 0, -ENOMEM, or -E2BIG above 2^32 slots. */
static int set_slots(struct intern *in, size_t cap)
{
	uint32_t *slots;

	if ((uint64_t)cap > UINT64_C(1) << 32)
		return -E2BIG;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t id = 1; id <= in->count; id++) {
		size_t i = in->hashes[id - 1] & (cap - 1);

		while (slots[i])
			i = (i + 1) & (cap - 1);
		slots[i] = (in->hashes[id - 1] & ~(uint32_t)(cap - 1)) | id;
	}
	free(in->slots);
	in->slots = slots;
	in->slot_cap = cap;
	return 0;
}

static int grow_slots(struct intern *in)
{
	if (in->slot_cap && in->count + 1 <= in->slot_cap / 3 * 2)
		return 0;
	return set_slots(in, MAX(in->slot_cap * 2, (size_t)64));
}

static int grow_bytes(struct intern *in, size_t more)
{
	size_t cap;
	char *grown;

	if (more > in->byte_max - in->size)
		return -E2BIG;
	if (in->byte_cap - in->size >= more && in->bytes)
		return 0;
	cap = MIN(MAX(in->byte_cap + in->byte_cap / 2 + KIB(1), in->size + more), in->byte_max);
	grown = realloc(in->bytes, cap);
	if (!grown)
		return -ENOMEM;
	in->bytes = grown;
	in->byte_cap = cap;
	return 0;
}

int intern_reserve(struct intern *in, size_t count, size_t size)
{
	size_t cap = 64;
	int r = 0;

	if (count >= UINT32_MAX || count > SIZE_MAX / 16) /* where a size has 32 bits, cap would wrap */
		return -E2BIG;
	while (cap / 3 * 2 < count + 1)
		cap *= 2;
	if (!in->slot_cap)
		r = set_slots(in, cap);
	if (r == 0 && size > in->byte_cap)
		r = grow_bytes(in, size);
	r = r ? r : array_reserve(&in->ends, &in->end_cap, count);
	return r ? r : array_reserve(&in->hashes, &in->hash_cap, count);
}

int intern_add(struct intern *in, struct str s, uint32_t *out)
{
	uint32_t hash;
	size_t slot;
	int r;

	if (!s.len) {
		*out = 0;
		return 0;
	}
	r = grow_slots(in);
	if (r < 0)
		return r;
	hash = hash_of(in, s);
	slot = slot_of(in, s, hash);
	if (in->slots[slot]) {
		*out = slot_id(in, slot);
		return 0;
	}
	if (!in->bytes || s.len > in->byte_cap - in->size)
		r = grow_bytes(in, s.len);
	if (r == 0)
		r = array_grow(&in->ends, &in->end_cap, in->count, UINT32_MAX - 1);
	if (r == 0)
		r = array_grow(&in->hashes, &in->hash_cap, in->count, UINT32_MAX - 1);
	if (r < 0)
		return r;
	memcpy(in->bytes + in->size, s.ptr, s.len);
	in->size += s.len;
	in->ends[in->count] = in->size;
	in->hashes[in->count] = hash;
	in->count++;
	in->slots[slot] = slot_tag(in, hash) | (uint32_t)in->count;
	*out = (uint32_t)in->count;
	return 0;
}
