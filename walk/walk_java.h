/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* HotSpot's frames inside the native walk: one step from a frame in its code to the caller.
 *
 *	pc --heap, segment map--> blob, its header --kind--> compiled method | interpreter | stub --rule--> caller
 *
 * Compiled code has a frame of fixed size, the interpreter a chain of frame pointers, stubs what they like. The rules
 * for the top frame, whose code may be anywhere between its first and last instruction, look at the instructions there.
 * Which code is whose is looked up in the process's memory at each frame: nobody has to be told of new code. */
#pragma once

#include "abi/java.h"
#include "walk/java_identity.h"
#include "walk/walk_native.h"

#define WALK_JAVA_HEADER 384 /* bytes of a blob's header; nmethod of JDK 11: 376 */
#define WALK_JAVA_HEADER_MIN 128
#define WALK_JAVA_HOPS 16             /* through the segment map; 4 seen */
#define WALK_JAVA_FRAME 64            /* where in scratch an interpreted frame is, in words */
#define WALK_JAVA_CODE 80             /* where the instructions around pc are */
#define WALK_JAVA_PUSHED 6            /* words that inlined code may have pushed */
#define WALK_JAVA_SCAN 32             /* words looked at in a step */
#define WALK_JAVA_SCAN_MAX 512        /* words a stub may have on the stack: AVX-512 registers take 2.8 KiB */
#define WALK_JAVA_FRAME_MAX (1 << 20) /* bytes: a method has 65,535 locals at most */

/* Where in scratch what identifies a method is, in words. */
#define WALK_JAVA_CONST 96 /* a ConstMethod's head */
#define WALK_JAVA_KEY 104
#define WALK_JAVA_PLACE 105
#define WALK_JAVA_FETCHED 106
#define WALK_JAVA_SYMBOLS 107 /* of class, name and signature */

enum walk_java_kind {
	WALK_JAVA_METHOD,
	WALK_JAVA_ADAPTER,
	WALK_JAVA_STUB,
	WALK_JAVA_UNREAD, /* a method, of whose header a part cannot be read */
};

struct walk_java { /* of the blob at pc */
	__u64 blob, begin, end;
	__u64 word; /* may be a return address: walk_java_returns() says */
	__u64 near; /* below this, what a stub has on its stack is not its own */
	__u64 scan; /* sp from where on a stub's stack is being searched; 0: it is not */
	union {
		__u32 scanned;
		__u32 pushed; /* aarch64: words that compiled code has on its stack beside its frame */
	};
	__s32 frame_size; /* words */
	__u32 kind;
	union {
		__u32 loose; /* aarch64: sp may be too low, for it is a stub's, which may have pushed something */
		__u32 fresh; /* x86-64: low half of sp where a frame begins that may have been made just now */
	};
};

_Static_assert(sizeof(struct walk_java) <= sizeof(((struct walk *)0)->state[0]), "it overlays state[]");
_Static_assert(sizeof(struct abi_java) <= WALK_INFO, "it overlays info[]");

WALK_FN struct walk_java *walk_java_state(struct walk *w)
{
	return (struct walk_java *)w->state[ABI_RUNTIME_JAVA];
}

WALK_FN struct abi_java *walk_java_info(struct walk *w)
{
	return (struct abi_java *)w->info;
}

WALK_FN enum walk_next walk_java_fail(struct walk *w)
{
	if (w->end != ABI_END_READ_FAILED)
		w->end = ABI_END_UNSUPPORTED;
	return WALK_DONE;
}

WALK_FN int walk_java_is_code(const struct abi_java *info, __u64 pc)
{
	return pc - info->low < info->high - info->low;
}

WALK_FN int walk_java_in_interpreter(const struct abi_java *info, __u64 pc)
{
	return pc - info->interpreter_low < info->interpreter_high - info->interpreter_low;
}

WALK_FN int walk_java_in_returns(const struct abi_java *info, __u64 pc)
{
	return pc - info->interpreter_low - info->returns_low < info->returns_high - info->returns_low;
}

/* ---- the blob ---- */

/* A word of the header. Offsets come from the host, which is not trusted with memory. */
WALK_FN __u64 walk_java_word(struct walk *w, __u32 offset)
{
	__u32 at = offset >> 3;

	walk_opaque(at);
	at &= 63;
	return w->scratch[at];
}

