/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* CPython's frames of one thread, 2.7 and 3.5 to 3.14: abi/python.h has what differs between versions and processes.
 *
 *	holder, pthread key, TLS variable, list of all threads --> thread state --> frame --> its caller --> ...
 *
 * A turn of walk_python_step() looks at one candidate for the thread state, or at one frame: the frame, and seven words
 * of its code object. Their hash is the cookie by which a code object is told from another one that lies at its place
 * later.
 *
 * A read of the process costs 60 to 75 ns in BPF, however small it is, and hardly more for 1 KiB (docs/python.md). So
 * where frames or code objects lie near each other, as those of the stack of frames and of one module do, what is
 * around them is read, too, and the next ones are found in it.
 *
 * 3.11 and 3.12 publish the record of an activation (_PyCFrame) before it is filled in; a tick there finds what an
 * earlier activation left on the stack. So the innermost activation is believed only when it leads to where the record
 * before it says its caller is; otherwise the walk drops it, goes on at that caller and says GAP. 3.12 also publishes a
 * resumed generator before its link to the caller: the generator is right, the rest of its activation cannot be read.
 */
#pragma once

#include "abi/python.h"
#include "walk/walk.h"

#define WALK_PYTHON_THREADS 256 /* thread states looked at, of all interpreters */
#define WALK_PYTHON_SHIM_REACH \
	1024ULL                  /* between the shim and the _PyCFrame of one activation: locals of one function */
#define WALK_PYTHON_PAGE 4096ULL /* bytes; what a window reads besides what is asked for lies in the same page */
#define WALK_PYTHON_GENERATOR 1  /* owner of a frame inside of a generator: CPython 3.12, pycore_frame.h */

enum walk_python_phase { /* in this order */
			 WALK_PYTHON_HOLDER,
			 WALK_PYTHON_KEY,
			 WALK_PYTHON_TLS,
			 WALK_PYTHON_LIST,
			 WALK_PYTHON_FRAMES,
};

struct walk_python {
	__u64 at;    /* LIST: the next thread state; FRAMES: the next frame */
	__u64 outer; /* LIST: the interpreter; FRAMES: the caller of the innermost activation, as its _PyCFrame says */
	__u64 cframe;
	__u64 mark;         /* an earlier frame: a walk that meets it again goes in circles */
	__u64 code, cookie; /* of the frame that is being pushed */
	__u64 process;      /* a number that no other process has */
	__u16 left;         /* LIST: so many thread states; FRAMES: frames until `mark` is moved */
	__u16 span;
	__u8 phase;
	__u8 unsure; /* the innermost activation is still to be checked */
	__u8 gap;
	__u8 ended; /* the last frame ended an activation */
};

enum walk_python_piece { WALK_PYTHON_PIECE_FRAME, WALK_PYTHON_PIECE_CODE };

struct walk_python_window { /* what was read around frames, or code objects */
	__u64 at;
	__u64 last; /* what was asked for last: the next one may be near */
	__u32 size; /* 0: nothing was read */
	__u32 base; /* word of scratch where what was asked for last is */
};

struct walk_python_code { /* one that was met in this walk: it runs, so nothing else lies there meanwhile */
	__u64 at, cookie;
};

struct walk_python_thread {
	__u64 at; /* the thread state */
	__u64 interpreter;
	__u8 by_holder; /* it was found in this way */
	__u8 followed;  /* what may have run it is looked at, or was */
	__u8 reserved[6];
};

_Static_assert(sizeof(struct walk_python) <= sizeof(((struct walk *)0)->state[0]), "it overlays its state");
_Static_assert(sizeof(struct abi_python) <= WALK_INFO, "it fits");

/* Places in scratch, in words. */
#define WALK_PYTHON_BLOCK 0  /* a thread state or a frame */
#define WALK_PYTHON_CODE 24  /* words of a code object */
#define WALK_PYTHON_SMALL 32 /* a _PyCFrame; the end of a file's name */
#define WALK_PYTHON_TAIL_BYTES 32
#define WALK_PYTHON_FREE 36
#define WALK_PYTHON_FREE_WORDS 96
#define WALK_PYTHON_WINDOW 132 /* struct walk_python_window: frames; code objects */
#define WALK_PYTHON_THREAD 140 /* struct walk_python_thread */
#define WALK_PYTHON_MET 144    /* struct walk_python_code[WALK_PYTHON_MET_MAX] */
#define WALK_PYTHON_MET_MAX 8  /* a power of two */
#define WALK_PYTHON_TEXT 160   /* bpf/python.h: where a text lies */
#define WALK_PYTHON_TEXT_WORDS 4
#define WALK_PYTHON_AROUND(piece) (256 + ((piece)&1) * WALK_PYTHON_STACK_BYTES / 8)
#define WALK_PYTHON_ALONE(piece) (((piece)&1) * WALK_PYTHON_CODE)
#define WALK_PYTHON_STACK_BYTES 1024
#define WALK_PYTHON_WORDS 512 /* a power of two */

