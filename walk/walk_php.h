/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* PHP's frames of one thread, 7.0 to 8.5: abi/php.h has what differs between versions and processes.
 *
 *	executor_globals.current_execute_data --> frame --> its caller --> ... --> the script
 *
 * A turn of walk_php_step() looks at one frame: the frame, its function, the line, and the beginnings of the function's
 * name and file. Their hash is the cookie. It is made of what the texts say, not of where they lie: a worker of php-fpm
 * starts its heap afresh with each request, so that the same addresses soon belong to another function
 * (docs/php.md has the figures).
 *
 * What a tick can find between two instructions: a frame without a function, as `yield from` makes, is left out; so is
 * the frame at the bottom of a fiber, an extension's function without a name, which only says that its callers are on
 * another native stack; a generator that is entered before its caller is written down ends the list early, as does a
 * fiber that is switched to: then the walk says GAP. */
#pragma once

#include "abi/php.h"
#include "walk/walk.h"

#define WALK_PHP_REG_FRAME 14 /* r14, r15: see ABI_PHP_R14_R15 */
#define WALK_PHP_REG_OP 15
#define WALK_PHP_TEXT_BYTES 32 /* of each end of a name that the cookie is made of */
#define WALK_PHP_LINES_MAX 0x7fffffffU

enum walk_php_root { /* may the last frame that was met be the thread's outermost one? */
		     WALK_PHP_ROOT_NO,
		     WALK_PHP_ROOT_YES,
};

struct walk_php {
	__u64 at;           /* the next frame */
	__u64 mark;         /* an earlier frame: a walk that meets it again goes in circles */
	__u64 func, cookie; /* of the frame that is being pushed */
	__u64 process;      /* a number that no other process has */
	__u16 left, span;   /* frames until `mark` is moved; as many were between the last two moves */
	__u8 phase;         /* 0: the first frame is still to be found */
	__u8 root;          /* enum walk_php_root */
	__u8 gap;
	__u8 is_leaf; /* the frame at hand is the innermost one */
	__u8 fiber;   /* its bottom was met: the next frame is on another native stack */
	__u32 first_line;
};

_Static_assert(sizeof(struct walk_php) <= sizeof(((struct walk *)0)->state[0]), "it overlays its state");
_Static_assert(sizeof(struct abi_php) <= WALK_INFO, "it fits");

/* Places in scratch, in words. */
#define WALK_PHP_FRAME 0
#define WALK_PHP_FUNC 8  /* 23 words and one that fills up */
#define WALK_PHP_TEXT 32 /* hash, length and the first bytes of a string; then its last ones */
#define WALK_PHP_FREE 64
#define WALK_PHP_FREE_WORDS 112
#define WALK_PHP_WORDS 32 /* of a function, and more: for the verifier; a power of two */

_Static_assert(ABI_PHP_FUNC_BYTES <= (WALK_PHP_TEXT - WALK_PHP_FUNC) * 8, "a function lies before the texts");

/* What happens at a frame whose name may not be known yet: bpf/php.h. p->func, p->cookie, p->first_line and the words
 * at walk_php_func_word() say which. */
#ifndef walk_php_seen
#define walk_php_seen(w) ((void)(w))
#endif

WALK_FN struct walk_php *walk_php_state(struct walk *w)
{
	return (struct walk_php *)w->state[ABI_RUNTIME_PHP];
}

WALK_FN const struct abi_php *walk_php_info(const struct walk *w)
{
	return (const struct abi_php *)w->info;
}

/* The bytes of the frame at hand from @offset on, up to the end of their word. */
WALK_FN __u64 walk_php_frame_word(const struct walk *w, __u32 offset)
{
	return w->scratch[WALK_PHP_FRAME + (offset >> 3 & 7)] >> (offset & 7) * 8;
}

/* Likewise of its function. */
WALK_FN __u64 walk_php_func_word(const struct walk *w, __u32 offset)
{
	return w->scratch[WALK_PHP_FUNC + (offset >> 3 & (WALK_PHP_WORDS - 1))] >> (offset & 7) * 8;
}

/* ---- what tells functions apart ---- */

/* One round of W. Stafford's variant 13 of the finalizer of MurmurHash3. */
WALK_FN __u64 walk_php_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/* Numbers without pattern: the fraction digits of pi, made odd. */
#define WALK_PHP_PI_1 0x243f6a8885a308d3ULL
#define WALK_PHP_PI_2 0x13198a2e03707345ULL
#define WALK_PHP_PI_3 0xa4093822299f31d1ULL
#define WALK_PHP_PI_4 0x082efa98ec4e6c89ULL
#define WALK_PHP_PI_5 0x452821e638d01377ULL