WALK_FN __u32 walk_java_u32(struct walk *w, __u32 offset)
{
	return (__u32)(walk_java_word(w, offset) >> (offset & 4) * 8);
}

WALK_FN __u16 walk_java_u16(struct walk *w, __u32 offset)
{
	return (__u16)(walk_java_word(w, offset) >> (offset & 6) * 8);
}

/* An address that older versions have as such, newer ones as an offset from the blob. */
WALK_FN __u64 walk_java_address(struct walk *w, const struct abi_java *info, __u32 offset)
{
	return info->flags & ABI_JAVA_RELATIVE ? walk_java_state(w)->blob + walk_java_u32(w, offset)
					       : walk_java_word(w, offset);
}

WALK_FN enum walk_java_kind walk_java_kind_of(struct walk *w, const struct abi_java *info)
{
	__u64 name;

	if (info->flags & ABI_JAVA_KINDS) {
		__u8 kind = (__u8)(walk_java_word(w, info->kind) >> (info->kind & 7) * 8);

		return kind == ABI_JAVA_KIND_NMETHOD   ? WALK_JAVA_METHOD
		       : kind == ABI_JAVA_KIND_ADAPTER ? WALK_JAVA_ADAPTER
						       : WALK_JAVA_STUB;
	}
	name = walk_java_word(w, info->name);
	if (!name)
		return WALK_JAVA_STUB;
	return name == info->names[0] || name == info->names[1] ? WALK_JAVA_METHOD
	       : name == info->names[2]                         ? WALK_JAVA_ADAPTER
								: WALK_JAVA_STUB;
}

/* The header in scratch. Return: 0, or 1: there is no blob with code at @at. */
WALK_FN int walk_java_read_blob(struct walk *w, const struct abi_java *info, __u64 at)
{
	struct walk_java *j = walk_java_state(w);
	int is_short = walk_read(w, w->scratch, WALK_JAVA_HEADER, j->blob) != 0;

	if (is_short && walk_read(w, w->scratch, WALK_JAVA_HEADER_MIN, j->blob)) /* the last one of its heap */
		return 1;
	j->begin = walk_java_address(w, info, info->code_begin);
	j->end = walk_java_address(w, info, info->code_end);
	if (at - j->begin >= j->end - j->begin)
		return 1;
	j->frame_size = (__s32)walk_java_u32(w, info->frame_size);
	j->kind = walk_java_kind_of(w, info);
	if (is_short && j->kind == WALK_JAVA_METHOD)
		j->kind = WALK_JAVA_UNREAD;
	return 0;
}

/* Source: OpenJDK 17, src/hotspot/share/memory/heap.cpp, CodeHeap::find_block_for(). */
WALK_FN int walk_java_find_blob(struct walk *w, const struct abi_java *info, __u64 at)
{
	__u32 shift = info->shift & 31;
	__u64 low = 0, map = 0, segment;
	__u8 back = 0;

	for (int i = 0; i < ABI_JAVA_HEAPS; i++) {
		if (at - info->heaps[i].low < info->heaps[i].high - info->heaps[i].low) {
			low = info->heaps[i].low;
			map = info->heaps[i].map;
			break;
		}
	}
	if (!map)
		return 1;
	segment = (at - low) >> shift;
	for (int hop = 0; hop < WALK_JAVA_HOPS; hop++) {
		if (walk_read(w, &back, 1, map + segment) || back == 0xff || back > segment)
			return 1;
		if (!back)
			break;
		segment -= back;
	}
	if (back)
		return 1;
	walk_java_state(w)->blob = low + (segment << shift) + info->block_header;
	return walk_java_read_blob(w, info, at);
}

/* ---- return addresses ---- */

enum walk_java_return {
	WALK_JAVA_NO_RETURN,
	WALK_JAVA_MAY_RETURN, /* behind some call */
	WALK_JAVA_FROM_BLOB,  /* behind a call of the blob at pc, but of a place behind pc: stubs jump into one another
			       */
	WALK_JAVA_RETURNS,    /* behind a call of the blob at pc, of the interpreter, or of the stub for native code */
};

#define WALK_JAVA_CALL_NONE 1 /* there is no call in front of it */