_Static_assert(sizeof(((struct walk *)0)->scratch) == WALK_PYTHON_WORDS * 8, "indices are cut to it");

/* Where a read costs the more the larger it is, the includer sets it to 0: windows of the stack of frames only. */
#ifndef WALK_PYTHON_HEAP_WINDOWS
#define WALK_PYTHON_HEAP_WINDOWS 1
#endif

/* What happens at a frame whose name may not be known yet: bpf/python.h. p->code, p->cookie and the words at
 * walk_python_code_word() say which; it may give p->cookie another value. */
#ifndef walk_python_seen
#define walk_python_seen(w) ((void)(w))
#endif

WALK_FN struct walk_python *walk_python_state(struct walk *w)
{
	return (struct walk_python *)w->state[ABI_RUNTIME_PYTHON];
}

WALK_FN const struct abi_python *walk_python_info(const struct walk *w)
{
	return (const struct abi_python *)w->info;
}

WALK_FN struct walk_python_window *walk_python_window(struct walk *w, __u32 piece)
{
	return (struct walk_python_window *)&w->scratch[WALK_PYTHON_WINDOW] + (piece & 1);
}

WALK_FN struct walk_python_thread *walk_python_thread(struct walk *w)
{
	return (struct walk_python_thread *)&w->scratch[WALK_PYTHON_THREAD];
}

/* The bytes of the thread state from @offset on, up to the end of their word. */
WALK_FN __u64 walk_python_thread_word(const struct walk *w, __u32 offset)
{
	return w->scratch[WALK_PYTHON_BLOCK + (offset >> 3 & 31)] >> (offset & 7) * 8;
}

/* Likewise of the current frame. */
WALK_FN __u64 walk_python_pick(struct walk *w, __u32 offset)
{
	return w->scratch[(walk_python_window(w, WALK_PYTHON_PIECE_FRAME)->base + (offset >> 3)) &
			  (WALK_PYTHON_WORDS - 1)] >>
	       (offset & 7) * 8;
}

/* One round of W. Stafford's variant 13 of the finalizer of MurmurHash3. */
WALK_FN __u64 walk_python_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/* Numbers without pattern: the fraction digits of pi, made odd. */
#define WALK_PYTHON_PI_1 0x243f6a8885a308d3ULL
#define WALK_PYTHON_PI_2 0x13198a2e03707345ULL
#define WALK_PYTHON_PI_3 0xa4093822299f31d1ULL
#define WALK_PYTHON_PI_4 0x082efa98ec4e6c89ULL
#define WALK_PYTHON_PI_5 0x452821e638d01377ULL
#define WALK_PYTHON_PI_6 0xbe5466cf34e90c6dULL

/* Of @words, one of the four from the file name on. */
WALK_FN __u64 walk_python_word_of(const struct abi_python_layout *l, const __u64 *words, __u32 offset)
{
	return words[ABI_PYTHON_CODE_BEFORE / 8 + ((offset - l->code_filename) >> 3 & 3)];
}

/**
 * walk_python_cookie - of a code object
 * @words: ABI_PYTHON_CODE_BYTES from ABI_PYTHON_CODE_BEFORE before its file name on. Only those count that it keeps all
 * its life: 3.6 to 3.10 have co_zombieframe behind the line table, which comes and goes. In front of the file name lie
 *	three more that it keeps in every version: what the variables are called and, from 3.12 on, co_version, which no
 *	other code object of the interpreter had before (CPython 3.12 to 3.14, init_code() in Objects/codeobject.c).
 * Return: never ABI_PYTHON_NO_COOKIE.
 */
