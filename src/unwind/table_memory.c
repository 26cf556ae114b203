/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table_memory.h"

#include "base/array.h"
#include "base/u64map.h"

#define MAPS_MAX (1u << 20)
#define SPACES_MAX (1u << 18)

struct known_space {
	uint32_t pid;
	struct abi_space space;
};

struct table_memory {
	struct table tables[TABLES_MAX]; /* elements NULL: none */
	size_t bytes;
	uint64_t batches;
	struct map_change *maps; /* in no order */
	size_t map_count, map_cap;
	struct known_space *spaces;
	size_t space_count, space_cap;
	struct u64map by_pid; /* -> index of spaces */
};

int table_memory_new(struct table_memory **out)
{
	struct table_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	u64map_init(&m->by_pid, SPACES_MAX);
	*out = m;
	return 0;
}

void table_memory_free(struct table_memory *m)
{
	if (!m)
		return;
	free(m->maps);
	free(m->spaces);
	u64map_release(&m->by_pid);
	free(m);
}

static size_t cost(void *self, uint32_t count)
{
	(void)self;
	return count * sizeof(union abi_element);
}

static int put(void *self, const union abi_element *elements, uint32_t count, struct table *out)
{
	struct table_memory *m = self;
	union abi_element *copy = malloc(cost(self, MAX(count, 1u)));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, elements, cost(self, count));
	*out = (struct table){ .elements = copy, .count = count, .bytes = cost(self, count), .fd = -1 };
	m->bytes += out->bytes;
	return 0;
}

static void drop(void *self, struct table *table)
{
	struct table_memory *m = self;

	m->bytes -= table->bytes;
	free((void *)table->elements);
	*table = (struct table){ .fd = -1 };
}

static int change_tables(void *self, const struct table_change *changes, size_t count)
{
	struct table_memory *m = self;

	m->batches++;
	for (size_t i = 0; i < count; i++) {
		must(changes[i].number && changes[i].number < TABLES_MAX);
		m->tables[changes[i].number] = changes[i].table ? *changes[i].table : (struct table){ .fd = -1 };
	}
	return 0;
}

static void remove_map(struct table_memory *m, uint32_t space, uint64_t start)
{
	for (size_t i = 0; i < m->map_count; i++) {
		if (m->maps[i].space != space || m->maps[i].map.start != start)
			continue;
		m->maps[i] = m->maps[--m->map_count];
		return;
	}
}

static int change_maps(void *self, const struct map_change *changes, size_t count)
{
	struct table_memory *m = self;

	for (size_t i = 0; i < count; i++) {
		int r;

		remove_map(m, changes[i].space, changes[i].map.start);
		if (changes[i].map.kind == ABI_MAP_NONE)
			continue;
		r = array_grow(&m->maps, &m->map_cap, m->map_count, MAPS_MAX);
		if (r < 0)
			return r;
		m->maps[m->map_count++] = changes[i];
	}
	return 0;
}

static void remove_space(struct table_memory *m, uint32_t pid)
{
	uint32_t at;

	if (u64map_get(&m->by_pid, pid, &at) < 0)
		return;
	ignore(u64map_remove(&m->by_pid, pid)); /* it is there */
	m->spaces[at] = m->spaces[--m->space_count];
	if (at < m->space_count)
		must(u64map_put(&m->by_pid, m->spaces[at].pid, at) == 0); /* replaces: needs no room */
}

static int set_space(void *self, uint32_t pid, const struct abi_space *space)
{
	struct table_memory *m = self;
	uint32_t at;
	int r;

	if (!space) {
		remove_space(m, pid);
		return 0;
	}
	if (u64map_get(&m->by_pid, pid, &at) == 0) {
		m->spaces[at].space = *space;
		return 0;
	}
	r = array_grow(&m->spaces, &m->space_cap, m->space_count, SPACES_MAX);
	if (r == 0)
		r = u64map_put(&m->by_pid, pid, (uint32_t)m->space_count);
	if (r == 0)
		m->spaces[m->space_count++] = (struct known_space){ pid, *space };
	return r;
}

struct table_sink table_memory_sink(struct table_memory *m)
{
	return (struct table_sink){
		.cost = cost,
		.put = put,
		.drop = drop,
		.change_tables = change_tables,
		.change_maps = change_maps,
		.set_space = set_space,
		.self = m,
	};
}

const struct table *table_memory_table(const struct table_memory *m, uint32_t number)
{
	return number < TABLES_MAX && m->tables[number].elements ? &m->tables[number] : NULL;
}

int table_memory_space(const struct table_memory *m, uint32_t pid, struct abi_space *out)
{
	uint32_t at;

	if (u64map_get(&m->by_pid, pid, &at) < 0)
		return -ENOENT;
	*out = m->spaces[at].space;
	return 0;
}

const struct abi_map *table_memory_find(const struct table_memory *m, uint32_t space, uint64_t address)
{
	for (size_t i = 0; i < m->map_count; i++)
		if (m->maps[i].space == space && address >= m->maps[i].map.start && address < m->maps[i].map.end)
			return &m->maps[i].map;
	return NULL;
}

size_t table_memory_bytes(const struct table_memory *m)
{
	return m->bytes;
}

size_t table_memory_maps(const struct table_memory *m)
{
	return m->map_count;
}

size_t table_memory_spaces(const struct table_memory *m)
{
	return m->space_count;
}

uint64_t table_memory_batches(const struct table_memory *m)
{
	return m->batches;
}
