/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Perl's frames of one thread, 5.28 to 5.42: abi/perl.h has what differs between versions and processes.
 *
 *	interpreter --> stack info --> its contexts, innermost first --> the stack info before it --> ... --> the
 *program
 *
 * A turn of walk_perl_step() looks at one stack info or at one context. Contexts of subs, formats and evals are frames;
 * those of blocks and loops are not. A frame's line is that of the statement (COP) that runs in it: the current one in
 * the innermost frame, and in each other one what the context of its callee says.
 *
 * A name is known by its text, not by where it lies: a string eval can put another sub at the place of the first, name
 * pointers included. So the key of a frame is a hash of its package's and its name's text, its cookie one of its file.
 *
 * What a tick finds between two instructions:
 *   - a context without sub, or with what an earlier one left: it is being pushed or was just popped. It is left out.
 *   - a sub that has not reached its first statement: the current one is its caller's. Its line is that of its first
 *     statement. In a recursion within one statement that may hide a right line.
 *
 * Each stack info is an activation of the loop (Perl_runops_standard), and so is each sub without an op to return to,
 * which was called from C. */
#pragma once

#include "abi/perl.h"
#include "walk/walk.h"

#define WALK_PERL_TURNS 4096 /* stack infos and contexts; in BPF the shell's loop ends before */
#define WALK_PERL_INDEX_MAX 0x1000000
#define WALK_PERL_HASH_MAX 0x1000000 /* places of a package's array */
#define WALK_PERL_NAME_MAX 4096      /* bytes; a name that says it is longer is none */
#define WALK_PERL_ANONYMOUS 3ULL     /* in place of a name's hash: it has none */
#define WALK_PERL_NO_PACKAGE 5ULL    /* in place of a package's hash: a lexical sub */

/* Source: cop.h, CXt_* and CXp_*, equal from 5.24 to 5.42. */
enum walk_perl_context {
	WALK_PERL_CX_NULL = 0, /* of a sort block */
	WALK_PERL_CX_SUB = 9,
	WALK_PERL_CX_FORMAT = 10,
	WALK_PERL_CX_EVAL = 11,
	WALK_PERL_CX_KIND = 15,
	WALK_PERL_CX_MULTICALL = 0x10, /* SUB: run again and again without call */
	WALK_PERL_CX_FAKE = 0x80,      /* SUB: code of a regular expression in the sub around it */
	WALK_PERL_CX_TRY = 0x80,       /* EVAL: a try block, which caller() does not show either */
};

/* Source: cop.h, PERLSI_*. */
enum walk_perl_info { WALK_PERL_SI_SORT = 3, WALK_PERL_SI_MULTICALL = 10 };

enum walk_perl_phase { WALK_PERL_FIND, WALK_PERL_INFO, WALK_PERL_CONTEXTS, WALK_PERL_PROGRAM };

enum walk_perl_bits {
	WALK_PERL_PUSHED = 1,   /* a frame of this stack info was pushed */
	WALK_PERL_CALLED = 2,   /* the last context is a sub that was called from C */
	WALK_PERL_ENTERING = 4, /* the frame at hand: the current statement is its caller's */
	WALK_PERL_THREAD = 8,   /* not the interpreter of the program's first thread: it runs no program */
};

struct walk_perl {
	__u64 next;     /* the next stack info */
	__u64 contexts; /* of the one at hand */
	__u64 cop;      /* the statement that runs in the next frame */
	__u64 cv;       /* of the frame at hand */
	__u64 key, cookie;
	__u64 process; /* a number that no other process has */
	__s32 at;      /* index of the next context */
	__u8 phase;
	__u8 bits; /* enum walk_perl_bits */
	__u8 what; /* enum abi_perl_what */
	__u8 type; /* of the stack info */
};

struct walk_perl_more {      /* in scratch */
	__u64 window;        /* address of what was read around a context; 0: nothing was */
	__u64 start, file;   /* of the sub that was looked at last: its first op, address of its file's name */
	__u64 package, name; /* addresses of its texts (HEK); 0: it has none */
	__u64 of;            /* the sub that those two belong to; 0: none */
	__u64 text; /* where the file of the frame at hand is: a C string, without threads a GV; 0: it has none */
	__u32 left; /* turns */
	__u32 line;
	__u32 file_size; /* bytes of the file's text in scratch */
	__u8 file_is_cut, is_compiling;
	__u8 text_is_gv;
	__u8 has_text; /* the text is in scratch */
	__u8 no_sub;   /* where the sub at hand should be is another object */
	__u8 unread;   /* the statement at hand, or the text of its file, cannot be read */
};

struct walk_perl_sub { /* one that was met in this walk: it runs, so nothing else lies there meanwhile */
	__u64 at, key;
};