WALK_FN __u64 walk_python_cookie(const struct abi_python_layout *l, const __u64 *words)
{
	__u64 sum = words[0] * WALK_PYTHON_PI_1 + words[1] * WALK_PYTHON_PI_2 + words[2] * WALK_PYTHON_PI_3 +
		    words[3] * WALK_PYTHON_PI_4 + words[4] * WALK_PYTHON_PI_5 + words[5] * WALK_PYTHON_PI_6;

	return walk_python_mix(sum, walk_python_word_of(l, words, l->code_lines)) | 1;
}

/* Can two code objects that lie at the same place one after the other have all their pointers in common? A module's
 * code is always called <module>, so its file's name has to tell. From 3.12 on there is co_version. */
WALK_FN int walk_python_needs_file(const struct abi_python_layout *l)
{
	return l->entry != ABI_PYTHON_ENTRY_SHIM;
}

/**
 * walk_python_file_cookie - of a module's code object
 * @cookie: what walk_python_cookie() says
 * @size: bytes of its file's name
 * @tail: WALK_PYTHON_TAIL_BYTES: the last ones, zeros behind them when there are fewer
 */
WALK_FN __u64 walk_python_file_cookie(__u64 cookie, __u64 size, const __u64 *tail)
{
	__u64 sum = tail[0] * WALK_PYTHON_PI_1 + tail[1] * WALK_PYTHON_PI_2 + tail[2] * WALK_PYTHON_PI_3 +
		    tail[3] * WALK_PYTHON_PI_4 + size * WALK_PYTHON_PI_5;

	return walk_python_mix(cookie, sum) | 1;
}

/* A word of the code object that was read last. */
WALK_FN __u64 walk_python_code_word(struct walk *w, __u32 offset)
{
	__u32 at = walk_python_window(w, WALK_PYTHON_PIECE_CODE)->base + ABI_PYTHON_CODE_BEFORE / 8 +
		   ((offset - walk_python_info(w)->layout.code_filename) >> 3 & 3);

	return w->scratch[at & (WALK_PYTHON_WORDS - 1)];
}

/* ---- ends ---- */

WALK_FN enum walk_next walk_python_done(struct walk *w, __u8 end)
{
	w->runtime_end = walk_python_state(w)->gap ? ABI_RUNTIME_END_GAP : end;
	return WALK_DONE;
}

WALK_FN int walk_python_push_activation(struct walk *w, __u64 at)
{
	struct abi_frame *frame = walk_push_runtime(w, ABI_FRAME_ACTIVATION, ABI_RUNTIME_PYTHON);

	if (!frame)
		return 1;
	frame->flags = 0;
	frame->extra = 0;
	frame->a = at;
	frame->b = 0;
	return 0;
}

/* Says that frames are missing behind the last one. */
WALK_FN void walk_python_mark_gap(struct walk *w)
{
	__u64 at = (__u64)w->count + w->runtime_count - 1;

	if (w->runtime_count && at < ABI_FRAMES_MAX && w->frames[at].kind == ABI_FRAME_RUNTIME)
		w->frames[at].flags |= ABI_FRAME_GAP;
}

/* The innermost activation is not what it should be: goes on behind it. @generator: only its link is missing. */
WALK_FN enum walk_next walk_python_restart(struct walk *w, int generator)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);

	p->unsure = 0;
	p->gap = 1;
	p->ended = 1;
	if (generator)
		walk_python_mark_gap(w);
	else
		w->runtime_count = 0;
	if (l->entry == ABI_PYTHON_ENTRY_SHIM && walk_python_push_activation(w, p->cframe))
		return WALK_DONE;
	p->cframe = 0; /* that of no frame that follows */
	p->at = p->outer;
	p->mark = 0;
	return p->at ? WALK_MORE : walk_python_done(w, ABI_RUNTIME_END_GAP);
}

/* The chain breaks off: there is no going on, or only behind the innermost activation. Where it was gone on before, the
 * place was not what it seemed: nothing is believed. */
WALK_FN enum walk_next walk_python_broken(struct walk *w, __u8 end)
{
	if (walk_python_state(w)->unsure)
		return walk_python_restart(w, 0);
	if (walk_python_state(w)->gap)
		w->runtime_count = 0;
	else
		walk_python_mark_gap(w);
	return walk_python_done(w, end);
}

WALK_FN enum walk_next walk_python_follow(struct walk *w);

