/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What HotSpot's frames look like on x86-64. A part of walk/walk_java.h, which includes it. */
#pragma once

#define WALK_JAVA_BEHIND 32 /* bytes of code in front of pc that are looked at */
#define WALK_JAVA_AHEAD 24
#define WALK_JAVA_INDEX_OF 8              /* words that String.indexOf pushes, at most */
#define WALK_JAVA_NEAR 120                /* bytes of code that are searched for its comparisons ... */
#define WALK_JAVA_NEAR_BEFORE 72          /* ... of which so many before pc, once the old sp lies on the stack */
#define WALK_JAVA_NEAR_AT WALK_JAVA_CONST /* where in scratch they are, in words */

#define WALK_JAVA_RAX 0
#define WALK_JAVA_RDX 1
#define WALK_JAVA_RCX 2
#define WALK_JAVA_RBX 3
#define WALK_JAVA_RDI 5
#define WALK_JAVA_R11 11
#define WALK_JAVA_R13 13

/* ---- return addresses ---- */

/* The address that the call in front of @ret calls, where the instruction says so; 0: it does not. CALL_NONE: there is
 * no call. Source: Intel SDM volume 2: E8 rel32; 49 BA imm64, 41 FF D2: mov $imm64,%r10; call *%r10. */
WALK_FN __u64 walk_java_called(struct walk *w, __u64 ret)
{
	struct walk_pair code;

	if (walk_read(w, &code, sizeof(code), ret - 16) || !walk_ends_in_call(code.second) ||
	    code.second >> 56 == 0x90) /* a no-op, which is a call in Go's start code alone */
		return WALK_JAVA_CALL_NONE;
	if ((__u8)(code.second >> 24) == 0xe8)
		return ret + (__u64)(__s64)(__s32)(code.second >> 32);
	if (code.second >> 40 == 0xd2ff41 && (__u16)(code.first >> 24) == 0xba49)
		return code.first >> 40 | code.second << 24;
	return 0;
}

/* ---- frames ---- */

/* The return address is at sp, @pushed: behind the caller's frame pointer. */
WALK_FN enum walk_next walk_java_pop(struct walk *w, const struct abi_java *info, int pushed)
{
	struct walk_pair pair;

	if (walk_stack_pair(w, w->sp, &pair))
		return walk_java_fail(w);
	return pushed ? walk_java_move(w, info, pair.second, w->sp + 16, pair.first)
		      : walk_java_move(w, info, pair.first, w->sp + 8, w->fp);
}

#include "walk/walk_java_virtual.h"

/* ---- compiled code: how much of its frame the top one has ---- */

enum walk_java_top {
	WALK_JAVA_WHOLE,  /* all of it */
	WALK_JAVA_RETURN, /* the return address is at sp */
	WALK_JAVA_SAVED,  /* the caller's frame pointer, too, is at sp */
	WALK_JAVA_ROOM,   /* there is room, but the frame pointer is the caller's still */
};

/* Eight bytes of code at a time, of which those in front of the method's entry are left out: @skip of them. */
WALK_FN __u64 walk_java_piece(struct walk *w, __u32 at, __u64 skip)
{
	__u64 code = w->scratch[WALK_JAVA_CODE + at];

	if (skip <= at * 8ULL)
		return code;
	skip -= at * 8ULL;
	return skip >= 8 ? 0 : code & ~0ULL << skip * 8;
}

/* Has a prologue made room, or saved the frame pointer, in front of pc, of whose last @known bytes this looks?
 * sub $n,%rsp: 48 83 ec ib, 48 81 ec id. mov %rbp,n(%rsp): 48 89 6c 24 ib, 48 89 ac 24 id. Eight positions at once, as
 * walk_has_setup() does. */
WALK_FN enum walk_java_top walk_java_prologue(struct walk *w, __u64 known)
{
	__u64 before = 0, made = 0, saved = 0, next = w->scratch[WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8];

	for (__u32 i = 0; i < WALK_JAVA_BEHIND / 8; i++) {
		__u64 code = walk_java_piece(w, i, WALK_JAVA_BEHIND - known);
		__u64 one = code << 8 | before >> 56, two = code << 16 | before >> 48,
		      three = code << 24 | before >> 40;
		__u64 sub = (code ^ WALK_BYTES(0xec)) | ((one & WALK_BYTES(0xfd)) ^ WALK_BYTES(0x81)) |
			    (two ^ WALK_BYTES(0x48));
		__u64 mov = (code ^ WALK_BYTES(0x24)) | ((one | WALK_BYTES(0xc0)) ^ WALK_BYTES(0xec)) |
			    (two ^ WALK_BYTES(0x89)) | (three ^ WALK_BYTES(0x48));

		made |= (sub - WALK_BYTES(1)) & ~sub & WALK_BYTES(0x80);
		saved |= (mov - WALK_BYTES(1)) & ~mov & WALK_BYTES(0x80);
		before = code;
	}
	if (saved)
		return WALK_JAVA_WHOLE;
	if (made) /* and the mov is the next instruction, or there was a push */
		return (next & 0xff3fffff) == 0x242c8948 ? WALK_JAVA_ROOM : WALK_JAVA_WHOLE;
	if (before >> 56 == 0x55 || (before >> 32 & 0xffff) == 0x4855) /* push %rbp; mov %rsp,%rbp */
		return WALK_JAVA_SAVED;
	return WALK_JAVA_RETURN;
}