/* The part of word number @i that belongs to a text of @length bytes. */
WALK_FN __u64 walk_php_text_word(const __u64 *words, __u64 length, __u32 i)
{
	__u64 left = length - 8 * i;

	if (length <= 8 * i)
		return 0;
	return left >= 8 ? words[i] : words[i] & ((1ULL << left * 8) - 1);
}

/* Of the first bytes of a text, and of its length. @words: WALK_PHP_TEXT_BYTES */
WALK_FN __u64 walk_php_text_sum(const __u64 *words, __u64 length)
{
	return walk_php_text_word(words, length, 0) * WALK_PHP_PI_1 +
	       walk_php_text_word(words, length, 1) * WALK_PHP_PI_2 +
	       walk_php_text_word(words, length, 2) * WALK_PHP_PI_3 +
	       walk_php_text_word(words, length, 3) * WALK_PHP_PI_4 + length * WALK_PHP_PI_5;
}

/**
 * walk_php_hash_text - of the text at @at: its length, first and last bytes
 *
 * A name of a file has its hash worked out, which stands for all of it; that of a function may still be 0, and become
 * something else at any moment: it does not count. Return: never 0; 0: it cannot be read.
 */
WALK_FN __u64 walk_php_hash_text(struct walk *w, __u64 at, int is_file)
{
	__u64 *words = &w->scratch[WALK_PHP_TEXT], length, hash, sum;

	if (walk_read(w, words, 16 + WALK_PHP_TEXT_BYTES, at + ABI_PHP_STRING_HASH)) {
		/* No string takes less than 32 bytes, and behind this one memory may end. */
		if (walk_read(w, words, 24, at + ABI_PHP_STRING_HASH))
			return 0;
		words[3] = words[4] = words[5] = 0;
	}
	hash = words[0];
	length = words[1];
	sum = walk_php_text_sum(words + 2, length);
	if (length > WALK_PHP_TEXT_BYTES && is_file && hash) {
		sum = walk_php_mix(sum, hash);
	} else if (length > WALK_PHP_TEXT_BYTES) {
		if (walk_read(w, words + 6, WALK_PHP_TEXT_BYTES,
			      at + ABI_PHP_STRING_BYTES + length - WALK_PHP_TEXT_BYTES))
			return 0;
		sum = walk_php_mix(sum, walk_php_text_sum(words + 6, length));
	}
	return sum ? sum : 1;
}

/* In BPF a function of its own, checked once. */
#ifndef walk_php_text
#define walk_php_text(w, at, is_file) walk_php_hash_text(w, at, is_file)
#endif

/**
 * walk_php_find_cookie - of the function whose words are in scratch
 * @is_program: it has a file and a line. Return: the cookie; ABI_PHP_NO_COOKIE: its texts cannot be read.
 */
WALK_FN __u64 walk_php_find_cookie(struct walk *w, int is_program)
{
	const struct abi_php_layout *l = &walk_php_info(w)->layout;
	__u64 name = walk_php_func_word(w, ABI_PHP_FUNC_NAME), sum, text = 0;

	sum = walk_php_mix(walk_php_func_word(w, ABI_PHP_FUNC_SCOPE), (__u8)walk_php_func_word(w, ABI_PHP_FUNC_TYPE));
	if (name) {
		text = walk_php_text(w, name, 0);
		if (!text)
			return ABI_PHP_NO_COOKIE;
	}
	sum = walk_php_mix(sum, text);
	if (is_program) {
		sum = walk_php_mix(sum, (__u32)walk_php_func_word(w, l->func_line));
		text = walk_php_text(w, walk_php_func_word(w, l->func_file), 1);
		if (!text)
			return ABI_PHP_NO_COOKIE;
		sum = walk_php_mix(sum, text);
	}
	return sum | 1;
}

/* ---- frames ---- */

WALK_FN enum walk_next walk_php_done(struct walk *w, __u8 end)
{
	w->runtime_end = walk_php_state(w)->gap && end == ABI_RUNTIME_END_WHOLE ? ABI_RUNTIME_END_GAP : end;
	return WALK_DONE;
}

/* No frame behind the last one. */
WALK_FN enum walk_next walk_php_root(struct walk *w)
{
	__u64 at = (__u64)w->count + w->runtime_count - 1;

	if (!w->runtime_count)
		return walk_php_done(w, ABI_RUNTIME_END_NO_STATE);
	if (walk_php_state(w)->root == WALK_PHP_ROOT_YES)
		return walk_php_done(w, ABI_RUNTIME_END_WHOLE);
	if (at < ABI_FRAMES_MAX && w->frames[at].kind == ABI_FRAME_RUNTIME)
		w->frames[at].flags |= ABI_FRAME_GAP;
	return walk_php_done(w, ABI_RUNTIME_END_GAP);
}

