/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unpack.h"

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cur.h"

#define IN_SIZE KIB(32)
#define WINDOW_LOG_MAX 23 /* of zstd: 8 MiB of the decoder's memory */

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct piece { /* of the packed bytes */
	uint8_t bytes[IN_SIZE];
	uint64_t at;
};

/* Return: how many bytes were read, 0 at the end, or -errno. */
static int next_piece(const struct reader *in, struct piece *p)
{
	size_t size = (size_t)MIN((uint64_t)IN_SIZE, in->size - p->at);
	int r = reader_read(in, p->bytes, size, p->at);

	p->at += size;
	return r < 0 ? r : (int)size;
}

static void inflate_release(z_stream *z)
{
	inflateEnd(z);
}

static int unpack_zlib(const struct reader *in, uint8_t *out, size_t size)
{
	scoped(freep) struct piece *piece = calloc(1, sizeof(*piece));
	scoped(inflate_release) z_stream z = { .next_out = out, .avail_out = (uInt)size }; /* below 4 GiB */
	int r = Z_OK;

	if (!piece || inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (r == Z_OK && z.avail_out) {
		int got = next_piece(in, piece);

		if (got <= 0)
			return got < 0 ? got : -EBADMSG;
		z.next_in = piece->bytes;
		z.avail_in = (uInt)got;
		while (r == Z_OK && z.avail_in && z.avail_out)
			r = inflate(&z, Z_NO_FLUSH);
	}
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return (r == Z_OK || r == Z_STREAM_END) && !z.avail_out ? 0 : -EBADMSG;
}

static void dctx_release(ZSTD_DCtx **d)
{
	ZSTD_freeDCtx(*d);
}

static int unpack_zstd(const struct reader *in, uint8_t *out, size_t size)
{
	scoped(freep) struct piece *piece = calloc(1, sizeof(*piece));
	scoped(dctx_release) ZSTD_DCtx *d = ZSTD_createDCtx();
	ZSTD_outBuffer to = { .dst = out, .size = size };

	if (!piece || !d || ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return -ENOMEM;
	while (to.pos < size) {
		int got = next_piece(in, piece);
		ZSTD_inBuffer from = { .src = piece->bytes, .size = got > 0 ? (size_t)got : 0 };

		if (got <= 0)
			return got < 0 ? got : -EBADMSG;
		while (from.pos < from.size && to.pos < size)
			if (ZSTD_isError(ZSTD_decompressStream(d, &to, &from)))
				return -EBADMSG;
	}
	return 0;
}

int unpack_section(const struct elf *elf, const struct elf_section *section, struct buf *out)
{
	struct reader whole = reader_slice(&elf->in, section->offset, section->size), in;
	uint8_t head[sizeof(Elf64_Chdr)];
	struct cur c = cur_of(head, sizeof(head));
	uint32_t type;
	uint64_t size;
	uint8_t *room;
	int r;

	if (!elf->is_64 || section->type == SHT_NOBITS || whole.size < sizeof(head))
		return -EBADMSG;
	r = reader_read(&whole, head, sizeof(head), 0);
	if (r < 0)
		return r;
	type = cur_le32(&c);
	cur_le32(&c); /* reserved */
	size = cur_le64(&c);
	if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
		return -ENOTSUP;
	if (size > out->max || size > UINT32_MAX)
		return -E2BIG;
	room = buf_reserve(out, (size_t)size);
	if (!room)
		return out->error;
	in = reader_slice(&whole, sizeof(head), whole.size);
	r = type == ELFCOMPRESS_ZLIB ? unpack_zlib(&in, room, (size_t)size) : unpack_zstd(&in, room, (size_t)size);
	if (r == 0)
		buf_commit(out, (size_t)size);
	return r;
}
