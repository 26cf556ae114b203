/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What HotSpot's frames look like on aarch64. A part of walk/walk_java.h, which includes it.
 *
 * A call leaves the return address in x30 alone. Most code stores it beside the caller's frame pointer, first thing it
 * does, and takes both back last thing. In the top frame the instructions around pc say where it is; what cannot be
 * told ends the walk, for nothing on the stack is searched. Frame pointers prove little: the interpreter and most stubs
 * keep them, compiled code uses x29 as any register. Return addresses may be signed.
 * Source: OpenJDK 17 and 21, src/hotspot/cpu/aarch64: what is named at each rule. Instructions: Arm ARM, chapter C6. */
#pragma once

#define WALK_JAVA_BEHIND 64      /* bytes of code in front of pc that are looked at */
#define WALK_JAVA_AHEAD 64       /* and from pc on */
#define WALK_JAVA_PROLOGUE 96    /* bytes from a method's entry on: its frame is made there */
#define WALK_JAVA_START 256      /* bytes from a stub's first instruction on */
#define WALK_JAVA_FRAME_BELOW 80 /* bytes of an interpreted frame from its frame pointer down */

#define WALK_JAVA_PUSHED_BYTES 4096 /* that code has pushed beside a frame; more is none of it */

#define WALK_JAVA_X12 12 /* the method that is called: rmethod */
#define WALK_JAVA_X20 20 /* the interpreter's own stack pointer: esp */
#define WALK_JAVA_X22 22 /* its bytecode pointer: rbcp */

#define WALK_JAVA_ENTER 0xa9bf7bfd      /* stp x29, x30, [sp, #-16]! */
#define WALK_JAVA_LEAVE 0xa8c17bfd      /* ldp x29, x30, [sp], #16 */
#define WALK_JAVA_DROP 0x910003bf       /* mov sp, x29 */
#define WALK_JAVA_RET 0xd65f03c0        /* ret */
#define WALK_JAVA_KEEP_FIRST 0xa9bf03fe /* stp x30, x0, [sp, #-16]! */
#define WALK_JAVA_KEEP_LINK 0xa9bf7be0  /* stp x0, x30, [sp, #-16]! */

/* ---- instructions ---- */

/* 1 or 0, without a branch: the verifier would follow both ways at each instruction. */
WALK_FN __u64 walk_java_matches(__u32 code, __u32 mask, __u32 value)
{
	return ((__u64)((code & mask) ^ value) - 1) >> 63;
}

/* stp x29, x30, [sp, #n] */
WALK_FN __u64 walk_java_stores(__u32 code)
{
	return walk_java_matches(code, 0xffc07fff, 0xa9007bfd);
}

/* ldp x29, x30, [sp, #n] */
WALK_FN __u64 walk_java_loads(__u32 code)
{
	return walk_java_matches(code, 0xffc07fff, 0xa9407bfd);
}

/* sub sp, sp, #n; sub sp, sp, xn */
WALK_FN __u64 walk_java_lowers(__u32 code)
{
	return walk_java_matches(code, 0xff8003ff, 0xd10003ff) | walk_java_matches(code, 0xffe0ffff, 0xcb2063ff);
}

/* add sp, sp, #n; add sp, sp, xn */
WALK_FN __u64 walk_java_raises(__u32 code)
{
	return walk_java_matches(code, 0xff8003ff, 0x910003ff) | walk_java_matches(code, 0xffe0ffff, 0x8b2063ff);
}

/* b, bl, br, blr, ret: what stands behind is reached from elsewhere, or after somebody else has run. */
WALK_FN __u64 walk_java_jumps(__u32 code)
{
	return walk_java_matches(code, 0x7c000000, 0x14000000) | walk_java_matches(code, 0xff9ffc1f, 0xd61f0000);
}

/* What stp and ldp of registers of 8 bytes say beside sp: n of [sp, #n]! and [sp], #n. */
WALK_FN __u64 walk_java_by(__u32 code)
{
	return (__u64)(__s64)((__s32)(code << 10) >> 25) * 8;
}

/* n of sub sp, sp, #n and add sp, sp, #n */
WALK_FN __u64 walk_java_room(__u32 code)
{
	return (__u64)(code >> 10 & 0xfff) << (code >> 22 & 1) * 12;
}

/* Bytes by which this instruction lowers sp: stp of two registers of 8 or 16 bytes with [sp, #-n]!; sub sp, sp, #n. 0:
 * it does not. */
WALK_FN __u64 walk_java_down(__u32 code)
{
	__u64 pairs = walk_java_matches(code, 0xffc003e0, 0xa98003e0) | walk_java_matches(code, 0xffc003e0, 0x6d8003e0);

	return walk_java_room(code) * walk_java_matches(code, 0xff8003ff, 0xd10003ff) -
	       walk_java_by(code) * (pairs + 2 * walk_java_matches(code, 0xffc003e0, 0xad8003e0));
}