/* R. Brent's way to find a cycle. Return: whether the chain came back to a frame. */
WALK_FN int walk_php_circles(struct walk_php *p, __u64 frame)
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

/* Is that an operation of the function at hand? */
WALK_FN int walk_php_has_op(const struct walk *w, __u64 op)
{
	const struct abi_php_layout *l = &walk_php_info(w)->layout;
	__u64 away = op - walk_php_func_word(w, l->func_opcodes);

	return away < (__u64)(__u32)walk_php_func_word(w, l->func_last) * ABI_PHP_OP_SIZE &&
	       !(away & (ABI_PHP_OP_SIZE - 1));
}

/* The operation that runs in the frame at hand, that at @frame. The loop writes it down only before what may fail, so
 * the innermost frame's is an earlier one in 40 of 100 ticks that meet the loop: then the register has it. Return: 0:
 * not known. */
WALK_FN __u64 walk_php_op(struct walk *w, __u64 frame)
{
	const struct abi_php *info = walk_php_info(w);
	__u64 op = walk_php_frame_word(w, ABI_PHP_FRAME_OPLINE);
	int in_loop;

	if (walk_php_state(w)->is_leaf) {
		in_loop = w->leaf[WALK_REG_PC] - info->loop_low < info->loop_size;
		if (!in_loop && walk_has_code(w, ABI_RUNTIME_PHP))
			return 0; /* compiled code seldom writes down where it is, in the frame or in the register */
		if (info->flags & ABI_PHP_R14_R15 && w->leaf[WALK_PHP_REG_FRAME] == frame) {
			if (walk_php_has_op(w, w->leaf[WALK_PHP_REG_OP]))
				return w->leaf[WALK_PHP_REG_OP];
			if (in_loop)
				return 0;
		}
	}
	return walk_php_has_op(w, op) ? op : 0;
}

WALK_FN __u32 walk_php_line(struct walk *w, __u64 frame)
{
	__u64 op = walk_php_op(w, frame);
	__u32 line;

	if (!op || walk_read(w, &line, sizeof(line), op + ABI_PHP_OP_LINE) || line > WALK_PHP_LINES_MAX)
		return 0;
	return line;
}

/* Return: 0, or 1 when the record is full. */
WALK_FN int walk_php_push(struct walk *w, __u64 frame, int is_program, int ends)
{
	struct walk_php *p = walk_php_state(w);
	struct abi_frame *out;

	p->first_line = is_program ? (__u32)walk_php_func_word(w, walk_php_info(w)->layout.func_line) : 0;
	p->cookie = walk_php_find_cookie(w, is_program);
	if (p->cookie != ABI_PHP_NO_COOKIE)
		walk_php_seen(w);
	out = walk_push_runtime(w, ABI_FRAME_RUNTIME, ABI_RUNTIME_PHP);
	if (!out)
		return 1;
	out->flags = (ends ? ABI_FRAME_ENTRY : 0) | (p->fiber ? ABI_FRAME_OTHER_STACK : 0);
	p->fiber = 0;
	out->extra = is_program ? walk_php_line(w, frame) : 0;
	out->a = p->func;
	out->b = p->cookie;
	return 0;
}

/* Reads the function at @func. Of one of an extension there may be no more than its head. Return: 0, or 1. */
WALK_FN int walk_php_read_func(struct walk *w, __u64 func)
{
	__u64 *words = &w->scratch[WALK_PHP_FUNC];

	if (!walk_read(w, words, ABI_PHP_FUNC_BYTES, func))
		return 0;
	return walk_read(w, words, ABI_PHP_FUNC_HEAD, func) ||
	       (__u8)walk_php_func_word(w, ABI_PHP_FUNC_TYPE) != ABI_PHP_INTERNAL;
}

