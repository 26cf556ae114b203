/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* To the caller by frame pointers, and the reads of stack and code that every native step needs.
 *
 *	x86-64                         aarch64
 *	[fp + 8]  return address       [fp + 8]  return address (x30)
 *	[fp]      the caller's fp      [fp]      the caller's fp (x29)
 *
 * Code without frame pointers leaves anything in the frame register, so every link is checked before it is believed:
 * the record must lie above the stack pointer and be aligned and readable, and the return address must stand behind a
 * call. A wrong frame is worse than no frame: what fails a check ends the walk and the end says why.
 *
 * What this cannot see in general: a function without a frame pointer that is called by one with it leaves its caller's
 * frame pointer in place; a tick there shows the function itself and its caller's caller. Only unwind tables mend that.
 * Compilers make such functions even when told to keep frame pointers: leaves that need no stack, and every function at
 * its first and last instructions. Those are recognised at the top of the stack, where the registers are exact:
 *
 *  - the instruction is a return, or one of the first two of a prologue: the return address is at a known place;
 *  - the word where the return address would be stands behind a call (through the PLT, too) to an address shortly
 * before pc, and nothing between that address and pc sets up a frame: this is the function that was called. */
#pragma once

#include "walk/walk.h"

#ifdef WALK_AARCH64
#define WALK_PAC_MASK 0x0000ffffffffffffULL /* return addresses may be signed in the bits above 48 */
#endif

struct walk_native {
	__u32 left, right, low; /* of a search: here the verifier does not follow every value they could have */
	__u32 falls;            /* how often the stack pointer of this walk went down */
	__s32 slot;             /* hidden in the same way: bytes between sp and a leaf's return address */
	__u32 up;               /* of a search, too: where it went last */
};

_Static_assert(sizeof(struct walk_native) <= sizeof(((struct walk *)0)->state[0]), "it overlays state[0]");

WALK_FN struct walk_native *walk_native_state(struct walk *w)
{
	return (struct walk_native *)w->state[0];
}

struct walk_pair {
	__u64 first, second;
};

/* Fills the window from @at on, which is aligned to 8. Return: 0, or 1 when fewer bytes than that can be read. */
WALK_FN int walk_window(struct walk *w, __u64 at)
{
	w->window_size = 0;
	if (walk_read(w, w->window, WALK_WINDOW, at))
		return 1;
	w->window_at = at;
	w->window_size = WALK_WINDOW;
	return 0;
}

