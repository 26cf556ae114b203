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
#define WALK_JAVA_HOPS 16   /* through the segment map; 4 seen */
#define WALK_JAVA_FRAME 64  /* where in scratch an interpreted frame is, in words */
#define WALK_JAVA_CODE 80   /* where the instructions around pc are */
#define WALK_JAVA_BEHIND 32 /* bytes of them in front of pc */
#define WALK_JAVA_AHEAD 24
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
	__u32 scanned;
	__s32 frame_size; /* words */
	__u32 kind;
	__u32 reserved;
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

#ifdef WALK_X86_64
#define WALK_JAVA_RAX 0
#define WALK_JAVA_RBX 3
#define WALK_JAVA_RDI 5
#define WALK_JAVA_R11 11
#define WALK_JAVA_R13 13

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

/* The address that the call in front of @ret calls, where the instruction says so; 0: it does not. CALL_NONE: there is
 * no call. Source: Intel SDM volume 2: E8 rel32; 49 BA imm64, 41 FF D2: mov $imm64,%r10; call *%r10. */
#define WALK_JAVA_CALL_NONE 1

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
	if (!symbol)
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

/* To the caller at @pc; it must lie in the code cache. */
WALK_FN enum walk_next walk_java_move(struct walk *w, const struct abi_java *info, __u64 pc, __u64 sp, __u64 fp)
{
	if (!walk_java_is_code(info, pc) || (sp & 7))
		return walk_java_fail(w);
	walk_move_in_line(w, pc, sp, fp);
	return WALK_MORE;
}

/* The return address is at sp, @pushed: behind the caller's frame pointer. */
WALK_FN enum walk_next walk_java_pop(struct walk *w, const struct abi_java *info, int pushed)
{
	struct walk_pair pair;

	if (walk_stack_pair(w, w->sp, &pair))
		return walk_java_fail(w);
	return pushed ? walk_java_move(w, info, pair.second, w->sp + 16, pair.first)
		      : walk_java_move(w, info, pair.first, w->sp + 8, w->fp);
}

/* ---- virtual threads ---- */

/* A virtual thread that goes on has its innermost frames on the stack alone: the last of them returns to code that
 * brings more out of the heap, where they lie as they did on the stack, in a chain of chunks. That code is known by its
 * first instruction, which takes the stack pointer from the thread: it is where it was already. There lies what began
 * the virtual thread, with the frame of its caller behind. Source: OpenJDK 21 and 25,
 * share/runtime/continuationEntry.hpp, share/oops/instanceStackChunkKlass.hpp, cpu/x86/stubGenerator_x86_64.cpp. */
#define WALK_JAVA_BARRIER 0xa78b49 /* mov n(%r15),%rsp */
#define WALK_JAVA_ENTRY_FP 64      /* of the entry: the caller's frame pointer, then the return address */
#define WALK_JAVA_ENTRY_THREAD 16  /* the Continuation */
#define WALK_JAVA_CHUNK_MAX (1 << 20)

/* Fields as class loaders lay them out, by whether references are compressed. */
#define WALK_JAVA_TAIL(compressed) ((compressed) ? 32 : 48)         /* of Continuation: its first chunk */
#define WALK_JAVA_CHUNK_FRAMES(compressed) ((compressed) ? 48 : 56) /* of StackChunk: where they begin */
#define WALK_JAVA_CHUNK_PARENT 40                                   /* the next one */

/* A reference to an object. Return: 0: there is none, or it cannot be read. Those that a collector has coloured (ZGC)
 * are none. */
WALK_FN __u64 walk_java_reference(struct walk *w, const struct abi_java *info, __u64 at, int compressed)
{
	__u64 value = 0;

	if (walk_read(w, &value, compressed ? 4 : 8, at) || !value)
		return 0;
	if (compressed)
		value = info->oop_base + (value << (info->oop_shift & 7));
	return value & 7 || value > WALK_USER_MAX ? 0 : value;
}

/* To the first frame of a chunk. Return: 0, or 1: it has none. */
WALK_FN int walk_java_enter_chunk(struct walk *w, struct abi_java *info, __u64 chunk, int compressed)
{
	__u64 *head = w->scratch + WALK_JAVA_FRAME; /* from 8 on: class, size; pc; sp, bottom, in words */
	__u64 begin = chunk + WALK_JAVA_CHUNK_FRAMES(compressed), at;
	__u32 size, sp, bottom;
	struct walk_pair top;

	if (walk_read(w, head, 24, chunk + 8))
		return 1;
	size = (__u32)(head[0] >> 32);
	sp = (__u32)head[2];
	bottom = (__u32)(head[2] >> 32);
	if (size > WALK_JAVA_CHUNK_MAX || bottom > size || sp >= bottom)
		return 1;
	at = begin + sp * 8ULL;
	if (walk_read(w, &top, sizeof(top), at - 16) || !walk_java_is_code(info, top.second))
		return 1;
	info->chunk = chunk;
	info->chunk_link = 0;
	info->chunk_end = begin + bottom * 8ULL;
	walk_move_in_line(w, top.second, at, 0);
	w->leapt = 1;
	return 0;
}

