/* SPDX-License-Identifier: Apache-2.0 */
/* What was mapped where, in a recording. */
#include "base/array.h"
#include "codec/perf_data_int.h"

#define AREAS_MAX ((size_t)1 << 20)      /* of one process; vm.max_map_count is 65530 by default */
#define WORK_MAX ((uint64_t)1 << 30)     /* areas moved or copied in all: a second or so */
#define MEMORY_USUAL ((uint64_t)1 << 30) /* bytes of all areas */

struct perf_space *perf_space_new(void)
{
	struct perf_space *s = calloc(1, sizeof(*s));

	if (s)
		s->refs = 1;
	return s;
}

void perf_space_unref(struct perf_data *d, struct perf_space *s)
{
	if (!s || --s->refs)
		return;
	d->memory -= s->cap * sizeof(*s->areas);
	free(s->areas);
	free(s);
}

static int take_work(struct perf_data *d, uint64_t count)
{
	d->work += count;
	return d->work > WORK_MAX ? -E2BIG : 0;
}

/* Room for @want areas in all. */
static int make_room(struct perf_data *d, struct perf_space *s, size_t want)
{
	size_t max = d->limits->memory_max ? d->limits->memory_max / 8 : MEMORY_USUAL, before = s->cap;
	int r;

	if (want <= s->cap)
		return 0;
	want = MAX(want, s->cap + s->cap / 2);
	if (want > AREAS_MAX || d->memory + (want - s->cap) * sizeof(*s->areas) > max)
		return -E2BIG;
	r = array_reserve(&s->areas, &s->cap, want);
	d->memory += (s->cap - before) * sizeof(*s->areas);
	return r;
}

/* A copy of its own for a space that others have, too. */
static int make_own(struct perf_data *d, struct perf_space **space)
{
	struct perf_space *copy = perf_space_new();
	int r = copy ? take_work(d, (*space)->count) : -ENOMEM;

	r = r ? r : make_room(d, copy, (*space)->count + 1);
	if (r < 0 || !copy->areas) { /* there was room for one at least */
		perf_space_unref(d, copy);
		return r < 0 ? r : -ENOMEM;
	}
	if ((*space)->count)
		memcpy(copy->areas, (*space)->areas, (*space)->count * sizeof(*copy->areas));
	copy->count = (*space)->count;
	copy->jitdump = (*space)->jitdump;
	perf_space_unref(d, *space);
	*space = copy;
	return 0;
}

/* The first area that ends behind @address. */
static size_t first_behind(const struct perf_space *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->areas[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct perf_area *perf_space_find(const struct perf_space *s, uint64_t address)
{
	size_t at = first_behind(s, address);

	return at < s->count && s->areas[at].start <= address ? &s->areas[at] : NULL;
}

/* Up to three areas stand for those that the new one touches: what is left of the first, the new one, the last's rest.
 */
static size_t pieces_of(const struct perf_space *s, size_t from, size_t to, const struct perf_area *area,
			struct perf_area pieces[3])
{
	size_t count = 0;

	if (from < to && s->areas[from].start < area->start) {
		pieces[count] = s->areas[from];
		pieces[count++].end = area->start;
	}
	pieces[count++] = *area;
	if (from < to && s->areas[to - 1].end > area->end) {
		pieces[count] = s->areas[to - 1];
		pieces[count].offset += area->end - pieces[count].start;
		pieces[count++].start = area->end;
	}
	return count;
}

int perf_space_add(struct perf_data *d, struct perf_space **space, const struct perf_area *area)
{
	struct perf_area pieces[3];
	struct perf_space *s;
	size_t from, to, count;
	int r = (*space)->refs > 1 ? make_own(d, space) : 0;

	if (r < 0 || area->start >= area->end)
		return r;
	s = *space;
	from = to = first_behind(s, area->start);
	while (to < s->count && s->areas[to].start < area->end)
		to++;
	count = pieces_of(s, from, to, area, pieces);
	r = take_work(d, s->count - from);
	r = r ? r : make_room(d, s, s->count + count);
	if (r < 0)
		return r;
	memmove(s->areas + from + count, s->areas + to, (s->count - to) * sizeof(*s->areas));
	memcpy(s->areas + from, pieces, count * sizeof(*pieces));
	s->count = s->count - (to - from) + count;
	return 0;
}
