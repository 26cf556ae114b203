/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Virtual threads of HotSpot: their frames that lie in the heap. A part of walk/walk_java.h, which includes it. */
#pragma once

/* ---- virtual threads ---- */

/* A virtual thread that goes on has its innermost frames on the stack alone: the last of them returns to code that
 * brings more out of the heap, where they lie as they did on the stack, in a chain of chunks. That code is known by its
 * first instruction, which takes the stack pointer from the thread: it is where it was already. There lies what began
 * the virtual thread, with the frame of its caller behind. Source: OpenJDK 21 and 25,
 * share/runtime/continuationEntry.hpp, share/oops/instanceStackChunkKlass.hpp, cpu/x86/stubGenerator_x86_64.cpp. */
#define WALK_JAVA_BARRIER 0xa78b49 /* mov n(%r15),%rsp */
#define WALK_JAVA_THAW 0xff8b4959  /* pop %rcx; mov %r15,%rdi: what the blob of that code begins with */
#define WALK_JAVA_ENTRY_FP 64      /* of the entry: the caller's frame pointer, then the return address */
#define WALK_JAVA_ENTRY_THREAD 16  /* the Continuation */
#define WALK_JAVA_CHUNK_MAX (1 << 20)
#define WALK_JAVA_CHUNK_PC 16 /* of a chunk: of its top frame */

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

/* Is @chunk a new one, into which the frames at hand are just being copied? It has the pc of what called the VM for
 * that, which lies on top of them: @top. They would be met again there. Source: OpenJDK 25, share/runtime/
 * continuationFreezeThaw.cpp, freeze_fast_new_chunk(). */
WALK_FN int walk_java_is_copy(struct walk *w, __u64 chunk, __u64 top)
{
	const __u64 *words = w->scratch + WALK_JAVA_FRAME;
	__u64 pc = 0;

	if (!top || walk_read(w, &pc, sizeof(pc), chunk + WALK_JAVA_CHUNK_PC) || !pc ||
	    walk_read(w, w->scratch + WALK_JAVA_FRAME, 32, top))
		return 0;
	return words[0] == pc || words[1] == pc || words[2] == pc || words[3] == pc;
}

/** walk_java_chunks - from the end of the frames at hand, on the stack or in a chunk, to the next chunk, or behind the
 * last one. Return: 0, or 1: it is not where they end, or what follows cannot be read. */
WALK_FN int walk_java_chunks(struct walk *w)
{
	struct abi_java *info = walk_java_info(w);
	struct walk_pair caller;
	__u64 chunk, begin = 0, thread = 0, top = info->chunk_entry;
	int compressed;

	if (info->chunk_end) {
		compressed = info->oop_base || info->oop_shift || info->chunk >> 32 == 0;
		chunk = walk_java_reference(w, info, info->chunk + WALK_JAVA_CHUNK_PARENT, compressed);
		if (chunk && !walk_java_enter_chunk(w, info, chunk, compressed))
			return 0;
		info->chunk_end = 0;
		w->leapt = 1;
		if (info->continuation_return_at && walk_read(w, &begin, sizeof(begin), info->continuation_return_at))
			return 1;
		if (begin) { /* the frame that began it is seen, too */
			walk_move_in_line(w, begin, info->chunk_entry, 0);
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
	if (!walk_java_is_copy(w, chunk, top) && !walk_java_enter_chunk(w, info, chunk, compressed))
		return 0;
	chunk = walk_java_reference(w, info, chunk + WALK_JAVA_CHUNK_PARENT, compressed); /* that one was empty */
	return !chunk || walk_java_enter_chunk(w, info, chunk, compressed);
}

/* Where frames on the stack end. SWITCH: they do not. In the middle of that code the VM fills the stack behind sp with
 * frames, where older ones lie till then: none of them is believed. */
WALK_FN enum walk_next walk_java_barrier(struct walk *w, const struct abi_java *info)
{
	struct walk_pair caller;
	__u64 code = 0, sp = w->sp;

	if (walk_read(w, &code, sizeof(code), w->pc))
		return WALK_SWITCH;
	if ((code & 0xffffff) != WALK_JAVA_BARRIER)
		return !walk_read(w, &code, sizeof(code), walk_java_state(w)->begin) && (__u32)code == WALK_JAVA_THAW
			       ? walk_java_fail(w)
			       : WALK_SWITCH;
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
