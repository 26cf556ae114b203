/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of bytes that come in pieces cut anywhere. */
#pragma once

#include "base/buf.h"

struct lines {
	struct buf partial; /* the unfinished line; its maximum is that of a line */
	bool is_too_long;   /* of the unfinished one: the rest of it is skipped */
};

#define LINES_INIT(line_max)                  \
	{                                     \
		.partial = BUF_INIT(line_max) \
	}

/** Takes one line, not empty and without its end; borrowed. Return: 0, or -errno to stop. */
typedef int lines_take_fn(void *ctx, struct str line);

void lines_release(struct lines *l);

/**
 * lines_feed - hand over every line that the next bytes finish; empty and overlong ones are skipped
 * Return: number of overlong lines, -ENOMEM, or what @take returned (then the rest of @bytes is lost).
 */
int lines_feed(struct lines *l, const void *bytes, size_t size, lines_take_fn *take, void *ctx) warn_unused;

/** lines_end - what stands behind the last line end is a line too. Return: as lines_feed(). */
int lines_end(struct lines *l, lines_take_fn *take, void *ctx) warn_unused;
