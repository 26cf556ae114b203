/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ruby's frames of one thread, 2.5 to 4.0: abi/ruby.h has what differs between versions and processes.
 *
 *	pthread key, TLS variable --> execution context --> control frames, one behind the other up to the stack's end
 *	control frame: pc, iseq, ep;  ep[0]: what the frame is;  ep[-2]: the method entry of a C function
 *
 * A turn of walk_ruby_step() looks at one control frame. A read costs BPF 60 to 80 ns, however small it is, so frames
 * and what their eps point to are read in windows of 512 bytes, both clamped to the VM stack: a read across its end
 * fails. An iseq that was met in this walk is not read again.
 *
 * From 3.3 on a frame says which class its method is of: one more read for each method met.
 *
 * An iseq's body is malloc'd and its memory is used again, so its frames carry a cookie of what the body points to.
 *
 * Up to 2.7 the list's head moves before the new frame is filled in: there the leaf may be what lay there before. It is
 * dropped, and the stack marked, when it cannot be a frame. From 3.0 on the frame comes first, but in code of 3.1's
 * compiler: walk_ruby_look_at_push().
 *
 * Kinds of frames: vm_core.h, enum vm_frame_env_flags. Which thread is in GC: only the one that has the GVL (2.7: the
 * current context; 3.x: that of its ractor) runs the collector. */
#pragma once

#include "abi/ruby.h"
#include "walk/walk.h"
#include "walk/walk_fp.h"

#define WALK_RUBY_REG_FRAME 13 /* r13 of compiled code: REG_CFP of yjit_codegen.h, CFP of yjit/src/backend/x86_64 */
#define WALK_RUBY_MAGIC 0x7fff0001ULL
#define WALK_RUBY_METHOD 0x11110001ULL
#define WALK_RUBY_CFUNC 0x55550001ULL
#define WALK_RUBY_IFUNC 0x66660001ULL
#define WALK_RUBY_RESCUE 0x78880001ULL
#define WALK_RUBY_DUMMY 0x79990001ULL
#define WALK_RUBY_LOCAL 0x2ULL   /* its environment is that of a method, not of a block in one */
#define WALK_RUBY_FINISH 0x20ULL /* its activation of the loop ends with it */

#define WALK_RUBY_IMEMO 0x1aULL /* low five bits of an object's flags: ruby/internal/value_type.h */
#define WALK_RUBY_MENT 6        /* bits 12 to 15 of those: internal/imemo.h, a method entry */
#define WALK_RUBY_SVAR 2        /* special variables, which have the method entry behind them */

enum walk_ruby_phase { WALK_RUBY_FIND, WALK_RUBY_FRAMES };

struct walk_ruby {
	__u64 frame;             /* the next one */
	__u64 low, high;         /* the VM stack */
	__u64 frames_at, eps_at; /* what the windows have; 0: nothing */
	__u64 process;           /* a number that no other process has */
	__u64 cookie;            /* of the frame that is being pushed */
	__u8 phase;
	__u8 gap;
	__u8 skips;  /* the next frame is shown by the one before: MERGED_RESCUE */
	__u8 looked; /* a frame was looked at */
	__u8 reserved[4];
};

_Static_assert(sizeof(struct walk_ruby) <= sizeof(((struct walk *)0)->state[0]), "it overlays its state");
_Static_assert(sizeof(struct abi_ruby) <= WALK_INFO, "it fits");

struct walk_ruby_met { /* an iseq, or the method entry of a C function */
	__u64 at;
	__u64 cookie; /* of a method entry: its key */
	__u64 code;   /* its first instruction; of a method entry: its class */
	__u64 size;   /* words of code */
};

struct walk_ruby_owner { /* of a method entry */
	__u64 entry, owner;
};

/* Places in scratch, in words. */
#define WALK_RUBY_BODY 0      /* ABI_RUBY_BODY_BYTES; a context at first */
#define WALK_RUBY_EP 12       /* three words up to ep */
#define WALK_RUBY_ENTRY 16    /* a method entry, what it defines */
#define WALK_RUBY_IDENTITY 24 /* the key of the iseq that walk_ruby_seen() is told of, and its body */
#define WALK_RUBY_OWNER 26    /* the class of its method, 0: not known; the three words up to an ep */
#define WALK_RUBY_TEXTS 32    /* what the cookie has of the label and the path */
#define WALK_RUBY_PART 48     /* struct ruby_text of bpf/ruby.h */
#define WALK_RUBY_FREE 64
#define WALK_RUBY_FREE_WORDS 192
#define WALK_RUBY_AROUND_FRAME 256
#define WALK_RUBY_AROUND_EP 320
#define WALK_RUBY_MET 384
#define WALK_RUBY_MET_MAX 16 /* a power of two */
#define WALK_RUBY_OWNERS 448 /* struct walk_ruby_owner[WALK_RUBY_MET_MAX] */
#define WALK_RUBY_LEVELS 4   /* blocks within blocks whose method is looked for */
#define WALK_RUBY_WINDOW_BYTES 512ULL
#define WALK_RUBY_FRAME_BYTES 40ULL /* of a control frame: up to its ep */
#define WALK_RUBY_WORDS 512         /* a power of two */
#define WALK_RUBY_VM_STACK_MAX (1ULL << 30)

