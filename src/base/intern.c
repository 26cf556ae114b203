/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include "base/array.h"
#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void intern_init(struct intern *in, size_t byte_max)
{
	*in = (struct intern){ .byte_max = byte_max, .seed = random_u64() };
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

/* ends[] starts at id 1: id 0 is the empty string and has no entry. */
size_t intern_count(const struct intern *in)
{
	return in->count + 1;
}

struct str intern_get(const struct intern *in, uint32_t id)
{
	size_t start;

	must(id <= in->count);
	if (id == 0)
		return str_n("", 0);
	start = id == 1 ? 0 : in->ends[id - 2];
	return str_n(in->bytes + start, in->ends[id - 1] - start);
}

static uint32_t hash_of(const struct intern *in, struct str s)
{
	return (uint32_t)XXH3_64bits_withSeed(s.ptr, s.len, in->seed);
}

/* Return: the slot that holds @s, or the free slot where it belongs. */
static size_t slot_of(const struct intern *in, struct str s, uint32_t hash)
{
	size_t i = hash & (in->slot_cap - 1);

	while (in->slots[i]) {
		uint32_t id = in->slots[i];

		if (in->hashes[id - 1] == hash && str_eq(intern_get(in, id), s))
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
	id = in->slots[slot_of(in, s, hash_of(in, s))];
	if (!id)
		return -ENOENT;
	*out = id;
	return 0;
}

static int grow_slots(struct intern *in)
{
	size_t cap = MAX(in->slot_cap * 2, (size_t)64);
	uint32_t *slots;

	if (in->slot_cap && in->count + 1 <= in->slot_cap / 3 * 2)
		return 0;
	slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t id = 1; id <= in->count; id++) {
		size_t i = in->hashes[id - 1] & (cap - 1);

		while (slots[i])
			i = (i + 1) & (cap - 1);
		slots[i] = id;
	}
	free(in->slots);
	in->slots = slots;
	in->slot_cap = cap;
	return 0;
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
		*out = in->slots[slot];
		return 0;
	}
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
	in->slots[slot] = (uint32_t)in->count;
	*out = (uint32_t)in->count;
	return 0;
}