#define WALK_JAVA_LOW(word, bytes) ((word) & ((1ULL << (bytes)*8) - 1))

/* Does the code whose next 16 bytes these are return without touching the stack any more? The polls in front of a
 * return: cmp n(%r15),%rsp; ja (17 and later); mov n(%r15),%r10; test %eax,(%r10) (11). Those of loops look like the
 * latter, but no return follows. Source: OpenJDK 11 and 17, x86_64.ad and c1_LIRAssembler_x86.cpp. */
WALK_FN int walk_java_ends(__u64 a, __u64 b)
{
	__u8 first = (__u8)a;

	if (first == 0xc3 || first == 0xc2)
		return 1;
	if (first == 0x49) {
		__u32 three = (__u32)WALK_JAVA_LOW(a, 3);

		if (three == 0x673b49 || three == 0xa73b49) /* cmp n(%r15),%rsp */
			return 1;
		/* cmpq $0,n(%r15); jne; ret */
		return (three == 0x7f8349 && (a >> 40 & 0xffff) == 0x850f && (b >> 24 & 0xff) == 0xc3) ||
		       (three == 0x7f8149 && (b & 0xffff) == 0x850f && (b >> 48 & 0xff) == 0xc3);
	}
	if (first == 0x41) {
		if (WALK_JAVA_LOW(a, 4) == 0xc3028541) /* test %eax,(%r10); ret */
			return 1;
		/* cmpl $0,n(%r15); jne; ret: behind leave in native methods */
		if ((WALK_JAVA_LOW(a, 3) == 0x7f8341 && (a >> 40 & 0xffff) == 0x850f && (b >> 24 & 0xff) == 0xc3) ||
		    (WALK_JAVA_LOW(a, 3) == 0xbf8341 && (b & 0xffff) == 0x850f && (b >> 48 & 0xff) == 0xc3))
			return 1;
		/* testb $1,n(%r15); je; movabs: there, too, from 25 on, for JFR */
		return (a & 0xff00ffffff) == 0x010047f641 && (a >> 40 & 0xff) == 0x74 && a >> 56 == 0x49 &&
		       (__u8)b == 0xba;
	}
	if (first == 0x74) /* je; movabs $n,%r10; mov %r10,n(%r15) */
		return (a >> 16 & 0xffff) == 0xba49 &&
		       ((b >> 32 & 0xffffff) == 0x57894d || (b >> 32 & 0xffffff) == 0x97894d);
	if (first == 0x0f) {
		__u8 second = (__u8)(a >> 8);

		/* jb; mov %r15,%rdi: were pages that are reserved on the stack in use? */
		if (second == 0x82)
			return a >> 48 == 0x8b49 && (__u8)b == 0xff;
		return (second == 0x87 || second == 0x85) && (a >> 48 & 0xff) == 0xc3; /* ja, jne; ret */
	}
	if (first == 0x77 || first == 0x75)
		return (a >> 16 & 0xff) == 0xc3;
	if (first == 0x85)
		return (a >> 8 & 0xff) == 0x05 && (a >> 48 & 0xff) == 0xc3; /* test %eax,n(%rip); ret */
	if (first == 0x4d) {
		if (WALK_JAVA_LOW(a, 3) == 0x578b4d) /* mov n(%r15),%r10; test %eax,(%r10); ret */
			return a >> 32 == 0xc3028541;
		if (WALK_JAVA_LOW(a, 3) == 0x978b4d)
			return a >> 56 == 0x41 && WALK_JAVA_LOW(b, 3) == 0xc30285;
		/* mov %r10,n(%r15); jmp: the way out of a poll that says stop */
		return (WALK_JAVA_LOW(a, 3) == 0x57894d && (a >> 32 & 0xff) == 0xe9) ||
		       (WALK_JAVA_LOW(a, 3) == 0x97894d && a >> 56 == 0xe9);
	}
	return first == 0x4c && WALK_JAVA_LOW(a, 3) == 0x158d4c && a >> 56 == 0x4d; /* lea n(%rip),%r10; mov */
}