_Static_assert(sizeof(((struct walk *)0)->scratch) == WALK_RUBY_WORDS * 8, "indices are cut to it");
_Static_assert(WALK_RUBY_MET + WALK_RUBY_MET_MAX * 4 <= WALK_RUBY_OWNERS, "they fit");
_Static_assert(WALK_RUBY_OWNERS + WALK_RUBY_MET_MAX * 2 <= WALK_RUBY_WORDS, "they fit");

/* What happens at an iseq whose name may not be known yet: bpf/ruby.h. Its body is at WALK_RUBY_BODY, its address and
 * that of the body at WALK_RUBY_IDENTITY, its cookie in the state. */
#ifndef walk_ruby_seen
#define walk_ruby_seen(w) ((void)(w))
#endif

WALK_FN struct walk_ruby *walk_ruby_state(struct walk *w)
{
	return (struct walk_ruby *)w->state[ABI_RUNTIME_RUBY];
}

WALK_FN const struct abi_ruby *walk_ruby_info(const struct walk *w)
{
	return (const struct abi_ruby *)w->info;
}

/* One round of W. Stafford's variant 13 of the finalizer of MurmurHash3. */
WALK_FN __u64 walk_ruby_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/* Places in a body, in words: rb_iseq_constant_body of 2.5 to 4.0. */
#define WALK_RUBY_BODY_SIZE 0 /* its upper half: words of code */
#define WALK_RUBY_BODY_CODE 1
#define WALK_RUBY_BODY_PATH 8
#define WALK_RUBY_BODY_LABEL 10
#define WALK_RUBY_BODY_FIRST_LINE 11

#define WALK_RUBY_TEXT_AT 16 /* in a String or Array: its length and place, or the beginning of what it has */
#define WALK_RUBY_TEXT_BYTES 24

/**
 * walk_ruby_cookie - of an iseq
 * @at: its body; @body: the first ABI_RUBY_BODY_BYTES of that
 * @label, @path: WALK_RUBY_TEXT_BYTES at WALK_RUBY_TEXT_AT of both. Methods that are made in a loop have all their
 *	pointers in common with one that was there 1,000 turns before
 * Return: never ABI_RUBY_NO_COOKIE.
 */
WALK_FN __u64 walk_ruby_cookie(__u64 at, const __u64 *body, const __u64 *label, const __u64 *path)
{
	/* Numbers without pattern: the fraction digits of pi, made odd. */
	__u64 sum =
		body[WALK_RUBY_BODY_SIZE] * 0x243f6a8885a308d3ULL + body[WALK_RUBY_BODY_CODE] * 0x13198a2e03707345ULL +
		body[WALK_RUBY_BODY_PATH] * 0xa4093822299f31d1ULL + body[WALK_RUBY_BODY_LABEL] * 0x082efa98ec4e6c89ULL +
		body[WALK_RUBY_BODY_FIRST_LINE] * 0x452821e638d01377ULL;
	__u64 texts = label[0] * 0xbe5466cf34e90c6dULL + label[1] * 0xc0ac29b7c97c50ddULL +
		      label[2] * 0x3f84d5b5b5470917ULL + path[0] * 0x9216d5d98979fb1bULL +
		      path[1] * 0xd1310ba698dfb5adULL + path[2] * 0x2ffd72dbd01adfb7ULL;

	return walk_ruby_mix(walk_ruby_mix(sum, at), texts) | 1;
}

/* ---- ends ---- */

WALK_FN enum walk_next walk_ruby_done(struct walk *w, __u8 end)
{
	w->runtime_end = walk_ruby_state(w)->gap ? ABI_RUNTIME_END_GAP : end;
	return WALK_DONE;
}

/* Behind the outermost frame. */
WALK_FN enum walk_next walk_ruby_root(struct walk *w)
{
	return walk_ruby_done(w, w->runtime_count ? ABI_RUNTIME_END_WHOLE : ABI_RUNTIME_END_NO_STATE);
}

