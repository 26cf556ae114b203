/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the two lists of a sample, native frames and runtime frames, into one stack in call order. Pure.
 *
 * Every native frame in the interpreter's loop is one activation of it, which ran the runtime frames of one
 * activation of the other list. They are paired from the root inwards, because only the innermost activation can lack
 * a partner: its loop has no frame yet, or none any more; in runtimes that list an activation before they call the loop
 * (begins_early: Ruby, PHP, Perl), its frames have no loop yet, a surplus of -1. Where activations carry an address on
 * the native stack (CPython 3.12 on; in 3.11 the innermost one), that decides. A native walk that did not reach its
 * root cannot be counted from there: without such addresses it is paired from the leaf and the stack says so. Frames
 * that ran on another native stack (ABI_FRAME_OTHER_STACK) are callers of all that is here. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/base.h"

enum mix_role { /* of a native frame */
		MIX_NATIVE = 0,
		MIX_INTERPRETER, /* the interpreter's own code: folded away unless asked for */
		MIX_LOOP,        /* an activation */
		MIX_IN_LINE,     /* a runtime's frame that is a frame of the native stack: nobody's but its own */
		MIX_STUB,        /* likewise, of no function: folded away unless asked for */
};

struct mix_input {
	/* Leaf first, user frames only, with their distance in `extra`, which frames of runtimes do not have. */
	const struct abi_frame *native;
	const uint8_t *roles; /* enum mix_role, one each */
	size_t native_count;
	const struct abi_frame *runtime; /* leaf first */
	size_t runtime_count;
	uint64_t stack_pointer; /* abi_sample */
	uint8_t runtime_end;    /* enum abi_runtime_end */
	bool native_is_whole;   /* its outermost frame is a root */
	bool keep_interpreter;  /* fold nothing */
	bool only_runtime;      /* no native frame at all, but those of runtimes */
	bool begins_early;      /* struct runtime's */
};

#define MIX_RUNTIME 0x80000000u /* in out[]: index of a runtime frame, otherwise of a native one */
#define MIX_MAX (2 * ABI_FRAMES_MAX)

struct mix_output {
	uint32_t frames[MIX_MAX]; /* leaf first */
	size_t count;
	uint8_t end;      /* enum abi_runtime_end: UNPAIRED, NOT_READY or that of the input */
	uint8_t surplus;  /* loops without runtime frames: innermost, where one may be */
	uint8_t shortage; /* activations without a loop */
};

/** mix_frames - @out is always filled: frames that cannot be paired are kept and marked. */
void mix_frames(const struct mix_input *in, struct mix_output *out);
