/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The walk of the current tick: one element per CPU, and the macro that makes a BPF program part out of a step of
 * walk/. A trigger that can interrupt another needs its own element: the perf tick is the only one so far. */
#pragma once

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "abi/abi.h"
#include "walk/walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct walk *unwind_state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

/* UNWIND_STEP(native, walk_native_step) makes `int unwind_native(void)`: a global function, which the verifier checks
 * once by itself instead of once per turn of the loop. It has no arguments because old kernels cannot type them.
 * `unwind_native_turns` does the same for a run of steps: the verifier follows every turn of a loop, so two loops of
 * 32 turns cost it 64 calls where one of 1,024 would cost 1,024 (measured on 6.18: 4,900 instructions, not 40,900). */
#define UNWIND_TURNS 32

#define UNWIND_STEP(name, step)                                   \
	__attribute__((noinline)) int unwind_##name(void)         \
	{                                                         \
		struct walk *w = unwind_state();                  \
                                                                  \
		return w ? (int)step(w) : (int)WALK_DONE;         \
	}                                                         \
                                                                  \
	__attribute__((noinline)) int unwind_##name##_turns(void) \
	{                                                         \
		for (int turn = 0; turn < UNWIND_TURNS; turn++)   \
			if (unwind_##name() != WALK_MORE)         \
				return WALK_DONE;                 \
		return WALK_MORE;                                 \
	}

/* Runs a step until it is done, UNWIND_TURNS squared times at most; the bound is what the verifier wants to see. */
#define UNWIND_LOOP(name)                                         \
	do {                                                      \
		for (int turn = 0; turn < UNWIND_TURNS; turn++)   \
			if (unwind_##name##_turns() != WALK_MORE) \
				break;                            \
	} while (0)

_Static_assert(UNWIND_TURNS *UNWIND_TURNS >= ABI_FRAMES_MAX, "a full record needs a turn per frame");
