/* SPDX-License-Identifier: Apache-2.0 */
#include "object/perfmap.h"

#include "base/array.h"

void perfmap_init(struct perfmap *map, size_t memory_max)
{
	*map = (struct perfmap){
		.names = BUF_INIT(MIN(memory_max, (size_t)UINT32_MAX)),
		.lines = LINES_INIT(PERFMAP_LINE_MAX),
		.memory_max = memory_max,
	};
}

void perfmap_release(struct perfmap *map)
{
	for (size_t i = 0; i < map->level_count; i++)
		free(map->levels[i].entries);
	free(map->run.entries);
	buf_release(&map->names);
	lines_release(&map->lines);
	perfmap_init(map, map->memory_max);
}

size_t perfmap_size(const struct perfmap *map)
{
	size_t entries = map->run.cap;

	for (size_t i = 0; i < map->level_count; i++)
		entries += map->levels[i].cap;
	return entries * sizeof(struct perfmap_entry) + map->names.cap;
}

static uint64_t end_of(const struct perfmap_entry *e)
{
	return e->start + e->size;
}

static void cut_front(struct perfmap_entry *e, uint64_t new_start)
{
	e->size -= (uint32_t)(new_start - e->start);
	e->start = new_start;
}

/* Both by start; @out has room for old + 2 * new entries: a new one can cut an old one in two. */
static size_t overlay(const struct perfmap_level *old, const struct perfmap_level *new, struct perfmap_entry *out)
{
	size_t i = 0, j = 0, count = 0;
	struct perfmap_entry rest = old->entries[0]; /* what is left of old->entries[i] */

	while (i < old->count || j < new->count) {
		const struct perfmap_entry *over = &new->entries[j];

		if (j == new->count || (i < old->count && end_of(&rest) <= over->start)) {
			out[count++] = rest;
			rest.size = 0;
		} else if (i < old->count && rest.start < over->start) {
			out[count] = rest;
			out[count++].size = (uint32_t)(over->start - rest.start);
			cut_front(&rest, over->start);
		} else {
			out[count++] = *over;
			j++;
			for (; i < old->count && end_of(&rest) <= end_of(over);)
				rest = ++i < old->count ? old->entries[i] : (struct perfmap_entry){ 0 };
			if (i < old->count && rest.start < end_of(over))
				cut_front(&rest, end_of(over));
		}
		if (i < old->count && !rest.size)
			rest = ++i < old->count ? old->entries[i] : (struct perfmap_entry){ 0 };
	}
	return count;
}

/* The two newest levels become one. Return: 0 or -ENOMEM. */
static int merge_newest(struct perfmap *map)
{
	struct perfmap_level *old = &map->levels[map->level_count - 2], *new = &map->levels[map->level_count - 1];
	size_t cap = old->count + 2 * new->count;
	struct perfmap_entry *out = malloc(cap * sizeof(*out)), *fitted;
	size_t count;

	if (!out)
		return -ENOMEM;
	count = overlay(old, new, out);
	must(count <= cap);
	fitted = realloc(out, count * sizeof(*out));
	if (fitted) {
		out = fitted;
		cap = count;
	}
	free(old->entries);
	free(new->entries);
	*old = (struct perfmap_level){ .entries = out, .count = count, .cap = cap };
	*new = (struct perfmap_level){ 0 };
	map->level_count--;
	return 0;
}

static bool is_out_of_shape(const struct perfmap *map)
{
	size_t n = map->level_count;

	return n >= 2 && (n == PERFMAP_LEVELS_MAX || map->levels[n - 2].count < 2 * map->levels[n - 1].count);
}

/* The run becomes a level. */
static int close_run(struct perfmap *map)
{
	int r = 0;

	if (!map->run.count)
		return 0;
	while (r == 0 && map->level_count == PERFMAP_LEVELS_MAX)
		r = merge_newest(map);
	if (r < 0)
		return r;
	map->levels[map->level_count++] = map->run;
	map->run = (struct perfmap_level){ 0 };
	while (r == 0 && is_out_of_shape(map))
		r = merge_newest(map);
	return r;
}