/* Bytes by which it raises sp: ldp likewise with [sp], #n; add sp, sp, #n. */
WALK_FN __u64 walk_java_up(__u32 code)
{
	__u64 pairs = walk_java_matches(code, 0xffc003e0, 0xa8c003e0) | walk_java_matches(code, 0xffc003e0, 0x6cc003e0);

	return walk_java_room(code) * walk_java_matches(code, 0xff8003ff, 0x910003ff) +
	       walk_java_by(code) * (pairs + 2 * walk_java_matches(code, 0xffc003e0, 0xacc003e0));
}

/* Instruction number @at of those that are in scratch, and of those around pc, counted from pc. */
WALK_FN __u32 walk_java_code(struct walk *w, __u32 at)
{
	return ((const __u32 *)w->scratch)[at & 511];
}

WALK_FN __u32 walk_java_near(struct walk *w, __s32 at)
{
	return walk_java_code(w, (__u32)(WALK_JAVA_CODE * 2 + WALK_JAVA_BEHIND / 4 + at));
}

/* Those around pc into scratch. Return: 0, or 1: they cannot be read. */
WALK_FN int walk_java_read_near(struct walk *w)
{
	return walk_read(w, w->scratch + WALK_JAVA_CODE, WALK_JAVA_BEHIND + WALK_JAVA_AHEAD, w->pc - WALK_JAVA_BEHIND);
}

WALK_FN int walk_java_is_top(const struct walk *w)
{
	return w->is_leaf && !w->is_return;
}

/* ---- return addresses ---- */

/* Through the piece of code in an nmethod that a bl goes to where its target is too far away: ldr x8, #8; br x8, and
 * the address. Source: nativeInst_aarch64.hpp, NativeCallTrampolineStub. */
WALK_FN __u64 walk_java_trampoline(struct walk *w, __u64 target)
{
	struct walk_pair code;

	if (walk_read(w, &code, sizeof(code), target) || code.first != 0xd61f010058000048)
		return target;
	return code.second;
}

/* bl; mov, movk, movk, blr; adrp, add, blr; any other blr does not say. Source: macroAssembler_aarch64.cpp,
 * trampoline_call(), far_call(), movptr(). */
WALK_FN __u64 walk_java_call(struct walk *w, __u64 ret)
{
	struct walk_pair code;
	__u32 call, two, one, zero, to;

	if (walk_read(w, &code, sizeof(code), ret - 16))
		return WALK_JAVA_CALL_NONE;
	call = (__u32)(code.second >> 32);
	one = (__u32)code.second;
	two = (__u32)(code.first >> 32);
	zero = (__u32)code.first;
	if ((call & 0xfc000000) == 0x94000000)
		return walk_java_trampoline(w, ret - 4 + (__u64)((__s64)((__u64)call << 38) >> 36));
	if ((call & 0xfffffc1f) != 0xd63f0000)
		return WALK_JAVA_CALL_NONE;
	to = call >> 5 & 31;
	if ((one & 0xffe0001f) == (0xf2c00000 | to) && (two & 0xffe0001f) == (0xf2a00000 | to) &&
	    (zero & 0xffe0001f) == (0xd2800000 | to))
		return (__u64)(one >> 5 & 0xffff) << 32 | (__u64)(two >> 5 & 0xffff) << 16 | (zero >> 5 & 0xffff);
	if ((one & 0xffc003ff) == (0x91000000 | to << 5 | to) && (two & 0x9f00001f) == (0x90000000 | to)) {
		__u64 page = (two >> 5 & 0x7ffff) << 2 | (two >> 29 & 3);

		return ((ret - 12) & ~0xfffULL) + (__u64)((__s64)(page << 43) >> 31) + (one >> 10 & 0xfff);
	}
	return 0;
}

WALK_FN __u64 walk_java_called(struct walk *w, __u64 ret)
{
	__u64 called = walk_java_call(w, ret);

	w->scratch[WALK_JAVA_FETCHED] = called; /* for who asks walk_java_candidate(), a function of its own in BPF */
	return called;
}

/* To the caller whose address is in x30. */
WALK_FN enum walk_next walk_java_by_link(struct walk *w, const struct abi_java *info, __u64 sp, __u64 fp)
{
	return walk_java_move(w, info, walk_strip(w->lr), sp, fp);
}

/* To the caller whose frame pointer and address are stored at @at; that of sp lies behind. */
WALK_FN enum walk_next walk_java_by_record(struct walk *w, const struct abi_java *info, __u64 at)
{
	struct walk_pair pair;

	if (walk_stack_pair(w, at, &pair))
		return walk_java_fail(w);
	return walk_java_move(w, info, walk_strip(pair.second), at + 16, pair.first);
}

/* Virtual threads: frames in the heap are not walked here. What brings them onto the stack is a stub that no rule
 * holds for, which ends the walk. */
#ifndef walk_java_virtual
#define walk_java_virtual(w) walk_java_fail(w)
#endif

/* ---- compiled code: how much of its frame the top one has ---- */