/* The address that the call in front of @ret calls, where the instructions say so; 0: they do not. */
WALK_FN __u64 walk_java_called(struct walk *w, __u64 ret);

/** walk_java_returns - is j->word a return address? */
WALK_FN enum walk_java_return walk_java_returns(struct walk *w)
{
	const struct walk_java *j = walk_java_state(w);
	const struct abi_java *info = walk_java_info(w);
	__u64 called, pc = j->word;

	if (pc == info->call_stub_return)
		return WALK_JAVA_RETURNS;
	if (walk_java_in_returns(info, pc))
		return WALK_JAVA_RETURNS;
	called = walk_java_called(w, pc);
	if (called == WALK_JAVA_CALL_NONE)
		return WALK_JAVA_NO_RETURN;
	if (called - j->begin >=
	    j->end - j->begin) /* the interpreter calls its stubs, and nothing else that is seen here */
		return walk_java_in_interpreter(info, pc) ? WALK_JAVA_NO_RETURN : WALK_JAVA_MAY_RETURN;
	return called <= w->pc ? WALK_JAVA_RETURNS : WALK_JAVA_FROM_BLOB;
}

/* In BPF a function of its own, checked once: kernel 5.10 refuses a loop that begins right behind a call. */
#ifndef walk_java_candidate
#define walk_java_candidate(w) ((int)walk_java_returns(w))
#endif

WALK_FN int walk_java_is_return(struct walk *w, const struct abi_java *info, __u64 pc)
{
	if (!walk_java_is_code(info, pc))
		return WALK_JAVA_NO_RETURN;
	walk_java_state(w)->word = pc;
	return walk_java_candidate(w);
}

/* ---- frames ---- */

/* Of an interpreted frame; @low: the address of its ConstMethod, or with NAMED what java_identity_name() says. */
WALK_FN __u64 walk_java_cookie(const struct abi_java *info, __u64 low)
{
	__u64 epoch = info->flags & ABI_JAVA_NAMED ? 0 : info->epoch;

#ifdef WALK_AARCH64
	if (!(info->flags & ABI_JAVA_NAMED))
		low &= ABI_JAVA_FULL - 1;
#endif
	return epoch << ABI_JAVA_COOKIE_BITS | (low & ((1ULL << ABI_JAVA_COOKIE_BITS) - 1));
}

/* Return: 0, or 1 when the record is full, with w->end set. */
WALK_FN int walk_java_push_internal(struct walk *w, __u64 key, __u64 extra)
{
	struct abi_frame *frame = walk_push_in_line(w, ABI_RUNTIME_JAVA, ABI_FRAME_INTERNAL);

	if (!frame)
		return 1;
	frame->extra = (__u32)extra;
	frame->a = key;
	frame->b = 0;
	return 0;
}

/* A word into scratch, not onto the stack, of which BPF has little. Return: 0: there is none. */
WALK_FN __u64 walk_java_fetch(struct walk *w, __u64 at)
{
	if (walk_read(w, w->scratch + WALK_JAVA_FETCHED, 8, at))
		return 0;
	return w->scratch[WALK_JAVA_FETCHED] > WALK_USER_MAX ? 0 : w->scratch[WALK_JAVA_FETCHED];
}

/* Number @which of them, with its hash above its address. Return: 0: there is none. */
WALK_FN __u64 walk_java_symbol(struct walk *w, const struct abi_java *info, __u64 at, __u32 which)
{
	__u64 symbol = walk_java_fetch(w, at);

	w->scratch[WALK_JAVA_SYMBOLS + which] = symbol;
	if (!symbol || walk_read(w, w->scratch + WALK_JAVA_FETCHED, 2, symbol + info->symbol_hash))
		return 0;
	return symbol | w->scratch[WALK_JAVA_FETCHED] << ABI_JAVA_COOKIE_BITS;
}

/* Of a class's name, whose Symbol was fetched: the end of its text. Return: 0, or 1: it cannot be read. */
WALK_FN int walk_java_end(struct walk *w, const struct abi_java *info, __u64 symbol, __u64 *out)
{
	__u16 length;

	if (walk_read(w, w->scratch + WALK_JAVA_FETCHED, 2, symbol + info->symbol_length))
		return 1;
	length = (__u16)w->scratch[WALK_JAVA_FETCHED];
	if (walk_read(w, w->scratch + WALK_JAVA_FETCHED, 8, java_identity_end_at(symbol + info->symbol_body, length)))
		return 1;
	*out = java_identity_end(w->scratch[WALK_JAVA_FETCHED], length);
	return 0;
}