WALK_FN struct abi_frame *walk_ruby_last(struct walk *w)
{
	__u64 at = (__u64)w->count + w->runtime_count - 1;

	return w->runtime_count && at < ABI_FRAMES_MAX ? &w->frames[at] : 0;
}

WALK_FN enum walk_next walk_ruby_broken(struct walk *w, __u8 end)
{
	struct abi_frame *last = walk_ruby_last(w);

	if (last)
		last->flags |= ABI_FRAME_GAP;
	return walk_ruby_done(w, end);
}

/* ---- frames ---- */

/* Where the three words up to @ep are in scratch. Return: 0 with *out, or 1. */
WALK_FN int walk_ruby_find_ep(struct walk *w, __u64 ep, __u32 *out)
{
	struct walk_ruby *p = walk_ruby_state(w);
	__u64 first = ep - 16, at = p->eps_at, away = first - at;

	if (at && away <= WALK_RUBY_WINDOW_BYTES - 24) {
		*out = WALK_RUBY_AROUND_EP + (__u32)(away >> 3);
		return 0;
	}
	*out = WALK_RUBY_EP;
	if (first < p->low || ep + 8 > p->high) /* a block's, which outlives its method: on the heap */
		return walk_read(w, &w->scratch[WALK_RUBY_EP], 24, first) != 0;
	at = ep + 8 - p->low < WALK_RUBY_WINDOW_BYTES ? p->low : ep + 8 - WALK_RUBY_WINDOW_BYTES;
	p->eps_at = 0;
	if (walk_read(w, &w->scratch[WALK_RUBY_AROUND_EP], WALK_RUBY_WINDOW_BYTES, at))
		return walk_read(w, &w->scratch[WALK_RUBY_EP], 24, first) != 0;
	p->eps_at = at;
	*out = WALK_RUBY_AROUND_EP + (__u32)((first - at) >> 3);
	return 0;
}

/* Where the control frame @at is in scratch. Return: 0 with *out, or 1. */
WALK_FN int walk_ruby_find_frame(struct walk *w, __u64 at, __u32 *out)
{
	struct walk_ruby *p = walk_ruby_state(w);
	__u64 start = p->frames_at;

	if (!start || at - start > WALK_RUBY_WINDOW_BYTES - WALK_RUBY_FRAME_BYTES) {
		start = at > p->high - WALK_RUBY_WINDOW_BYTES ? p->high - WALK_RUBY_WINDOW_BYTES : at;
		p->frames_at = 0;
		if (walk_read(w, &w->scratch[WALK_RUBY_AROUND_FRAME], WALK_RUBY_WINDOW_BYTES, start))
			return 1;
		p->frames_at = start;
	}
	*out = WALK_RUBY_AROUND_FRAME + (__u32)((at - start) >> 3);
	return 0;
}

WALK_FN struct walk_ruby_met *walk_ruby_met(struct walk *w, __u64 at)
{
	__u32 slot = (__u32)(at * 0x243f6a8885a308d3ULL >> 60) & (WALK_RUBY_MET_MAX - 1);

	return (struct walk_ruby_met *)&w->scratch[WALK_RUBY_MET] + slot;
}

/* Where in the code: pc is behind the instruction that runs, but at the first one of all. */
WALK_FN __u32 walk_ruby_position(__u64 code, __u64 size, __u64 pc)
{
	__u64 at = (pc - code) >> 3;

	if (!code || pc < code || at > size)
		return ABI_RUBY_NOWHERE;
	return at ? (__u32)at - 1 : 0;
}

/* ---- classes ---- */

WALK_FN int walk_ruby_has_classes(const struct walk *w)
{
	return walk_ruby_info(w)->layout.class_path != ABI_RUBY_NONE;
}

WALK_FN int walk_ruby_is_imemo(__u64 flags, __u64 type)
{
	return (flags & 0x1f) == WALK_RUBY_IMEMO && (flags >> 12 & 15) == type;
}

/* The class of the method whose entry is at @entry, or, when it @may, what the special variables have at its place. */
WALK_FN __u64 walk_ruby_owner_of(struct walk *w, __u64 entry, int may)
{
	__u32 slot = (__u32)(entry * 0x13198a2e03707345ULL >> 60) & (WALK_RUBY_MET_MAX - 1);
	struct walk_ruby_owner *met = (struct walk_ruby_owner *)&w->scratch[WALK_RUBY_OWNERS] + slot;
	__u64 *words = &w->scratch[WALK_RUBY_ENTRY], owner = 0;

	if (met->entry == entry)
		return met->owner;
	if ((entry & 7) || walk_read(w, words, 40, entry))
		return 0;
	if (may && walk_ruby_is_imemo(words[0], WALK_RUBY_SVAR)) {
		__u64 behind = words[1];

		if (!behind || walk_read(w, words, 40, behind))
			return 0;
	}
	if (walk_ruby_is_imemo(words[0], WALK_RUBY_MENT))
		owner = words[4] & 7 ? 0 : words[4];
	met->entry = entry;
	met->owner = owner;
	return owner;
}