/* Two words of the stack. @at is aligned to 8. Return: 0, or 1 when they cannot be read. */
WALK_FN int walk_stack_pair(struct walk *w, __u64 at, struct walk_pair *out)
{
	__u64 offset = at - w->window_at;

	if (!w->window_size || offset > WALK_WINDOW - 16) {
		if (walk_window(w, at)) {
			if (!walk_read(w, out, sizeof(*out), at)) /* within 512 bytes of the stack's end */
				return 0;
			w->read_failures++;
			return 1;
		}
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

/* One word of the stack. Return: 0, or 1 with w->end set. */
WALK_FN int walk_stack_word(struct walk *w, __u64 at, __u64 *out)
{
	__u64 offset = at - w->window_at;

	if (at & 7) {
		w->end = ABI_END_UNSUPPORTED;
		return 1;
	}
	if (!w->window_size || offset > WALK_WINDOW - 8) {
		if (walk_window(w, at)) {
			if (!walk_read(w, out, sizeof(*out), at))
				return 0;
			w->read_failures++;
			w->end = ABI_END_READ_FAILED;
			return 1;
		}
		offset = 0;
	}
	offset >>= 3;
	walk_opaque(offset);
	if (offset > WALK_WINDOW / 8 - 1)
		return 1;
	*out = w->window[offset];
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

#define WALK_SIGRETURN 0x0f0000000fc0c748 /* mov $15,%rax; syscall: rt_sigreturn, the same in every C library */

WALK_FN enum walk_code walk_code_before(struct walk *w, __u64 pc)
{
	struct walk_pair code;

	if (walk_read(w, &code, sizeof(code), pc - 8))
		return WALK_CODE_UNREADABLE;
	if (code.second == WALK_SIGRETURN)
		return WALK_CODE_SIGNAL;
	return walk_ends_in_call(code.first) ? WALK_CODE_CALL : WALK_CODE_OTHER;
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
	volatile struct walk_native *state = walk_native_state(w);
	struct walk_code_around code;
	struct walk_pair top;
	__u64 start;

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
	state->slot = top.first == w->fp ? 8 : 0;
	start = walk_call_target(w, state->slot ? top.second : top.first);
	if (!start || (walk_sets_frame(w, start) && (state->slot || !walk_is_popped(w, &code, start))))
		return -1;
	return state->slot;
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
/* mov x8, #139; svc #0: rt_sigreturn, in the vDSO. Since linux 5.10 that has no unwind rule (arch/arm64/kernel/vdso/
 * sigreturn.S). */
#define WALK_SIGRETURN 0xd4000001d2801168

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

/* A stack grows towards its callers' frames, except where a record on it or a signal leads to another stack. More
 * changes than this are a loop. */
#define WALK_FALLS_MAX 8

/* Return: 0, or 1 with w->end set. */
WALK_FN int walk_fall(struct walk *w)
{
	struct walk_native *state = walk_native_state(w);

	if (state->falls >= WALK_FALLS_MAX) {
		w->end = ABI_END_NO_PROGRESS;
		return 1;
	}
	state->falls++;
	return 0;
}

/* The registers that a signal interrupted, out of the frame at sp.
 * Source: linux 6.1, arch/x86/include/uapi/asm/{sigcontext,ucontext}.h: at the return point of a handler sp is at the
 * ucontext; arch/arm64/kernel/signal.c: there it is at the siginfo. Return: 0, or 1 when they cannot be read. */
#ifdef WALK_X86_64
#define WALK_SIGNAL_REGS 40 /* r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */

WALK_FN int walk_signal_regs(struct walk *w)
{
	if (walk_read(w, w->scratch, 17 * 8, w->sp + WALK_SIGNAL_REGS))
		return 1;
	for (int i = 0; i < 8; i++)
		w->leaf[8 + i] = w->scratch[i];
	w->leaf[5] = w->scratch[8];
	w->leaf[4] = w->scratch[9];
	w->leaf[WALK_REG_FP] = w->scratch[10];
	w->leaf[3] = w->scratch[11];
	w->leaf[1] = w->scratch[12];
	w->leaf[0] = w->scratch[13];
	w->leaf[2] = w->scratch[14];
	w->leaf[WALK_REG_SP] = w->scratch[15];
	w->leaf[WALK_REG_PC] = w->scratch[16];
	return 0;
}
#else
#define WALK_SIGNAL_REGS 312 /* x0 .. x30, sp, pc */

WALK_FN int walk_signal_regs(struct walk *w)
{
	return walk_read(w, w->leaf, WALK_REGS * 8, w->sp + WALK_SIGNAL_REGS) != 0;
}
#endif

/* Moves from the return point of a signal handler to what was interrupted. Return: 0, or 1 with w->end set. */
WALK_FN int walk_signal(struct walk *w)
{
	if (walk_signal_regs(w)) {
		w->end = ABI_END_READ_FAILED;
		return 1;
	}
	if (w->leaf[WALK_REG_PC] < WALK_USER_MIN || w->leaf[WALK_REG_PC] > WALK_USER_MAX) {
		w->end = ABI_END_NO_REGISTERS;
		return 1;
	}
	if (w->leaf[WALK_REG_SP] == w->sp && w->leaf[WALK_REG_PC] == w->pc) {
		w->end = ABI_END_NO_PROGRESS;
		return 1;
	}
	/* May lie below: handlers can have a stack of their own. */
	if (w->leaf[WALK_REG_SP] < w->sp && walk_fall(w))
		return 1;
	w->pc = w->leaf[WALK_REG_PC];
	w->sp = w->leaf[WALK_REG_SP];
	w->fp = w->leaf[WALK_REG_FP];
#ifdef WALK_AARCH64
	w->lr = w->leaf[WALK_REG_LR];
#endif
	w->is_leaf = 1; /* interrupted anywhere */
	w->is_return = 0;
	w->leaf_count = w->count;
	w->leaf_is_return = 0;
	w->at_signal = 0;
	w->guessed = 0;
	return 0;
}