enum walk_java_top {
	WALK_JAVA_WHOLE,  /* all of it, and something may have been pushed */
	WALK_JAVA_BARE,   /* all of it, and nothing more */
	WALK_JAVA_RETURN, /* nothing: the return address is in x30 */
	WALK_JAVA_SAVED,  /* the caller's frame pointer and address are at sp */
	WALK_JAVA_ROOM,   /* there is room, but the return address is in x30 */
	WALK_JAVA_LOST,   /* it cannot be told */
};

/* Which of a prologue's instructions have run, of which those from the method's entry on are in scratch; pc is @known
 * bytes behind. sub sp, sp, #n; stp x29, x30, [sp, #n - 16]; or, where that is too far, stp x29, x30, [sp, #-16]!; sub
 * sp, sp. Source: macroAssembler_aarch64.cpp, build_frame(); native methods: sharedRuntime_aarch64.cpp,
 * generate_native_wrapper(). */
WALK_FN enum walk_java_top walk_java_prologue(struct walk *w, __u64 known)
{
	__u64 made = 0, entered = 0, stored = 0;

	for (__u32 i = 0; i < WALK_JAVA_PROLOGUE / 4; i++) {
		__u32 code = walk_java_code(w, WALK_JAVA_CODE * 2 + i);

		if (i * 4 >= known)
			break;
		made |= walk_java_lowers(code);
		stored |= walk_java_stores(code);
		entered |= walk_java_matches(code, ~0U, WALK_JAVA_ENTER);
	}
	if (stored || (entered && made))
		return WALK_JAVA_BARE;
	if (known > WALK_JAVA_PROLOGUE)
		return WALK_JAVA_LOST;
	if (entered)
		return WALK_JAVA_SAVED;
	return made ? WALK_JAVA_ROOM : WALK_JAVA_RETURN;
}

/* adr x8, n; str x8, [x28, #n]; b, or adrp x8; add x8, x8, #n; br x8: the way out of a return's poll that says stop,
 * which stands at @at from pc on. Source: c2_CodeStubs_aarch64.cpp and c1_CodeStubs_aarch64.cpp, C2SafepointPollStub
 * and C1SafepointPollStub. */
WALK_FN __u64 walk_java_polled(struct walk *w, __s32 at)
{
	__u64 is_near = at >= -2 ? walk_java_matches(walk_java_near(w, at + 2), 0xfc000000, 0x14000000) : 0;
	__u64 is_far = walk_java_matches(walk_java_near(w, at + 2), 0x9f00001f, 0x90000008) &
		       walk_java_matches(walk_java_near(w, at + 4), ~0U, 0xd61f0100);

	return walk_java_matches(walk_java_near(w, at), 0x9f00001f, 0x10000008) &
	       walk_java_matches(walk_java_near(w, at + 1), 0xffc003ff, 0xf9000388) & (is_near | is_far);
}

/* Is this behind a frame's end, whatever leads there? cmp sp, x8 and b.hi are a return's poll, or a look whether
 * reserved pages of the stack were used. */
WALK_FN __u64 walk_java_returning(struct walk *w)
{
	__u32 here = walk_java_near(w, 0), next = walk_java_near(w, 1);
	__u64 is_load = walk_java_matches(here, 0xffc003ff, 0xf9400388) & walk_java_matches(next, ~0U, 0xeb2863ff);
	__u64 is_branch = walk_java_matches(here, 0xff00001f, 0x54000008) & walk_java_matches(next, ~0U, WALK_JAVA_RET);

	return walk_java_matches(here, ~0U, WALK_JAVA_RET) | walk_java_matches(here, ~0U, 0xeb2863ff) | is_load |
	       is_branch;
}

/* Is there another end of a frame in front of the next return? */
WALK_FN __u64 walk_java_leaves_later(struct walk *w)
{
	__u64 live = 1, later = 0;

	for (__s32 i = 1; i < WALK_JAVA_AHEAD / 4; i++) {
		__u32 code = walk_java_near(w, i);

		later |= live & (walk_java_matches(code, ~0U, WALK_JAVA_LEAVE) | walk_java_loads(code));
		live &= ~walk_java_jumps(code);
	}
	return later;
}

/* Is the frame gone? ldp x29, x30, [sp, #n - 16]; add sp, sp, #n; or add sp, sp; ldp x29, x30, [sp], #16. Behind that
 * come polls, the ret, or a jump. Otherwise j->pushed has the words that code in front of pc has pushed. Native methods
 * have a frame within theirs for a moment. @known: bytes in front of pc without a prologue. Source:
 * macroAssembler_aarch64.cpp, remove_frame(), aarch64.ad, MachEpilogNode, sharedRuntime_aarch64.cpp. */
