/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/lines.h"

#define HIGH 192U /* from here on a byte is followed by another; 6 bits of it count */
#define ESCAPE 0xff

uint32_t java_number(struct cur *c, bool no_zero)
{
	uint32_t less = no_zero ? 1 : 0, value = 0;

	for (unsigned shift = 0; shift <= 24; shift += 6) {
		uint32_t byte = cur_u8(c);

		if (c->bad || byte < less) {
			c->bad = true;
			return 0;
		}
		value += (byte - less) << shift;
		if (byte < HIGH)
			break;
	}
	return value;
}

int32_t java_signed(struct cur *c, bool no_zero)
{
	uint32_t value = java_number(c, no_zero);

	return (int32_t)(value >> 1 ^ -(value & 1));
}

struct pair {
	uint32_t index;
	int32_t line;
};

/* Differences of bytecode index and line: five and three bits of a byte, or two numbers behind an escape. Source:
 * OpenJDK 17, share/oops/method.cpp, CompressedLineNumberReadStream. Return: false at the end. */
static bool next(struct cur *c, bool no_zero, struct pair *p)
{
	uint8_t byte = cur_u8(c);

	if (c->bad || !byte)
		return false;
	if (byte == ESCAPE) {
		p->index += (uint32_t)java_signed(c, no_zero);
		p->line = (int32_t)((uint32_t)p->line + (uint32_t)java_signed(c, no_zero));
	} else {
		p->index += byte >> 3;
		p->line = (int32_t)((uint32_t)p->line + (byte & 7));
	}
	return !c->bad;
}

size_t java_lines_size(struct cur bytes, bool no_zero, int32_t *first_line)
{
	struct pair p = { 0 }, first = { .index = UINT32_MAX };
	struct cur c = bytes;

	while (next(&c, no_zero, &p))
		if (p.index < first.index)
			first = p;
	if (c.bad)
		return 0;
	*first_line = MAX(first.line, 0);
	return (size_t)(c.pos - bytes.pos);
}

int32_t java_lines_find(struct cur table, bool no_zero, uint32_t index)
{
	struct pair p = { 0 }, best = { 0 };

	while (next(&table, no_zero, &p)) {
		if (p.index == index)
			return MAX(p.line, 0);
		if (p.index < index && p.index >= best.index)
			best = p;
	}
	return MAX(best.line, 0);
}
