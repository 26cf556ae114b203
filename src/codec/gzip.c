/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/gzip.h"

#include <libdeflate.h>

static void compressor_freep(struct libdeflate_compressor **c)
{
	libdeflate_free_compressor(*c);
}

static void decompressor_freep(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

int gzip_pack(struct str bytes, int level, struct buf *out)
{
	scoped(compressor_freep) struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
	size_t bound, size;
	void *at;

	if (!c)
		return -ENOMEM;
	bound = libdeflate_gzip_compress_bound(c, bytes.len);
	at = buf_reserve(out, bound);
	if (!at)
		return out->error;
	size = libdeflate_gzip_compress(c, bytes.len ? bytes.ptr : "", bytes.len, at, bound);
	must(size); /* the bound always suffices */
	buf_commit(out, size);
	return 0;
}

/* The most this input may become. A deflate stream cannot exceed 1032 bytes per byte, so the cap also bounds what is
 * allocated for a small input. */
#define DEFLATE_RATIO_MAX 1032

static size_t limit_of(size_t input, size_t size_max, size_t ratio_max)
{
	size_t ratio = ratio_max ? MIN(ratio_max, (size_t)DEFLATE_RATIO_MAX) : DEFLATE_RATIO_MAX, limit;

	if (__builtin_mul_overflow(input, ratio, &limit) || __builtin_add_overflow(limit, MIB(1), &limit))
		return size_max;
	return MIN(limit, size_max);
}

#define GZIP_MIN 18 /* bytes of a member: header and trailer (RFC 1952 2.3.1) */

/* ISIZE, the length in the last member's trailer: a hint from a stranger, and only of its low 32 bits. */
static size_t size_hint(struct str bytes)
{
	const uint8_t *end = (const uint8_t *)bytes.ptr + bytes.len;

	if (bytes.len < GZIP_MIN)
		return 0;
	return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

/* One member, in room that doubles until it fits. Return: bytes of input eaten in *eaten, or -errno. */
static int unpack_member(struct libdeflate_decompressor *d, struct str in, size_t limit, struct buf *out, size_t *eaten)
{
	size_t room = MIN(MAX(size_hint(in), (size_t)256), limit);

	for (;;) {
		size_t used, size;
		void *at = buf_reserve(out, MAX(room, (size_t)1));
		enum libdeflate_result result;

		if (!at)
			return out->error;
		result = libdeflate_gzip_decompress_ex(d, in.ptr, in.len, at, room, &used, &size);
		if (result == LIBDEFLATE_SUCCESS) {
			buf_commit(out, size);
			*eaten = used;
			return 0;
		}
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			return -EBADMSG;
		if (room == limit)
			return -E2BIG;
		room = room > limit / 2 ? limit : room * 2;
	}
}

size_t gzip_promise(struct str bytes)
{
	return gzip_is(bytes) && bytes.len >= GZIP_MIN ? size_hint(bytes) : bytes.len;
}

int gzip_unpack_at(struct str bytes, size_t size_max, size_t ratio_max, struct buf *out, size_t *at)
{
	scoped(decompressor_freep) struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	size_t limit = limit_of(bytes.len, MIN(size_max, out->max - out->len), ratio_max), before = out->len;
	int r = bytes.len ? 0 : -EBADMSG;

	*at = 0;
	if (!d)
		return -ENOMEM;
	while (r == 0 && *at < bytes.len) {
		size_t eaten = 0;

		r = unpack_member(d, str_skip(bytes, *at), limit - (out->len - before), out, &eaten);
		*at += eaten;
	}
	if (r < 0)
		out->len = before;
	return r;
}

int gzip_unpack(struct str bytes, size_t size_max, size_t ratio_max, struct buf *out)
{
	size_t at;

	return gzip_unpack_at(bytes, size_max, ratio_max, out, &at);
}
