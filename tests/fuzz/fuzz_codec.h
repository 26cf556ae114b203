/* SPDX-License-Identifier: Apache-2.0 */
/* What every format's fuzz target does: what was read is written, read and written again with equal bytes. */
#pragma once

#include "fuzz.h"

#include "codec/codec.h"

static inline int fuzz_codec(const char *name, const uint8_t *data, size_t size)
{
	scoped(window_release) struct window first = { 0 }, second = { 0 };
	scoped(buf_release) struct buf once = BUF_INIT(MIB(64)), again = BUF_INIT(MIB(64));
	const struct codec *codec = codec_find(str_of(name));
	struct codec_error error = { 0 };
	int r;

	must(codec);
	if (size > KIB(64))
		return 0;
	ignore(codec_sniff(str_n((const char *)data, size))); /* must only not crash */
	r = codec->decode(str_n((const char *)data, size), &first, &error);
	if (r < 0) {
		must(!first.model && error.reason[0]);
		return 0;
	}
	if (!codec->encode) /* only read: what was understood must survive the fullest format */
		codec = codec_find(STR("window"));
	if (codec->encode(&first, &once) < 0)
		return 0; /* expands over the limit */
	must(codec->decode(buf_str(&once), &second, &error) == 0);
	must(codec->encode(&second, &again) == 0);
	must(str_eq(buf_str(&once), buf_str(&again)));
	return 0;
}
