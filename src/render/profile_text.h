/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in the two text forms of bcc's profile: blocks of frames, leaf first, or one folded line for each stack.
 * Rows come by count, the most frequent last. Source of the forms: tools/profile.py of github.com/iovisor/bcc. */
#pragma once

#include "base/buf.h"
#include "codec/frame_text.h"
#include "model/window.h"

struct profile_text_config {
	bool folded;              /* one line for each stack, root first */
	bool delimited;           /* "--" or "-" between kernel and user part */
	bool annotated;           /* "_[k]" behind names of the kernel */
	bool addresses;           /* not folded: the address before each name */
	bool no_user;             /* these parts were not asked for: */
	bool no_kernel;           /* they cannot be missing */
	bool no_sum;              /* folded: rows of equal text that differ by address stay apart */
	size_t depth_max;         /* frames of each part that are shown, from the leaf on; 0: all */
	size_t stack_max;         /* different stacks that are kept: the parts of others are missing; 0: any number */
	size_t row_max;           /* rows that are kept: samples of others are left out; 0: any number */
	struct frame_style style; /* what functions of language runtimes are called */
};

struct profile_text_missing {
	uint64_t parts;    /* stacks that are not shown: a row can have two */
	bool stacks_full;  /* some of them for want of room: stack_max */
	uint64_t left_out; /* samples: row_max */
};

/**
 * profile_text - append all rows
 * @w: with codes (struct session_config), else multi-line frames have no offsets
 * @missing: added to
 *
 * Names come from strangers: control, direction and invisible characters become '?', bytes that are no UTF-8 U+FFFD,
 * and in folded lines ';' becomes ':'. Return: 0, -ENOMEM or -E2BIG (then @out is as it was).
 */
int profile_text(const struct window *w, const struct profile_text_config *cfg, struct buf *out,
		 struct profile_text_missing *missing) warn_unused;