WALK_FN enum walk_java_top walk_java_epilogue(struct walk *w, __u64 known)
{
	struct walk_java *j = walk_java_state(w);
	__u64 live = 1, raised = 0, gone = 0, left = 0, entered = 0, down = 0, polled;

	for (__s32 i = 1; i <= WALK_JAVA_BEHIND / 4; i++) {
		__u32 code = walk_java_near(w, -i);
		__u64 loads = walk_java_loads(code);

		if ((__u64)i * 4 > known)
			break;
		live &= ~walk_java_jumps(code);
		gone |= live & raised & loads;
		left |= live & ~entered & walk_java_matches(code, ~0U, WALK_JAVA_LEAVE);
		live &= ~(loads | left);
		raised |= live & walk_java_raises(code);
		entered |= live & walk_java_matches(code, ~0U, WALK_JAVA_ENTER);
		down += live * walk_java_down(code);
	}
	polled = walk_java_returning(w);
	for (__s32 i = 0; i < 5; i++)
		polled |= walk_java_polled(w, -i);
	if (entered & gone)
		return WALK_JAVA_LOST;
	if (walk_java_stores(walk_java_near(w, 0))) /* a second entry, for loops that were interpreted */
		return WALK_JAVA_ROOM;
	if (walk_java_lowers(walk_java_near(w, 0)) & walk_java_stores(walk_java_near(w, 1)))
		return WALK_JAVA_RETURN;
	if (walk_java_near(w, 0) == WALK_JAVA_LEAVE)
		return walk_java_leaves_later(w) ? WALK_JAVA_LOST : WALK_JAVA_SAVED;
	if (gone | polled || (left && !walk_java_leaves_later(w)))
		return WALK_JAVA_RETURN;
	if (walk_java_loads(walk_java_near(w, -1)))
		return WALK_JAVA_BARE;
	if (down >= WALK_JAVA_PUSHED_BYTES)
		return WALK_JAVA_LOST;
	j->pushed = (__u32)(down >> 3);
	return WALK_JAVA_WHOLE;
}

WALK_FN enum walk_java_top walk_java_top_of(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	__s32 complete = info->flags & ABI_JAVA_SHORT_COMPLETE ? (__s16)walk_java_u16(w, info->frame_complete)
							       : (__s32)walk_java_u32(w, info->frame_complete);
	__u64 entry = info->flags & ABI_JAVA_ENTRY_ADDRESS ? walk_java_word(w, info->entry)
							   : j->begin + walk_java_u16(w, info->entry);

	if (entry - j->begin >= j->end - j->begin)
		entry = j->begin;
	if (w->pc <= entry)
		return WALK_JAVA_RETURN;
	if (complete >= 0 && w->pc - j->begin < (__u64)complete)
		return walk_read(w, w->scratch + WALK_JAVA_CODE, WALK_JAVA_PROLOGUE, entry)
			       ? WALK_JAVA_LOST
			       : walk_java_prologue(w, w->pc - entry);
	if (walk_java_read_near(w))
		return WALK_JAVA_LOST;
	return walk_java_epilogue(w, complete < 0 ? w->pc - entry : w->pc - j->begin - (__u64)complete);
}

/* ---- compiled code ---- */

/* Words that the instructions from pc on pop: what was pushed for a call, of a stub that asks for types or of a
 * collector's barrier. The code is in scratch. Source: c1_LIRAssembler_aarch64.cpp, emit_typecheck_helper(),
 * gc/shared/barrierSetAssembler_aarch64.cpp, restore_live_registers(). */
WALK_FN __u32 walk_java_pops(struct walk *w)
{
	__u64 live = 1, up = 0, raised = 0;

	for (__s32 i = 0; i < WALK_JAVA_AHEAD / 4; i++) {
		__u32 code = walk_java_near(w, i);
		__u64 leaves = walk_java_matches(code, ~0U, WALK_JAVA_LEAVE);

		up -= live * leaves * raised; /* that made room for a frame */
		live &= ~(walk_java_jumps(code) | walk_java_loads(code) | leaves |
			  walk_java_matches(code, ~0U, WALK_JAVA_DROP));
		raised = live * walk_java_raises(code) * walk_java_up(code);
		up += live * walk_java_up(code);
	}
	return up < 4096 ? (__u32)(up >> 3) : 0;
}

/* Frames that are whole. Where more was pushed than is known, the first word behind that stands behind a call is the
 * return address, and a guess unless that is a call of this method. After a stub whose own words are not known (loose)
 * a word has to stand behind a call from the start. */
WALK_FN enum walk_next walk_java_unwind(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	__u64 at = w->sp + ((__u64)j->frame_size + j->pushed) * 8 - 16, ret;
	int is_loose = j->loose != 0, is_return;
	enum walk_next next;
	struct walk_pair pair;

	j->loose = 0;
	if (walk_stack_pair(w, at, &pair))
		return walk_java_fail(w);
	ret = walk_strip(pair.second);
	if (walk_java_is_code(info, ret) && (!is_loose || walk_java_is_return(w, info, ret) != WALK_JAVA_NO_RETURN))
		return walk_java_move(w, info, ret, at + 16, pair.first);
	for (int i = 0; i < WALK_JAVA_PUSHED / 2; i++) {
		at += 16;
		if (walk_stack_pair(w, at, &pair))
			return walk_java_fail(w);
		ret = walk_strip(pair.second);
		is_return = walk_java_is_return(w, info, ret);
		if (is_return == WALK_JAVA_NO_RETURN)
			continue;
		next = walk_java_move(w, info, ret, at + 16, pair.first);
		w->guessed = is_return != WALK_JAVA_RETURNS;
		return next;
	}
	return walk_java_fail(w);
}

