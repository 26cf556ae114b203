/* SPDX-License-Identifier: Apache-2.0 */
/* File formats: encode(window) -> bytes, decode(bytes) -> window. One row per format in codecs.c. */
#pragma once

#include "base/buf.h"
#include "base/cur.h"
#include "model/window.h"

/* Where a decoder stopped, for the one line that names file and position. */
struct codec_error {
	uint64_t position; /* byte offset, or line number when is_line */
	bool is_line;
	char reason[120];
};

struct codec {
	const char *name;            /* "pprof": what --format takes */
	const char *const *suffixes; /* { ".pb.gz", ".pprof", NULL }: the usual one first */
	const char *help;
	/** Append the whole file. NULL when the format is only read. Return: 0, -ENOMEM, -E2BIG. */
	int (*encode)(const struct window *w, struct buf *out);
	/** 1 when the bytes look like this format, else 0. Looks at a few KiB at most. */
	int (*sniff)(struct str bytes);
	/** Return: 0, -EBADMSG (malformed), -ENOTSUP, -E2BIG, -ENOMEM; @out untouched and @error filled on failure. */
	int (*decode)(struct str bytes, struct window *out, struct codec_error *error);
};

const struct codec *codec_at(size_t index); /* NULL behind the last */
const struct codec *codec_find(struct str name);
/** codec_suffix_of - the longest suffix of @path that is one of @c's, or an empty string at its end. */
struct str codec_suffix_of(const struct codec *c, struct str path);
/** codec_for_path - by the longest matching suffix, or NULL. */
const struct codec *codec_for_path(struct str path);
/** codec_sniff - by content, or NULL when nothing fits. */
const struct codec *codec_sniff(struct str bytes);

/** codec_fail - fill @error, which may be NULL. */
void codec_fail(struct codec_error *error, uint64_t position, bool is_line, const char *format, ...) printf_like(4, 5);