/* What walk_ruby_own() does with the words up to one ep, behind WALK_RUBY_OWNER. Return: 0: they are those of the ep
 * around it now; 1: that is all. */
WALK_FN int walk_ruby_look_at_level(struct walk *w)
{
	__u64 *place = &w->scratch[WALK_RUBY_OWNER];
	int local = (place[3] & WALK_RUBY_LOCAL) != 0;
	__u32 at;

	if (place[1])
		place[0] = walk_ruby_owner_of(w, place[1], local);
	if (place[0] || local || walk_ruby_find_ep(w, place[2] & ~7ULL, &at))
		return 1;
	place[1] = w->scratch[at & (WALK_RUBY_WORDS - 1)];
	place[2] = w->scratch[(at + 1) & (WALK_RUBY_WORDS - 1)];
	place[3] = w->scratch[(at + 2) & (WALK_RUBY_WORDS - 1)];
	return 0;
}

/* In BPF a function of its own, checked once. */
#ifndef walk_ruby_level
#define walk_ruby_level(w) walk_ruby_look_at_level(w)
#endif

/**
 * walk_ruby_own - puts the class of the method, whose code a frame runs or whose block, to WALK_RUBY_OWNER
 * What lies up to the frame's ep is behind it. Source: vm_insnhelper.c, rb_vm_frame_method_entry().
 */
WALK_FN void walk_ruby_own(struct walk *w)
{
	w->scratch[WALK_RUBY_OWNER] = 0;
	for (int i = 0; i <= WALK_RUBY_LEVELS; i++)
		if (walk_ruby_level(w))
			return;
}

/* The key of an iseq whose method is of the class at WALK_RUBY_OWNER. */
WALK_FN __u64 walk_ruby_key(const struct walk *w, __u64 iseq)
{
	__u64 owner = w->scratch[WALK_RUBY_OWNER];

	return owner ? iseq | ABI_RUBY_OWNED | (owner * 0x082efa98ec4e6c89ULL >> 50) << 48 : iseq;
}

/* Sets p->cookie. Return: the position of @pc in it. */
WALK_FN __u32 walk_ruby_meet(struct walk *w, __u64 key, __u64 pc)
{
	struct walk_ruby *p = walk_ruby_state(w);
	struct walk_ruby_met *met = walk_ruby_met(w, key);
	__u64 *who = &w->scratch[WALK_RUBY_IDENTITY], *texts = &w->scratch[WALK_RUBY_TEXTS];
	__u64 *body = &w->scratch[WALK_RUBY_BODY];

	if (met->at != key) {
		p->cookie = ABI_RUBY_NO_COOKIE;
		who[0] = key;
		if (walk_read(w, &who[1], sizeof(who[1]), (key & ABI_RUBY_ISEQ) + 16) ||
		    walk_read(w, body, ABI_RUBY_BODY_BYTES, who[1]) ||
		    walk_read(w, texts, WALK_RUBY_TEXT_BYTES, body[WALK_RUBY_BODY_LABEL] + WALK_RUBY_TEXT_AT) ||
		    walk_read(w, texts + 3, WALK_RUBY_TEXT_BYTES, body[WALK_RUBY_BODY_PATH] + WALK_RUBY_TEXT_AT))
			return ABI_RUBY_NOWHERE;
		p->cookie = walk_ruby_cookie(who[1], body, texts, texts + 3);
		walk_ruby_seen(w);
		met->at = key;
		met->cookie = p->cookie;
		met->code = body[WALK_RUBY_BODY_CODE];
		met->size = body[WALK_RUBY_BODY_SIZE] >> 32;
	}
	p->cookie = met->cookie;
	return walk_ruby_position(met->code, met->size, pc);
}