/** walk_java_chunks - from the end of the frames at hand, on the stack or in a chunk, to the next chunk, or behind the
 * last one. Return: 0, or 1: it is not where they end, or what follows cannot be read. */
WALK_FN int walk_java_chunks(struct walk *w)
{
	struct abi_java *info = walk_java_info(w);
	struct walk_pair caller;
	__u64 chunk, thread = 0;
	int compressed;

	if (info->chunk_end) {
		compressed = info->oop_base || info->oop_shift || info->chunk >> 32 == 0;
		chunk = walk_java_reference(w, info, info->chunk + WALK_JAVA_CHUNK_PARENT, compressed);
		if (chunk && !walk_java_enter_chunk(w, info, chunk, compressed))
			return 0;
		info->chunk_end = 0;
		w->leapt = 1;
		if (info->continuation_return) { /* the frame that began it is seen, too */
			walk_move_in_line(w, info->continuation_return, info->chunk_entry, 0);
			return 0;
		}
		if (walk_stack_pair(w, info->chunk_entry + WALK_JAVA_ENTRY_FP, &caller) ||
		    !walk_java_is_code(info, caller.second))
			return 1;
		walk_move_in_line(w, caller.second, info->chunk_entry + WALK_JAVA_ENTRY_FP + 16, caller.first);
		return 0;
	}
	if (walk_read(w, &thread, sizeof(thread), w->sp + WALK_JAVA_ENTRY_THREAD))
		return 1;
	compressed = info->oop_base || info->oop_shift || thread >> 32 == 0;
	info->chunk_entry = w->sp;
	chunk = walk_java_reference(w, info, thread + WALK_JAVA_TAIL(compressed), compressed);
	if (!chunk)
		return 1;
	if (!walk_java_enter_chunk(w, info, chunk, compressed))
		return 0;
	chunk = walk_java_reference(w, info, chunk + WALK_JAVA_CHUNK_PARENT, compressed); /* that one was empty */
	return !chunk || walk_java_enter_chunk(w, info, chunk, compressed);
}

/* Where frames on the stack end. SWITCH: they do not. */
WALK_FN enum walk_next walk_java_barrier(struct walk *w, const struct abi_java *info)
{
	struct walk_pair caller;
	__u64 code = 0, sp = w->sp;

	if (walk_read(w, &code, sizeof(code), w->pc) || (code & 0xffffff) != WALK_JAVA_BARRIER)
		return WALK_SWITCH;
	if (walk_stack_pair(w, sp + WALK_JAVA_ENTRY_FP, &caller) || !walk_java_is_code(info, caller.second))
		return WALK_SWITCH;
	if (!walk_java_chunks(w))
		return WALK_MORE;
	walk_move_in_line(w, caller.second, sp + WALK_JAVA_ENTRY_FP + 16, caller.first);
	w->guessed = 1; /* frames are missing */
	return WALK_MORE;
}

/* An interpreted frame in a chunk: as walk_java_by_frame(), but addresses within are distances, in words, from where
 * they lie or from fp. */
WALK_FN enum walk_next walk_java_chunk_frame(struct walk *w, struct abi_java *info)
{
	const __u64 *frame = w->scratch + WALK_JAVA_FRAME;
	__u64 link = info->chunk_link ? info->chunk_link : w->sp - 16, distance = 0, sp;

	if (walk_read(w, &distance, sizeof(distance), link))
		return walk_java_fail(w);
	w->fp = link + distance * 8;
	if (w->fp < w->sp || w->fp >= info->chunk_end || walk_read(w, w->scratch + WALK_JAVA_FRAME, 80, w->fp - 64))
		return walk_java_fail(w);
	info->chunk_link = w->fp; /* the caller's sp may lie behind it, where its frame had grown */
	if (walk_java_push_method(w, info, frame[5], frame[0]))
		return WALK_DONE;
	if (w->fp + frame[1] * 8 + 8 >= info->chunk_end) { /* its locals are the chunk's last words */
		w->sp = info->chunk_end;
		return WALK_MORE;
	}
	sp = w->fp + frame[7] * 8;
	return sp - w->fp > WALK_JAVA_FRAME_MAX ? walk_java_fail(w) : walk_java_move(w, info, frame[9], sp, 0);
}

