/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the shells of all runtimes share whose frames are walked behind the native ones (python.h).
 *
 * A shell NAME has NAME_begin(w, task), which looks up what is known of the process and calls behind_begin(); the step
 * UNWIND_STEP_OF(UNWIND_TICK, NAME, ...) and UNWIND_STEP_OF(UNWIND_SWITCH, NAME_switch, ...); and NAME_again(w), which
 * says whether its frames are to be walked once more, with more room for them.
 *
 * The includer has count_add(). */
#pragma once

#include "unwind.h"

#include <bpf/bpf_core_read.h>

#define NATIVE_ROOM 640 /* frames: the others are for the runtime's, where there is one */

static __always_inline __u64 behind_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread.uw.tp_value);
#else
	return BPF_CORE_READ(task, thread.fsbase);
#endif
}

/* The process has the runtime: room for its frames, and whose thread it is. */
static __always_inline void behind_begin(struct walk *w, struct task_struct *task)
{
	if (w->count > NATIVE_ROOM && !w->others_count) {
		w->count = NATIVE_ROOM;
		w->end = ABI_END_FRAME_LIMIT;
	}
	w->tp = behind_thread_pointer(task);
	w->tid = 0;
}

static __always_inline void behind_count(const struct walk *w)
{
	count_add(ABI_COUNTER_RUNTIME_WALKS, 1);
	if (w->runtime_end == ABI_RUNTIME_END_NO_STATE)
		count_add(ABI_COUNTER_RUNTIME_NO_STATE, 1);
	else if (w->runtime_end == ABI_RUNTIME_END_READ_FAILED || w->runtime_end == ABI_RUNTIME_END_BAD_CHAIN)
		count_add(ABI_COUNTER_RUNTIME_FAILED, 1);
	else if (w->runtime_end == ABI_RUNTIME_END_GAP)
		count_add(ABI_COUNTER_RUNTIME_GAPS, 1);
}

/* The whole walk of one runtime's frames. @trigger: RUNTIMES_BEHIND. */
#define BEHIND_WALK(w, task, name, trigger)                        \
	do {                                                       \
		walk_set_aside(w);                                 \
		if (name##_begin(w, task)) {                       \
			UNWIND_LOOP(name##trigger);                \
			if (!(w)->others_count && name##_again(w)) \
				UNWIND_LOOP(name##trigger);        \
			behind_count(w);                           \
		}                                                  \
		walk_put_back(w);                                  \
	} while (0)