/* The key of the C function whose method entry is at @entry, or 0: there is none. Its class is at WALK_RUBY_OWNER. */
WALK_FN __u64 walk_ruby_cfunc(struct walk *w, __u64 entry)
{
	struct walk_ruby_met *met = walk_ruby_met(w, entry);
	__u64 *words = &w->scratch[WALK_RUBY_ENTRY], id;
	__u32 size = walk_ruby_has_classes(w) ? 40 : 24;

	words[4] = 0;
	w->scratch[WALK_RUBY_OWNER] = met->code;
	if (entry && met->at == entry)
		return met->cookie;
	w->scratch[WALK_RUBY_OWNER] = 0;
	if (!entry || (entry & 7) || walk_read(w, words, size, entry) || (words[0] & 0x1f) != WALK_RUBY_IMEMO)
		return 0;
	if (walk_ruby_is_imemo(words[0], WALK_RUBY_SVAR)) { /* vm_core.h, struct vm_svar: cref_or_me */
		__u64 behind = words[1];

		if (!behind || walk_read(w, words, size, behind))
			return 0;
	}
	if (!walk_ruby_is_imemo(words[0], WALK_RUBY_MENT) || walk_read(w, &id, sizeof(id), words[2] + 32))
		return 0;
	id = ABI_RUBY_CFUNC | (id & ((ABI_RUBY_CFUNC >> 1) - 1));
	met->at = entry;
	met->cookie = id;
	met->code = words[4] & 7 ? 0 : words[4];
	met->size = 0;
	w->scratch[WALK_RUBY_OWNER] = met->code;
	return id;
}

/* Return: 0, or 1 when the record is full. */
WALK_FN int walk_ruby_push(struct walk *w, __u64 key, __u64 cookie, __u32 position, int ends)
{
	struct abi_frame *frame = walk_push_runtime(w, ABI_FRAME_RUNTIME, ABI_RUNTIME_RUBY);

	if (!frame)
		return 1;
	frame->flags = ends ? ABI_FRAME_ENTRY : 0;
	frame->extra = position;
	frame->a = key;
	frame->b = cookie;
	return 0;
}

/* What lies at the leaf is no frame yet. */
WALK_FN enum walk_next walk_ruby_not_yet(struct walk *w, __u64 next)
{
	struct walk_ruby *p = walk_ruby_state(w);

	if (p->looked || !(walk_ruby_info(w)->layout.flags & ABI_RUBY_EARLY_FRAMES))
		return walk_ruby_broken(w, ABI_RUNTIME_END_BAD_CHAIN);
	p->gap = 1;
	p->looked = 1;
	p->frame = next;
	return WALK_MORE;
}

WALK_FN enum walk_next walk_ruby_c_frame(struct walk *w, __u64 entry, __u64 next, int ends)
{
	struct walk_ruby *p = walk_ruby_state(w);
	__u64 key = walk_ruby_cfunc(w, entry), owner;

	if (!key && !p->looked)
		return walk_ruby_not_yet(w, next);
	p->looked = 1;
	p->frame = next;
	owner = key ? w->scratch[WALK_RUBY_OWNER] : 0;
	return walk_ruby_push(w, key ? key : ABI_RUBY_CFUNC, owner ? owner : 1, 0, ends) ? WALK_DONE : WALK_MORE;
}

/* A frame that is not shown; its activation may end with it. */
WALK_FN enum walk_next walk_ruby_skip(struct walk *w, __u64 next, int ends)
{
	struct walk_ruby *p = walk_ruby_state(w);
	struct abi_frame *last = walk_ruby_last(w);

	p->looked = 1;
	p->frame = next;
	if (ends && last)
		last->flags |= ABI_FRAME_ENTRY;
	return WALK_MORE;
}