/* Does add $n,%rsp end the eight bytes? 48 83 c4 ib, 48 81 c4 id. */
WALK_FN int walk_java_gives_back(__u64 code)
{
	return (code >> 32 & 0xffffff) == 0xc48348 || (code >> 8 & 0xffffff) == 0xc48148;
}

/* A method that an exception leaves: add $n,%rsp; pop %rbp; jmp. Source: OpenJDK 17, c1_LIRAssembler_x86.cpp,
 * emit_unwind_handler(); x86_64.ad, RethrowException. */
WALK_FN enum walk_java_top walk_java_epilogue(struct walk *w)
{
	const __u64 *code = w->scratch + WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8;
	__u64 before = code[-1], a = code[0], b = code[1], c = code[2];

	if ((__u16)a == 0xe95d && walk_java_gives_back(before))
		return WALK_JAVA_SAVED;
	if ((__u8)a == 0x5d) /* pop %rbp */
		return walk_java_ends(a >> 8 | b << 56, b >> 8 | c << 56) ? WALK_JAVA_SAVED : WALK_JAVA_WHOLE;
	if ((__u8)a == 0xe9 && before >> 56 == 0x5d && walk_java_gives_back(before << 8))
		return WALK_JAVA_RETURN;
	if ((__u8)a == 0xe9) /* behind mov %r10,n(%r15) */
		return (before >> 8 & 0xffffff) == 0x97894d || (before >> 32 & 0xffffff) == 0x57894d ? WALK_JAVA_RETURN
												     : WALK_JAVA_WHOLE;
	return walk_java_ends(a, b) ? WALK_JAVA_RETURN : WALK_JAVA_WHOLE;
}

WALK_FN enum walk_java_top walk_java_top_of(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	__s32 complete = info->flags & ABI_JAVA_SHORT_COMPLETE ? (__s16)walk_java_u16(w, info->frame_complete)
							       : (__s32)walk_java_u32(w, info->frame_complete);
	__u64 entry = info->flags & ABI_JAVA_ENTRY_ADDRESS ? walk_java_word(w, info->entry)
							   : j->begin + walk_java_u16(w, info->entry);
	__u64 known;

	if (entry - j->begin >= j->end - j->begin)
		entry = j->begin;
	if (w->pc <= entry)
		return WALK_JAVA_RETURN;
	if (walk_read(w, w->scratch + WALK_JAVA_CODE, WALK_JAVA_BEHIND + WALK_JAVA_AHEAD, w->pc - WALK_JAVA_BEHIND)) {
		w->scratch[WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8] = 0; /* walk_java_pops() looks there */
		return WALK_JAVA_WHOLE;
	}
	if (complete < 0 || w->pc - j->begin >= (__u64)complete)
		return walk_java_epilogue(w);
	known = w->pc - entry;
	return walk_java_prologue(w, known < WALK_JAVA_BEHIND ? known : WALK_JAVA_BEHIND);
}

/* ---- compiled code ---- */

/* C1 pushes what it asks a stub about types: behind the call both words are popped. A frame has room for return
 * addresses of calls long gone, so that the place where the caller's would be without them may have one. Bytes at pc
 * are in scratch. Source: OpenJDK 17, c1_LIRAssembler_x86.cpp, emit_typecheck_helper(); Intel SDM volume 2: pop is
 * 58+r, 41 58+r. */
WALK_FN __u32 walk_java_pops(struct walk *w)
{
	__u64 code = w->scratch[WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8];
	__u32 count = 0;

	for (int i = 0; i < 2; i++) {
		__u32 prefix = (__u8)code == 0x41 ? 8 : 0;

		code >>= prefix;
		if ((code & 0xf8) != 0x58 || (!prefix && (__u8)code == 0x5d)) /* pop %rbp: the end of a method */
			break;
		code >>= 8;
		count++;
	}
	return count;
}

/* Does the code at @at compare texts? pcmpestri: 66 0f 3a 61, with VEX c4 e3 79 61. The masks let little else through.
 * Eight positions at once, as in walk_java_prologue(). */