WALK_FN __u16 walk_java_index(struct walk *w, __u32 offset)
{
	return (__u16)(w->scratch[WALK_JAVA_CONST + (offset >> 3 & 7)] >> (offset & 6) * 8);
}

/** walk_java_identify - from the addresses of Method and ConstMethod in KEY and PLACE to a frame's key and cookie, and
 * the SYMBOLS. Return: 0, or 1: it cannot be told. */
WALK_FN int walk_java_identify(struct walk *w)
{
	const struct abi_java *info = walk_java_info(w);
	__u64 pool, symbol, hash = 0;

	if (walk_read(w, w->scratch + WALK_JAVA_CONST, 64, w->scratch[WALK_JAVA_PLACE]))
		return 1;
	pool = w->scratch[WALK_JAVA_CONST + (info->const_pool >> 3 & 7)];
	if (!pool || pool > WALK_USER_MAX)
		return 1;
	w->scratch[WALK_JAVA_KEY] = java_identity_key(w->scratch[WALK_JAVA_KEY], w->scratch[WALK_JAVA_PLACE], pool);
	symbol = walk_java_fetch(w, pool + info->pool_holder);
	symbol = symbol ? walk_java_symbol(w, info, symbol + info->class_name, 0) : 0;
	if (!symbol || walk_java_end(w, info, w->scratch[WALK_JAVA_SYMBOLS], &hash))
		return 1;
	hash = java_identity_mix(hash, symbol);
	pool += info->pool_size;
	symbol = walk_java_symbol(w, info, pool + 8ULL * walk_java_index(w, info->const_name), 1);
	if (!symbol)
		return 1;
	hash = java_identity_mix(hash, symbol);
	symbol = walk_java_symbol(w, info, pool + 8ULL * walk_java_index(w, info->const_signature), 2);
	if (!symbol)
		return 1;
	w->scratch[WALK_JAVA_PLACE] = java_identity_name(java_identity_mix(hash, symbol));
	return 0;
}

/* In BPF a function of its own, checked once. */
#ifndef walk_java_identity
#define walk_java_identity(w) walk_java_identify(w)
#endif

/* An interpreted frame of @method, or of nobody when that cannot be one. @bcp: its bytecode pointer. A late walk may
 * come when the method's class is unloaded: then the frame is one without name. Left out, it would make its caller call
 * its callee. */
WALK_FN int walk_java_push_method(struct walk *w, const struct abi_java *info, __u64 method, __u64 bcp)
{
	struct abi_frame *frame;
	__u64 constant = 0, index;
	int is_unknown;

	if (!method || (method & 7) || method > WALK_USER_MAX)
		return walk_java_push_internal(w, 0, w->pc - info->interpreter_low);
	is_unknown = walk_read(w, &constant, sizeof(constant), method + info->method_const) != 0;
	if (!constant && !is_unknown && !walk_is_late(w))
		return walk_java_push_internal(w, 0, w->pc - info->interpreter_low);
	is_unknown |= !constant;
	w->scratch[WALK_JAVA_KEY] = method;
	w->scratch[WALK_JAVA_PLACE] = constant;
	if (!is_unknown && info->flags & ABI_JAVA_NAMED)
		is_unknown = walk_java_identity(w);
	frame = walk_push_in_line(w, ABI_RUNTIME_JAVA, 0);
	if (!frame)
		return 1;
	index = bcp - (constant + info->const_size);
	frame->extra = index > 0xffff ? ABI_JAVA_NO_INDEX : (__u32)index;
	frame->a = w->scratch[WALK_JAVA_KEY];
	frame->b = is_unknown ? 0 : walk_java_cookie(info, w->scratch[WALK_JAVA_PLACE]);
	return 0;
}