/* No frame behind the last one. */
WALK_FN enum walk_next walk_python_root(struct walk *w)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);

	if (p->unsure) /* the block still has the last frame */
		return walk_python_restart(w,
					   w->runtime_count == 1 && l->entry == ABI_PYTHON_ENTRY_SHIM &&
						   (__u8)walk_python_pick(w, l->frame_entry) == WALK_PYTHON_GENERATOR);
	return p->ended ? walk_python_follow(w) : walk_python_broken(w, ABI_RUNTIME_END_GAP);
}

/* ---- frames ---- */

/* Where in the bytecode. */
WALK_FN __u32 walk_python_position(struct walk *w, __u64 code)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	__u64 last = walk_python_pick(w, l->frame_last);

	if (l->code_bytes == ABI_PYTHON_NONE) {
		__s32 index = (__s32)last;

		return index < 0 ? 0 : (__u32)index * l->last_unit;
	}
	last -= code + l->code_bytes;
	if ((__s64)last < 0 && (__s64)last >= -2) /* no instruction was run yet */
		return 0;
	return last >= 1ULL << 31 ? ABI_PYTHON_NOWHERE : (__u32)last; /* a copy of the bytecode: free-threaded 3.14 */
}

/* What of a piece is read. */
WALK_FN __u32 walk_python_size_of(const struct walk *w, __u32 piece)
{
	if (piece == WALK_PYTHON_PIECE_CODE)
		return ABI_PYTHON_CODE_BYTES;
	return walk_python_info(w)->layout.frame_size > ABI_PYTHON_FRAME_BYTES ? ABI_PYTHON_OLD_BYTES
									       : ABI_PYTHON_FRAME_BYTES;
}

/* Is it worth while to read what is around frames, or code objects? */
WALK_FN int walk_python_has_near(const struct walk *w, __u32 piece)
{
	return WALK_PYTHON_HEAP_WINDOWS || walk_python_size_of(w, piece) == ABI_PYTHON_FRAME_BYTES;
}

/**
 * walk_python_read_piece - what is at @at and, when the piece before was near, what is around it in its page
 *
 * Callers lie below in the stack of frames; elsewhere pieces go on as they went on before. Return: 0 with the window's
 * base set, or 1.
 */
WALK_FN int walk_python_read_piece(struct walk *w, __u32 piece, __u64 at)
{
	struct walk_python_window *window = walk_python_window(w, piece);
	__u32 size = walk_python_size_of(w, piece);
	__u64 last = window->last, offset = at & (WALK_PYTHON_PAGE - 1), start = offset;

	if (walk_python_has_near(w, piece) && at - last + WALK_PYTHON_STACK_BYTES <= 2 * WALK_PYTHON_STACK_BYTES &&
	    offset + size <= WALK_PYTHON_PAGE) {
		if (at <= last)
			start = offset + size > WALK_PYTHON_STACK_BYTES ? offset + size - WALK_PYTHON_STACK_BYTES : 0;
		if (start > WALK_PYTHON_PAGE - WALK_PYTHON_STACK_BYTES)
			start = WALK_PYTHON_PAGE - WALK_PYTHON_STACK_BYTES;
		window->at = at - offset + start;
		window->base = WALK_PYTHON_AROUND(piece) + (__u32)((offset - start) >> 3);
		window->size = WALK_PYTHON_STACK_BYTES;
		if (!walk_read(w, &w->scratch[WALK_PYTHON_AROUND(piece)], WALK_PYTHON_STACK_BYTES, window->at))
			return 0;
		window->size = 0;
	}
	window->base = WALK_PYTHON_ALONE(piece);
	return walk_read(w, &w->scratch[WALK_PYTHON_ALONE(piece)], size & 255, at) != 0;
}

#ifndef walk_python_fetch
#define walk_python_fetch(w, piece, at) walk_python_read_piece(w, piece, at)
#endif

/* Finds a piece in what was read around another one, or reads it. Returns the same values. */
WALK_FN int walk_python_find_piece(struct walk *w, __u32 piece, __u64 at)
{
	struct walk_python_window *window = walk_python_window(w, piece);
	__u64 away = at - window->at;

	if (away + walk_python_size_of(w, piece) > window->size || away >= window->size)
		return walk_python_fetch(w, piece, at);
	window->base = WALK_PYTHON_AROUND(piece) + (__u32)(away >> 3);
	return 0;
}