/* Names that nothing refers to any more go. */
static int drop_hidden(struct perfmap *map)
{
	scoped(buf_release) struct buf names = BUF_INIT(map->names.max);
	int r = close_run(map);

	while (r == 0 && map->level_count > 1)
		r = merge_newest(map);
	if (r < 0 || !map->level_count)
		return r;
	for (int pass = 0; pass < 2; pass++) { /* first: does it help? */
		uint32_t last = UINT32_MAX, at = 0;

		for (size_t i = 0; i < map->levels[0].count; i++) {
			struct perfmap_entry *e = &map->levels[0].entries[i];
			struct str name = str_of(map->names.ptr + e->name);

			if (e->name != last) { /* pieces of one function are neighbours, mostly */
				last = e->name;
				at = (uint32_t)names.len;
				buf_add(&names, name.ptr, name.len + 1);
			}
			if (pass)
				e->name = at;
		}
		if (names.error || names.len > map->names.len / 4 * 3)
			return names.error == -ENOMEM ? -ENOMEM : 0;
		if (!pass)
			buf_clear(&names);
	}
	buf_release(&map->names);
	map->names = names;
	names = (struct buf){ 0 };
	return 0;
}

/* With what the arrays would grow by. (Merging holds two levels twice for a moment on top of that.) */
static bool has_room(const struct perfmap *map, size_t name_size)
{
	size_t growth = 0;

	if (map->run.count == map->run.cap)
		growth += MAX(map->run.cap / 2, (size_t)16) * sizeof(*map->run.entries);
	if (map->names.len + name_size > map->names.cap)
		growth += MAX(map->names.cap / 2, name_size + 64);
	return perfmap_size(map) + growth <= map->memory_max;
}

static int add_entry(struct perfmap *map, uint64_t start, uint32_t size, struct str name)
{
	struct perfmap_level *run = &map->run;
	int r = 0;

	if (!map->full && !has_room(map, name.len + 1)) {
		r = drop_hidden(map);
		map->full = r == 0 && !has_room(map, name.len + 1); /* for good: to try for every line would be slow */
	}
	if (r == 0 && map->full) {
		map->dropped_lines++;
		return 0;
	}
	if (r == 0 && run->count && start < end_of(&run->entries[run->count - 1]))
		r = close_run(map);
	if (r == 0)
		r = array_grow(&run->entries, &run->cap, run->count, map->memory_max / sizeof(*run->entries));
	if (r < 0)
		return r;
	if (!buf_reserve(&map->names, name.len + 1)) {
		r = map->names.error;
		map->names.error = 0; /* nothing was written */
		map->dropped_lines += r == -E2BIG;
		return r == -E2BIG ? 0 : r;
	}
	run->entries[run->count++] = (struct perfmap_entry){ start, size, (uint32_t)map->names.len };
	buf_adds(&map->names, name);
	buf_addc(&map->names, 0);
	return 0;
}

static int parse_hex(struct str text, uint64_t *out)
{
	if (str_starts(text, STR("0x")) || str_starts(text, STR("0X")))
		text = str_skip(text, 2);
	return str_to_hex64(text, out);
}

static int add_line(void *ctx, struct str line)
{
	struct str start_text, size_text;
	struct perfmap *map = ctx;
	uint64_t start, size;

	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	if (!str_next(&line, ' ', &start_text) || !str_next(&line, ' ', &size_text) || !line.len ||
	    memchr(line.ptr, 0, line.len) || parse_hex(start_text, &start) < 0 || parse_hex(size_text, &size) < 0 ||
	    !size || size > UINT32_MAX || start > UINT64_MAX - size) {
		map->bad_lines++;
		return 0;
	}
	return add_entry(map, start, (uint32_t)size, line);
}

void perfmap_feed(struct perfmap *map, const void *bytes, size_t size)
{
	int r = map->error ? map->error : lines_feed(&map->lines, bytes, size, add_line, map);

	if (r < 0)
		map->error = r;
	else
		map->bad_lines += (size_t)r; /* overlong ones */
}

static const struct perfmap_entry *find_in(const struct perfmap_level *level, uint64_t address)
{
	size_t low = 0, high = level->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (level->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - level->entries[low - 1].start >= level->entries[low - 1].size)
		return NULL;
	return &level->entries[low - 1];
}

int perfmap_find(const struct perfmap *map, uint64_t address, struct str *name, uint64_t *start)
{
	const struct perfmap_entry *e = find_in(&map->run, address);

	for (size_t i = map->level_count; !e && i > 0; i--)
		e = find_in(&map->levels[i - 1], address);
	if (!e)
		return -ENOENT;
	*name = str_of(map->names.ptr + e->name);
	*start = e->start;
	return 0;
}
