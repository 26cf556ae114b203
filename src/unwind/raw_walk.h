/* SPDX-License-Identifier: Apache-2.0 */
/* Finishes the walk of a raw sample over the bytes of stack that came with it. */
#pragma once

#include "unwind/in_line.h"
#include "unwind/rows.h"
#include "unwind/world.h"

struct raw_walk; /* scratch memory of one walk at a time */

/** raw_walk_new - @runtimes: copied; NULL: frames of runtimes are walked as native ones. */
int raw_walk_new(struct rows *rows, struct files *files, uint8_t mode, const struct in_line *runtimes,
		 struct raw_walk **out) warn_unused;
void raw_walk_free(struct raw_walk *r); /* NULL is fine */

/**
 * raw_walk_finish - the same sample with all frames that could be walked, without RAW; with RAW when a mapping was
 * missing
 * @sample: checked, with ABI_SAMPLE_RAW
 * @out: owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int raw_walk_finish(struct raw_walk *r, const struct abi_sample *sample, const struct mappings *maps,
		    struct abi_sample **out) warn_unused;
