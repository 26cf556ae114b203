/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One step of the native walk by frame pointers.
 *
 *	x86-64                         aarch64
 *	[fp + 8]  return address       [fp + 8]  return address (x30)
 *	[fp]      the caller's fp      [fp]      the caller's fp (x29)
 *
 * Code without frame pointers leaves anything in the frame register, so every link is checked before it is believed: the
 * record must lie above the stack pointer and be aligned and readable, and the return address must stand behind a call.
 * A wrong frame is worse than no frame: what fails a check ends the walk and the end says why.
 *
 * What this cannot see: a function without a frame pointer that is called by one with it leaves its caller's frame
 * pointer in place; a tick there shows the function itself and its caller's caller. Only unwind tables can mend that.
 * Three places in code *with* frame pointers have the same gap and are recognised by the instruction at the leaf: the
 * first instruction of a function, the one behind the push of the frame register, and the return. */
#pragma once

#include "walk/walk.h"

#define WALK_USER_MIN 4096ULL
#ifdef WALK_X86_64
#define WALK_USER_MAX 0x00ffffffffffffffULL /* five-level page tables: 56 bits for user space */
#else
#define WALK_USER_MAX 0x000fffffffffffffULL /* 52 bits */
#define WALK_PAC_MASK 0x0000ffffffffffffULL /* return addresses may be signed in the bits above 48 */
#endif

struct walk_pair {
	__u64 first, second;
};

/* Two words of the stack. @at is aligned to 8. Return: 0, or 1 when they cannot be read. */
WALK_FN int walk_stack_pair(struct walk *w, __u64 at, struct walk_pair *out)
{
	__u64 offset = at - w->window_at;

	if (!w->window_size || offset > WALK_WINDOW - 16) {
		w->window_size = 0;
		if (walk_read(w, w->window, WALK_WINDOW, at)) {
			if (!walk_read(w, out, sizeof(*out), at)) /* within 512 bytes of the stack's end */
				return 0;
			w->read_failures++;
			return 1;
		}
		w->window_at = at;
		w->window_size = WALK_WINDOW;
		offset = 0;
	}
	offset >>= 3;
	walk_opaque(offset);
	if (offset > WALK_WINDOW / 8 - 2)
		return 1;
	out->first = w->window[offset];
	out->second = w->window[offset + 1];
	return 0;
}

/* What stands in front of a return address. */
enum walk_code {
	WALK_CODE_OTHER,
	WALK_CODE_CALL,
	WALK_CODE_UNREADABLE, /* not in memory: a forked child has mapped only the code it ran */
};

#ifdef WALK_X86_64
/* Do the eight bytes before a return address end in a call? @code is little-endian: the last byte is the top one.
 * Source: Intel SDM volume 2, CALL: E8 rel32, and FF /2 with every ModRM form that 64-bit code can have. */
WALK_FN int walk_ends_in_call(__u64 code)
{
	__u8 b1 = (__u8)(code >> 56), b2 = (__u8)(code >> 48), b3 = (__u8)(code >> 40), b4 = (__u8)(code >> 32);
	__u8 b5 = (__u8)(code >> 24), b6 = (__u8)(code >> 16), b7 = (__u8)(code >> 8);

	if (b5 == 0xe8) /* rel32 */
		return 1;
	if (b2 == 0xff && ((b1 & 0xf8) == 0xd0 || ((b1 & 0xf8) == 0x10 && b1 != 0x14 && b1 != 0x15)))
		return 1; /* register, [register] */
	if (b3 == 0xff && (((b2 & 0xf8) == 0x50 && b2 != 0x54) || b2 == 0x14))
		return 1; /* [register + disp8], [sib] */
	if (b4 == 0xff && b3 == 0x54)
		return 1; /* [sib + disp8] */
	if (b6 == 0xff && (((b5 & 0xf8) == 0x90 && b5 != 0x94) || b5 == 0x15))
		return 1; /* [register + disp32], [rip + disp32] */
	if (b7 == 0xff && (b6 == 0x94 || b6 == 0x14))
		return 1; /* [sib + disp32] */
	/* Start code that was never called pretends a call by a no-op in front: runtime.goexit of Go, __restore_rt. */
	return b1 == 0x90;
}

WALK_FN enum walk_code walk_code_before(struct walk *w, __u64 pc)
{
	__u64 code;

	if (walk_read(w, &code, sizeof(code), pc - 8))
		return WALK_CODE_UNREADABLE;
	return walk_ends_in_call(code) ? WALK_CODE_CALL : WALK_CODE_OTHER;
}

/* At the leaf the instruction tells where the return address is when the frame is not (or no longer) set up.
 * Return: bytes between sp and the return address, or -1 when the frame pointer is to be believed. */
WALK_FN int walk_leaf_slot(struct walk *w)
{
	__u64 code, top;

	if (walk_read(w, &code, sizeof(code), w->pc))
		return -1;
	if ((__u8)code == 0xc3) /* ret */
		return 0;
	if ((code & 0xffffffff) == 0xe5894855) /* push %rbp; mov %rsp,%rbp */
		return 0;
	if ((code & 0xffffffffff) == 0x55fa1e0ff3) /* endbr64; push %rbp */
		return 0;
	if ((code & 0xffffff) != 0xe58948) /* mov %rsp,%rbp: the push just happened */
		return -1;
	if (walk_read(w, &top, sizeof(top), w->sp) || top != w->fp)
		return -1;
	return 8;
}

