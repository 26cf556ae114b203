/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of .xz bytes (.gnu_debugdata) with an output limit. */
#pragma once

#include "base/buf.h"
#include "object/reader.h"

#define XZ_MEMORY_MAX MIB(20) /* of the decoder: a dictionary of 8 MiB (xz -6) takes 9 */

/**
 * xz_unpack - append what the stream in @in holds; @out->max bounds it
 * Return: 0; -EBADMSG when cut off or malformed; -E2BIG over @out->max or XZ_MEMORY_MAX; -ENOMEM; the reader's error.
 */
int xz_unpack(const struct reader *in, struct buf *out) warn_unused;