WALK_FN enum walk_next walk_php_frame(struct walk *w)
{
	const struct abi_php_layout *l = &walk_php_info(w)->layout;
	struct walk_php *p = walk_php_state(w);
	__u64 frame = p->at, func;
	int is_program, ends;
	__u32 info;
	__u8 type;

	if (!frame)
		return walk_php_root(w);
	if ((frame & 7) || walk_php_circles(p, frame))
		return walk_php_done(w, ABI_RUNTIME_END_BAD_CHAIN);
	if (walk_read(w, &w->scratch[WALK_PHP_FRAME], ABI_PHP_FRAME_BYTES, frame))
		return walk_php_done(w, ABI_RUNTIME_END_READ_FAILED);
	walk_opaque(frame);
	func = walk_php_frame_word(w, ABI_PHP_FRAME_FUNC);
	info = (__u32)walk_php_frame_word(w, ABI_PHP_FRAME_INFO);
	p->at = walk_php_frame_word(w, l->frame_prev);
	if (!func) /* a place that another frame is put into later */
		return WALK_MORE;
	if ((func & 7) || walk_php_read_func(w, func))
		return walk_php_done(w, func & 7 ? ABI_RUNTIME_END_BAD_CHAIN : ABI_RUNTIME_END_READ_FAILED);
	walk_opaque(func);
	type = (__u8)walk_php_func_word(w, ABI_PHP_FUNC_TYPE);
	walk_opaque(type);
	is_program = type == ABI_PHP_USER || type == ABI_PHP_EVAL;
	if (!is_program && type != ABI_PHP_INTERNAL) { /* it is just being freed */
		if (!p->is_leaf)
			return walk_php_done(w, ABI_RUNTIME_END_BAD_CHAIN);
		p->gap = 1;
		return WALK_MORE;
	}
	if (!is_program && !walk_php_func_word(w, ABI_PHP_FUNC_NAME)) {
		p->fiber = 1;
		p->root = WALK_PHP_ROOT_NO; /* who resumed it is written down after it was entered */
		return WALK_MORE;
	}
	ends = is_program && info & l->top;
	walk_opaque(is_program);
	walk_opaque(ends);
	p->func = func;
	if (walk_php_push(w, frame, is_program, ends))
		return WALK_DONE;
	p->is_leaf = 0;
	p->root = info & l->top && (info & l->code || (l->generator && !(info & l->generator))) ? WALK_PHP_ROOT_YES
												: WALK_PHP_ROOT_NO;
	return WALK_MORE;
}

/* ---- the first frame ---- */

/* The address of executor_globals of this thread into *out, 0: it has none. Return: 0, or 1: it cannot be read. */
WALK_FN int walk_php_globals(struct walk *w, __u64 *out)
{
	const struct abi_php *info = walk_php_info(w);
	__u64 cache = 0;

	*out = info->globals;
	if (!(info->flags & ABI_PHP_THREADS))
		return 0;
	if (w->tp && walk_read(w, &cache, sizeof(cache), w->tp + (__u64)info->tls_at))
		return 1;
	*out = cache ? cache + info->tls_offset : 0;
	return 0;
}

WALK_FN enum walk_next walk_php_begin(struct walk *w)
{
	struct walk_php *p = walk_php_state(w);
	__u64 globals;

	p->phase = 1;
	if (walk_php_globals(w, &globals))
		return walk_php_done(w, ABI_RUNTIME_END_READ_FAILED);
	if (!globals)
		return walk_php_done(w, ABI_RUNTIME_END_NO_STATE);
	if (walk_read(w, &p->at, sizeof(p->at), globals + walk_php_info(w)->layout.current))
		return walk_php_done(w, ABI_RUNTIME_END_READ_FAILED);
	return p->at ? WALK_MORE : walk_php_done(w, ABI_RUNTIME_END_NO_STATE);
}

/** walk_php_step - find the first frame, or push one; w->runtime_end says why it is done */
WALK_FN enum walk_next walk_php_step(struct walk *w)
{
	return walk_php_state(w)->phase ? walk_php_frame(w) : walk_php_begin(w);
}

/** walk_php_restart_all - everything from the beginning, of the same process and thread */
WALK_FN void walk_php_restart_all(struct walk *w)
{
	struct walk_php *p = walk_php_state(w);

	p->at = 0;
	p->mark = 0;
	p->span = 4;
	p->left = p->span;
	p->phase = 0;
	p->root = WALK_PHP_ROOT_NO;
	p->gap = 0;
	p->is_leaf = 1;
	p->fiber = 0;
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}

/**
 * walk_php_start - of the thread whose tp is in @w, behind the w->count frames that are there
 * @info: copied
 * @process: a number that no other process has; for the cache of names that were sent, otherwise 0
 */
WALK_FN enum walk_next walk_php_start(struct walk *w, const struct abi_php *info, __u64 process)
{
	*(struct abi_php *)w->info = *info;
	walk_php_state(w)->process = process;
	walk_php_restart_all(w);
	return WALK_MORE;
}

/* ---- what the process is busy with ---- */