struct walk_perl_package {
	__u64 at, hash, name;
};

_Static_assert(sizeof(struct walk_perl) <= sizeof(((struct walk *)0)->state[0]), "it overlays its state");
_Static_assert(sizeof(struct abi_perl) <= WALK_INFO, "it fits");

/* Places in scratch, in words. */
#define WALK_PERL_MORE 0
#define WALK_PERL_BLOCK 10 /* a stack info, or what is read of the interpreter */
#define WALK_PERL_COP 16
#define WALK_PERL_HEAD 24
#define WALK_PERL_BODY 28
#define WALK_PERL_HEK 42
#define WALK_PERL_SUBS 48     /* struct walk_perl_sub[WALK_PERL_MET_MAX] */
#define WALK_PERL_PACKAGES 64 /* struct walk_perl_package[WALK_PERL_MET_MAX] */
#define WALK_PERL_MET_MAX 8   /* a power of two */
#define WALK_PERL_FILE 88     /* text, ABI_PERL_FILE_BYTES */
#define WALK_PERL_WINDOW 128
#define WALK_PERL_WINDOW_BYTES 1024
#define WALK_PERL_FREE 256
#define WALK_PERL_WORDS 512 /* a power of two */
#define WALK_PERL_HEK_WORDS 5
#define WALK_PERL_HEK_SHORT 16 /* bytes: where more cannot be read */

_Static_assert(sizeof(((struct walk *)0)->scratch) == WALK_PERL_WORDS * 8, "indices are cut to it");
_Static_assert(sizeof(struct walk_perl_more) <= (WALK_PERL_BLOCK - WALK_PERL_MORE) * 8, "it fits");

/* What was found out at ticks before: the key of a sub, the hash of a file. By a hash of what is read of the sub's body
 * and of the statement in any case, which have numbers that count what was compiled. 0: not known. */
enum walk_perl_kind { WALK_PERL_SUB_KEY, WALK_PERL_FILE_HASH };
#ifndef walk_perl_recall
#define walk_perl_recall(w, kind, hash) ((void)(hash), 0ULL)
#define walk_perl_remember(w, kind, hash, value) ((void)0)
#endif

/* What happens at a frame whose name may not be known yet: bpf/perl.h. p->key, p->cookie, p->what and walk_perl_more()
 * say which. */
#ifndef walk_perl_seen
#define walk_perl_seen(w) ((void)(w))
#endif

WALK_FN struct walk_perl *walk_perl_state(struct walk *w)
{
	return (struct walk_perl *)w->state[ABI_RUNTIME_PERL];
}

WALK_FN const struct abi_perl *walk_perl_info(const struct walk *w)
{
	return (const struct abi_perl *)w->info;
}

WALK_FN struct walk_perl_more *walk_perl_more(struct walk *w)
{
	return (struct walk_perl_more *)&w->scratch[WALK_PERL_MORE];
}

/* One round of W. Stafford's variant 13 of the finalizer of MurmurHash3. */
WALK_FN __u64 walk_perl_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

WALK_FN enum walk_next walk_perl_done(struct walk *w, __u8 end)
{
	w->runtime_end = end;
	return WALK_DONE;
}

/* ---- texts ---- */

#ifdef __bpf__
/* Return: bytes of the C string at @at, its end included, as far as @size goes; < 0: unreadable. */
#define walk_perl_string(w, dst, size, at) bpf_probe_read_user_str((dst), (size), (const void *)(at))
#else
WALK_FN long walk_perl_string(struct walk *w, void *dst, __u32 size, __u64 at)
{
	const __u32 piece = 64; /* no page ends within one */
	__u8 *to = (__u8 *)dst;

	for (__u32 i = 0; i < size;) {
		__u32 left = piece - (__u32)((at + i) & (piece - 1));

		if (left > size - i)
			left = size - i;
		if (walk_read(w, &to[i], left, at + i)) { /* of a recording there may be less */
			left = 1;
			if (walk_read(w, &to[i], 1, at + i))
				return -1;
		}
		for (__u32 end = i + left; i < end; i++) {
			if (to[i])
				continue;
			__builtin_memset(&to[i], 0, end - i); /* behind it there are zeros */
			return (long)i + 1;
		}
	}
	to[size - 1] = 0;
	return size;
}
#endif

/**
 * walk_perl_hash_hek - hash of the text at @at: of all its first 32 bytes, its length, and Perl's own hash of the whole
 * Return: 0: it cannot be read.
 */
