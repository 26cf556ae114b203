/* SPDX-License-Identifier: Apache-2.0 */
/* The names of runtime functions of a session: (program, runtime, key, cookie) -> function number.
 *
 *	entry (one code object of one program)  --- many to one --->  function: file, name, first line, line table
 *
 * Equal functions of several processes (forked workers) are one, with one number. Entries and functions are bounded in
 * bytes; the least recently used go first. Used by one thread, the reader of the ring; nothing here reads a process:
 * names_find() says when somebody should. */
#pragma once

#include "base/clock.h"
#include "proc/program.h"
#include "runtime/runtimes.h"

struct names_key {
	struct program program;
	uint64_t key, cookie; /* of abi_name and abi_frame */
	enum abi_runtime runtime;
	bool is_code; /* of a frame with ABI_FRAME_COMPILED: what read_code() reads, not a name */
};

struct names_stats {
	uint64_t put, evicted;  /* entries */
	uint64_t missed;        /* look-ups without a name */
	uint64_t lines_put_off; /* look-ups without a line, for lack of budget */
	size_t entries, functions, bytes;
};

struct names;

#define NAMES_LINE_BYTES MIB(16) /* of line tables are decoded at once, at most */

/**
 * names_new - @byte_max: of all it keeps; 0: 32 MiB
 * @clock: borrowed
 * @runtimes: who turns positions into lines; ends with NULL; borrowed
 */
int names_new(size_t byte_max, const struct clock *clock, const struct runtime *const *runtimes,
	      struct names **out) warn_unused;
void names_free(struct names *n); /* NULL is fine */

/**
 * names_put - store what a function is called, from a record or read by the worker; copied
 * A stored function is replaced when @function has more: a longer line table, or a text that was cut before.
 * Return: 0, -ENOMEM, -E2BIG: too large to be kept.
 */
int names_put(struct names *n, const struct names_key *key, const struct runtime_function *function) warn_unused;
/**
 * names_put_more - add what was read after the record, under the same cookie
 *
 * Ignored unless it is a longer form of the record: otherwise another function has that cookie by now.
 */
int names_put_more(struct names *n, const struct names_key *key, const struct runtime_function *function) warn_unused;
/** names_has - is there a name of it already? */
bool names_has(const struct names *n, const struct names_key *key);
/** names_not_asked - the question could not be sent: the next names_find() returns NAMES_ASK again, or, where it was
 * not the first question, a later one. */
void names_not_asked(struct names *n, const struct names_key *key);
/** names_unreadable - the worker could not read the function: it is asked for again while it is met, ever more rarely
 * by look-ups and by time, 14 times at most. */
void names_unreadable(struct names *n, const struct names_key *key);

enum names_answer {
	NAMES_FOUND, /* with its line, where the line table says one */
	NAMES_ASK,   /* the name or the line is missing and the worker should read it; returned once, until it answers;
			 ever more rarely for a function that lacks_lines */
	NAMES_WAIT,  /* not known: it was asked for already, or could not be read just now */
};

/** names_find - @out is always filled: function 0, or line 0, where it is not known (yet). */
enum names_answer names_find(struct names *n, const struct names_key *key, uint32_t position,
			     struct runtimes_frame *out);
/** names_function - the function with a number. @out: borrowed until the next names_put(). Return: 0, or -ENOENT when
 * it was forgotten. */
int names_function(struct names *n, uint32_t function, struct runtime_function *out);

/**
 * names_expand - the functions at a position of compiled code @function, a number that names_find() gave; leaf first
 * @out: borrowed until the next names_put(). Return: how many; 0: nothing is known of that position; -EAGAIN: there is
 * no budget for reading its table now; -ENODATA: one of them cannot be told; -ENOENT: the code was forgotten, or is
 * none.
 */
int names_expand(struct names *n, uint32_t function, uint32_t position, bool is_return,
		 struct runtime_shown out[RUNTIME_EXPAND_MAX]);

/**
 * names_add_line_budget - allow @bytes more of line tables to be decoded, up to NAMES_LINE_BYTES in all
 *
 * A process may have tables of 256 KiB and be sampled at each of its instructions. A look-up beyond the budget has no
 * line; it may have one later.
 */
void names_add_line_budget(struct names *n, uint64_t bytes);
bool names_want_line_budget(const struct names *n);

/** names_forget - no more samples of this program will come; its functions stay while there is room for them. */
void names_forget(struct names *n, const struct program *program);
/** names_want_recall - was a function asked for that had been evicted? True once; then the kernel must be told,
 * because its caches believe that the name was sent. */
bool names_want_recall(struct names *n);
void names_stats(const struct names *n, struct names_stats *out);