/* Sets p->cookie. */
WALK_FN void walk_python_meet(struct walk *w, __u64 code)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);
	__u32 slot = (__u32)(code * WALK_PYTHON_PI_1 >> 61) & (WALK_PYTHON_MET_MAX - 1);
	struct walk_python_code *met = (struct walk_python_code *)&w->scratch[WALK_PYTHON_MET] + slot;
	__u64 at;

	p->code = code;
	if (met->at == code) { /* recursion */
		p->cookie = met->cookie;
		return;
	}
	p->cookie = ABI_PYTHON_NO_COOKIE;
	at = code + l->code_filename - ABI_PYTHON_CODE_BEFORE;
	if (walk_python_find_piece(w, WALK_PYTHON_PIECE_CODE, at))
		return;
	walk_python_window(w, WALK_PYTHON_PIECE_CODE)->last = at;
	at = walk_python_window(w, WALK_PYTHON_PIECE_CODE)->base;
	if (at > WALK_PYTHON_WORDS - ABI_PYTHON_CODE_BYTES / 8)
		return; /* the verifier does not know that it never is */
	p->cookie = walk_python_cookie(l, &w->scratch[at]);
	walk_python_seen(w);
	met->at = p->cookie == ABI_PYTHON_NO_COOKIE ? 0 : code;
	met->cookie = p->cookie;
}

/* Return: 0, or 1 when the record is full. */
WALK_FN int walk_python_push(struct walk *w, __u64 code, int ends)
{
	struct abi_frame *frame;

	walk_python_meet(w, code);
	frame = walk_push_runtime(w, ABI_FRAME_RUNTIME, ABI_RUNTIME_PYTHON);
	if (!frame)
		return 1;
	frame->flags = ends ? ABI_FRAME_ENTRY : 0;
	frame->extra = walk_python_position(w, code);
	frame->a = code;
	frame->b = walk_python_state(w)->cookie;
	return 0;
}

/* R. Brent's way to find a cycle. Return: whether the chain came back to a frame. */
WALK_FN int walk_python_circles(struct walk_python *p, __u64 frame)
{
	if (frame == p->mark)
		return 1;
	if (!p->left--) {
		p->mark = frame;
		p->span *= 2;
		p->left = p->span;
	}
	return 0;
}

/* Does the innermost activation, which ends at the frame in the block, lead to where its _PyCFrame says? */
WALK_FN int walk_python_is_sure(struct walk *w, __u64 frame, __u64 back, int shim)
{
	struct walk_python *p = walk_python_state(w);

	p->unsure = 0;
	return back == p->outer && (!shim || frame - p->cframe + WALK_PYTHON_SHIM_REACH <= 2 * WALK_PYTHON_SHIM_REACH);
}

/* 3.11: of the innermost activation there is the address of its _PyCFrame, a local variable of the loop. */
WALK_FN enum walk_next walk_python_place(struct walk *w)
{
	struct walk_python *p = walk_python_state(w);
	__u64 at = p->cframe;

	p->cframe = 0;
	return at && walk_python_push_activation(w, at) ? WALK_DONE : WALK_MORE;
}