/* Is the frame that was pushed last one of a method of Java? Compiled code pushes nothing when it calls one. */
WALK_FN int walk_java_called_method(const struct walk *w)
{
	__u32 last = w->count - 1;

	if (last >= ABI_FRAMES_MAX)
		return 0;
	return w->frames[last].kind == ABI_FRAME_RUNTIME && w->frames[last].runtime == ABI_RUNTIME_JAVA &&
	       !(w->frames[last].flags & ABI_FRAME_INTERNAL);
}

WALK_FN enum walk_next walk_java_compiled(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	__u64 place = walk_java_place(w, info), number = walk_java_u32(w, info->compile_id);
	int is_top = walk_java_is_top(w), pops = !is_top && !walk_java_called_method(w);
	enum walk_java_top top = WALK_JAVA_WHOLE;
	struct abi_frame *frame;

	j->pushed = 0;
	if (is_top) {
		j->loose = 0;
		top = walk_java_top_of(w, info);
		pops = top == WALK_JAVA_WHOLE && !j->pushed;
	}
	frame = walk_push_in_line(w, ABI_RUNTIME_JAVA, ABI_FRAME_COMPILED);
	if (!frame)
		return WALK_DONE;
	frame->extra = (__u32)(place - j->begin);
	frame->a = j->blob;
	frame->b = ABI_JAVA_COMPILED | number;
	if (top == WALK_JAVA_LOST)
		return walk_java_fail(w);
	if (top == WALK_JAVA_RETURN)
		return walk_java_by_link(w, info, w->sp, w->fp);
	if (top == WALK_JAVA_SAVED)
		return walk_java_by_record(w, info, w->sp);
	if (j->frame_size < 2 || j->frame_size > WALK_JAVA_FRAME_MAX / 8)
		return walk_java_fail(w);
	if (top == WALK_JAVA_ROOM)
		return walk_java_by_link(w, info, w->sp + (__u64)j->frame_size * 8, w->fp);
	if (pops && !walk_java_read_near(w))
		j->pushed = walk_java_pops(w);
	return walk_java_unwind(w, info);
}

/* ---- the interpreter ---- */

/* The frame at fp. Words from it: 0 the caller's fp, 1 the return address, -1 the caller's sp, -3 the method, bcp_slot
 * the bytecode pointer, behind that where monitors end, as an address, or from 22 on in words from fp: what has none
 * there is no such frame, for others keep frame pointers, too. An interpreted caller's sp leaves room for all that it
 * may push, and this frame begins in that: its own is enough. Source: frame_aarch64.hpp. */
WALK_FN enum walk_next walk_java_by_frame(struct walk *w, const struct abi_java *info)
{
	const __u64 *frame = w->scratch + WALK_JAVA_FRAME;
	__u32 at = WALK_JAVA_FRAME_BELOW / 8 - info->bcp_slot;
	__u64 bcp, monitors, sp;

	if ((w->fp & 7) || w->fp < w->sp || w->fp - w->sp > WALK_JAVA_FRAME_MAX || at - 1 > 2 ||
	    walk_read(w, w->scratch + WALK_JAVA_FRAME, WALK_JAVA_FRAME_BELOW + 16, w->fp - WALK_JAVA_FRAME_BELOW))
		return walk_java_fail(w);
	walk_opaque(at);
	at &= 3;
	bcp = frame[at];
	monitors = frame[(at - 1) & 3];
	monitors = monitors >> 63 ? -monitors * 8 : w->fp - monitors;
	sp = frame[9];
	if (monitors < 64 || monitors > WALK_JAVA_FRAME_MAX ||
	    sp - w->fp + WALK_JAVA_FRAME_MAX > 2 * WALK_JAVA_FRAME_MAX)
		return walk_java_fail(w);
	if (sp - w->fp - 16 > WALK_JAVA_FRAME_MAX)
		sp = w->fp + 16;
	if (walk_java_is_top(w) && w->leaf[WALK_JAVA_X22] - bcp + 0x10000 < 0x20000)
		bcp = w->leaf[WALK_JAVA_X22];
	if (walk_java_push_method(w, info, frame[7], bcp))
		return WALK_DONE;
	return walk_java_move(w, info, walk_strip(frame[11]), sp, frame[10]);
}

/* What stands between the end of a frame and the jump to the caller, or the call that asks where an exception goes:
 * ldp x29, x30, [sp], #16; and sp, x20, #-16 or mov sp, x20; ... stp x0, x30, [sp, #-16]!; ... blr. A frame within the
 * method's ends without a new sp. SWITCH: pc is no such place. Source: templateInterpreterGenerator_aarch64.cpp,
 * interp_masm_aarch64.cpp, remove_activation(). */