/** walk_php_request_at - where sapi_globals of this thread is; 0: there is none, it is not this thread's, or it may be
 * stale */
WALK_FN __u64 walk_php_request_at(struct walk *w, const struct abi_php *info, int is_first_thread)
{
	__u64 cache = 0, globals, frame;

	if (!info->request)
		return 0;
	if ((info->flags & ABI_PHP_STALE) &&
	    (walk_php_globals(w, &globals) || !globals ||
	     walk_read(w, &frame, sizeof(frame), globals + info->layout.current) || !frame))
		return 0;
	if (!(info->flags & ABI_PHP_THREADS)) /* one for the whole process, whose other threads it does not tell of */
		return is_first_thread ? info->request : 0;
	if (!w->tp || walk_read(w, &cache, sizeof(cache), w->tp + (__u64)info->tls_at))
		return 0;
	return cache ? cache + info->request : 0;
}

struct walk_php_variable { /* fcgi_hash_bucket */
	__u32 hash, name_size;
	__u64 name;
	__u32 size, reserved;
	__u64 value, next;
};

#define WALK_PHP_CHAIN 4 /* variables that are looked at: there are some 40 in 128 chains */
#define WALK_PHP_URI_SIZE 11
#define WALK_PHP_URI_1 0x5f54534555514552ULL /* "REQUEST_" */
#define WALK_PHP_URI_2 0x495255U             /* "URI" */

/**
 * walk_php_fcgi_uri - where the URI is that a web server told of; 0: the context is something else, or has none
 * What PHP itself keeps as the URI is the script's name there.
 */
WALK_FN __u64 walk_php_fcgi_uri(struct walk *w, __u64 context)
{
	struct walk_php_variable v = { 0 };
	struct {
		__u64 first;
		__u32 second, unused;
	} name;

	v.next = context + ABI_PHP_FCGI_TABLE + 8ULL * (ABI_PHP_FCGI_URI_HASH & 127);
	if (!context || (context & 7) || walk_read(w, &v.next, sizeof(v.next), v.next))
		return 0;
	for (int i = 0; i < WALK_PHP_CHAIN; i++) {
		if (!v.next || walk_read(w, &v, sizeof(v), v.next))
			return 0;
		if (v.hash != ABI_PHP_FCGI_URI_HASH || v.name_size != WALK_PHP_URI_SIZE)
			continue;
		if (walk_read(w, &name, WALK_PHP_URI_SIZE + 1, v.name)) /* its end, too */
			return 0;
		if (name.first == WALK_PHP_URI_1 && name.second == WALK_PHP_URI_2)
			return v.value;
	}
	return 0;
}

#define WALK_PHP_BYTES 0x0101010101010101ULL

/**
 * walk_php_cut_query - zeros from the first '?' or '#' of a text on
 * @words: zeros behind its end
 *
 * No byte is looked at by itself: the verifier would follow each of them.
 */
WALK_FN void walk_php_cut_query(__u64 *words, __u32 count)
{
	__u64 alive = ~0ULL;

	for (__u32 i = 0; i < count; i++) {
		__u64 query = words[i] ^ WALK_PHP_BYTES * '?', fragment = words[i] ^ WALK_PHP_BYTES * '#';
		__u64 found = (((query - WALK_PHP_BYTES) & ~query) | ((fragment - WALK_PHP_BYTES) & ~fragment)) &
			      WALK_PHP_BYTES * 0x80;

		/* The lowest bit of them is exact; those above it may be too many. */
		words[i] &= alive & (((found & -found) >> 7) - 1);
		alive &= ((found | -found) >> 63) - 1;
	}
}

/** walk_php_request_key - of the words of a struct abi_request's texts; never 0 */
WALK_FN __u64 walk_php_request_key(const __u64 *words, __u32 count)
{
	__u64 key = WALK_PHP_PI_1;

	for (__u32 i = 0; i < count; i++) {
		key = (key ^ words[i]) * WALK_PHP_PI_2;
		key ^= key >> 32;
	}
	return walk_php_mix(key, WALK_PHP_PI_3) | 1;
}

/* ---- compiled code, in line ---- */

/** walk_php_compiled_step - the step of the native walk at an address in code of PHP's compiler
 * That code has no frame of its own: it runs in the one that execute_ex made, whose size the rows of that function
 * know. So it stands for execute_ex. SWITCH: where that is is not known. */
WALK_FN enum walk_next walk_php_compiled_step(struct walk *w, const struct abi_php *info)
{
	if (!info->body)
		return WALK_SWITCH;
	w->pc = info->body;
	return WALK_MORE;
}
