/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope's JSON: docs/formats/speedscope.md. */
#pragma once

#include "codec/codec.h"

extern const struct codec codec_speedscope;

int speedscope_encode(const struct window *w, const struct codec_options *options, struct buf *out) warn_unused;
int speedscope_decode(struct str bytes, const struct codec_limits *limits, struct window *out,
		      struct codec_error *error) warn_unused;