WALK_FN __u64 walk_perl_hash_hek(struct walk *w, __u64 at)
{
	__u64 *hek = &w->scratch[WALK_PERL_HEK], hash;
	__u32 length;

	if (!at)
		return 0;
	if (walk_read(w, hek, WALK_PERL_HEK_WORDS * 8, at)) {
		hek[2] = hek[3] = hek[4] = 0;
		if (walk_read(w, hek, WALK_PERL_HEK_SHORT, at))
			return 0;
		if (hek[0] >> 32 > WALK_PERL_HEK_SHORT - ABI_PERL_HEK_TEXT)
			return 0;
	}
	length = (__u32)(hek[0] >> 32);
	if (length > WALK_PERL_NAME_MAX)
		return 0;
	hash = hek[0];
	for (__u32 i = 1; i < WALK_PERL_HEK_WORDS; i++) {
		__u64 word = hek[i];
		__u32 before = (i - 1) * 8;

		if (length <= before)
			word = 0;
		else if (length - before < 8)
			word &= (1ULL << (length - before) * 8) - 1;
		hash = walk_perl_mix(hash, word);
	}
	return hash | 1;
}

/* The includer may set these two to functions that the verifier looks at once. */
#ifndef walk_perl_hek
#define walk_perl_hek(w, at) walk_perl_hash_hek(w, at)
#define walk_perl_file(w) walk_perl_read_file(w)
#endif

#define WALK_PERL_EVAL_TEXT 0x206c61766528ULL /* "(eval ": numbers of string evals never come again */
#define WALK_PERL_EVAL_MASK 0xffffffffffffULL
#define WALK_PERL_EVAL_ONLY 0x296c61766528ULL /* "(eval)" */

/* Hash of the file's text in scratch, behind which there are zeros. Without branches: the verifier follows each. */
WALK_FN __u64 walk_perl_hash_file(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	__u64 *text = &w->scratch[WALK_PERL_FILE], hash;

	if ((text[0] & WALK_PERL_EVAL_MASK) == WALK_PERL_EVAL_TEXT) {
		__builtin_memset(text, 0, ABI_PERL_FILE_BYTES);
		text[0] = WALK_PERL_EVAL_ONLY;
		more->file_size = 6;
		more->file_is_cut = 0;
	}
	hash = more->file_size;
	for (__u32 i = 0; i < ABI_PERL_FILE_BYTES / 8; i++)
		hash = walk_perl_mix(hash, text[i]);
	return hash | 1;
}

/* The name of the GV at @gv begins with "_<" and goes on with the file's. Return: address of the latter, 0: none, or
 * unread is set. */
WALK_FN __u64 walk_perl_file_of_gv(struct walk *w, __u64 gv)
{
	__u64 *head = &w->scratch[WALK_PERL_HEAD], *body = &w->scratch[WALK_PERL_BODY];

	walk_perl_more(w)->unread = 1;
	if (walk_read(w, head, ABI_PERL_HEAD_BYTES, gv) || (head[1] >> 32 & 0xff) != ABI_PERL_TYPE_GV ||
	    walk_read(w, body, ABI_PERL_GV_BYTES, head[0]))
		return 0;
	walk_perl_more(w)->unread = 0;
	return body[ABI_PERL_GV_NAME / 8] ? body[ABI_PERL_GV_NAME / 8] + ABI_PERL_HEK_TEXT + 2 : 0;
}

/* Reads the file's text into scratch. Return: its hash, 0: there is none, or unread is set. */
WALK_FN __u64 walk_perl_read_file(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	__u64 at = more->text;
	long size;

	more->file_size = 0;
	more->file_is_cut = 0;
	more->has_text = 1;
	if (at && more->text_is_gv)
		at = walk_perl_file_of_gv(w, at);
	if (!at)
		return 0;
	__builtin_memset(&w->scratch[WALK_PERL_FILE], 0, ABI_PERL_FILE_BYTES);
	size = walk_perl_string(w, &w->scratch[WALK_PERL_FILE], ABI_PERL_FILE_BYTES, at);
	more->unread = size < 0;
	if (size <= 1 || size > ABI_PERL_FILE_BYTES)
		return 0;
	more->file_size = (__u32)size - 1;
	more->file_is_cut = size == ABI_PERL_FILE_BYTES;
	return walk_perl_hash_file(w);
}

/* ---- subs ---- */

