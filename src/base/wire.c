/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wire.h"

uint64_t wire_varint_slow(struct cur *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cur_u8(c);

		if (c->bad)
			return 0;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	c->bad = true;
	return 0;
}

void wire_add_varint(struct buf *b, uint64_t value)
{
	uint8_t *at = buf_reserve(b, WIRE_VARINT_MAX);

	if (at)
		buf_commit(b, (size_t)(wire_put_varint(at, value) - at));
}

void wire_add_tag(struct buf *b, uint32_t number, enum wire_type type)
{
	wire_add_varint(b, (uint64_t)number << 3 | type);
}

void wire_add_number(struct buf *b, uint32_t number, uint64_t value)
{
	if (!value)
		return;
	wire_add_tag(b, number, WIRE_VARINT);
	wire_add_varint(b, value);
}

void wire_add_bytes(struct buf *b, uint32_t number, struct str bytes)
{
	wire_add_tag(b, number, WIRE_BYTES);
	wire_add_varint(b, bytes.len);
	buf_adds(b, bytes);
}

void wire_add_value(struct buf *b, uint32_t number, uint64_t value)
{
	wire_add_tag(b, number, WIRE_VARINT);
	wire_add_varint(b, value);
}

void wire_add_fixed64(struct buf *b, uint64_t value)
{
	uint8_t *at = buf_reserve(b, 8);

	if (!at)
		return;
	for (unsigned int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> 8 * i);
	buf_commit(b, 8);
}
