/* SPDX-License-Identifier: Apache-2.0 */
/* A profile file as the viewer's page wants it: any format that hearth convert reads in, trees in columns out
 * (render/columns.c). What the Files page runs, compiled to WebAssembly (exports.c). */
#pragma once

#include "codec/codec.h"
#include "render/page_types.h"
#include "render/render.h"

struct readers_file {
	struct buf meta; /* JSON: {"title":, "types":[], "kinds":[]}, as page_types_json() writes it */
	struct buf columns[PAGE_TYPES_MAX]; /* a tree for each of the types */
	size_t count;
	struct buf words; /* after a failure: why, for people; after success: what is left out, or empty */
};

#define READERS_FILE_INIT                                             \
	{                                                             \
		.meta = BUF_INIT(MIB(16)), .words = BUF_INIT(KIB(8)), \
	}

void readers_release(struct readers_file *f);

/** Bytes of a file, to be given back by free(). */
struct readers_input {
	char *bytes;
	size_t size;
};

/**
 * readers_read - what is in a file
 * @in: gzip is taken off already; freed as soon as nothing needs it, for memory is short where this runs
 * @name: of the file, which says the format where its bytes do not
 * @progress: told now and then; NULL: nobody looks
 * @out: as READERS_FILE_INIT; to be released also after a failure, when only words is filled
 *
 * Return: 0, -ENOENT (no known format), or as struct codec's decode_limited.
 */
int readers_read(struct readers_input *in, struct str name, const struct render_progress *progress,
		 struct readers_file *out) warn_unused;
