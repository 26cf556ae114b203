/* SPDX-License-Identifier: Apache-2.0 */
/* google/pprof's profile.proto, gzipped or not. What of a window it carries, and how: docs/formats/pprof.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_pprof;

#define PPROF_EXPANDED_MAX GIB(1)

/** pprof_decode_limited - as codec_pprof.decode within @limits. */
int pprof_decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			 struct codec_error *error) warn_unused;

/** pprof_encode_plain - the message itself, without gzip. Locations in the order in which samples use them, leaf first,
 * as Go has them. */
int pprof_encode_plain(const struct window *w, struct buf *out) warn_unused;
/** pprof_comments_each - call @line for every comment that stands for a part of @w, in order, until one fails. */
int pprof_comments_each(const struct window *w, int (*line)(void *ctx, struct str text), void *ctx) warn_unused;
/** pprof_comments_lift - move what pprof_comments_each() would write, or wrote up to 0.1, from the model into the
 * window. Return: 0 or -ENOMEM. */
int pprof_comments_lift(struct window *w) warn_unused;
/** pprof_encode_level - gzip at @level (1..12). */
int pprof_encode_level(const struct window *w, int level, struct buf *out) warn_unused;
