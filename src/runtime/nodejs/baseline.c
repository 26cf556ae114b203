/* SPDX-License-Identifier: Apache-2.0 */
/* Baseline code (Sparkplug): compiled bytecode by bytecode. Its table says how many bytes of code each bytecode became,
 * a varint each, the code in front of the first one before them. Source: V8, src/baseline/bytecode-offset-iterator.h,
 * src/interpreter/bytecodes.h. */
#include "runtime/nodejs/nodejs_int.h"

#define WIDE 0 /* bytecodes that say that the operands of the next one have 2 or 4 bytes */
#define EXTRA_WIDE 1

bool nodejs_bytecodes_next(struct nodejs_bytecodes *b, const struct nodejs_layout *l)
{
	unsigned int scale = 0;
	uint8_t code;

	b->offset += b->size;
	if (b->in.pos >= b->in.end)
		return false;
	b->size = 0;
	code = cur_u8(&b->in);
	if (code == WIDE || code == EXTRA_WIDE) {
		scale = code == WIDE ? 1 : 2;
		b->size = 1;
		code = cur_u8(&b->in);
	}
	if (b->in.bad || code >= l->bytecode_count || !l->bytecode_sizes[scale][code])
		return false;
	b->size += l->bytecode_sizes[scale][code];
	return cur_bytes(&b->in, l->bytecode_sizes[scale][code] - 1U) != NULL;
}

int nodejs_baseline_lines(const struct nodejs_layout *l, struct cur bytecode, struct cur lengths, struct cur positions,
			  const struct nodejs_lines *lines, struct buf *out)
{
	struct nodejs_bytecodes b = { .in = bytecode };
	struct nodejs_line_writer writer = { .out = out };
	int64_t position = -1;
	struct nodejs_positions p;
	uint64_t pc, length = 0;
	bool more;

	if (!l->bytecode_count)
		return -ENODATA;
	nodejs_positions_init(&p, &l->version, positions);
	more = nodejs_positions_next(&p);
	if (cur_uvarint(&lengths, &pc) < 0)
		return -EBADMSG;
	while (lengths.pos < lengths.end && nodejs_bytecodes_next(&b, l) && cur_uvarint(&lengths, &length) == 0 &&
	       length <= UINT32_MAX && pc <= UINT32_MAX) {
		for (; more && p.offset <= b.offset; more = nodejs_positions_next(&p))
			position = NODEJS_POSITION((uint64_t)p.position);
		if (position >= 0)
			nodejs_line_add(&writer, (int64_t)pc, nodejs_place_of(lines, (uint32_t)position));
		pc += length;
	}
	if (lengths.bad || lengths.pos < lengths.end || more || nodejs_bytecodes_next(&b, l) || b.in.pos < b.in.end)
		return -EBADMSG;
	return writer.is_full ? -E2BIG : 0;
}

bool nodejs_positions_fit(const struct nodejs_layout *l, struct cur bytecode, struct cur table)
{
	struct nodejs_bytecodes b = { .in = bytecode };
	int64_t size = bytecode.end - bytecode.pos;
	struct nodejs_positions p;
	bool is_there = !l->bytecode_count || nodejs_bytecodes_next(&b, l);

	nodejs_positions_init(&p, &l->version, table);
	while (nodejs_positions_next(&p)) {
		if (p.offset == l->version.positions_from) /* the function's entry: V8, kFunctionEntryBytecodeOffset */
			continue;
		while (l->bytecode_count && is_there && b.offset < p.offset)
			is_there = nodejs_bytecodes_next(&b, l);
		if (!is_there || p.offset < 0 || p.offset >= size || (l->bytecode_count && b.offset != p.offset))
			return false;
	}
	return p.in.pos == p.in.end && !p.in.bad;
}
