/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A runtime whose frames are frames of the native stack, for tests: functions of FAKE_CODE_BYTES each, in memory that
 *is mapped at a known place (tests/bpf/fake_program.c), with a frame that no unwind row and no frame pointer describes.
 *One source for the program, the kernel side (tests/bpf/fake_shell.h) and the host (tests/unit/fake_runtime.c).
 *
 *	[sp]       address of the function
 *	[sp + 8]   FAKE_MAGIC ^ bytes from sp to the return address
 *	[sp + 16]  the caller's frame register; the function uses it for something else */
#pragma once

#define FAKE_IN_LINE 14 /* its number: see enum abi_runtime */
#define FAKE_MAGIC 0x5ca1ab1e00000000ULL
#define FAKE_COOKIE 4711
#define FAKE_CODE_BYTES 64
#define FAKE_SLOTS 4
#define FAKE_STUB 2         /* this one is no function of a program */
#define FAKE_FRAME_BYTES 56 /* without the return address */
#define FAKE_FRAME_MAX 4096

/* Where in a function things have happened. */
#define FAKE_AT_ROOM 4      /* sub $56,%rsp */
#define FAKE_AT_LOST 43     /* behind the instruction that overwrites the frame register */
#define FAKE_AT_CALL 54     /* behind the call */
#define FAKE_AT_RESTORED 59 /* the frame register is the caller's again */
#define FAKE_AT_RETURN 63   /* sp is at the return address */

enum fake_fault { FAKE_RIGHT = 0, FAKE_STANDS_STILL, FAKE_GOES_DOWN, FAKE_NEVER_MINE };

struct abi_fake { /* what its walker must know of one process; begins as all of them */
	__u64 start_ns;
	__u32 exec_id, fault; /* enum fake_fault */
	__u64 low;            /* of function 0 */
};

#ifndef FAKE_ONLY_LAYOUT
#include "walk/walk.h"

struct walk_fake_frame {
	__u64 function, size, fp;
};

WALK_FN enum walk_next walk_fake_fail(struct walk *w, __u8 end)
{
	w->end = end;
	return WALK_DONE;
}

WALK_FN enum walk_next walk_fake_step(struct walk *w, const struct abi_fake *info)
{
	__u64 at = w->pc - info->low, offset = at & (FAKE_CODE_BYTES - 1), function = w->pc - offset, size, fp = w->fp,
	      pc;
	struct walk_fake_frame record;
	struct abi_frame *frame;

	if (info->fault == FAKE_NEVER_MINE || at >= FAKE_SLOTS * FAKE_CODE_BYTES || (w->sp & 7))
		return WALK_SWITCH;
	size = offset < FAKE_AT_ROOM || offset == FAKE_AT_RETURN ? 0 : FAKE_FRAME_BYTES;
	if (!w->is_leaf || (offset >= FAKE_AT_LOST && offset < FAKE_AT_RESTORED)) {
		if (walk_read(w, &record, sizeof(record), w->sp))
			return walk_fake_fail(w, ABI_END_READ_FAILED);
		size = record.size ^ FAKE_MAGIC;
		if (record.function != function || (size & 7) || size > FAKE_FRAME_MAX)
			return walk_fake_fail(w, ABI_END_UNSUPPORTED);
		fp = record.fp;
	}
	if (walk_read(w, &pc, sizeof(pc), w->sp + size))
		return walk_fake_fail(w, ABI_END_READ_FAILED);
	frame = walk_push_in_line(w, FAKE_IN_LINE,
				  at / FAKE_CODE_BYTES == FAKE_STUB ? ABI_FRAME_INTERNAL : ABI_FRAME_COMPILED);
	if (!frame)
		return WALK_DONE;
	frame->extra = (__u32)offset;
	frame->a = function;
	frame->b = FAKE_COOKIE;
	if (info->fault == FAKE_STANDS_STILL)
		return WALK_MORE;
	walk_move_in_line(w, pc, info->fault == FAKE_GOES_DOWN ? w->sp - 8 : w->sp + size + 8, fp);
	return WALK_MORE;
}
#endif