/* The name of the package (stash) at @at, into walk_perl_more(). Return: hash of its text, 0: unreadable. */
WALK_FN __u64 walk_perl_read_package(struct walk *w, __u64 at)
{
	__u64 *head = &w->scratch[WALK_PERL_HEAD], *aux = &w->scratch[WALK_PERL_BODY], max, name;

	walk_perl_more(w)->package = 0;
	if (walk_read(w, head, ABI_PERL_HEAD_BYTES, at) || (head[1] >> 32 & 0xff) != ABI_PERL_TYPE_HV)
		return 0;
	if (!(head[1] >> 32 & ABI_PERL_FLAG_AUX))
		return WALK_PERL_ANONYMOUS;
	if (walk_perl_info(w)->flags & ABI_PERL_AUX_IN_BODY) {
		if (walk_read(w, aux, ABI_PERL_AUX_BYTES, head[0] + ABI_PERL_HV_BYTES))
			return 0;
	} else {
		if (walk_read(w, &max, sizeof(max), head[0] + ABI_PERL_HV_MAX) || max > WALK_PERL_HASH_MAX ||
		    walk_read(w, aux, ABI_PERL_AUX_BYTES, head[ABI_PERL_HEAD_ARRAY / 8] + (max + 1) * 8))
			return 0;
	}
	name = aux[ABI_PERL_AUX_NAME / 8];
	if (name && aux[ABI_PERL_AUX_COUNT / 8] >> 32 && walk_read(w, &name, sizeof(name), name))
		return 0;
	if (!name)
		return WALK_PERL_ANONYMOUS;
	walk_perl_more(w)->package = name;
	return walk_perl_hek(w, name);
}

WALK_FN __u64 walk_perl_package(struct walk *w, __u64 at)
{
	__u32 slot = (__u32)(at * 0x9e3779b97f4a7c15ULL >> 61) & (WALK_PERL_MET_MAX - 1);
	struct walk_perl_package *met = (struct walk_perl_package *)&w->scratch[WALK_PERL_PACKAGES] + slot;

	if (!at) {
		walk_perl_more(w)->package = 0;
		return WALK_PERL_ANONYMOUS;
	}
	if (met->at != at) {
		met->at = 0;
		met->hash = walk_perl_read_package(w, at);
		met->name = walk_perl_more(w)->package;
		met->at = met->hash ? at : 0;
	}
	walk_perl_more(w)->package = met->name;
	return met->hash;
}

/* Reads the body of the sub p->cv. Return: 0, or 1: it cannot be read, or is none: no_sub says which. */
WALK_FN int walk_perl_read_sub(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	__u64 *head = &w->scratch[WALK_PERL_HEAD], *body = &w->scratch[WALK_PERL_BODY];
	__u32 type;

	more->of = 0;
	more->no_sub = 0;
	if (walk_read(w, head, ABI_PERL_HEAD_BYTES, walk_perl_state(w)->cv))
		return 1;
	type = head[1] >> 32 & 0xff;
	more->no_sub = type != ABI_PERL_TYPE_CV && type != ABI_PERL_TYPE_FORMAT;
	if (more->no_sub || walk_read(w, body, ABI_PERL_CV_BYTES, head[0]))
		return 1;
	more->start = body[ABI_PERL_CV_START / 8];
	more->file = body[ABI_PERL_CV_FILE / 8];
	return 0;
}

/* Key of the sub whose body is in scratch, whose names go into walk_perl_more(). Return: 0: they cannot be read. */
WALK_FN __u64 walk_perl_read_names(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	__u64 *head = &w->scratch[WALK_PERL_HEAD], *body = &w->scratch[WALK_PERL_BODY];
	__u64 stash = body[ABI_PERL_CV_STASH / 8], name = body[ABI_PERL_CV_GV / 8];
	__u64 package, hash = WALK_PERL_ANONYMOUS;
	__u32 flags = (__u32)(body[ABI_PERL_CV_FLAGS / 8] >> 32);

	if (name && !(flags & ABI_PERL_CV_NAMED)) {
		if (walk_read(w, head, ABI_PERL_HEAD_BYTES, name) || (head[1] >> 32 & 0xff) != ABI_PERL_TYPE_GV ||
		    walk_read(w, body, ABI_PERL_GV_BYTES, head[0]))
			return 0;
		name = body[ABI_PERL_GV_NAME / 8];
		stash = body[ABI_PERL_GV_STASH / 8];
	}
	package = walk_perl_package(w, stash);
	if (name)
		hash = walk_perl_hek(w, name);
	if (!package || !hash)
		return 0;
	more->name = name;
	more->of = walk_perl_state(w)->cv;
	hash = walk_perl_mix(package, hash);
	return hash < ABI_PERL_KEY_SUBS ? ABI_PERL_KEY_SUBS : hash;
}

/* In BPF a function of its own, checked once. */
#ifndef walk_perl_names
#define walk_perl_names(w) walk_perl_read_names(w)
#endif

/** walk_perl_resolve - the names of the sub p->cv, into walk_perl_more()
 * Return: its key; 0: its memory cannot be read, or it is no sub. */
WALK_FN __u64 walk_perl_resolve(struct walk *w)
{
	return walk_perl_read_sub(w) ? 0 : walk_perl_names(w);
}

