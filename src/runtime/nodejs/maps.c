/* SPDX-License-Identifier: Apache-2.0 */
/* Where V8's code lies. Each isolate (each worker thread has one) reserves a range of addresses for its code:
 *
 *	rw-p ---p rwxp ---p [r-xp of the program's file: built-ins, from V8 10.3 on] ---p
 *
 * Pieces of it are mapped as code is made. A chain of anonymous mappings without a gap, with one that is executable, is
 * taken for one. Up to V8 10.2 the copy of the built-ins is anonymous, and only there where the range is out of reach
 * of the file's own. */
#include "proc/maps.h"
#include "runtime/nodejs/nodejs_int.h"

#define CHAINS_MAX 64
#define PAGE 4096
#define RANGE_SIZE_MAX \
	(1ULL << 47) /* of several isolates, which V8 places at random, with no file's code between them */

struct chain {
	uint64_t start, end;
	bool has_code;
};

struct chains {
	struct chain items[CHAINS_MAX];
	size_t count;
	uint64_t files[2 * CHAINS_MAX]; /* executable mappings of files that are no part of a chain: their starts */
	size_t file_count;
};

static bool same_file(const struct maps_line *a, const struct maps_line *b)
{
	return a->inode && a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor;
}

static bool is_anonymous(const struct maps_line *m)
{
	return !m->inode && !m->shared && !m->path.len;
}

/* All have the same size. The file's own goes by its symbols, whose size need not be one of whole pages; more of the
 * file than that is no copy of it. */
static void add_builtins(struct nodejs_maps *out, uint64_t low, uint64_t size)
{
	size_t at = out->builtin_count;

	size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (!size || low >= ABI_NODEJS_NO_BUILTINS || at == ABI_NODEJS_BUILTINS ||
	    (out->builtins_size && size != out->builtins_size))
		return;
	for (; at && out->builtins[at - 1] > low; at--)
		out->builtins[at] = out->builtins[at - 1];
	out->builtins[at] = low;
	out->builtins_size = size;
	out->builtin_count++;
}

/* The file's own come first: where those lie that are looked for. */
static void add_maybe(struct nodejs_maps *out, const struct maps_line *m)
{
	if (m->executable && !m->writable && is_anonymous(m) && out->builtins_size &&
	    m->end - m->start == out->builtins_size && out->maybe_count < ARRAY_SIZE(out->maybe))
		out->maybe[out->maybe_count++] = m->start;
}

/* Memory that can be written or executed belongs to a chain, and what nobody may touch. */
static void take_line(struct chains *c, const struct maps_line *m, bool is_copy, bool *open)
{
	struct chain *last = c->count ? &c->items[c->count - 1] : NULL;
	bool belongs = is_copy || (is_anonymous(m) && (m->executable || m->writable || !m->readable));

	if (!belongs) {
		if (m->executable && m->inode && c->file_count < ARRAY_SIZE(c->files))
			c->files[c->file_count++] = m->start;
		*open = false;
		return;
	}
	if (*open && last && last->end == m->start) {
		last->end = m->end;
		last->has_code |= m->executable;
		return;
	}
	if (last && !last->has_code)
		c->count--;
	*open = c->count < CHAINS_MAX;
	if (*open)
		c->items[c->count++] = (struct chain){ .start = m->start, .end = m->end, .has_code = m->executable };
}

/* Heaps may touch the range on both sides: what is not executable there is left out, but for the first pages. */
static bool has_file_between(const struct chains *c, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < c->file_count; i++)
		if (c->files[i] >= start && c->files[i] < end)
			return true;
	return false;
}

/* More isolates than ranges: neighbours become one, with what lies between, as long as that is no file's code. */
static bool merge_nearest(struct chains *c)
{
	size_t best = c->count;

	for (size_t i = 0; i + 1 < c->count; i++) {
		uint64_t gap = c->items[i + 1].start - c->items[i].end;

		if (!has_file_between(c, c->items[i].end, c->items[i + 1].start) &&
		    (best == c->count || gap < c->items[best + 1].start - c->items[best].end))
			best = i;
	}
	if (best == c->count)
		return false;
	c->items[best].end = c->items[best + 1].end;
	memmove(&c->items[best + 1], &c->items[best + 2], (c->count - best - 2) * sizeof(c->items[0]));
	c->count--;
	return true;
}

