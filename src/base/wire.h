/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's wire format: a reader over a bounded cursor and a writer into room reserved before.
 * Source: protobuf.dev/programming-guides/encoding; leniency as in google/pprof profile/proto.go (spec of the format in
 * docs/formats/pprof.md). */
#pragma once

#include "base/buf.h"
#include "base/cur.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
	uint64_t number; /* 0 is possible: an unknown field like any other */
	unsigned int type;
	uint64_t value;   /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
	struct cur bytes; /* WIRE_BYTES */
};

#define WIRE_VARINT_MAX 10

/* At most ten bytes; what does not fit 64 bits of the tenth is dropped. Sets bad when longer or cut off. */
uint64_t wire_varint_slow(struct cur *c);

/* Most numbers have a byte, nearly all others two: those are read in line. */
static inline uint64_t wire_varint(struct cur *c)
{
	if (!c->bad && c->pos < c->end && c->pos[0] < 0x80)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a cursor over nothing has pos equal to end */
		return *c->pos++;
	if (!c->bad && c->end - c->pos >= 2 && c->pos[1] < 0x80) {
		c->pos += 2;
		return (uint64_t)(c->pos[-2] & 0x7f) | (uint64_t)c->pos[-1] << 7;
	}
	return wire_varint_slow(c);
}

/** wire_next - the next field. In line: the cursor and the field stay in registers (a tenth of decoding).
 * Return: false at the end, and when malformed (then c->bad is set). */
static inline bool wire_next(struct cur *c, struct wire_field *out)
{
	uint64_t tag, size;

	if (c->bad || c->pos == c->end)
		return false;
	tag = wire_varint(c);
	out->number = tag >> 3;
	out->type = tag & 7;
	out->value = 0;
	out->bytes.pos = out->bytes.end = NULL;
	out->bytes.bad = false;
	switch (out->type) {
	case WIRE_VARINT:
		out->value = wire_varint(c);
		break;
	case WIRE_FIXED64:
		out->value = cur_le64(c);
		break;
	case WIRE_BYTES:
		size = wire_varint(c);
		/* Field by field: a struct written in parts and copied whole waits for its own stores (a tenth of
		 * decoding). */
		if (size > cur_left(c)) {
			c->bad = true;
			break;
		}
		out->bytes.pos = c->pos;
		c->pos += size;
		out->bytes.end = c->pos;
		break;
	case WIRE_FIXED32:
		out->value = cur_le32(c);
		break;
	default: /* groups are not handled by the reference either; 6 and 7 do not exist */
		c->bad = true;
	}
	return !c->bad;
}

/**
 * wire_numbers - eat the number fields at the front of @c that have a tag of one byte and a number up to @last
 * @last: at most 15
 * @field: last + 1 values; a later one of a number replaces an earlier one. field[0] takes what nobody knows.
 *
 * Stops at everything else, also at a value of ten bytes: wire_next() says what that is. The pointer stays in a
 * register meanwhile, which makes it several times as fast for messages that have little but numbers.
 */
static inline void wire_numbers(struct cur *c, uint64_t *field, unsigned int last)
{
	const uint8_t *at = c->pos, *end = c->end;

	while (!c->bad && end - at >= 2 && !(at[0] & 0x87) && (unsigned int)at[0] >> 3 <= last) {
		const uint8_t *next = at + 1;
		uint64_t value = *next & 0x7f;

		for (unsigned int shift = 7; *next++ >= 0x80; shift += 7) {
			if (next == end || shift == 63) {
				c->pos = at;
				return;
			}
			value |= (uint64_t)(*next & 0x7f) << shift;
		}
		field[at[0] >> 3] = value;
		at = next;
	}
	c->pos = at;
}

static inline struct str wire_str(const struct wire_field *f)
{
	return cur_rest(&f->bytes);
}

/** wire_fits - false after marking @c bad when a known field has another type than @type. */
static inline bool wire_fits(struct cur *c, const struct wire_field *f, enum wire_type type)
{
	if (f->type != type)
		c->bad = true;
	return f->type == type;
}

/* Writing */

static inline size_t wire_varint_size(uint64_t value)
{
	return (size_t)(9 * (63 - __builtin_clzll(value | 1)) + 73) / 64; /* ceil(bits / 7), at least 1 */
}

static inline uint8_t *wire_put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline size_t wire_tag_size(uint32_t number)
{
	return wire_varint_size((uint64_t)number << 3);
}

static inline uint8_t *wire_put_tag(uint8_t *at, uint32_t number, enum wire_type type)
{
	return wire_put_varint(at, (uint64_t)number << 3 | type);
}

/* A number field; nothing for 0, proto3's default. */
static inline size_t wire_number_size(uint32_t number, uint64_t value)
{
	return value ? wire_tag_size(number) + wire_varint_size(value) : 0;
}

static inline uint8_t *wire_put_number(uint8_t *at, uint32_t number, uint64_t value)
{
	return value ? wire_put_varint(wire_put_tag(at, number, WIRE_VARINT), value) : at;
}

/* The same into a buffer. Errors stick to the buffer. */
void wire_add_varint(struct buf *b, uint64_t value);
void wire_add_tag(struct buf *b, uint32_t number, enum wire_type type);
void wire_add_number(struct buf *b, uint32_t number, uint64_t value);  /* nothing for 0 */
void wire_add_bytes(struct buf *b, uint32_t number, struct str bytes); /* also when empty */
void wire_add_value(struct buf *b, uint32_t number, uint64_t value);   /* as wire_add_number(), also for 0 */
void wire_add_fixed64(struct buf *b, uint64_t value);                  /* eight bytes without a tag */