WALK_FN enum walk_next walk_python_frame(struct walk *w)
{
	const struct abi_python *info = walk_python_info(w);
	const struct abi_python_layout *l = &info->layout;
	struct walk_python *p = walk_python_state(w);
	__u64 frame = p->at, back, code;
	int shim, ends;
	__u8 entry;

	if (!frame)
		return walk_python_root(w);
	if ((frame & 7) || walk_python_circles(p, frame))
		return walk_python_broken(w, ABI_RUNTIME_END_BAD_CHAIN);
	if (walk_python_find_piece(w, WALK_PYTHON_PIECE_FRAME, frame))
		return walk_python_broken(w, ABI_RUNTIME_END_READ_FAILED);
	walk_opaque(frame);
	back = walk_python_pick(w, l->frame_back);
	code = walk_python_pick(w, l->frame_code);
	entry = (__u8)walk_python_pick(w, l->frame_entry);
	if (info->flags & ABI_PYTHON_TAGGED)
		code &= ~7ULL;
	/* What enters the loop is linked two instructions before it says so, but has its code. Source: CPython 3.13,
	 * Python/ceval.c, _PyEval_EvalFrameDefault() */
	shim = l->entry == ABI_PYTHON_ENTRY_SHIM && (entry == l->entry_value || (info->none && code == info->none));
	ends = shim || l->entry == ABI_PYTHON_ENTRY_EACH || (l->entry == ABI_PYTHON_ENTRY_MARK && entry == 1);
	walk_opaque(shim);
	walk_opaque(ends);
	if (p->unsure && ends && !walk_python_is_sure(w, frame, back, shim))
		return walk_python_restart(w, 0);
	p->ended = (__u8)ends;
	p->at = back;
	if (shim)
		return walk_python_push_activation(w, frame) ? WALK_DONE : WALK_MORE;
	walk_python_window(w, WALK_PYTHON_PIECE_FRAME)->last = frame; /* shims lie elsewhere */
	ends = *(volatile __u8 *)&p->ended; /* read back, so that the verifier does not follow both */
	if (!code || (code & 7))
		return walk_python_broken(w, ABI_RUNTIME_END_BAD_CHAIN);
	if (code == info->cleanup)
		return WALK_MORE;
	walk_opaque(code);
	if (walk_python_push(w, code, ends))
		return WALK_DONE;
	return ends && l->entry == ABI_PYTHON_ENTRY_MARK ? walk_python_place(w) : WALK_MORE;
}

/* ---- the thread state ---- */

/* Reads the _PyCFrame at @at. Return: the first frame; what could be read of the caller is in p. */
WALK_FN __u64 walk_python_cframe(struct walk *w, __u64 at)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);
	__u64 *record = &w->scratch[WALK_PYTHON_SMALL], previous;

	p->cframe = at;
	p->unsure = 1;
	p->outer = 0;
	if (walk_read(w, record, 24, at))
		return 0;
	previous = record[l->cframe_previous >> 3 & 3];
	if (!previous || walk_read(w, &p->outer, sizeof(p->outer), previous + l->cframe_frame))
		p->outer = 0;
	return record[l->cframe_frame >> 3 & 3];
}

/* The thread state in the block, that at @at, is the one. */
WALK_FN enum walk_next walk_python_begin(struct walk *w, __u64 at)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);
	__u64 first = walk_python_thread_word(w, l->thread_frame);

	p->phase = WALK_PYTHON_FRAMES;
	p->mark = 0;
	p->span = 4;
	p->left = p->span;
	p->ended = 1;
	for (int i = 0; i < WALK_PYTHON_MET_MAX; i++)
		w->scratch[WALK_PYTHON_MET + 2 * i] = 0;
	walk_python_thread(w)->at = at;
	walk_python_thread(w)->interpreter = walk_python_thread_word(w, l->thread_interp);
	walk_python_window(w, WALK_PYTHON_PIECE_FRAME)->size = 0;
	walk_python_window(w, WALK_PYTHON_PIECE_CODE)->size = 0;
	walk_python_window(w, WALK_PYTHON_PIECE_CODE)->last = 0;
	if (first && l->cframe_frame != ABI_PYTHON_NONE)
		first = walk_python_cframe(w, first);
	p->at = first;
	walk_python_window(w, WALK_PYTHON_PIECE_FRAME)->last = l->frame_size > ABI_PYTHON_FRAME_BYTES ? 0 : first;
	if (!first)
		return p->unsure && p->outer ? walk_python_restart(w, 0)
					     : walk_python_done(w, ABI_RUNTIME_END_NO_STATE);
	return WALK_MORE;
}

/* Does the thread state at @at belong to this thread? It is in the block then. Return: 1, 0, or -1: unreadable. */
WALK_FN int walk_python_is_ours(struct walk *w, __u64 at)
{
	const struct abi_python *info = walk_python_info(w);
	const struct abi_python_layout *l = &info->layout;

	if (walk_read(w, &w->scratch[WALK_PYTHON_BLOCK], ABI_PYTHON_THREAD_BYTES, at))
		return -1;
	if (w->tp)
		return walk_python_thread_word(w, l->thread_id) == w->tp + (__u64)(__s64)info->self_at;
	return w->tid && l->thread_native_id != ABI_PYTHON_NONE &&
	       walk_python_thread_word(w, l->thread_native_id) == w->tid;
}

