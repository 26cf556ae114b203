/* SPDX-License-Identifier: Apache-2.0 */
/* V8's tables of source positions: pairs of differences, each a varint of 7 bits a byte whose lowest bit is the sign.
 * A first one below 0 says that the entry is an expression's and stands for -x - 1. Source: V8,
 * src/codegen/source-position-table.cc. */
#include "runtime/nodejs/nodejs_int.h"

void nodejs_positions_init(struct nodejs_positions *p, const struct nodejs_version *version, struct cur table)
{
	*p = (struct nodejs_positions){ .in = table,
					.offset = version->positions_from,
					.shift = version->positions_shift & 7 };
}

static int64_t take_number(struct cur *in)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cur_u8(in);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
	}
	in->bad = true;
	return 0;
}

bool nodejs_positions_next(struct nodejs_positions *p)
{
	int64_t code, position;

	if (p->in.pos >= p->in.end)
		return false;
	code = take_number(&p->in);
	position = take_number(&p->in);
	if (p->in.bad)
		return false;
	code = (code < 0 ? -(code + 1) : code) >> p->shift;
	return !__builtin_add_overflow(p->offset, code, &p->offset) &&
	       !__builtin_add_overflow(p->position, position, &p->position);
}

bool nodejs_position_at(const struct nodejs_version *version, struct cur table, int64_t offset, uint64_t *position)
{
	struct nodejs_positions p;
	bool found = false;

	nodejs_positions_init(&p, version, table);
	while (nodejs_positions_next(&p) && p.offset <= offset) {
		*position = (uint64_t)p.position;
		found = true;
	}
	return found;
}

bool nodejs_code_positions_fit(const struct nodejs_version *version, struct cur table, uint64_t size, uint32_t inlined)
{
	struct nodejs_positions p;

	nodejs_positions_init(&p, version, table);
	while (nodejs_positions_next(&p))
		if (p.offset < version->positions_from || p.offset > (int64_t)MIN(size, (uint64_t)INT64_MAX) ||
		    p.position < 0 || NODEJS_INLINING((uint64_t)p.position) >= (int64_t)inlined)
			return false;
	return p.in.pos == p.in.end && !p.in.bad;
}