/* A frame of a method that nobody can tell. Return: 0, or 1 when the record is full, with w->end set. */
WALK_FN int walk_java_push_lost(struct walk *w)
{
	struct abi_frame *frame = walk_push_in_line(w, ABI_RUNTIME_JAVA, 0);

	if (!frame)
		return 1;
	frame->extra = ABI_JAVA_NO_INDEX;
	frame->a = 0;
	frame->b = 0;
	return 0;
}

/* To the caller at @pc; it must lie in the code cache. */
WALK_FN enum walk_next walk_java_move(struct walk *w, const struct abi_java *info, __u64 pc, __u64 sp, __u64 fp)
{
	if (!walk_java_is_code(info, pc) || (sp & 7))
		return walk_java_fail(w);
	walk_move_in_line(w, pc, sp, fp);
	return WALK_MORE;
}

/* ---- compiled code ---- */

/* Where the frame would be: a frame that was deoptimised returns to a handler and has its place on the stack. */
WALK_FN __u64 walk_java_place(struct walk *w, const struct abi_java *info)
{
	const struct walk_java *j = walk_java_state(w);
	__u64 pc = w->pc, place;

	if (!w->is_return)
		return pc;
	if (pc != walk_java_address(w, info, info->deopt) &&
	    (info->deopt_mh == 0xffff || pc != walk_java_address(w, info, info->deopt_mh)))
		return pc;
	if (walk_read(w, &place, sizeof(place), w->sp + walk_java_u32(w, info->orig_pc)))
		return pc;
	return place - j->begin < j->end - j->begin ? place : pc;
}

/* ---- the stub through which native code calls Java ---- */

/* Is pc in the stub through which native code calls Java? */
WALK_FN int walk_java_in_call_stub(const struct walk *w, const struct abi_java *info)
{
	if (w->pc == info->call_stub_return)
		return 1;
	return w->is_leaf && !w->is_return &&
	       w->pc - info->call_stub_return + info->call_stub_before <
		       (__u64)info->call_stub_before + info->call_stub_after;
}

/* What is left is the architecture's: walk_java_called(), and the callers of walk_java_compiled(),
 * walk_java_interpreted(), walk_java_call_stub() and walk_java_stub(). */
#ifdef WALK_X86_64
#include "walk/walk_java_x86_64.h"
#else
#include "walk/walk_java_aarch64.h"
#endif

/* ---- the step ---- */

/* Once in a walk. */
WALK_FN void walk_java_meet(struct walk *w, struct abi_java *info)
{
	__u64 before = info->epoch;
	__u8 redefines = 0;

	info->met = 1;
	info->chunk_entry = w->is_return ? w->sp : 0;
	walk_java_state(w)->scan = 0;
	walk_java_state(w)->loose = 0; /* and fresh, which is the same word */
	if (!info->epoch_at || walk_read(w, &info->epoch, sizeof(info->epoch), info->epoch_at) ||
	    (info->epoch != before && !walk_is_late(w)))
		info->flags |= ABI_JAVA_NAMED;
	if (info->redefines_at && (walk_read(w, &redefines, 1, info->redefines_at) || redefines))
		info->flags |= ABI_JAVA_NAMED;
}

/** walk_java_step - one frame of w->info's process; SWITCH: there is no code of HotSpot at pc */
WALK_FN enum walk_next walk_java_step(struct walk *w)
{
	struct abi_java *info = walk_java_info(w);
	__u64 at;

	if (w->sp & 7)
		return WALK_SWITCH;
	if (!info->met)
		walk_java_meet(w, info);
	if (info->chunk_end && w->sp >= info->chunk_end && walk_java_virtual(w) == WALK_DONE)
		return WALK_DONE;
	at = w->pc - (w->is_return ? 1 : 0);
	if (walk_java_in_call_stub(w, info))
		return walk_java_call_stub(w, info);
	if (walk_java_in_interpreter(info, at))
		return info->chunk_end ? (enum walk_next)walk_java_virtual(w) : walk_java_interpreted(w, info);
	if (walk_java_find_blob(w, info, at))
		return WALK_SWITCH;
	info->chunk_link = 0;
	if (walk_java_state(w)->kind == WALK_JAVA_UNREAD) {
		w->end = ABI_END_READ_FAILED;
		return WALK_DONE;
	}
	if (walk_java_state(w)->kind == WALK_JAVA_METHOD)
		return walk_java_compiled(w, info);
	return walk_java_stub(w, info);
}
