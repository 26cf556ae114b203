/* SPDX-License-Identifier: Apache-2.0 */
/* Against the obvious version: all lines in an array, the last one that covers an address wins. */
#include "fuzz.h"

#include "object/perfmap.h"

#define LINES_MAX 48

struct line {
	uint64_t start, size;
	struct str name;
};

static int to_hex(struct str text, uint64_t *out)
{
	return str_to_hex64(str_starts(text, STR("0x")) || str_starts(text, STR("0X")) ? str_skip(text, 2) : text, out);
}

static size_t read_slowly(struct str text, struct line *lines)
{
	struct str line, start, size;
	size_t count = 0;

	while (str_next(&text, '\n', &line) && text.ptr) { /* the last piece has no newline yet */
		struct line *l = &lines[count];

		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (str_next(&line, ' ', &start) && str_next(&line, ' ', &size) && line.len &&
		    !memchr(line.ptr, 0, line.len) && to_hex(start, &l->start) == 0 && to_hex(size, &l->size) == 0 &&
		    l->size && l->size <= UINT32_MAX && l->start <= UINT64_MAX - l->size && count < LINES_MAX - 1) {
			l->name = line;
			count++;
		}
	}
	return count;
}

static void check(const struct perfmap *map, const struct line *lines, size_t count, uint64_t at)
{
	const struct line *want = NULL;
	struct str name;
	uint64_t start;

	for (size_t i = 0; i < count; i++)
		if (at >= lines[i].start && at - lines[i].start < lines[i].size)
			want = &lines[i];
	must((perfmap_find(map, at, &name, &start) == 0) == (want != NULL));
	if (want)
		must(str_eq(name, want->name) && start >= want->start && start <= at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(perfmap_release) struct perfmap map, small;
	scoped(freep) struct line *lines = calloc(LINES_MAX, sizeof(*lines));
	size_t cut = size ? data[0] % size : 0, count;

	must(lines);
	perfmap_init(&map, MIB(1));
	perfmap_init(&small, KIB(8)); /* most of its time is spent on running out of room */
	if (size > KIB(4))
		return 0;
	perfmap_feed(&small, data, size);
	perfmap_feed(&map, data, cut);
	perfmap_feed(&map, data + cut, size - cut);
	must(!map.error && !map.dropped_lines);
	count = read_slowly(str_n((const char *)data, size), lines);
	if (count == LINES_MAX - 1)
		return 0;
	for (size_t i = 0; i < count; i++) {
		check(&map, lines, count, lines[i].start);
		check(&map, lines, count, lines[i].start - 1);
		check(&map, lines, count, lines[i].start + lines[i].size);
		check(&map, lines, count, lines[i].start + lines[i].size - 1);
	}
	return 0;
}