WALK_FN enum walk_next walk_java_leaving(struct walk *w, const struct abi_java *info)
{
	__u64 live = 0, kept = 0, above = 0, called = 0, sp = w->leaf[WALK_JAVA_X20], is_end;
	__u32 left = 0;

	if (walk_java_read_near(w))
		return walk_java_fail(w);
	for (__s32 i = -WALK_JAVA_BEHIND / 4; i < 0; i++) {
		__u32 code = walk_java_near(w, i), next = walk_java_near(w, i + 1);
		__u64 is_call = walk_java_matches(code, 0xfffffc1f, 0xd63f0000);

		is_end = walk_java_matches(code, ~0U, WALK_JAVA_LEAVE) &
			 (walk_java_matches(next, ~0U, 0x927cee9f) | walk_java_matches(next, ~0U, 0x9100029f));
		live &= is_call | (1 ^ walk_java_jumps(code));
		called |= live & is_call;
		above += live & kept ? walk_java_down(code) - walk_java_up(code) : 0;
		kept |= live & walk_java_matches(code, ~0U, WALK_JAVA_KEEP_LINK);
		live |= is_end;
		left = (__u32)live;
	}
	if (!left)
		return WALK_SWITCH;
	if (walk_java_push_internal(w, 0, w->pc - info->interpreter_low))
		return WALK_DONE;
	if (kept) {
		struct walk_pair pair;

		if (above >= WALK_JAVA_PUSHED_BYTES || walk_stack_pair(w, w->sp + above, &pair))
			return walk_java_fail(w);
		return walk_java_move(w, info, walk_strip(pair.second), w->sp + above + 16, w->fp);
	}
	if (called || !walk_java_is_top(w) || sp - w->sp + WALK_JAVA_FRAME_MAX > 2 * WALK_JAVA_FRAME_MAX)
		return walk_java_fail(w);
	return walk_java_by_link(w, info, sp - w->sp > WALK_JAVA_FRAME_MAX ? w->sp : sp, w->fp);
}

/* The caller's sp as it was, in the register that says so while a method is entered; this one where that says nothing.
 */
WALK_FN __u64 walk_java_sender(struct walk *w, const struct abi_java *info)
{
	__u64 sp = info->entries[0].sender == 13 ? w->leaf[13] : w->leaf[19];

	return sp - w->sp > WALK_JAVA_FRAME_MAX ? w->sp : sp;
}

/* Methods that have no frame of the interpreter. Some have one as C code has, or have called C code. */
WALK_FN enum walk_next walk_java_frameless(struct walk *w, const struct abi_java *info)
{
	__u64 link = walk_strip(w->lr);
	struct walk_pair pair;

	if (!walk_java_is_top(w))
		return walk_java_fail(w);
	if (walk_java_push_method(w, info, w->leaf[WALK_JAVA_X12], 0))
		return WALK_DONE;
	if (walk_java_in_interpreter(info, link) && !walk_java_in_returns(info, link))
		return walk_java_fail(w);
	if (w->fp == w->sp && !walk_stack_pair(w, w->fp, &pair) && walk_strip(pair.second) == link)
		return walk_java_by_link(w, info, walk_java_sender(w, info), pair.first);
	return walk_java_by_link(w, info, walk_java_sender(w, info), w->fp);
}

/* The first instructions of a method. SWITCH: its frame is there. */
WALK_FN enum walk_next walk_java_entry(struct walk *w, const struct abi_java *info, __u64 offset)
{
	__u64 in = 0, push = 0, filled = 0, fp = w->fp;
	struct walk_pair pair;

	if (offset - info->entries_low >= info->entries_high - info->entries_low)
		return WALK_SWITCH;
	for (int i = 0; i < ABI_JAVA_ENTRIES; i++) {
		const struct abi_java_entry *entry = &info->entries[i];

		if (offset - entry->low >= entry->high - entry->low)
			continue;
		in = offset - entry->low;
		push = entry->push;
		filled = entry->filled;
		break;
	}
	if (!filled)
		return walk_java_frameless(w, info);
	if (!walk_java_is_top(w) || in >= filled)
		return WALK_SWITCH;
	if (walk_java_push_method(w, info, w->leaf[WALK_JAVA_X12], 0))
		return WALK_DONE;
	if (in > push) {
		if (fp < w->sp || walk_stack_pair(w, fp, &pair))
			return walk_java_fail(w);
		fp = pair.first;
	}
	return walk_java_by_link(w, info, walk_java_sender(w, info), fp);
}

WALK_FN enum walk_next walk_java_interpreted(struct walk *w, const struct abi_java *info)
{
	__u64 offset = w->pc - info->interpreter_low - (w->is_return ? 1 : 0);
	enum walk_next next = WALK_SWITCH;

	walk_java_state(w)->loose = 0; /* its frame pointer says where its frame is */
	if (!w->is_return || !walk_java_in_returns(info, w->pc)) {
		next = walk_java_entry(w, info, offset);
		if (next == WALK_SWITCH)
			next = walk_java_leaving(w, info);
	}
	return next == WALK_SWITCH ? walk_java_by_frame(w, info) : next;
}