/* The first record of a chain that the instruction at the leaf reveals. Return: 1 when w is at the caller now. */
WALK_FN int walk_leaf(struct walk *w)
{
	int slot = walk_leaf_slot(w);
	__u64 at = w->sp + (__u32)slot, caller;

	if (slot < 0 || walk_read(w, &caller, sizeof(caller), at))
		return 0;
	if (caller < WALK_USER_MIN || caller > WALK_USER_MAX || walk_code_before(w, caller) != WALK_CODE_CALL)
		return 0;
	w->pc = caller;
	w->sp = at + 8;
	return 1;
}

WALK_FN __u64 walk_strip(__u64 address)
{
	return address;
}
#else
/* BL imm26; BLR Xn; BLRAA and its kin (Arm ARM C6.2). */
WALK_FN enum walk_code walk_code_before(struct walk *w, __u64 pc)
{
	__u32 code;

	if (walk_read(w, &code, sizeof(code), pc - 4))
		return WALK_CODE_UNREADABLE;
	if ((code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 || (code & 0xfefff800) == 0xd63f0800 ||
	    code == 0xd503201f /* nop: see the x86-64 variant */)
		return WALK_CODE_CALL;
	return WALK_CODE_OTHER;
}

WALK_FN __u64 walk_strip(__u64 address)
{
	return address & WALK_PAC_MASK;
}

/* RET, the store of a frame record, and what may stand before it: the return address is still in x30. Behind the store
 * (mov x29, sp) the record lies at sp. */
WALK_FN int walk_leaf(struct walk *w)
{
	__u64 caller = walk_strip(w->lr);
	__u32 code;

	if (walk_read(w, &code, sizeof(code), w->pc))
		return 0;
	if (code == 0x910003fd) { /* mov x29, sp */
		w->fp = w->sp;
		return 0;
	}
	if (code != 0xd65f03c0 && (code & 0xffc07fff) != 0xa9807bfd && /* ret; stp x29, x30, [sp, #-n]! */
	    code != 0xd503233f && code != 0xd503237f && code != 0xd503245f) /* paciasp, pacibsp, bti c */
		return 0;
	if (caller < WALK_USER_MIN || walk_code_before(w, caller) != WALK_CODE_CALL)
		return 0;
	w->pc = caller;
	return 1;
}
#endif

/* Moves to the caller by the record at the frame pointer. Return: 0, or 1 with w->end set. */
WALK_FN int walk_frame_record(struct walk *w)
{
	struct walk_pair record;
	__u64 caller;

	if (!w->fp) {
		w->end = ABI_END_UNPROVEN_ROOT; /* start code clears it; so does other code: the host knows the functions */
		return 1;
	}
	if ((w->fp & 7) || w->fp < WALK_USER_MIN || w->fp > WALK_USER_MAX) {
		w->end = ABI_END_NO_FRAME_POINTER;
		return 1;
	}
	if (w->fp < w->sp) {
		w->end = w->is_leaf ? ABI_END_NO_FRAME_POINTER : ABI_END_NO_PROGRESS;
		return 1;
	}
	if (walk_stack_pair(w, w->fp, &record)) {
		w->end = ABI_END_READ_FAILED;
		return 1;
	}
	caller = walk_strip(record.second);
	if (!caller) {
		w->end = ABI_END_UNPROVEN_ROOT;
		return 1;
	}
	w->guessed = 0;
	if (caller < WALK_USER_MIN || caller > WALK_USER_MAX) {
		w->end = ABI_END_NO_FRAME_POINTER;
		return 1;
	}
	switch (walk_code_before(w, caller)) {
	case WALK_CODE_CALL:
		break;
	case WALK_CODE_UNREADABLE:
		w->guessed = 1;
		break;
	default:
		w->end = ABI_END_NO_FRAME_POINTER;
		return 1;
	}
	w->pc = caller;
	w->sp = w->fp + 16; /* above the record: the next one cannot lie lower, so the walk advances */
	w->fp = record.first;
	return 0;
}

/** walk_native_step - push the frame at w->pc and move to its caller */
WALK_FN enum walk_next walk_native_step(struct walk *w)
{
	__u8 flags = (w->is_return ? ABI_FRAME_RETURN : 0) | (w->guessed ? ABI_FRAME_GUESSED : 0);

	if (walk_push(w, ABI_FRAME_USER, flags, w->pc))
		return WALK_DONE;
	if ((!w->is_leaf || !walk_leaf(w)) && walk_frame_record(w))
		return WALK_DONE;
	w->is_leaf = 0;
	w->is_return = 1;
	return WALK_MORE;
}

/** walk_native_start - at the registers in leaf[]; @is_return: interrupted behind a call, as in a system call */
WALK_FN void walk_native_start(struct walk *w, int is_return)
{
	w->pc = w->leaf[WALK_REG_PC];
	w->sp = w->leaf[WALK_REG_SP];
	w->fp = w->leaf[WALK_REG_FP];
#ifdef WALK_AARCH64
	w->lr = w->leaf[WALK_REG_LR];
#else
	w->lr = 0;
#endif
	w->window_at = 0;
	w->window_size = 0;
	w->read_failures = 0;
	w->unwinder = 0;
	w->is_return = is_return ? 1 : 0;
	w->is_leaf = is_return ? 0 : 1;
	w->guessed = 0;
	w->at_signal = 0;
	w->end = ABI_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}