/* Where the value of the pthread key is. Return: 0: nobody knows. */
WALK_FN __u64 walk_python_key(struct walk *w)
{
	const struct abi_python *info = walk_python_info(w);
	__u64 at = w->tp + (__u64)info->key_at;

	if (!w->tp || !(info->ways & ABI_PYTHON_KEY))
		return 0;
	if (!(info->flags & ABI_PYTHON_KEY_INDIRECT))
		return at;
	return walk_read(w, &at, sizeof(at), at) || !at ? 0 : at + info->key_offset;
}

/* The address of the variable that this phase looks at; the next one is set. Return: 0: it has none. */
WALK_FN __u64 walk_python_variable(struct walk *w)
{
	const struct abi_python *info = walk_python_info(w);
	struct walk_python *p = walk_python_state(w);

	if (p->phase++ == WALK_PYTHON_HOLDER)
		return info->ways & ABI_PYTHON_HOLDER ? info->holder : 0;
	if (p->phase == WALK_PYTHON_KEY + 1)
		return walk_python_key(w);
	return w->tp && info->ways & ABI_PYTHON_TLS ? w->tp + (__u64)info->tls_at : 0;
}

/* The thread state in the block is that of the interpreter whose code runs the one whose frames are there: its frames
 * are the callers. */
WALK_FN enum walk_next walk_python_go_on(struct walk *w)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	struct walk_python *p = walk_python_state(w);
	__u64 frame = walk_python_thread_word(w, l->thread_frame);

	if (frame && l->cframe_frame != ABI_PYTHON_NONE)
		frame = walk_python_cframe(w, frame);
	p->unsure = 0; /* it stands still */
	p->phase = WALK_PYTHON_FRAMES;
	p->at = frame;
	p->mark = 0;
	return frame ? WALK_MORE : walk_python_done(w, ABI_RUNTIME_END_WHOLE);
}

/* A subinterpreter that runs in this thread has a thread state of its own, and behind its frames are those of the
 * interpreter that runs it. Up to 3.11 the key still says that one, where the holder says the inner one; later the key
 * says the inner one, and the outer one is among all. */
WALK_FN enum walk_next walk_python_follow(struct walk *w)
{
	const struct abi_python *info = walk_python_info(w);
	struct walk_python_thread *first = walk_python_thread(w);
	struct walk_python *p = walk_python_state(w);

	if (first->followed)
		return walk_python_done(w, ABI_RUNTIME_END_WHOLE);
	first->followed = 1;
	if (info->layout.entry == ABI_PYTHON_ENTRY_SHIM) {
		if (!info->main_interpreter || !info->layout.thread_interp ||
		    first->interpreter == info->main_interpreter)
			return walk_python_done(w, ABI_RUNTIME_END_WHOLE);
		p->phase = WALK_PYTHON_LIST;
		p->at = 0;
		p->outer = 0;
		p->left = WALK_PYTHON_THREADS;
		return WALK_MORE;
	}
	if (!first->by_holder)
		return walk_python_done(w, ABI_RUNTIME_END_WHOLE);
	p->phase = WALK_PYTHON_KEY;
	return WALK_MORE;
}

/* The list of all threads has no further one, or cannot be read. */
WALK_FN enum walk_next walk_python_list_end(struct walk *w, __u8 end)
{
	if (walk_python_thread(w)->followed && end == ABI_RUNTIME_END_NO_STATE)
		end = ABI_RUNTIME_END_WHOLE; /* nothing is behind what was pushed */
	return walk_python_done(w, end);
}

/* To the threads of the next interpreter. */
WALK_FN enum walk_next walk_python_interpreter(struct walk *w)
{
	const struct abi_python *info = walk_python_info(w);
	struct walk_python *p = walk_python_state(w);
	__u64 at = p->outer ? p->outer + info->layout.interp_next : info->interpreters;

	if (!at)
		return walk_python_list_end(w, ABI_RUNTIME_END_NO_STATE);
	if (walk_read(w, &p->outer, sizeof(p->outer), at))
		return walk_python_list_end(w, ABI_RUNTIME_END_READ_FAILED);
	if (!p->outer)
		return walk_python_list_end(w, ABI_RUNTIME_END_NO_STATE);
	if (walk_read(w, &p->at, sizeof(p->at), p->outer + info->layout.interp_threads))
		return walk_python_list_end(w, ABI_RUNTIME_END_READ_FAILED);
	return WALK_MORE;
}

