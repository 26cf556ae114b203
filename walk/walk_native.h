/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One step of the native walk by frame pointers.
 *
 *	x86-64                         aarch64
 *	[fp + 8]  return address       [fp + 8]  return address (x30)
 *	[fp]      the caller's fp      [fp]      the caller's fp (x29)
 *
 * Code without frame pointers leaves anything in the frame register, so every link is checked before it is believed:
 *the record must lie above the stack pointer and be aligned and readable, and the return address must stand behind a
 *call. A wrong frame is worse than no frame: what fails a check ends the walk and the end says why.
 *
 * What this cannot see in general: a function without a frame pointer that is called by one with it leaves its caller's
 * frame pointer in place; a tick there shows the function itself and its caller's caller. Only unwind tables mend that.
 * Compilers make such functions even when told to keep frame pointers: leaves that need no stack, and every function at
 * its first and last instructions. Those are recognised at the top of the stack, where the registers are exact:
 *
 *  - the instruction is a return, or one of the first two of a prologue: the return address is at a known place;
 *  - the word where the return address would be stands behind a call (through the PLT, too) to an address shortly
 *before pc, and nothing between that address and pc sets up a frame: this is the function that was called. */
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

/* What stands in front of a return address, or at it. */
enum walk_code {
	WALK_CODE_OTHER,
	WALK_CODE_CALL,
	WALK_CODE_SIGNAL,     /* what a signal handler returns to */
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
	/* Start code that was never called pretends a call by a no-op in front: runtime.goexit of Go. */
	return b1 == 0x90;
}

WALK_FN enum walk_code walk_code_before(struct walk *w, __u64 pc)
{
	struct walk_pair code;

	if (walk_read(w, &code, sizeof(code), pc - 8))
		return WALK_CODE_UNREADABLE;
	if (code.second == 0x0f0000000fc0c748) /* mov $15,%rax; syscall: rt_sigreturn, the same in every C library */
		return WALK_CODE_SIGNAL;
	return walk_ends_in_call(code.first) ? WALK_CODE_CALL : WALK_CODE_OTHER;
}

/* At the return point of a signal handler the stack pointer is at the ucontext, which holds the interrupted registers.
 * Source: linux 6.1, arch/x86/include/uapi/asm/sigcontext.h and ucontext.h. Return: 0, or 1 with w->end set. */
#define WALK_UC_RBP 120
#define WALK_UC_RSP 160 /* rip follows */

WALK_FN int walk_signal(struct walk *w)
{
	struct walk_pair sp_pc;
	__u64 fp;

	if (walk_read(w, &sp_pc, sizeof(sp_pc), w->sp + WALK_UC_RSP) ||
	    walk_read(w, &fp, sizeof(fp), w->sp + WALK_UC_RBP)) {
		w->end = ABI_END_READ_FAILED;
		return 1;
	}
	if (sp_pc.second < WALK_USER_MIN || sp_pc.second > WALK_USER_MAX) {
		w->end = ABI_END_NO_REGISTERS;
		return 1;
	}
	w->sp = sp_pc.first; /* may lie below: handlers can have a stack of their own */
	w->pc = sp_pc.second;
	w->fp = fp;
	return 0;
}

/* Where an address was called from: the target of the call that ends at @ret, seen through a PLT entry.
 * Return: the target, or 0. Source: x86-64 psABI section 5.2; Intel CET: PLT entries that start with endbr64. */
WALK_FN __u64 walk_call_target(struct walk *w, __u64 ret)
{
	__u64 code, slot, target;

	if (ret < WALK_USER_MIN || ret > WALK_USER_MAX || walk_read(w, &code, sizeof(code), ret - 8))
		return 0;
	slot = ret + (__u64)(__s64)(__s32)(code >> 32);
	if ((__u16)(code >> 16) == 0x15ff) { /* call *slot(%rip) */
		target = 0;
	} else if ((__u8)(code >> 24) == 0xe8) { /* call target */
		target = slot;
		if (walk_read(w, &code, sizeof(code), target))
			return target;
		slot = target + 6;
		if ((__u32)code == 0xfa1e0ff3) { /* endbr64: look behind it */
			if (walk_read(w, &code, sizeof(code), target + 4))
				return target;
			slot += 4;
		}
		if ((__u8)code == 0xf2) { /* bnd prefix */
			code >>= 8;
			slot++;
		}
		if ((__u16)code != 0x25ff) /* jmp *slot(%rip) */
			return target;
		slot += (__u64)(__s64)(__s32)(code >> 16);
	} else {
		return 0;
	}
	if (walk_read(w, &target, sizeof(target), slot))
		return 0;
	return target;
}