WALK_FN int walk_java_compares(struct walk *w, __u64 at)
{
	const __u64 *code = w->scratch + WALK_JAVA_NEAR_AT;
	__u64 found = 0, before = 0;

	if (walk_read(w, w->scratch + WALK_JAVA_NEAR_AT, WALK_JAVA_NEAR, at))
		return 0;
	for (__u32 i = 0; i < WALK_JAVA_NEAR / 8; i++) {
		__u64 one = code[i] << 8 | before >> 56, two = code[i] << 16 | before >> 48;
		__u64 miss = (code[i] ^ WALK_BYTES(0x61)) | ((one & WALK_BYTES(0xbc)) ^ WALK_BYTES(0x38)) |
			     ((two & WALK_BYTES(0x13)) ^ WALK_BYTES(0x03));

		found |= (miss - WALK_BYTES(1)) & ~miss;
		before = code[i];
	}
	return (found & WALK_BYTES(0x80)) != 0;
}

/* All bits where sp may have been lowered by @distance, 0 where not. Without branches: the verifier follows each. */
WALK_FN __u64 walk_java_lowered(__u64 distance)
{
	__u64 odd = (distance & 7) | (distance - 8) / (WALK_JAVA_INDEX_OF * 8);

	return ~(__u64)((__s64)(odd | -odd) >> 63);
}

/* Where C2 has put String.indexOf into a method, that lowers sp for as long as it searches: by copies of two short
 * strings, of two words each, and four registers at most. What sp was is in rcx until it lies on top of the stack,
 * where the address of a copy may be before; afterwards sp is the frame's. Other code can have such values in both
 * places, so they are used only where texts are compared near pc, and where a return address is at the end of the
 * frame. With rcx the first comparison begins at most 112 bytes after pc; else one is at most 42 bytes after or 66
 * before it. Source: OpenJDK 8 to 26, string_indexof() in macroAssembler_x86.cpp, from 17 on c2_MacroAssembler_x86.cpp;
 * distances as seen in 8, 11, 17, 21 and 25. */
WALK_FN void walk_java_index_of(struct walk *w, const struct abi_java *info)
{
	__u64 size = (__u64)walk_java_state(w)->frame_size * 8, old_sp = w->leaf[WALK_JAVA_RCX];
	__u64 in_rcx = walk_java_lowered(old_sp - w->sp), top, end;

	if (walk_read(w, &top, sizeof(top), w->sp))
		return;
	old_sp = (old_sp & in_rcx) | (top & ~in_rcx);
	if (!walk_java_lowered(old_sp - w->sp) || walk_read(w, &end, sizeof(end), old_sp + size - 8))
		return;
	if (walk_java_is_return(w, info, end) == WALK_JAVA_NO_RETURN ||
	    !walk_java_compares(w, w->pc - (WALK_JAVA_NEAR_BEFORE & ~in_rcx)))
		return;
	w->sp = old_sp;
	w->scratch[WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8] =
		0; /* what is popped at pc, too: walk_java_pops() looks there */
}

/* Frames that are whole; inlined code may have pushed some words more, which no table tells. What is found behind them
 * is marked, unless the call there is one of this method: a frame has room for return addresses of calls long gone.
 * @pushed: words of which that is known. */
WALK_FN enum walk_next walk_java_unwind(struct walk *w, const struct abi_java *info, int has_fp, __u32 pushed)
{
	struct walk_java *j = walk_java_state(w);
	__u64 at = w->sp + ((__u64)j->frame_size + pushed) * 8 - 16;
	enum walk_next next;
	struct walk_pair pair;
	int is_return;

	if (info->chunk_end && at + 16 >= info->chunk_end) {
		w->sp = info->chunk_end;
		return WALK_MORE;
	}
	if (walk_stack_pair(w, at, &pair))
		return walk_java_fail(w);
	if (walk_java_is_code(info, pair.second))
		return walk_java_move(w, info, pair.second, at + 16, has_fp ? pair.first : w->fp);
	for (int i = 0; i < WALK_JAVA_PUSHED; i++) {
		at += 8;
		if (walk_stack_pair(w, at, &pair))
			return walk_java_fail(w);
		is_return = walk_java_is_return(w, info, pair.second);
		if (is_return == WALK_JAVA_NO_RETURN)
			continue;
		next = walk_java_move(w, info, pair.second, at + 16, pair.first);
		w->guessed = is_return != WALK_JAVA_RETURNS;
		return next;
	}
	return walk_java_fail(w);
}

/* Bytes at a return address, of C1's code only: levels 1 to 3. */
WALK_FN void walk_java_read_pops(struct walk *w, const struct abi_java *info)
{
	__u64 *code = w->scratch + WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8;
	__u8 level = (__u8)(walk_java_word(w, info->level) >> (info->level & 7) * 8);

	if (level - 1U >= 3 || walk_read(w, code, sizeof(*code), w->pc))
		*code = 0;
}