/* Of what tells subs apart that lie at one place one after the other, names included. Closures of one text are one. */
WALK_FN __u64 walk_perl_hash_sub(struct walk *w)
{
	const __u64 *body = &w->scratch[WALK_PERL_BODY];
	__u64 hash = walk_perl_mix(walk_perl_state(w)->process, body[ABI_PERL_CV_STASH / 8]);

	hash = walk_perl_mix(hash, body[ABI_PERL_CV_ROOT / 8]);
	hash = walk_perl_mix(hash, body[ABI_PERL_CV_GV / 8]);
	return walk_perl_mix(hash, body[ABI_PERL_CV_SEQ / 8] ^ body[ABI_PERL_CV_START / 8] << 16);
}

/* The key of p->cv: as it was found out before, or anew. */
WALK_FN __u64 walk_perl_sub_key(struct walk *w)
{
	__u64 hash, key;

	if (walk_perl_read_sub(w))
		return 0;
	hash = walk_perl_hash_sub(w);
	key = walk_perl_recall(w, WALK_PERL_SUB_KEY, hash);
	if (key)
		return key;
	key = walk_perl_names(w);
	if (key)
		walk_perl_remember(w, WALK_PERL_SUB_KEY, hash, key);
	return key;
}

WALK_FN __u64 walk_perl_key(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);
	__u32 slot = (__u32)(p->cv * 0x9e3779b97f4a7c15ULL >> 61) & (WALK_PERL_MET_MAX - 1);
	struct walk_perl_sub *met = (struct walk_perl_sub *)&w->scratch[WALK_PERL_SUBS] + slot;

	if (p->what != ABI_PERL_SUB)
		return p->what == ABI_PERL_EVAL ? ABI_PERL_KEY_EVAL : ABI_PERL_KEY_MAIN;
	if (met->at != p->cv) {
		met->at = 0;
		met->key = walk_perl_sub_key(w);
		met->at = met->key ? p->cv : 0;
	}
	return met->key;
}

/* The statement of a sub that has just been entered: its first one, when it begins with one. Ops of one kind have the
 * same function. */
WALK_FN int walk_perl_first_statement(struct walk *w)
{
	__u64 *cop = &w->scratch[WALK_PERL_COP], function = cop[ABI_PERL_OP_FUNCTION / 8];

	return function && walk_perl_more(w)->start &&
	       !walk_read(w, cop, ABI_PERL_COP_BYTES, walk_perl_more(w)->start) &&
	       cop[ABI_PERL_OP_FUNCTION / 8] == function;
}

/* Hash of the file that walk_perl_more() says: as it was found out before, or anew. */
WALK_FN __u64 walk_perl_file_hash(struct walk *w)
{
	const __u64 *cop = &w->scratch[WALK_PERL_COP];
	__u64 hash = walk_perl_mix(walk_perl_state(w)->process, cop[0]), file;

	hash = walk_perl_mix(hash, cop[ABI_PERL_COP_LINE / 8]);
	hash = walk_perl_mix(hash, walk_perl_more(w)->text);
	hash = walk_perl_mix(hash, cop[ABI_PERL_COP_SEQ / 8]);
	file = walk_perl_recall(w, WALK_PERL_FILE_HASH, hash);
	if (file)
		return file;
	file = walk_perl_file(w);
	if (file)
		walk_perl_remember(w, WALK_PERL_FILE_HASH, hash, file);
	return file;
}

/* Line and file of p->cop, or of where the sub begins that has just been entered. Return: hash of the file's name. One
 * without a file is known all the same. */
WALK_FN __u64 walk_perl_place(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	struct walk_perl *p = walk_perl_state(w);
	__u64 *cop = &w->scratch[WALK_PERL_COP], hash;

	more->line = 0;
	more->is_compiling = 0;
	more->file_size = 0;
	more->has_text = 1;
	more->unread = p->cop && walk_read(w, cop, ABI_PERL_COP_BYTES, p->cop);
	if (!p->cop || more->unread)
		return WALK_PERL_ANONYMOUS;
	more->is_compiling = !cop[ABI_PERL_OP_FUNCTION / 8];
	more->has_text = 0;
	if (p->bits & WALK_PERL_ENTERING && !walk_perl_first_statement(w)) {
		more->text = more->file;
		more->text_is_gv = 0;
	} else {
		more->line = (__u32)(cop[ABI_PERL_COP_LINE / 8] >> 32);
		more->text = cop[ABI_PERL_COP_FILE / 8];
		more->text_is_gv = !(walk_perl_info(w)->flags & ABI_PERL_THREADS);
	}
	/* While it compiles there is one statement for all files. */
	hash = more->is_compiling ? walk_perl_file(w) : walk_perl_file_hash(w);
	if (!hash || more->line >> 31) /* NOLINE */
		more->line = 0;
	return hash ? hash : WALK_PERL_ANONYMOUS;
}