WALK_FN enum walk_next walk_ruby_frame(struct walk *w)
{
	const struct abi_ruby_layout *l = &walk_ruby_info(w)->layout;
	struct walk_ruby *p = walk_ruby_state(w);
	__u64 frame = p->frame, next = frame + l->frame_size, pc, iseq, ep, flags, entry, before;
	__u32 at, position;
	int ends, hidden;

	if (frame >= p->high)
		return walk_ruby_root(w);
	if (next > p->high || walk_ruby_find_frame(w, frame, &at))
		return walk_ruby_broken(w, ABI_RUNTIME_END_READ_FAILED);
	pc = w->scratch[at & (WALK_RUBY_WORDS - 1)];
	iseq = w->scratch[(at + 2) & (WALK_RUBY_WORDS - 1)];
	ep = w->scratch[(at + 4) & (WALK_RUBY_WORDS - 1)];
	walk_opaque(pc);
	walk_opaque(iseq);
	walk_opaque(ep);
	if ((ep & 7) || walk_ruby_find_ep(w, ep, &at))
		return walk_ruby_not_yet(w, next);
	entry = w->scratch[at & (WALK_RUBY_WORDS - 1)];
	before = w->scratch[(at + 1) & (WALK_RUBY_WORDS - 1)];
	flags = w->scratch[(at + 2) & (WALK_RUBY_WORDS - 1)];
	walk_opaque(entry);
	walk_opaque(before);
	walk_opaque(flags);
	w->scratch[WALK_RUBY_OWNER] = 0;
	w->scratch[WALK_RUBY_OWNER + 1] = entry;
	w->scratch[WALK_RUBY_OWNER + 2] = before;
	w->scratch[WALK_RUBY_OWNER + 3] = flags;
	ends = (flags & WALK_RUBY_FINISH) != 0;
	flags &= WALK_RUBY_MAGIC;
	walk_opaque(ends);
	if (flags == WALK_RUBY_DUMMY)
		return next >= p->high ? walk_ruby_root(w) : walk_ruby_skip(w, next, 0);
	if (flags == WALK_RUBY_CFUNC)
		return walk_ruby_c_frame(w, entry, next, ends);
	if (flags < WALK_RUBY_METHOD || !(flags & 1))
		return walk_ruby_not_yet(w, next);
	/* Compiled code makes frames without it, and puts it in before what may fail or look at it. */
	hidden = !pc && (p->looked || !walk_has_code(w, ABI_RUNTIME_RUBY));
	if (p->skips || flags == WALK_RUBY_IFUNC || !iseq || hidden) {
		p->skips = 0;
		return walk_ruby_skip(w, next, ends);
	}
	p->skips = flags == WALK_RUBY_RESCUE && l->flags & ABI_RUBY_MERGED_RESCUE;
	if (iseq & ~(ABI_RUBY_ISEQ - 7))
		return walk_ruby_not_yet(w, next);
	if (walk_ruby_has_classes(w))
		walk_ruby_own(w);
	iseq = walk_ruby_key(w, iseq);
	walk_opaque(iseq);
	position = walk_ruby_meet(w, iseq, pc);
	walk_opaque(position);
	/* It has the one of this frame, the other of that which lay there before. */
	if (position == ABI_RUBY_NOWHERE && !p->looked && l->flags & ABI_RUBY_EARLY_FRAMES)
		return walk_ruby_not_yet(w, next);
	/* Compiled code runs in the innermost frame, which says where that called last. */
	if (!p->looked && walk_in_code(w, ABI_RUNTIME_RUBY, w->leaf[WALK_REG_PC]))
		position = ABI_RUBY_NOWHERE;
	p->looked = 1;
	p->frame = next;
	return walk_ruby_push(w, iseq, p->cookie, position, ends) ? WALK_DONE : WALK_MORE;
}

/* ---- the execution context ---- */

/* Its address into *out, 0: the thread has none. Return: 0, or 1: it cannot be read. */
WALK_FN int walk_ruby_context(struct walk *w, __u64 *out)
{
	const struct abi_ruby *info = walk_ruby_info(w);
	__u64 at = w->tp + (__u64)info->key_at;

	*out = 0;
	if (!w->tp)
		return 0;
	if (info->way == ABI_RUBY_TLS_DYNAMIC) { /* Ulrich Drepper, ELF Handling For Thread-Local Storage, 3.4.6 */
		if (walk_read(w, &at, sizeof(at), w->tp + 8) || walk_read(w, &at, sizeof(at), at + info->module * 16))
			return 1;
		if (at + 1 <= 1)
			return 0;
		at += info->offset;
	}
	if (walk_read(w, &at, sizeof(at), at))
		return 1;
	if (at && info->way == ABI_RUBY_KEY && info->layout.flags & ABI_RUBY_KEY_INDIRECT &&
	    walk_read(w, &at, sizeof(at), at + info->offset))
		return 1;
	if (at && info->way == ABI_RUBY_KEY && walk_read(w, &at, sizeof(at), at + info->layout.thread_ec))
		return 1;
	*out = at;
	return 0;
}

/* Does the thread of the context in the block, which is @ec, run the garbage collector? */
WALK_FN int walk_ruby_in_gc(struct walk *w, __u64 ec)
{
	const struct abi_ruby *info = walk_ruby_info(w);
	const struct abi_ruby_layout *l = &info->layout;
	__u64 at = 0, flags = 0;

	if (!info->gc_flags || walk_read(w, &flags, sizeof(flags), info->gc_flags) || !(flags & ABI_RUBY_GC_RUNNING))
		return 0;
	if (info->way == ABI_RUBY_KEY)
		return info->current && !walk_read(w, &at, sizeof(at), info->current) && at == ec;
	if (l->ractor_running == ABI_RUBY_NONE)
		return 0;
	at = w->scratch[(WALK_RUBY_BODY + (l->ec_thread >> 3)) & (WALK_RUBY_WORDS - 1)];
	return !walk_read(w, &at, sizeof(at), at + l->thread_ractor) &&
	       !walk_read(w, &at, sizeof(at), at + l->ractor_running) && at == ec;
}