static bool find_file(struct str maps, uint64_t here, struct maps_line *out)
{
	while (maps.len)
		if (maps_next(&maps, out) == 1 && here >= out->start && here < out->end)
			return true;
	return false;
}

/* Where the file itself is mapped with what @copy has of it. Return: 0: nowhere. */
static uint64_t find_original(struct str maps, const struct maps_line *copy)
{
	uint64_t size = copy->end - copy->start;
	struct maps_line m;

	while (maps.len)
		if (maps_next(&maps, &m) == 1 && m.executable && same_file(&m, copy) && m.start != copy->start &&
		    copy->offset >= m.offset && copy->offset - m.offset < m.end - m.start &&
		    size <= m.end - m.start - (copy->offset - m.offset))
			return m.start + (copy->offset - m.offset);
	return 0;
}

void nodejs_maps_read(struct str maps, uint64_t builtins, uint64_t size, uint64_t here, struct nodejs_maps *out)
{
	struct maps_line m, file = { 0 }, copy = { 0 };
	struct chains c = { 0 };
	bool open = false;
	struct str rest = maps;
	size_t room = ABI_CODE_RANGES;

	*out = (struct nodejs_maps){ 0 };
	for (size_t i = 0; i < ABI_NODEJS_BUILTINS; i++)
		out->builtins[i] = ABI_NODEJS_NO_BUILTINS;
	add_builtins(out, builtins, size);
	if (!find_file(maps, here, &file))
		return;
	while (rest.len) {
		bool goes_on, is_copy;

		if (maps_next(&rest, &m) != 1)
			continue;
		goes_on = open && c.items[c.count - 1].end == m.start;
		/* The file's own mappings lie one behind the other; its copy is elsewhere, within a chain. */
		is_copy = goes_on && m.executable && same_file(&m, &file);
		if (is_copy) {
			add_builtins(out, m.start, m.end - m.start);
			copy = m;
		}
		if (goes_on)
			add_maybe(out, &m);
		take_line(&c, &m, is_copy, &open);
	}
	if (c.count && !c.items[c.count - 1].has_code)
		c.count--;
	if (!size && copy.end) {
		builtins = find_original(maps, &copy);
		size = builtins ? copy.end - copy.start : 0;
		add_builtins(out, builtins, size);
	}
	if (size) {
		out->ranges[out->range_count++] = (struct abi_code_range){ .low = builtins, .size = size };
		room--;
	}
	while (c.count > room && merge_nearest(&c))
		;
	for (size_t i = 0; i < c.count && out->range_count < ABI_CODE_RANGES; i++)
		if (c.items[i].end - c.items[i].start <= RANGE_SIZE_MAX)
			out->ranges[out->range_count++] =
				(struct abi_code_range){ .low = c.items[i].start,
							 .size = c.items[i].end - c.items[i].start };
}

void nodejs_maps_prove(const struct runtime_target *target, uint64_t builtins, struct nodejs_maps *maps)
{
	uint8_t own[64], copy[sizeof(own)];

	for (size_t i = 0; i < maps->maybe_count; i++) {
		bool is_same = true;

		for (uint64_t part = 0; is_same && part < 4; part++) {
			uint64_t at = (maps->builtins_size - PAGE) / 3 * part & ~(uint64_t)7;

			is_same = target->read(target->self, own, sizeof(own), builtins + at) == 0 &&
				  target->read(target->self, copy, sizeof(copy), maps->maybe[i] + at) == 0 &&
				  memcmp(own, copy, sizeof(own)) == 0;
		}
		if (is_same)
			add_builtins(maps, maps->maybe[i], maps->builtins_size);
	}
	maps->maybe_count = 0;
}

void nodejs_take_builtins(const struct nodejs_maps *maps, struct abi_nodejs *out)
{
	for (size_t i = 0; i < ABI_NODEJS_BUILTINS; i++)
		out->builtins[i] = maps->builtins[i];
	out->builtins_size = maps->builtins_size;
}