/* ---- stubs ---- */

/* Native code called Java through this one; the frame pointer leads on, from its third instruction up to its ret:
 * stp x29, x30, [sp, #-16]!; mov x29, sp; ... ldp x29, x30, [sp], #16; ret. */
WALK_FN enum walk_next walk_java_call_stub(struct walk *w, const struct abi_java *info)
{
	__u64 in = w->pc - info->call_stub_return + info->call_stub_before, fp = w->fp;
	struct walk_pair pair = { fp, w->lr };

	if (w->pc != info->call_stub_return && in < 8)
		fp = w->sp;
	if (w->pc != info->call_stub_return && (!in || in == (__u64)info->call_stub_before + info->call_stub_ret))
		fp = w->sp - 16;
	else if ((fp & 7) || fp < w->sp || fp - w->sp > WALK_JAVA_FRAME_MAX || walk_stack_pair(w, fp, &pair))
		return walk_java_fail(w);
	if (walk_java_push_internal(w, 0, 0))
		return WALK_DONE;
	pair.second = walk_strip(pair.second);
	if (pair.second < WALK_USER_MIN || pair.second > WALK_USER_MAX)
		return walk_java_fail(w);
	walk_move_in_line(w, pair.second, fp + 16, pair.first);
	return WALK_MORE;
}

/* Bytes that the code from @from on, where the stub was called, has pushed up to pc. Each way out pops them anew. */
WALK_FN __u64 walk_java_stub_pushed(struct walk *w, __u64 from)
{
	__u64 down = 0, up = 0, distance = w->pc - from;

	if (!distance || walk_read(w, w->scratch, WALK_JAVA_START, from))
		return 0;
	for (__u32 i = 0; i < WALK_JAVA_START / 4; i++) {
		__u32 code = walk_java_code(w, i);

		if (i * 4 >= distance)
			break;
		down += walk_java_down(code);
		up += walk_java_up(code);
		up *= 1 - walk_java_matches(code, ~0U, WALK_JAVA_RET);
	}
	return down - up < 4096 ? down - up : 0;
}

/* To native code that has called a stub. */
WALK_FN enum walk_next walk_java_to_native(struct walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	walk_java_state(w)->loose = 0;
	if (pc < WALK_USER_MIN || pc > WALK_USER_MAX)
		return walk_java_fail(w);
	if (walk_find_map(w, pc - 1)) {
		w->map.start = w->map.end = 0;
		return walk_java_fail(w);
	}
	walk_move_in_line(w, pc, sp, fp);
	return WALK_MORE;
}

/* The top frame's caller, whose address is in x30: of Java, or native code, which calls stubs that read fields, or do
 * what is atomic. @called: where it called. */
WALK_FN enum walk_next walk_java_stub_link(struct walk *w, const struct abi_java *info, __u64 link, __u64 called)
{
	struct walk_java *j = walk_java_state(w);
	int is_own = called - j->begin < j->end - j->begin && called <= w->pc;
	__u64 sp = w->sp;

	j->loose = !is_own || w->pc - called > WALK_JAVA_START;
	if (walk_java_near(w, 0) == WALK_JAVA_RET || walk_java_near(w, -1) == WALK_JAVA_LEAVE)
		j->loose = 0;
	else if (walk_java_near(w, -1) == WALK_JAVA_ENTER)
		sp += 16;
	else if (is_own)
		sp += walk_java_stub_pushed(w, called);
	j->loose |= sp != w->sp; /* on one of its ways, not on all */
	return walk_java_is_code(info, link) ? walk_java_move(w, info, link, sp, w->fp)
					     : walk_java_to_native(w, link, sp, w->fp);
}

/* An adapter between compiled and interpreted code: mov x13, sp (from 21 on x19), then room for parameters. */
WALK_FN enum walk_next walk_java_adapter(struct walk *w, const struct abi_java *info, __u64 link)
{
	__u64 live = 1, moved = 0, sender = walk_java_sender(w, info), begin = walk_java_state(w)->begin;

	for (__s32 i = 1; i <= WALK_JAVA_BEHIND / 4; i++) {
		__u32 code = walk_java_near(w, -i);

		if (w->pc - begin < (__u64)i * 4)
			break;
		live &= ~walk_java_jumps(code);
		moved |= live & walk_java_matches(code, ~0U, 0x910003e0 | info->entries[0].sender);
	}
	walk_java_state(w)->loose = 1;
	return walk_java_move(w, info, link, moved ? sender : w->sp, w->fp);
}

/* The frame record at fp, when this stub has made it: it lies on top; or what it returns to is in x30, or called this
 * blob. SWITCH: it has not. */