/* All that virtual threads need beyond the rules for stacks. Return: enum walk_next: of an interpreted frame in a
 * chunk; at a chunk's end SWITCH: w is behind it; of a stub SWITCH: frames do not end there. */
WALK_FN int walk_java_virtual_step(struct walk *w)
{
	struct abi_java *info = walk_java_info(w);

	if (!info->chunk_end)
		return walk_java_barrier(w, info);
	if (w->sp < info->chunk_end)
		return walk_java_chunk_frame(w, info);
	return walk_java_chunks(w) ? walk_java_fail(w) : WALK_SWITCH;
}

/* In BPF a function of its own, checked once. */
#ifndef walk_java_virtual
#define walk_java_virtual(w) walk_java_virtual_step(w)
#endif

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
		return (WALK_JAVA_LOW(a, 3) == 0x7f8341 && (a >> 40 & 0xffff) == 0x850f && (b >> 24 & 0xff) == 0xc3) ||
		       (WALK_JAVA_LOW(a, 3) == 0xbf8341 && (b & 0xffff) == 0x850f && (b >> 48 & 0xff) == 0xc3);
	}
	if (first == 0x0f) /* ja, jne; ret */
		return ((a >> 8 & 0xff) == 0x87 || (a >> 8 & 0xff) == 0x85) && (a >> 48 & 0xff) == 0xc3;
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

WALK_FN enum walk_java_top walk_java_epilogue(struct walk *w)
{
	const __u64 *code = w->scratch + WALK_JAVA_CODE + WALK_JAVA_BEHIND / 8;
	__u64 before = code[-1], a = code[0], b = code[1], c = code[2];

	if ((__u8)a == 0x5d) /* pop %rbp */
		return walk_java_ends(a >> 8 | b << 56, b >> 8 | c << 56) ? WALK_JAVA_SAVED : WALK_JAVA_WHOLE;
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

/* The frame at fp. Source: OpenJDK 17, src/hotspot/cpu/x86/frame_x86.hpp: words from fp: 0 the caller's fp, 1 the
 * return address, -1 the caller's sp, -3 the method, bcp_slot the bytecode pointer. */
WALK_FN enum walk_next walk_java_by_frame(struct walk *w, const struct abi_java *info)
{
	const __u64 *frame = w->scratch + WALK_JAVA_FRAME;
	__u64 bcp, method, sp;

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
	if (walk_java_push_method(w, info, method, bcp))
		return WALK_DONE;
	return walk_java_move(w, info, frame[9], sp, frame[8]);
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

/* Is pc in the stub through which native code calls Java? */
WALK_FN int walk_java_in_call_stub(const struct walk *w, const struct abi_java *info)
{
	if (w->pc == info->call_stub_return)
		return 1;
	return w->is_leaf && !w->is_return &&
	       w->pc - info->call_stub_return + info->call_stub_before <
		       (__u64)info->call_stub_before + info->call_stub_after;
}

/* Native code called Java through this one; the frame pointer leads on, from its second instruction up to its ret:
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
	    !walk_java_in_returns(info, pair.second) &&
	    walk_java_is_return(w, info, pair.second) >= WALK_JAVA_FROM_BLOB)
		return walk_java_move(w, info, pair.second, w->fp + 16, pair.first); /* it keeps frame pointers */
	if (size < 2 || size > WALK_JAVA_FRAME_MAX / 8)
		return WALK_SWITCH;
	at = w->sp + size * 8 - 16;
	if (walk_stack_pair(w, at, &pair))
		return walk_java_fail(w);
	/* In the middle of a call it is whole. What deoptimises returns to a handler, which no call stands in front of.
	 */
	if (is_top ? !walk_java_is_return(w, info, pair.second) : !walk_java_is_code(info, pair.second))
		return WALK_SWITCH;
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

/* ---- the step ---- */

/* Once in a walk. */
WALK_FN void walk_java_meet(struct walk *w, struct abi_java *info)
{
	__u64 before = info->epoch;
	__u8 redefines = 0;

	info->met = 1;
	walk_java_state(w)->scan = 0;
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
#else
/* Other architectures have other frames: their code is walked as any JIT code. */
WALK_FN enum walk_next walk_java_step(struct walk *w)
{
	(void)w;
	return WALK_SWITCH;
}
#endif