/**
 * walk_perl_meet - key, cookie and line of the frame whose p->what, p->cv and p->cop are set
 * Cookie ABI_PERL_NO_COOKIE: its name is not known; the key is the sub's address then.
 */
WALK_FN int walk_perl_meet(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);

	p->key = walk_perl_key(w);
	if (!p->key) {
		walk_perl_more(w)->line = 0;
		p->key = p->cv;
		p->cookie = ABI_PERL_NO_COOKIE;
		return 0;
	}
	p->cookie = walk_perl_mix(walk_perl_place(w), WALK_PERL_FILE) | 1;
	walk_perl_seen(w);
	return 0;
}

/* The includer may set it to a function that the verifier looks at once. */
#ifndef walk_perl_look
#define walk_perl_look(w) walk_perl_meet(w)
#endif

/* ---- frames ---- */

/* Return: 0, or 1 when the record is full. */
WALK_FN int walk_perl_push(struct walk *w)
{
	struct abi_frame *frame = walk_push_runtime(w, ABI_FRAME_RUNTIME, ABI_RUNTIME_PERL);

	if (!frame)
		return 1;
	frame->flags = 0;
	frame->extra = walk_perl_more(w)->line;
	frame->a = walk_perl_state(w)->key;
	frame->b = walk_perl_state(w)->cookie;
	walk_perl_state(w)->bits |= WALK_PERL_PUSHED;
	return 0;
}

/* An activation without frames. Where it lies is not known. */
WALK_FN int walk_perl_push_activation(struct walk *w)
{
	struct abi_frame *frame = walk_push_runtime(w, ABI_FRAME_ACTIVATION, ABI_RUNTIME_PERL);

	if (!frame)
		return 1;
	frame->flags = 0;
	frame->extra = 0;
	frame->a = 0;
	frame->b = 0;
	return 0;
}

/* The last frame: does its activation end there? */
WALK_FN void walk_perl_mark(struct walk *w, int ends)
{
	__u64 at = (__u64)w->count + w->runtime_count - 1;

	if (w->runtime_count && at < ABI_FRAMES_MAX && w->frames[at].kind == ABI_FRAME_RUNTIME)
		w->frames[at].flags = ends ? ABI_FRAME_ENTRY : 0;
}

WALK_FN int walk_perl_is_marked(struct walk *w)
{
	__u64 at = (__u64)w->count + w->runtime_count - 1;

	return w->runtime_count && at < ABI_FRAMES_MAX && w->frames[at].flags & ABI_FRAME_ENTRY;
}

/* ---- contexts ---- */

/* Word of scratch where the context at @at is; 0: it cannot be read. What is below it in the array, where its callers
 * are, is read with it. */
WALK_FN __u32 walk_perl_find(struct walk *w, __u64 at)
{
	struct walk_perl_more *more = walk_perl_more(w);
	__u64 contexts = walk_perl_state(w)->contexts, before = at - contexts;
	const __u64 room = WALK_PERL_WINDOW_BYTES - ABI_PERL_CONTEXT_BYTES;

	if (more->window && at - more->window <= room)
		return WALK_PERL_WINDOW + (__u32)((at - more->window) >> 3);
	more->window = before > room ? at - room : contexts;
	if (!walk_read(w, &w->scratch[WALK_PERL_WINDOW], WALK_PERL_WINDOW_BYTES, more->window))
		return WALK_PERL_WINDOW + (__u32)((at - more->window) >> 3);
	more->window = 0;
	return walk_read(w, &w->scratch[WALK_PERL_WINDOW], ABI_PERL_CONTEXT_BYTES, at) ? 0 : WALK_PERL_WINDOW;
}

WALK_FN __u64 walk_perl_pick(const struct walk *w, __u32 base, __u32 offset)
{
	return w->scratch[(base + (offset >> 3)) & (WALK_PERL_WORDS - 1)];
}

/* A sub called from C ends its activation. The last op of a sort block has none behind it, either: a sub that is called
 * there runs in the block's. */
WALK_FN int walk_perl_is_called(const struct walk_perl *p, __u8 flags, __u64 retop)
{
	return !retop && !(flags & WALK_PERL_CX_MULTICALL) && !(p->type == WALK_PERL_SI_SORT && p->at == 0);
}

