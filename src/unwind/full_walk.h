/* SPDX-License-Identifier: Apache-2.0 */
/* A walk that keeps all registers. Where a row cannot hold a rule (the frame begins at what another register or an
 * expression says), the function's call frame information itself is asked. */
#pragma once

#include <linux/types.h>

#include "proc/files.h"
#include "walk/walk.h"

struct full_walk;

/** full_walk_new - @files is shared and outlives it. */
int full_walk_new(struct files *files, struct full_walk **out) warn_unused;
void full_walk_free(struct full_walk *f); /* NULL is fine */

/**
 * full_walk - unwind_walk(), and once more with all registers when it ended UNSUPPORTED and began where they are known
 *
 * A caller that was found in this way is believed when its stack pointer lies above and its address is code behind a
 * call. Rows go on to lead where they can: where both speak of one frame and differ, the registers are forgotten.
 */
void full_walk(struct full_walk *f, struct walk *w);
