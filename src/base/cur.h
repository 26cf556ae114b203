/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded cursor over hostile bytes. `bad` sticks: test it once, after the last read. Lengths are compared, pointers
 * past the end are never formed, byte order is always explicit. */
#pragma once

#include "base/str.h"

struct cur {
	const uint8_t *pos, *end;
	bool bad;
};

static inline struct cur cur_of(const void *bytes, size_t size)
{
	static const uint8_t nothing;
	const uint8_t *at = bytes ? bytes : &nothing;

	return (struct cur){ .pos = at, .end = at + (bytes ? size : 0) };
}

static inline size_t cur_left(const struct cur *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->pos);
}

static inline const uint8_t *cur_bytes(struct cur *c, size_t n)
{
	if (c->bad || n > (size_t)(c->end - c->pos)) {
		c->bad = true;
		return NULL;
	}
	c->pos += n;
	return c->pos - n;
}

/** cur_sub - a cursor over the next @n bytes; bad when there are fewer. */
static inline struct cur cur_sub(struct cur *c, size_t n)
{
	const uint8_t *p = cur_bytes(c, n);
	struct cur sub = cur_of(p, p ? n : 0);

	sub.bad = c->bad;
	return sub;
}

static inline uint8_t cur_u8(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 1);

	return p ? p[0] : 0;
}

static inline uint16_t cur_le16(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 2);

	return p ? (uint16_t)((uint32_t)p[0] | (uint32_t)p[1] << 8) : 0;
}

static inline uint32_t cur_le32(struct cur *c)
{
	const uint8_t *p = cur_bytes(c, 4);

	return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;
}

static inline uint64_t cur_le64(struct cur *c)
{
	uint64_t low = cur_le32(c);

	return low | (uint64_t)cur_le32(c) << 32;
}

/**
 * cur_uvarint - LEB128, at most ten bytes
 *
 * Return: 0; -EBADMSG when cut off or longer than ten bytes; -EOVERFLOW when a bit above 63 is set. @out untouched on
 * failure, and the cursor is bad.
 */
int cur_uvarint(struct cur *c, uint64_t *out) warn_unused;

/** cur_cstr - the text up to the next NUL, which is eaten; bad when there is none. */
struct str cur_cstr(struct cur *c);

static inline struct str cur_rest(const struct cur *c)
{
	return str_n((const char *)c->pos, cur_left(c));
}