#define WALK_RUBY_PUSH_WORDS 6          /* of code that are looked at */
#define WALK_RUBY_PUSH_ISEQ 0x10458949U /* mov %rax,0x10(%r13): 49 89 45 10 */

/* Do the four bytes at @at store the iseq? */
WALK_FN int walk_ruby_stores_iseq(const __u64 *code, __u32 at)
{
	__u64 word = code[at >> 3] >> 8 * (at & 7);

	if ((at & 7) > 4)
		word |= code[(at >> 3) + 1] << (64 - 8 * (at & 7));
	return (__u32)word == WALK_RUBY_PUSH_ISEQ;
}

/* Does the code at the leaf's pc fill in the frame that the context has already? Nine instructions do. The eighth
 * stores the iseq; it is one of a few distances away, for each of them has one length, but the first. Source: Ruby 3.1,
 * yjit_codegen.c, gen_send_iseq(): ec->cfp is set first; its code of 3.1.2, disassembled. */
WALK_FN int walk_ruby_look_at_push(struct walk *w)
{
	__u64 *code = &w->scratch[WALK_RUBY_ENTRY];

	if (walk_read(w, code, WALK_RUBY_PUSH_WORDS * 8, w->leaf[WALK_REG_PC]))
		return 0;
	return walk_ruby_stores_iseq(code, 0) | walk_ruby_stores_iseq(code, 10) | walk_ruby_stores_iseq(code, 14) |
	       walk_ruby_stores_iseq(code, 18) | walk_ruby_stores_iseq(code, 22) | walk_ruby_stores_iseq(code, 26) |
	       walk_ruby_stores_iseq(code, 29) | walk_ruby_stores_iseq(code, 33) | walk_ruby_stores_iseq(code, 36) |
	       walk_ruby_stores_iseq(code, 37) | walk_ruby_stores_iseq(code, 40);
}

/* In BPF a function of its own, checked once. */
#ifndef walk_ruby_pushes
#define walk_ruby_pushes(w) walk_ruby_look_at_push(w)
#endif

/* The innermost frame that is filled in, where compiled code runs. */
WALK_FN void walk_ruby_believe_code(struct walk *w)
{
	const struct abi_ruby_layout *l = &walk_ruby_info(w)->layout;
	struct walk_ruby *p = walk_ruby_state(w);
	__u64 own = w->leaf[WALK_RUBY_REG_FRAME];

	if ((own != p->frame && own != p->frame + l->frame_size) ||
	    !walk_in_code(w, ABI_RUNTIME_RUBY, w->leaf[WALK_REG_PC]))
		return;
	/* Compiled code knows its own frame. The context has that of a C function before it is filled in, and still
	 * when the function has returned. Source: Ruby 3.1, yjit_codegen.c, gen_send_cfunc(). */
	if (own != p->frame)
		p->frame = own;
	else if (l->version_major == 3 && l->version_minor == 1 && walk_ruby_pushes(w))
		p->frame += l->frame_size;
}

WALK_FN enum walk_next walk_ruby_find(struct walk *w)
{
	struct walk_ruby *p = walk_ruby_state(w);
	const __u64 *words = &w->scratch[WALK_RUBY_BODY]; /* stack, its size in words, frame */
	__u64 ec;

	if (walk_ruby_context(w, &ec))
		return walk_ruby_done(w, ABI_RUNTIME_END_READ_FAILED);
	if (!ec)
		return walk_ruby_done(w, ABI_RUNTIME_END_NO_STATE);
	if ((ec & 7) || walk_read(w, &w->scratch[WALK_RUBY_BODY], ABI_RUBY_EC_BYTES, ec))
		return walk_ruby_done(w, ABI_RUNTIME_END_READ_FAILED);
	p->low = words[0];
	p->high = words[0] + words[1] * 8;
	p->frame = words[2];
	walk_ruby_believe_code(w);
	if (!p->low || !p->frame) /* a thread that begins or ends */
		return walk_ruby_done(w, ABI_RUNTIME_END_NO_STATE);
	if ((p->low & 7) || (p->frame & 7) || words[1] > WALK_RUBY_VM_STACK_MAX / 8 ||
	    words[1] < WALK_RUBY_WINDOW_BYTES / 8 || p->frame < p->low || p->frame > p->high)
		return walk_ruby_done(w, ABI_RUNTIME_END_BAD_CHAIN);
	p->phase = WALK_RUBY_FRAMES;
	p->frames_at = 0;
	p->eps_at = 0;
	p->gap = 0;
	p->skips = 0;
	p->looked = 0;
	for (int i = 0; i < WALK_RUBY_MET_MAX; i++) {
		w->scratch[WALK_RUBY_MET + 4 * i] = 0;
		w->scratch[WALK_RUBY_OWNERS + 2 * i] = 0;
	}
	if (walk_ruby_in_gc(w, ec) && walk_ruby_push(w, ABI_RUBY_GC, 1, 0, 0))
		return WALK_DONE;
	return WALK_MORE;
}

