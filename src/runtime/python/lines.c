/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python/lines.h"

#include "abi/python.h"
#include "base/cur.h"

#define NO_LINE (-128) /* 3.10: the line part of a pair */
#define UNIT 2         /* bytes of a code unit, 3.11 on */
#define VARINT_BITS_MAX 35

/* 3.11 on: what the first byte of an entry says; Objects/locations.md. */
enum location {
	LOCATION_SHORT_MAX = 9, /* same line */
	LOCATION_LINE_0 = 10,   /* line + 0, + 1, + 2 */
	LOCATION_LINE_2 = 12,
	LOCATION_NO_COLUMNS = 13, /* signed varint: line */
	LOCATION_LONG = 14,       /* likewise, then three varints */
	LOCATION_NONE = 15,       /* no line */
};

struct search {
	struct cur table;
	uint64_t position;
	int64_t first, line;
	bool is_cut; /* the table goes on behind what is here */
};

static int32_t answer(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

/* Objects/codeobject.c of 3.9, PyCode_Addr2Line: a line holds until the address passes the next pair's. */
static int32_t find_in_lnotab(struct search *s, bool is_signed)
{
	uint64_t address = 0;

	while (s->table.end - s->table.pos >= 2) {
		uint8_t code = cur_u8(&s->table), line = cur_u8(&s->table);

		address += code;
		if (address > s->position)
			return answer(s->line);
		s->line += is_signed ? (int8_t)line : line;
	}
	return s->is_cut ? 0 : answer(s->line);
}

/* Objects/lnotab_notes.txt of 3.10: pairs cover the code from its start, each with its own line or none. */
static int32_t find_in_pairs(struct search *s)
{
	uint64_t end = 0;

	while (s->table.end - s->table.pos >= 2) {
		uint8_t code = cur_u8(&s->table);
		int8_t line = (int8_t)cur_u8(&s->table);

		end += code;
		s->line += line == NO_LINE ? 0 : line;
		if (s->position < end)
			return answer(line == NO_LINE ? s->first : s->line);
	}
	return 0;
}

/* 6 bits a byte, the lowest first; bit 6 says that more follow. */
static uint64_t take_varint(struct cur *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift <= VARINT_BITS_MAX; shift += 6) {
		uint8_t byte = cur_u8(c);

		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			return value;
	}
	c->bad = true;
	return 0;
}

static int64_t take_signed(struct cur *c)
{
	uint64_t value = take_varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int32_t find_in_locations(struct search *s)
{
	uint64_t end = 0;

	while (s->table.pos < s->table.end && !s->table.bad) {
		uint8_t head = cur_u8(&s->table), code = head >> 3 & 15;

		if (!(head & 0x80))
			continue; /* a byte of the last entry, which nobody needs */
		if (code >= LOCATION_LINE_0 && code <= LOCATION_LINE_2)
			s->line += code - LOCATION_LINE_0;
		else if (code == LOCATION_NO_COLUMNS || code == LOCATION_LONG)
			s->line += take_signed(&s->table);
		end += ((head & 7) + 1) * UNIT;
		if (s->position < end)
			return s->table.bad ? 0 : answer(code == LOCATION_NONE ? s->first : s->line);
	}
	return 0;
}

int32_t python_line(const struct runtime_function *function, uint32_t position)
{
	unsigned version = function->version_major * 256u + function->version_minor;
	const struct runtime_lines *lines = &function->lines;
	struct search s = { .table = cur_of(lines->bytes, lines->size),
			    .position = position,
			    .first = function->first_line,
			    .line = function->first_line,
			    .is_cut = function->lines_whole > lines->size };

	if (position == ABI_PYTHON_NOWHERE || (!lines->size && s.is_cut))
		return 0;
	if (version >= 3 * 256 + 11)
		return find_in_locations(&s);
	if (version == 3 * 256 + 10)
		return find_in_pairs(&s);
	return find_in_lnotab(&s, version >= 3 * 256 + 6);
}
