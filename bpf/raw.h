/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a walk that could not be finished leaves to the host: struct abi_raw and the top of the stack, put together
 * behind the last frame inside struct walk, so that the record still goes out in one piece. */
#pragma once

#include "unwind.h"
#include "walk/walk_native.h"

#include <bpf/bpf_core_read.h>

#define RAW_AREA sizeof(((struct walk *)0)->frames)
#define RAW_CHUNK 4096     /* memory is there or not there by pages; no kernel has smaller ones */
#define RAW_ROOT_BYTES 128 /* what the first frames of a thread keep above the stack pointer they were given */

_Static_assert(sizeof(struct abi_raw) + ABI_STACK_MAX + RAW_CHUNK <= RAW_AREA, "a whole copy behind some frames");

/* Can the host go on where this walk ended? */
static __always_inline bool raw_wanted(const struct walk *w)
{
	return w->end == ABI_END_NO_PROCESS || w->end == ABI_END_NO_MAPPING || w->end == ABI_END_NO_TABLE ||
	       (w->end == ABI_END_UNSUPPORTED && w->mode != WALK_FP);
}

/* What a row cannot hold the host follows with all registers, which only the frame has that was interrupted: from there
 * it walks anew. */
static __always_inline void raw_rewind(struct walk *w)
{
	if (w->end == ABI_END_UNSUPPORTED)
		walk_native_rewind(w);
}

/* How much of the stack is worth a copy: nothing is unwound above the place where the program was started. */
static __always_inline __u32 raw_stack_limit(__u64 sp)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 start = BPF_CORE_READ(task, mm, start_stack), used = start + RAW_ROOT_BYTES - sp;

	return start > sp && used < ABI_STACK_MAX ? (__u32)used & ~7u : ABI_STACK_MAX;
}

/* Copies up to the end of the stack's mapping. @at: bytes of the frame area in use. Return: bytes copied. */
static __always_inline __u32 raw_stack(struct walk *w, __u64 at)
{
	__u64 from = w->sp, left = raw_stack_limit(from), to = at;

	if (from & 7)
		return 0;
	for (int i = 0; i < ABI_STACK_MAX / RAW_CHUNK + 1; i++) {
		__u64 size = RAW_CHUNK - (from & (RAW_CHUNK - 1));

		if (size > left)
			size = left;
		if (!size || to > RAW_AREA - RAW_CHUNK)
			break;
		unwind_bound(size, RAW_CHUNK);
		unwind_bound(to, RAW_AREA - RAW_CHUNK);
		if (bpf_probe_read_user((__u8 *)w->frames + to, size, (const void *)from))
			break;
		from += size;
		left -= size;
		to += size;
	}
	return to - at;
}

/* Return: bytes of the record behind its frames; 0 when there is no room for any. */
static __always_inline __u32 raw_take(struct walk *w, const struct abi_vma *vma)
{
	__u64 at = ((__u64)w->count + w->runtime_count) * sizeof(struct abi_frame);
	struct abi_raw *raw;

	if (at > RAW_AREA - sizeof(*raw))
		return 0;
	unwind_bound(at, RAW_AREA - sizeof(*raw));
	raw = (struct abi_raw *)((__u8 *)w->frames + at);
	__builtin_memcpy(raw->regs, w->leaf, sizeof(raw->regs));
	raw->pc = w->pc;
	raw->sp = w->sp;
	raw->fp = w->fp;
	raw->lr = w->lr;
	raw->vma = *vma;
	raw->is_return = w->is_return;
	raw->is_leaf = w->is_leaf;
	raw->guessed = w->guessed;
	raw->at_signal = w->at_signal;
	raw->stack_size = raw_stack(w, at + sizeof(*raw));
	return sizeof(*raw) + raw->stack_size;
}
