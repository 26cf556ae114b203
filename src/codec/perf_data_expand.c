/* SPDX-License-Identifier: Apache-2.0 */
/* The records that perf record -z compressed. */
#include <zstd.h>

#include "codec/perf_data_int.h"

#define EXPAND_STEP KIB(256)

void perf_expander_release(struct perf_expander *e)
{
	ZSTD_freeDStream(e->stream); /* NULL is fine */
}

int perf_data_expand(struct perf_data *d, struct perf_expander *e, struct cur c)
{
	ZSTD_inBuffer in = { c.pos, cur_left(&c), 0 };
	ZSTD_outBuffer out;

	if (!e->stream)
		e->stream = ZSTD_createDStream();
	if (!e->stream)
		return perf_data_fail(d, c.pos, -ENOMEM, "out of memory");
	do { /* a full room may have left output inside */
		uint8_t *room = buf_reserve(&d->expanded, EXPAND_STEP);

		if (!room)
			return perf_data_fail(d, c.pos, d->expanded.error, "compressed records that expand too far");
		out = (ZSTD_outBuffer){ room, EXPAND_STEP, 0 };
		if (ZSTD_isError(ZSTD_decompressStream(e->stream, &out, &in)))
			return perf_data_fail(d, c.pos, -EBADMSG, "a damaged compressed record");
		buf_commit(&d->expanded, out.pos);
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}