/* Of this thread's states: is this the one to go on with? */
WALK_FN int walk_python_is_wanted(struct walk *w, __u64 thread, int listed)
{
	const struct walk_python_thread *first = walk_python_thread(w);

	return !first->followed || (thread != first->at &&
				    (!listed || walk_python_state(w)->outer == walk_python_info(w)->main_interpreter));
}

/* One candidate: what the variable of this phase says, or one more of the list of all threads of all interpreters. */
WALK_FN enum walk_next walk_python_find(struct walk *w)
{
	struct walk_python_thread *first = walk_python_thread(w);
	struct walk_python *p = walk_python_state(w);
	int listed = p->phase == WALK_PYTHON_LIST, ours;
	__u64 at, thread = p->at;

	if (listed && !p->left--) /* more threads than are looked at */
		return walk_python_done(w, first->followed ? ABI_RUNTIME_END_UNPAIRED : ABI_RUNTIME_END_NO_STATE);
	if (listed && !thread)
		return walk_python_interpreter(w);
	if (!listed) {
		at = walk_python_variable(w);
		if (!at || walk_read(w, &thread, sizeof(thread), at))
			thread = 0;
	}
	ours = thread ? walk_python_is_ours(w, thread) : 0;
	if (ours < 0 && listed)
		return walk_python_list_end(w, ABI_RUNTIME_END_READ_FAILED);
	if (ours > 0 && walk_python_is_wanted(w, thread, listed)) {
		if (first->followed)
			return walk_python_go_on(w);
		first->by_holder = p->phase == WALK_PYTHON_HOLDER + 1;
		return walk_python_begin(w, thread);
	}
	if (listed)
		p->at = walk_python_thread_word(w, walk_python_info(w)->layout.thread_next);
	else if (first->followed)
		return walk_python_done(w, ABI_RUNTIME_END_WHOLE);
	return WALK_MORE;
}

/** walk_python_step - look at one more thread state, or push one frame; w->runtime_end says why it is done */
WALK_FN enum walk_next walk_python_step(struct walk *w)
{
	return walk_python_state(w)->phase == WALK_PYTHON_FRAMES ? walk_python_frame(w) : walk_python_find(w);
}

/* Everything from the beginning, of the same process and thread. */
WALK_FN void walk_python_restart_all(struct walk *w)
{
	struct walk_python *p = walk_python_state(w);

	p->at = 0;
	p->outer = 0;
	p->left = WALK_PYTHON_THREADS;
	p->phase = WALK_PYTHON_HOLDER;
	p->unsure = 0;
	p->gap = 0;
	walk_python_thread(w)->by_holder = 0;
	walk_python_thread(w)->followed = 0;
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}

#define WALK_PYTHON_NATIVE_LEAST 24 /* user frames that stay when the runtime's do not fit beside the others */

/** walk_python_make_room - give up user frames for runtime frames that had no room, to be walked anew. Kernel frames
 * stay. Return: whether there were any to give up. */
WALK_FN int walk_python_make_room(struct walk *w)
{
	__u32 least = walk_sample(w)->kernel_count + WALK_PYTHON_NATIVE_LEAST;

	if (w->runtime_end != ABI_RUNTIME_END_FRAME_LIMIT || w->count <= least)
		return 0;
	w->count = least;
	walk_python_restart_all(w);
	return 1;
}

/**
 * walk_python_start - of the thread whose tp (or tid) is in @w, behind the w->count frames that are there
 * @info: copied
 * @process: a number that no other process has; for the cache of names that were sent, otherwise 0
 */
WALK_FN enum walk_next walk_python_start(struct walk *w, const struct abi_python *info, __u64 process)
{
	struct walk_python *p = walk_python_state(w);

	*(struct abi_python *)w->info = *info;
	p->process = process;
	walk_python_restart_all(w);
	return WALK_MORE;
}

#ifndef __bpf__
/** walk_python_start_at - start at the thread state at @thread, even of another thread */
WALK_FN enum walk_next walk_python_start_at(struct walk *w, const struct abi_python *info, __u64 thread)
{
	walk_python_start(w, info, 0);
	if (walk_read(w, &w->scratch[WALK_PYTHON_BLOCK], ABI_PYTHON_THREAD_BYTES, thread))
		return walk_python_done(w, ABI_RUNTIME_END_READ_FAILED);
	return walk_python_begin(w, thread);
}
#endif