WALK_FN enum walk_next walk_java_stub_record(struct walk *w, const struct abi_java *info, __u64 link)
{
	struct walk_java *j = walk_java_state(w);
	int is_own = link - j->begin < j->end - j->begin, is_adapter = j->kind == WALK_JAVA_ADAPTER;
	struct walk_pair pair;
	__u64 ret;

	if (w->fp - w->sp >= 4096 || (w->fp & 7) || walk_stack_pair(w, w->fp, &pair))
		return WALK_SWITCH;
	ret = walk_strip(pair.second);
	is_own = w->fp == w->sp && (!walk_java_is_top(w) || ret == link || is_own);
	if (!walk_java_is_code(info, ret)) /* that of the stub through which native code calls Java has more below it */
		return ret == link || is_own ? walk_java_to_native(w, ret, w->fp + 16, pair.first) : WALK_SWITCH;
	/* What the interpreter calls returns to few places: there the record may be the interpreter's. */
	if (!is_own && (ret == info->call_stub_return || walk_java_in_returns(info, ret)))
		return WALK_SWITCH;
	if (!is_own && ret != link &&
	    walk_java_is_return(w, info, ret) < (is_adapter ? WALK_JAVA_MAY_RETURN : WALK_JAVA_FROM_BLOB))
		return WALK_SWITCH;
	return walk_java_move(w, info, ret, w->fp + 16, pair.first);
}

/* stp x30, x0, [sp, #-16]!; ... blr: what asks where an exception goes has kept its address so. SWITCH: it has not.
 * Source: stubGenerator_aarch64.cpp, generate_forward_exception(). */
WALK_FN enum walk_next walk_java_stub_kept(struct walk *w, const struct abi_java *info)
{
	__u64 live = 0, above = 0;
	struct walk_pair pair;
	__u32 kept;

	if (walk_java_read_near(w))
		return WALK_SWITCH;
	for (__s32 i = -WALK_JAVA_BEHIND / 4; i < 0; i++) {
		__u32 code = walk_java_near(w, i);

		live &= walk_java_matches(code, 0xfffffc1f, 0xd63f0000) | (1 ^ walk_java_jumps(code));
		above += live * (walk_java_down(code) - walk_java_up(code));
		live |= walk_java_matches(code, ~0U, WALK_JAVA_KEEP_FIRST);
		kept = (__u32)live;
	}
	if (!kept || above > 4096 || walk_stack_pair(w, w->sp + above, &pair))
		return WALK_SWITCH;
	return walk_java_move(w, info, walk_strip(pair.first), w->sp + above + 16, w->fp);
}

/* That of a blob with a frame size. In the middle of a call it is whole. What deoptimises returns to a handler, which
 * no call stands in front of. SWITCH: there is none. */
WALK_FN enum walk_next walk_java_stub_sized(struct walk *w, const struct abi_java *info, __u64 link)
{
	struct walk_java *j = walk_java_state(w);
	__u64 size = (__u64)j->frame_size, at = w->sp + size * 8 - 16, ret;
	struct walk_pair pair;

	if (size < 2 || size > WALK_JAVA_FRAME_MAX / 8 || walk_stack_pair(w, at, &pair))
		return WALK_SWITCH;
	ret = walk_strip(pair.second);
	if (!walk_java_is_code(info, ret))
		return WALK_SWITCH;
	if (walk_java_is_top(w) && ret != link && walk_java_is_return(w, info, ret) == WALK_JAVA_NO_RETURN)
		return WALK_SWITCH;
	return walk_java_move(w, info, ret, at + 16, pair.first);
}

WALK_FN enum walk_next walk_java_stub(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	int is_top = walk_java_is_top(w), is_return;
	__u64 link = is_top ? walk_strip(w->lr) : 0, called;
	enum walk_next next;

	j->loose = 0;
	if (walk_java_push_internal(w, j->blob, w->pc - j->begin))
		return WALK_DONE;
	if (is_top && walk_java_read_near(w))
		return walk_java_fail(w);
	next = walk_java_stub_record(w, info, link);
	if (next == WALK_SWITCH && (!is_top || link - j->begin < j->end - j->begin))
		next = walk_java_stub_sized(w, info, link);
	if (next == WALK_SWITCH && (!is_top || link == w->pc))
		next = walk_java_stub_kept(w, info);
	if (next != WALK_SWITCH)
		return next;
	if (!is_top)
		return walk_java_fail(w);
	if (j->kind == WALK_JAVA_ADAPTER && link - j->begin >= j->end - j->begin)
		return walk_java_adapter(w, info, link);
	j->word = link;
	w->scratch[WALK_JAVA_FETCHED] = 0;
	is_return = walk_java_candidate(w);
	called = w->scratch[WALK_JAVA_FETCHED];
	if (is_return == WALK_JAVA_NO_RETURN &&
	    (called == WALK_JAVA_CALL_NONE || !walk_java_in_interpreter(info, link)))
		return walk_java_fail(w);
	/* Behind a call that this stub has made, and that has returned. */
	if (link - j->begin < j->end - j->begin && (called > w->pc || (called <= link && link <= w->pc)))
		return walk_java_fail(w);
	return walk_java_stub_link(w, info, link, called);
}