WALK_FN enum walk_next walk_java_compiled(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	enum walk_java_top top = WALK_JAVA_WHOLE;
	__u64 place = walk_java_place(w, info), number = walk_java_u32(w, info->compile_id);
	struct abi_frame *frame;

	if (w->is_leaf && !w->is_return)
		top = walk_java_top_of(w, info);
	frame = walk_push_in_line(w, ABI_RUNTIME_JAVA, ABI_FRAME_COMPILED);
	if (!frame)
		return WALK_DONE;
	if (w->is_leaf && !w->is_return && top == WALK_JAVA_WHOLE)
		walk_java_index_of(w, info);
	frame->extra = (__u32)(place - j->begin);
	frame->a = j->blob;
	frame->b = ABI_JAVA_COMPILED | number;
	if (top == WALK_JAVA_RETURN || top == WALK_JAVA_SAVED)
		return walk_java_pop(w, info, top == WALK_JAVA_SAVED);
	if (j->frame_size < 2 || j->frame_size > WALK_JAVA_FRAME_MAX / 8)
		return walk_java_fail(w);
	if (!w->is_leaf || w->is_return) /* those of the top frame are read already */
		walk_java_read_pops(w, info);
	return walk_java_unwind(w, info, top == WALK_JAVA_WHOLE, walk_java_pops(w));
}

/* ---- the interpreter ---- */

/* Deoptimisation makes interpreted frames out of a compiled one: first they are pushed, and have what lay on the stack
 * before where the method would be, and 0 in the place of their own sp (@own_sp). Then native code fills them in, from
 * the oldest on: the method, then that place. A frame whose method was called has its sp there from the call on.
 * Source: OpenJDK 17, sharedRuntime_x86_64.cpp, generate_deopt_blob(); abstractInterpreter_x86.cpp,
 * layout_activation(). */
WALK_FN int walk_java_is_unfilled(const struct walk *w, const struct walk_java *j, __u64 own_sp)
{
	return !own_sp && w->is_return && j->fresh == (__u32)w->sp;
}

/* The frame at fp. Source: OpenJDK 17, src/hotspot/cpu/x86/frame_x86.hpp: words from fp: 0 the caller's fp, 1 the
 * return address, -1 the caller's sp, -2 its own while it calls Java, -3 the method, bcp_slot the bytecode pointer. */
WALK_FN enum walk_next walk_java_by_frame(struct walk *w, const struct abi_java *info)
{
	const __u64 *frame = w->scratch + WALK_JAVA_FRAME;
	struct walk_java *j = walk_java_state(w);
	__u64 bcp, method, sp;
	int is_full;

	if ((w->fp & 7) || w->fp < w->sp || w->fp - w->sp > WALK_JAVA_FRAME_MAX ||
	    walk_read(w, w->scratch + WALK_JAVA_FRAME, 80, w->fp - 64))
		return walk_java_fail(w);
	bcp = info->bcp_slot == 7 ? frame[1] : frame[0];
	method = frame[5];
	sp = frame[7];
	if (w->is_leaf && !w->is_return && w->leaf[WALK_JAVA_R13] - bcp + 0x10000 < 0x20000)
		bcp = w->leaf[WALK_JAVA_R13];
	/* One word below the frame's end where a method handle's linker has taken away an argument. */
	if (sp - w->fp < 8 || sp - w->fp > WALK_JAVA_FRAME_MAX)
		return walk_java_fail(w);
	if (walk_java_is_unfilled(w, j, frame[6])) {
		j->fresh = (__u32)sp;
		is_full = walk_java_push_lost(w);
	} else {
		j->fresh = 0;
		is_full = walk_java_push_method(w, info, method, bcp);
	}
	return is_full ? WALK_DONE : walk_java_move(w, info, frame[9], sp, frame[8]);
}

/* The stack is the caller's again, or will be by the next instructions, and the return address may be in a register:
 * pop %r13; mov %rbx,%rsp; jmp *%r13, and in native methods pop %rdi; mov %r11,%rsp; jmp *%rdi.
 * Return: the address, 0: pc is no such place. Source: OpenJDK 17, templateInterpreterGenerator_x86.cpp. */