/** walk_ruby_step - find the context, or push one frame; w->runtime_end says why it is done */
WALK_FN enum walk_next walk_ruby_step(struct walk *w)
{
	return walk_ruby_state(w)->phase == WALK_RUBY_FRAMES ? walk_ruby_frame(w) : walk_ruby_find(w);
}

/**
 * walk_ruby_start - of the thread whose tp is in @w, behind the w->count frames that are there
 * @info: copied
 * @process: a number that no other process has; for the cache of names that were sent, otherwise 0
 */
WALK_FN void walk_ruby_start(struct walk *w, const struct abi_ruby *info, __u64 process)
{
	struct walk_ruby *p = walk_ruby_state(w);

	*(struct abi_ruby *)w->info = *info;
	p->process = process;
	p->phase = WALK_RUBY_FIND;
	p->gap = 0;
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}

#define WALK_RUBY_NATIVE_LEAST 24 /* user frames that stay when the runtime's do not fit beside the others */

/** walk_ruby_make_room - give up user frames for runtime frames that had no room, to be walked anew. Kernel frames
 * stay. Return: whether there were any to give up. */
WALK_FN int walk_ruby_make_room(struct walk *w)
{
	__u32 least = walk_sample(w)->kernel_count + WALK_RUBY_NATIVE_LEAST;

	if (w->runtime_end != ABI_RUNTIME_END_FRAME_LIMIT || w->count <= least)
		return 0;
	w->count = least;
	w->runtime_count = 0;
	walk_ruby_state(w)->phase = WALK_RUBY_FIND;
	return 1;
}

/* ---- compiled code, in line ---- */

#define WALK_RUBY_SAVED 3      /* registers of the loop on the stack of compiled code */
#define WALK_RUBY_SAVED_MAX 7U /* words looked at otherwise */

enum walk_ruby_word { WALK_RUBY_OTHER, WALK_RUBY_RETURN, WALK_RUBY_UNREADABLE };

/* What is on the stack at p->frame: a return address of the file that has the loop? It is at w->lr then. */
WALK_FN enum walk_ruby_word walk_ruby_look_at(struct walk *w, const struct abi_ruby *info)
{
	__u64 word;

	if (walk_stack_word(w, walk_ruby_state(w)->frame, &word))
		return WALK_RUBY_UNREADABLE;
	w->lr = word;
	return word - info->code_low < info->code_size && walk_code_before(w, word) == WALK_CODE_CALL ? WALK_RUBY_RETURN
												      : WALK_RUBY_OTHER;
}

/* The includer may set it to a function that the verifier looks at once. */
#ifndef walk_ruby_candidate
#define walk_ruby_candidate(w, info) ((int)walk_ruby_look_at((w), (info)))
#endif

/**
 * walk_ruby_compiled_step - the step of the native walk at an address in code of Ruby's compiler (YJIT)
 *
 * Compiled functions jump to each other and push nothing: below them lies what the entry saved, and the return address
 * of the loop that called it. While these are pushed or popped there are fewer: such a frame is marked as a guess. No
 * frame is pushed, for the loop's own frame stands for the compiled code, too. Source: Ruby 3.1, yjit_codegen.c,
 * yjit_entry_prologue(); later versions were not tried. SWITCH: it does not look so.
 */
WALK_FN enum walk_next walk_ruby_compiled_step(struct walk *w, const struct abi_ruby *info)
{
	for (__u32 i = 0; i <= WALK_RUBY_SAVED_MAX; i++) {
		__u32 words = (i + WALK_RUBY_SAVED) & WALK_RUBY_SAVED_MAX;
		__u8 guessed = w->guessed || words != WALK_RUBY_SAVED;
		int found;

		walk_ruby_state(w)->frame = w->sp + 8 * words;
		found = walk_ruby_candidate(w, info);
		if (found == WALK_RUBY_UNREADABLE)
			return WALK_DONE;
		if (found != WALK_RUBY_RETURN)
			continue;
		walk_move_in_line(w, w->lr, walk_ruby_state(w)->frame + 8, w->fp);
		w->guessed = guessed;
		return WALK_MORE;
	}
	return WALK_SWITCH;
}
