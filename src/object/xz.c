/* SPDX-License-Identifier: Apache-2.0 */
#include "object/xz.h"

#include <lzma.h>

#define IN_SIZE KIB(32)
#define OUT_SIZE KIB(64)

static int error_of(lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	default:
		return -EBADMSG;
	}
}

/* Return: 1 at the end of the stream, 0 to go on, or -errno. */
static int step(lzma_stream *stream, struct buf *out, bool is_last)
{
	uint8_t *room;
	lzma_ret ret;
	size_t size = MIN(out->max - out->len, (size_t)OUT_SIZE);

	if (!size)
		return -E2BIG;
	room = buf_reserve(out, size);
	if (!room)
		return out->error;
	stream->next_out = room;
	stream->avail_out = size;
	ret = lzma_code(stream, is_last ? LZMA_FINISH : LZMA_RUN);
	buf_commit(out, size - stream->avail_out);
	if (ret == LZMA_STREAM_END)
		return 1;
	return ret == LZMA_OK ? 0 : error_of(ret);
}

static int unpack(lzma_stream *stream, const struct reader *in, uint8_t *bytes, struct buf *out)
{
	uint64_t at = 0;

	for (;;) { /* each turn eats input, gives output, or ends with an error: lzma_code() sees to that */
		int r;

		if (!stream->avail_in && at < in->size) {
			size_t size = (size_t)MIN((uint64_t)IN_SIZE, in->size - at);

			r = reader_read(in, bytes, size, at);
			if (r < 0)
				return r;
			stream->next_in = bytes;
			stream->avail_in = size;
			at += size;
		}
		r = step(stream, out, at == in->size);
		if (r)
			return r < 0 ? r : 0;
	}
}

int xz_unpack(const struct reader *in, struct buf *out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	scoped(freep) uint8_t *bytes = malloc(IN_SIZE);
	lzma_ret ret;
	int r;

	if (!bytes)
		return -ENOMEM;
	ret = lzma_stream_decoder(&stream, XZ_MEMORY_MAX, 0);
	if (ret != LZMA_OK)
		return error_of(ret);
	r = unpack(&stream, in, bytes, out);
	lzma_end(&stream);
	return r;
}