WALK_FN __u64 walk_java_leaving(struct walk *w, __u64 code, __u64 *sp)
{
	__u64 word = 0, move = code;
	int popped = 1;

	*sp = w->sp;
	if ((__u16)code == 0x5d41) {
		move = code >> 16;
		popped = 0;
	} else if ((__u8)code == 0x5f && (code >> 8 & 0xffffff) == 0xe38b49) {
		move = code >> 8;
		popped = 0;
	} else if ((code & 0xffffff) == 0xe5ff41) {
		return w->leaf[WALK_JAVA_R13];
	}
	move &= 0xffffff;
	if (move == 0xe38b49) {
		*sp = w->leaf[WALK_JAVA_R11];
		word = w->leaf[WALK_JAVA_RDI];
	} else if (move == 0xe38b48 || move == 0xdc8948) {
		*sp = w->leaf[WALK_JAVA_RBX];
		word = w->leaf[WALK_JAVA_R13];
	} else {
		return 0;
	}
	if (!popped && walk_stack_word(w, w->sp, &word))
		return 0;
	return word;
}

/* The first instructions of a method. WALK_SWITCH: its frame is there. */
WALK_FN enum walk_next walk_java_entry(struct walk *w, const struct abi_java *info, __u64 offset)
{
	__u64 method = w->leaf[WALK_JAVA_RBX], caller;
	struct walk_pair pair;
	__u64 in = 0, pop = ~0ULL, push = ~0ULL, filled = ~0ULL;

	if (offset - info->entries_low >= info->entries_high - info->entries_low)
		return WALK_SWITCH;
	for (int i = 0; i < ABI_JAVA_ENTRIES; i++) {
		const struct abi_java_entry *entry = &info->entries[i];

		if (offset - entry->low >= entry->high - entry->low)
			continue;
		in = offset - entry->low;
		pop = entry->pop;
		push = entry->push;
		filled = entry->filled;
		break;
	}
	if (in >= filled)
		return WALK_SWITCH;
	if (walk_java_push_method(w, info, method, 0))
		return WALK_DONE;
	if (in <= pop || in == push + 1) {
		/* Those without a frame take the return address away at their end. */
		if (filled == ~0ULL && w->leaf[WALK_JAVA_R13] == w->sp &&
		    walk_java_is_code(info, w->leaf[WALK_JAVA_RAX]))
			return walk_java_move(w, info, w->leaf[WALK_JAVA_RAX], w->sp, w->fp);
		return walk_java_pop(w, info, 0);
	}
	if (in == push + 2)
		return walk_java_pop(w, info, 1);
	if (in <= push) {
		caller = w->leaf[WALK_JAVA_R13];
		return walk_java_move(w, info, w->leaf[WALK_JAVA_RAX], caller > w->sp ? caller : w->sp, w->fp);
	}
	if (w->fp < w->sp || walk_stack_pair(w, w->fp, &pair))
		return walk_java_fail(w);
	return walk_java_move(w, info, pair.second, w->fp + 16, pair.first);
}

WALK_FN enum walk_next walk_java_interpreted(struct walk *w, const struct abi_java *info)
{
	__u64 offset = w->pc - info->interpreter_low, code, sp, pc;

	if (w->is_leaf && !w->is_return) {
		enum walk_next next = walk_java_entry(w, info, offset);

		if (next != WALK_SWITCH)
			return next;
		pc = walk_read(w, &code, sizeof(code), w->pc) ? 0 : walk_java_leaving(w, code, &sp);
		if (pc) {
			if (walk_java_push_internal(w, 0, offset))
				return WALK_DONE;
			return walk_java_move(w, info, pc, sp, w->fp);
		}
	}
	return walk_java_by_frame(w, info);
}

/* ---- stubs ---- */

/* Native code called Java through this one; the frame pointer leads on, from its third instruction up to its ret:
 * push %rbp; mov %rsp,%rbp; ... pop %rbp; ret. */
WALK_FN enum walk_next walk_java_call_stub(struct walk *w, const struct abi_java *info)
{
	__u64 in = w->pc - info->call_stub_return + info->call_stub_before, fp = w->fp;
	struct walk_pair pair;
	int has_frame = 1;

	if (w->pc != info->call_stub_return) {
		has_frame = in && in != (__u64)info->call_stub_before + info->call_stub_ret;
		fp = in > 1 && has_frame ? fp : w->sp;
	}
	if ((fp & 7) || fp < w->sp || fp - w->sp > WALK_JAVA_FRAME_MAX || walk_stack_pair(w, fp, &pair))
		return walk_java_fail(w);
	if (walk_java_push_internal(w, 0, 0))
		return WALK_DONE;
	if (!has_frame) {
		pair.second = pair.first;
		pair.first = w->fp;
		fp -= 8;
	}
	if (pair.second < WALK_USER_MIN || pair.second > WALK_USER_MAX)
		return walk_java_fail(w);
	walk_move_in_line(w, pair.second, fp + 16, pair.first);
	return WALK_MORE;
}

/* A stub that native code has called, as it does with those that flush caches or read fields: the return address is at
 * sp, or behind the frame pointer that the stub has pushed. Return: 1: w is there. */
