/* SPDX-License-Identifier: Apache-2.0 */
#include "base/u64map.h"

#include "base/random.h"

enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_DEAD };

struct u64map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t state;
};

/* The finalizer of MurmurHash3 (public domain, A. Appleby): every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static size_t home(const struct u64map *m, uint64_t key)
{
	return (size_t)mix(key ^ m->seed) & (m->cap - 1);
}

void u64map_init(struct u64map *m, size_t max_entries)
{
	*m = (struct u64map){ .max = max_entries, .seed = random_u64() };
}

void u64map_release(struct u64map *m)
{
	free(m->slots);
	*m = (struct u64map){ .max = m->max, .seed = m->seed };
}

void u64map_clear(struct u64map *m)
{
	if (m->slots)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->used = m->dead = 0;
}

static struct u64map_slot *find(const struct u64map *m, uint64_t key)
{
	if (!m->cap)
		return NULL;
	for (size_t i = home(m, key); m->slots[i].state != SLOT_FREE; i = (i + 1) & (m->cap - 1))
		if (m->slots[i].state == SLOT_LIVE && m->slots[i].key == key)
			return &m->slots[i];
	return NULL;
}

int u64map_get(const struct u64map *m, uint64_t key, uint32_t *out)
{
	const struct u64map_slot *slot = find(m, key);

	if (!slot)
		return -ENOENT;
	*out = slot->value;
	return 0;
}

static void insert(struct u64map *m, uint64_t key, uint32_t value)
{
	size_t i = home(m, key);

	while (m->slots[i].state == SLOT_LIVE)
		i = (i + 1) & (m->cap - 1);
	if (m->slots[i].state == SLOT_DEAD)
		m->dead--;
	m->slots[i] = (struct u64map_slot){ .key = key, .value = value, .state = SLOT_LIVE };
	m->used++;
}

/* Keeps at least a quarter of the slots free, so a miss ends soon. */
static int make_room(struct u64map *m)
{
	struct u64map old = *m;
	size_t cap;

	if (m->cap && m->used + m->dead + 1 <= m->cap / 4 * 3)
		return 0;
	cap = m->used + 1 > m->cap / 2 ? MAX(m->cap * 2, (size_t)16) : m->cap;
	m->slots = calloc(cap, sizeof(*m->slots));
	if (!m->slots) {
		*m = old;
		return -ENOMEM;
	}
	m->cap = cap;
	m->used = m->dead = 0;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].state == SLOT_LIVE)
			insert(m, old.slots[i].key, old.slots[i].value);
	free(old.slots);
	return 0;
}

int u64map_put(struct u64map *m, uint64_t key, uint32_t value)
{
	struct u64map_slot *slot = find(m, key);
	int r;

	if (slot) {
		slot->value = value;
		return 0;
	}
	if (m->used >= m->max)
		return -E2BIG;
	r = make_room(m);
	if (r < 0)
		return r;
	insert(m, key, value);
	return 0;
}

int u64map_remove(struct u64map *m, uint64_t key)
{
	struct u64map_slot *slot = find(m, key);

	if (!slot)
		return -ENOENT;
	slot->state = SLOT_DEAD;
	m->used--;
	m->dead++;
	return 0;
}