#define WALK_SCAN 1024 /* bytes of a function looked at: the size of scratch */
#define WALK_BYTES(byte) (0x0101010101010101ULL * (byte))

/* Is one of the eight bytes zero? H. S. Warren, Hacker's Delight, section 6-1. */
WALK_FN int walk_has_zero(__u64 word)
{
	return ((word - WALK_BYTES(1)) & ~word & WALK_BYTES(0x80)) != 0;
}

WALK_FN int walk_has_byte(__u64 word, __u8 byte)
{
	return walk_has_zero(word ^ WALK_BYTES(byte));
}

/* Does one of these instructions end in these eight bytes? mov %rsp,%rbp (48 89 e5 or 48 8b ec), sub $n,%rsp (83 ec or
 * 81 ec). Eight positions at once: each operand is the code shifted so that the byte wanted there lines up. */
WALK_FN int walk_has_setup(__u64 before, __u64 code)
{
	__u64 one = code << 8 | before >> 56, two = code << 16 | before >> 48;
	__u64 ec = code ^ WALK_BYTES(0xec), rex = two ^ WALK_BYTES(0x48);

	return walk_has_zero((code ^ WALK_BYTES(0xe5)) | (one ^ WALK_BYTES(0x89)) | rex) ||
	       walk_has_zero(ec | (one ^ WALK_BYTES(0x8b)) | rex) ||
	       walk_has_zero(ec | ((one & WALK_BYTES(0xfd)) ^ WALK_BYTES(0x81)));
}

/* Does anything from @start up to pc set up a frame or make room on the stack? Return: 0 only when all was read and
 * nothing was found. */
WALK_FN int walk_sets_frame(struct walk *w, __u64 start)
{
	__u64 distance = w->pc - start, before = 0;
	__u32 size = (__u32)distance & (WALK_SCAN - 1);

	if (distance >= WALK_SCAN)
		return 1;
	walk_opaque(size);
	if (size >= WALK_SCAN)
		return 1;
	w->scratch[size / 8] = 0; /* what is behind the last byte of the last word */
	if (size && walk_read(w, w->scratch, size, start))
		return 1;
	for (__u32 i = 0; i < WALK_SCAN / 8; i++) {
		__u64 code = w->scratch[i];

		if (i * 8 >= size)
			break;
		if (walk_has_setup(before, code))
			return 1;
		before = code;
	}
	return 0;
}

struct walk_code_around {
	__u64 before, at, behind;
};

/* Behind the pop of the frame register and before the return: the frame record is the caller's, so its return address
 * does not belong to a call of this function. */
WALK_FN int walk_is_popped(struct walk *w, const struct walk_code_around *code, __u64 start)
{
	struct walk_pair record;
	__u64 outer;

	if (w->pc - start >= 4096 || (!walk_has_byte(code->before, 0x5d) && !walk_has_byte(code->before, 0xc9)))
		return 0;
	if (!walk_has_byte(code->at, 0xc3) && !walk_has_byte(code->behind, 0xc3))
		return 0;
	if ((w->fp & 7) || w->fp < w->sp || walk_stack_pair(w, w->fp, &record))
		return 0;
	outer = walk_call_target(w, record.second);
	return outer && outer != start;
}

/* Bytes between sp and the return address where the frame is not (or no longer) set up, or -1 when the frame pointer
 * is to be believed. */
WALK_FN int walk_leaf_slot(struct walk *w)
{
	struct walk_code_around code;
	struct walk_pair top;
	__u64 start;
	int slot;

	if ((w->sp & 7) || walk_stack_pair(w, w->sp, &top) || walk_read(w, &code, sizeof(code), w->pc - 8))
		return -1;
	if ((__u8)code.at == 0xc3) /* ret */
		return 0;
	if ((__u32)code.at == 0xe5894855) /* push %rbp; mov %rsp,%rbp */
		return 0;
	if ((code.at & 0xffffffffff) == 0x55fa1e0ff3) /* endbr64; push %rbp */
		return 0;
	if ((code.at & 0xffffff) == 0xe58948 && top.first == w->fp) /* mov %rsp,%rbp: the push just happened */
		return 8;
	/* The frame register on top: its push has happened, its move may be to come. */
	slot = top.first == w->fp ? 8 : 0;
	start = walk_call_target(w, slot ? top.second : top.first);
	if (!start || (walk_sets_frame(w, start) && (slot || !walk_is_popped(w, &code, start))))
		return -1;
	return slot;
}