WALK_FN int walk_java_from_native(struct walk *w, const struct abi_java *info, __u64 pc)
{
	struct walk_java *j = walk_java_state(w);
	__u64 sp = w->sp + 8, fp = w->fp;
	struct walk_pair pair;

	j->word = pc;
	if (walk_java_is_code(info, pc) || walk_java_candidate(w) == WALK_JAVA_NO_RETURN) {
		if (fp - w->sp > 64 || (fp & 7) || walk_stack_pair(w, fp, &pair) ||
		    walk_java_is_code(info, pair.second))
			return 0;
		j->word = pc = pair.second;
		if (walk_java_candidate(w) == WALK_JAVA_NO_RETURN)
			return 0;
		sp = fp + 16;
		fp = pair.first;
	}
	if (pc < WALK_USER_MIN || pc > WALK_USER_MAX)
		return 0;
	if (walk_find_map(w, pc - 1)) {
		w->map.start = w->map.end = 0;
		return 0;
	}
	walk_move_in_line(w, pc, sp, fp);
	return 1;
}

/* An adapter between compiled and interpreted code. SWITCH: not found. */
WALK_FN enum walk_next walk_java_adapter(struct walk *w, const struct abi_java *info, __u64 word)
{
	__u64 sp;

	if (w->is_leaf && !w->is_return) {
		if (walk_java_is_return(w, info, word))
			return walk_java_move(w, info, word, w->sp + 8, w->fp);
		if (!walk_java_is_return(w, info, w->leaf[WALK_JAVA_RAX])) /* it takes it away for a moment */
			return WALK_SWITCH;
		sp = w->leaf[WALK_JAVA_R13];
		if (sp - w->sp > WALK_JAVA_FRAME_MAX)
			sp = w->sp;
		return walk_java_move(w, info, w->leaf[WALK_JAVA_RAX], sp, w->fp);
	}
	/* It has saved all registers, r13 with its stack pointer among them. */
	if (walk_read(w, &sp, sizeof(sp), w->sp + 528) || (sp & 7) || sp - w->sp > WALK_JAVA_FRAME_MAX ||
	    walk_read(w, &word, sizeof(word), sp) || !walk_java_is_return(w, info, word))
		return WALK_SWITCH;
	return walk_java_move(w, info, word, sp + 8, w->fp);
}

/* Stubs that look for the handler of an exception are jumped to with the place where it was thrown in rdx, which the
 * first instruction pushes: push %rdx; sub $n,%rsp. They go on by pop %rdx; jmp *%r10, or leave; pop %rcx; jmp *%rcx,
 * where rcx is the handler, behind no call. SWITCH: pc is no such place. Source: OpenJDK 17, sharedRuntime_x86_64.cpp,
 * generate_exception_blob(); x86_64.ad, tailjmpInd; c1_Runtime1_x86.cpp, generate_handle_exception(). */
WALK_FN enum walk_next walk_java_throws(struct walk *w, const struct abi_java *info)
{
	struct walk_pair pair;
	__u64 code;

	if (walk_read(w, &code, sizeof(code), w->pc - 1)) /* with the byte in front of it */
		return WALK_SWITCH;
	if ((__u32)code == 0xe2ff415a || (w->pc == walk_java_state(w)->begin && (__u32)(code >> 8) == 0xec834852))
		return walk_java_move(w, info, w->leaf[WALK_JAVA_RDX], w->sp, w->fp);
	if ((code & 0xffffff) == 0xe1ff59)
		return walk_java_move(w, info, w->leaf[WALK_JAVA_RCX], w->sp, w->fp);
	if ((code >> 8 & 0xffffff) == 0xe1ff59)
		return walk_java_pop(w, info, 0);
	if ((__u32)(code >> 8) != 0xe1ff59c9 || (w->fp & 7) || w->fp < w->sp || walk_stack_pair(w, w->fp, &pair))
		return WALK_SWITCH;
	return walk_java_move(w, info, pair.second, w->fp + 16, pair.first);
}

