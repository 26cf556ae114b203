/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the two lists of a sample, native frames and runtime frames, into one stack in call order. Pure.
 *
 * Every native frame in the interpreter's loop is one activation of it, which ran the runtime frames of one activation
 * of the other list. They are paired from the root inwards, since only the innermost can be short of a partner: the
 * loop has been entered but has no frame yet, or has none any more. Where activations carry an address on the native
 * stack (CPython 3.12 on; in 3.11 the innermost one), that decides. A native walk that did not reach its root cannot be
 * counted from there: without such addresses it is paired from the leaf and the stack says so. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/base.h"

enum mix_role { /* of a native frame */
		MIX_NATIVE = 0,
		MIX_INTERPRETER, /* the interpreter's own code: folded away unless asked for */
		MIX_LOOP,        /* an activation */
};

struct mix_input {
	const struct abi_frame *native; /* leaf first, user frames only, with their distance in `extra` */
	const uint8_t *roles;           /* enum mix_role, one each */
	size_t native_count;
	const struct abi_frame *runtime; /* leaf first */
	size_t runtime_count;
	uint64_t stack_pointer; /* abi_sample */
	uint8_t runtime_end;    /* enum abi_runtime_end */
	bool native_is_whole;   /* its outermost frame is a root */
	bool keep_interpreter;  /* fold nothing */
	bool only_runtime;      /* no native frame at all */
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

/** mix_frames - @out is filled whatever the input is: what cannot be paired is kept and said. */
void mix_frames(const struct mix_input *in, struct mix_output *out);