/* Moves to the caller when the frame record is not this function's. Return: 1 when w is there now. */
WALK_FN int walk_leaf(struct walk *w)
{
	int slot = walk_leaf_slot(w);
	struct walk_pair top;
	__u64 caller;

	if (slot < 0 || walk_stack_pair(w, w->sp, &top))
		return 0;
	caller = slot ? top.second : top.first;
	if (caller < WALK_USER_MIN || caller > WALK_USER_MAX || walk_code_before(w, caller) != WALK_CODE_CALL)
		return 0;
	w->pc = caller;
	w->sp += (__u32)slot + 8;
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
	if ((code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 ||
	    (code & 0xfefff800) == 0xd63f0800 || code == 0xd503201f /* nop: see the x86-64 variant */)
		return WALK_CODE_CALL;
	return WALK_CODE_OTHER; /* the return point of signal handlers, too: its registers cannot be found by x29 alone
				 */
}

WALK_FN int walk_signal(struct walk *w)
{
	w->end = ABI_END_NO_REGISTERS;
	return 1;
}

WALK_FN __u64 walk_strip(__u64 address)
{
	return address & WALK_PAC_MASK;
}

#define WALK_SCAN 256 /* instructions of a function looked at: the size of scratch */

/* Was this function called by the BL before x30, and is there no mov x29, sp up to pc? */
WALK_FN int walk_is_frameless(struct walk *w, __u64 caller)
{
	const __u32 *words = (const __u32 *)w->scratch;
	__u64 start, distance;
	__u32 code, size;

	if (walk_read(w, &code, sizeof(code), caller - 4) || (code & 0xfc000000) != 0x94000000)
		return 0;
	start = caller - 4 + (__u64)((__s64)((__u64)code << 38) >> 36); /* imm26, times 4 */
	distance = w->pc - start;
	size = (__u32)distance & (WALK_SCAN * 4 - 4);
	if (distance >= WALK_SCAN * 4)
		return 0;
	walk_opaque(size);
	if (size >= WALK_SCAN * 4 || (size && walk_read(w, w->scratch, size, start)))
		return 0;
	for (__u32 i = 0; i < WALK_SCAN; i++) {
		if (i * 4 >= size)
			break;
		if (words[i] == 0x910003fd)
			return 0;
	}
	return 1;
}

/* RET, the store of a frame record, and what may stand before it: the return address is still in x30. Behind the store
 * (mov x29, sp) the record lies at sp. Return: 1 when w is at the caller now. */
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
	if (caller < WALK_USER_MIN || walk_code_before(w, caller) != WALK_CODE_CALL)
		return 0;
	if (code != 0xd65f03c0 && (code & 0xffc07fff) != 0xa9807bfd &&        /* ret; stp x29, x30, [sp, #-n]! */
	    code != 0xd503233f && code != 0xd503237f && code != 0xd503245f && /* paciasp, pacibsp, bti c */
	    !walk_is_frameless(w, caller))
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
		w->end = ABI_END_UNPROVEN_ROOT; /* start code clears it; so does other code: the host knows the
						   functions */
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
	w->at_signal = 0;
	if (caller < WALK_USER_MIN || caller > WALK_USER_MAX) {
		w->end = ABI_END_NO_FRAME_POINTER;
		return 1;
	}
	switch (walk_code_before(w, caller)) {
	case WALK_CODE_CALL:
		break;
	case WALK_CODE_SIGNAL:
		w->at_signal = 1;
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
	if (w->at_signal) {
		w->at_signal = 0;
		w->is_leaf = 1; /* interrupted anywhere */
		w->is_return = 0;
		return walk_signal(w) ? WALK_DONE : WALK_MORE;
	}
	if ((!w->is_leaf || !walk_leaf(w)) && walk_frame_record(w))
		return WALK_DONE;
	w->is_leaf = 0;
	w->is_return = !w->at_signal; /* the first instruction behind a handler was not called */
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
	w->is_leaf = 1;
	w->guessed = 0;
	w->at_signal = 0;
	w->end = ABI_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}