/* The rules that need no search. SWITCH: none of them holds. */
WALK_FN enum walk_next walk_java_stub_rules(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	int is_top = w->is_leaf && !w->is_return;
	struct walk_pair pair;
	__u64 at, word, size = (__u64)j->frame_size;

	if (walk_stack_pair(w, w->sp, &pair))
		return walk_java_fail(w);
	word = pair.first;
	if (is_top && walk_java_from_native(w, info, word))
		return WALK_MORE;
	if (j->kind == WALK_JAVA_ADAPTER)
		return walk_java_adapter(w, info, word);
	if (is_top) {
		enum walk_next next = walk_java_throws(w, info);

		if (next != WALK_SWITCH)
			return next;
	}
	/* What runs when compiled code is entered that may be stale: a word of -1 lies below the return address. */
	if (w->fp - w->sp < 4096 && !(w->fp & 7) && !walk_stack_pair(w, w->fp + 8, &pair) && pair.first == ~0ULL &&
	    walk_java_is_code(info, pair.second)) {
		at = w->fp;
		if (walk_stack_pair(w, at, &pair))
			return walk_java_fail(w);
		j->word = pair.first; /* the caller's fp */
		if (walk_stack_pair(w, at + 16, &pair))
			return walk_java_fail(w);
		return walk_java_move(w, info, pair.first, at + 24, j->word);
	}
	if (w->fp - w->sp < 4096 && !(w->fp & 7) && !walk_stack_pair(w, w->fp, &pair) &&
	    pair.second != info->call_stub_return && !walk_java_in_returns(info, pair.second) &&
	    walk_java_is_return(w, info, pair.second) >= WALK_JAVA_FROM_BLOB)
		return walk_java_move(w, info, pair.second, w->fp + 16, pair.first); /* it keeps frame pointers */
	if (size < 2 || size > WALK_JAVA_FRAME_MAX / 8)
		return WALK_SWITCH;
	at = w->sp + size * 8 - 16;
	if (!is_top && w->fp == at + 8) /* what deoptimises aligns its stack for the call, and keeps a frame pointer */
		at = w->fp;
	if (walk_stack_pair(w, at, &pair))
		return walk_java_fail(w);
	/* In the middle of a call it is whole. What deoptimises returns to a handler, which no call stands in front of.
	 */
	if (is_top ? !walk_java_is_return(w, info, pair.second) : !walk_java_is_code(info, pair.second))
		return WALK_SWITCH;
	if (!is_top)
		j->fresh = (__u32)at + 16;
	return walk_java_move(w, info, pair.second, at + 16, pair.first);
}

/* The word at sp of a stub's stack. SWITCH: it is no return address, and sp is behind it. */
WALK_FN enum walk_next walk_java_scan_one(struct walk *w)
{
	const struct walk_java *j = walk_java_state(w);
	const struct abi_java *info = walk_java_info(w);
	__u64 word, at = w->sp, fp = w->fp;
	int is_return;

	if (walk_stack_word(w, at, &word))
		return WALK_DONE;
	w->sp = at + 8;
	is_return = walk_java_is_return(w, info, word);
	if (is_return == WALK_JAVA_NO_RETURN)
		return WALK_SWITCH;
	if (fp == at - 8 && walk_stack_word(w, fp, &fp)) /* it keeps frame pointers, too */
		return WALK_DONE;
	walk_move_in_line(w, word, at + 8, fp);
	w->guessed = is_return != WALK_JAVA_RETURNS && at >= j->near;
	return WALK_MORE;
}

/* In BPF a function of its own, checked once and not for each turn. */
#ifndef walk_java_scan_word
#define walk_java_scan_word(w) walk_java_scan_one(w)
#endif

/* The next words of a stub's stack: the first that is a return address is believed. When no call says that it called
 * this stub, the frame there is marked; but what lies on top is the return address of who jumped here. */
WALK_FN enum walk_next walk_java_scan(struct walk *w)
{
	struct walk_java *j = walk_java_state(w);

	for (int i = 0; i < WALK_JAVA_SCAN; i++) {
		enum walk_next next = walk_java_scan_word(w);

		if (next != WALK_SWITCH)
			return next;
	}
	j->scanned += WALK_JAVA_SCAN;
	if (j->scanned >= WALK_JAVA_SCAN_MAX)
		return walk_java_fail(w);
	j->scan = w->sp;
	return WALK_MORE;
}

WALK_FN enum walk_next walk_java_stub(struct walk *w, const struct abi_java *info)
{
	struct walk_java *j = walk_java_state(w);
	enum walk_next next;

	if (j->scan != w->sp) {
		if (walk_java_push_internal(w, j->blob, w->pc - j->begin))
			return WALK_DONE;
		next = w->is_leaf || !(info->flags & ABI_JAVA_CHUNKS) ? WALK_SWITCH
								      : (enum walk_next)walk_java_virtual(w);
		if (next != WALK_SWITCH)
			return next;
		next = walk_java_stub_rules(w, info);
		if (next != WALK_SWITCH)
			return next;
		j->scanned = 0;
		j->near = w->sp + (w->is_leaf && !w->is_return ? 8 : 16);
	}
	j->scan = 0;
	return walk_java_scan(w);
}
