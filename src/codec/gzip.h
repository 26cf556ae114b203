/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952) of whole bodies by libdeflate. */
#pragma once

#include "base/buf.h"

static inline bool gzip_is(struct str bytes)
{
	return bytes.len >= 2 && (uint8_t)bytes.ptr[0] == 0x1f && (uint8_t)bytes.ptr[1] == 0x8b;
}

/**
 * gzip_pack - append one member: no name, no time, so that equal input gives equal bytes
 * @level: 1 (fast) to 12 (small); 6 is gzip's usual one
 *
 * Return: 0, -ENOMEM, or -E2BIG when @out is too small.
 */
int gzip_pack(struct str bytes, int level, struct buf *out) warn_unused;

/** gzip_promise - bytes that @bytes say they expand to; what is no gzip, itself. Not to be believed. */
size_t gzip_promise(struct str bytes);

/**
 * gzip_unpack - append the content of all members
 * @size_max: most bytes of content, over all members
 * @ratio_max: most bytes of content per byte of input, beyond the first MiB; 0: no such limit
 *
 * Every member's CRC and length are checked. Return: 0, -EBADMSG (malformed, cut off, rubbish behind), -E2BIG over a
 * limit, -ENOMEM. On failure @out is as before.
 */
int gzip_unpack(struct str bytes, size_t size_max, size_t ratio_max, struct buf *out) warn_unused;

/** gzip_unpack_at - gzip_unpack(), which on failure says in *@at where in @bytes the member begins that failed */
int gzip_unpack_at(struct str bytes, size_t size_max, size_t ratio_max, struct buf *out, size_t *at) warn_unused;