/* A frame: the context at word @base. p->at is that of the next one. */
WALK_FN enum walk_next walk_perl_frame(struct walk *w, __u32 base, __u8 flags)
{
	struct walk_perl *p = walk_perl_state(w);
	__u64 old = walk_perl_pick(w, base, ABI_PERL_CONTEXT_OLDCOP);
	__u64 retop = walk_perl_pick(w, base, ABI_PERL_CONTEXT_RETOP);
	int is_eval = (flags & WALK_PERL_CX_KIND) == WALK_PERL_CX_EVAL, was_called = p->bits & WALK_PERL_CALLED;

	p->bits &= (__u8) ~(WALK_PERL_CALLED | WALK_PERL_ENTERING);
	p->what = is_eval ? ABI_PERL_EVAL : ABI_PERL_SUB;
	p->cv = is_eval ? 0 : walk_perl_pick(w, base, walk_perl_info(w)->layout.context_cv);
	if (!is_eval && !p->cv) { /* it is being pushed, or was popped */
		p->cop = old;
		return WALK_MORE;
	}
	if (!is_eval && !w->runtime_count && p->cop == old)
		p->bits |= WALK_PERL_ENTERING;
	walk_opaque(old);
	walk_opaque(retop);
	walk_opaque(is_eval);
	walk_opaque(was_called);
	walk_perl_look(w);
	/* It is being pushed: no sub is in it yet. */
	if (!w->runtime_count && p->cookie == ABI_PERL_NO_COOKIE && walk_perl_more(w)->no_sub)
		return WALK_MORE;
	if (is_eval && was_called && !retop)
		walk_perl_mark(w, 0); /* call_sv() with G_EVAL: both are one call */
	if (walk_perl_push(w))
		return WALK_DONE;
	if (is_eval ? was_called && !retop : walk_perl_is_called(p, flags, retop)) {
		walk_perl_mark(w, 1);
		if (!is_eval)
			p->bits |= WALK_PERL_CALLED;
	}
	p->cop = old;
	return WALK_MORE;
}

/* Behind the outermost context of a stack info. */
WALK_FN enum walk_next walk_perl_base(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);

	p->phase = p->next ? WALK_PERL_INFO : WALK_PERL_PROGRAM;
	if (!p->next)
		return WALK_MORE;
	if (!(p->bits & WALK_PERL_PUSHED) ||
	    (walk_perl_is_marked(w) && (p->type == WALK_PERL_SI_SORT || p->type == WALK_PERL_SI_MULTICALL)))
		return walk_perl_push_activation(w) ? WALK_DONE : WALK_MORE;
	walk_perl_mark(w, 1);
	return WALK_MORE;
}

WALK_FN enum walk_next walk_perl_context(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);
	__u32 base, kind;
	__u8 flags;

	if (p->at < 0)
		return walk_perl_base(w);
	base = walk_perl_find(w, p->contexts + (__u64)(__u32)p->at * walk_perl_info(w)->layout.context);
	if (!base)
		return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
	walk_opaque(base);
	p->at--;
	flags = (__u8)walk_perl_pick(w, base, 0);
	kind = flags & WALK_PERL_CX_KIND;
	if ((kind == WALK_PERL_CX_SUB && !(flags & WALK_PERL_CX_FAKE)) || kind == WALK_PERL_CX_FORMAT ||
	    (kind == WALK_PERL_CX_EVAL && !(flags & WALK_PERL_CX_TRY)))
		return walk_perl_frame(w, base, flags);
	p->bits &= (__u8)~WALK_PERL_CALLED;
	return WALK_MORE;
}

/* The stack info p->next. */
WALK_FN enum walk_next walk_perl_enter(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);
	__u64 *info = &w->scratch[WALK_PERL_BLOCK], place;
	__u32 type = walk_perl_info(w)->layout.info_type;

	if (p->next & 7 || walk_read(w, info, ABI_PERL_INFO_BYTES, p->next))
		return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
	place = info[ABI_PERL_INFO_INDEX / 8];
	p->at = (__s32)place;
	if (p->at < -1 || p->at > (__s32)(place >> 32) || p->at > WALK_PERL_INDEX_MAX ||
	    info[ABI_PERL_INFO_CONTEXTS / 8] & 7)
		return walk_perl_done(w, ABI_RUNTIME_END_BAD_CHAIN);
	p->bits &= (__u8) ~(WALK_PERL_CALLED | WALK_PERL_PUSHED);
	p->type = (__u8)(info[type >> 3 & 7] >> (type & 7) * 8);
	p->contexts = info[ABI_PERL_INFO_CONTEXTS / 8];
	p->next = info[ABI_PERL_INFO_PREVIOUS / 8];
	p->phase = WALK_PERL_CONTEXTS;
	walk_perl_more(w)->window = 0;
	return WALK_MORE;
}

/* Behind the last one: what was pushed is all there is. */
WALK_FN enum walk_next walk_perl_root(struct walk *w)
{
	walk_perl_mark(w, 1);
	return walk_perl_done(w, w->runtime_count ? ABI_RUNTIME_END_WHOLE : ABI_RUNTIME_END_NO_STATE);
}

/* The program itself is the outermost frame. While it is compiled no loop runs it: it is the caller of what runs
 * meanwhile (BEGIN). A thread begins with a sub; its statement outside is a copy of that which made the thread. */
WALK_FN enum walk_next walk_perl_program(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	struct walk_perl *p = walk_perl_state(w);

	if (p->bits & WALK_PERL_THREAD)
		return walk_perl_root(w);
	p->bits &= (__u8)~WALK_PERL_ENTERING;
	p->what = ABI_PERL_MAIN;
	p->cv = 0;
	walk_perl_look(w);
	if (more->unread)
		return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
	if (!more->line || p->cookie == ABI_PERL_NO_COOKIE)
		return walk_perl_root(w);
	if (more->is_compiling)
		walk_perl_mark(w, 0);
	if (walk_perl_push(w))
		return WALK_DONE;
	walk_perl_mark(w, 1);
	return walk_perl_done(w, ABI_RUNTIME_END_WHOLE);
}

/* ---- the interpreter ---- */

/* Address of the thread's interpreter into *out; 0: it has none. Return: 0, or 1: it cannot be read. */
WALK_FN int walk_perl_interpreter(struct walk *w, __u64 *out)
{
	const struct abi_perl *info = walk_perl_info(w);
	__u64 at = w->tp + (__u64)info->key_at;

	*out = 0;
	if (!w->tp)
		return 0;
	if (info->flags & ABI_PERL_KEY_INDIRECT) {
		if (walk_read(w, &at, sizeof(at), at))
			return 1;
		if (!at)
			return 0;
		at += info->key_offset;
	}
	if (walk_read(w, &at, sizeof(at), at))
		return 1;
	*out = at;
	return 0;
}

WALK_FN enum walk_next walk_perl_begin(struct walk *w)
{
	const struct abi_perl *info = walk_perl_info(w);
	struct walk_perl *p = walk_perl_state(w);
	__u64 *words = &w->scratch[WALK_PERL_BLOCK], at;

	p->phase = WALK_PERL_INFO;
	if (info->flags & ABI_PERL_THREADS) {
		if (walk_perl_interpreter(w, &at))
			return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
		if (!at)
			return walk_perl_done(w, ABI_RUNTIME_END_NO_STATE);
		if (at != info->first)
			p->bits |= WALK_PERL_THREAD;
		if (walk_read(w, words, ABI_PERL_INTERP_INFO + 8, at + info->layout.interp_cop))
			return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
	} else {
		if (walk_sample(w)->tid != walk_sample(w)->pid) /* another thread, of a library: Perl's is the first */
			return walk_perl_done(w, ABI_RUNTIME_END_NO_STATE);
		if (walk_read(w, &words[0], 8, info->cop) ||
		    walk_read(w, &words[ABI_PERL_INTERP_INFO / 8], 8, info->info))
			return walk_perl_done(w, ABI_RUNTIME_END_READ_FAILED);
	}
	p->cop = words[0];
	p->next = words[ABI_PERL_INTERP_INFO / 8];
	return p->next ? WALK_MORE : walk_perl_done(w, ABI_RUNTIME_END_NO_STATE);
}

/** walk_perl_step - look at one more stack info or context; w->runtime_end says why it is done */
WALK_FN enum walk_next walk_perl_step(struct walk *w)
{
	if (!walk_perl_more(w)->left--)
		return walk_perl_done(w, ABI_RUNTIME_END_FRAME_LIMIT);
	switch (walk_perl_state(w)->phase) {
	case WALK_PERL_FIND:
		return walk_perl_begin(w);
	case WALK_PERL_INFO:
		return walk_perl_enter(w);
	case WALK_PERL_CONTEXTS:
		return walk_perl_context(w);
	default:
		return walk_perl_program(w);
	}
}

/* Everything from the beginning, of the same process and thread. */
WALK_FN void walk_perl_restart(struct walk *w)
{
	struct walk_perl_more *more = walk_perl_more(w);
	struct walk_perl *p = walk_perl_state(w);

	p->phase = WALK_PERL_FIND;
	p->bits = 0;
	more->left = WALK_PERL_TURNS;
	more->of = 0;
	more->window = 0;
	for (int i = 0; i < WALK_PERL_MET_MAX; i++) {
		w->scratch[WALK_PERL_SUBS + 2 * i] = 0;
		w->scratch[WALK_PERL_PACKAGES + 3 * i] = 0;
	}
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_FRAME_LIMIT; /* what remains when the shell's loop runs out of turns */
}

/**
 * walk_perl_start - of the thread whose tp is in @w, behind the w->count frames that are there
 * @info: copied
 * @process: a number that no other process has; for the cache of names that were sent, otherwise 0
 */
WALK_FN enum walk_next walk_perl_start(struct walk *w, const struct abi_perl *info, __u64 process)
{
	*(struct abi_perl *)w->info = *info;
	walk_perl_state(w)->process = process;
	walk_perl_restart(w);
	return WALK_MORE;
}
