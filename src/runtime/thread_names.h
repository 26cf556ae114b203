/* SPDX-License-Identifier: Apache-2.0 */
/* What language runtimes call threads, of those that were sampled.
 *
 * A name holds for a thread's number together with the name that the kernel has of it: both are in each sample. A
 * thread that is called another way is asked for anew; one whose new name begins with the same 15 bytes, or that has
 * the number and the kernel's name of one that ended, after two seconds: so long it has the old name. The reader of
 * samples wants names, the runtimes' worker reads them, the symbol worker finds them; who calls has a lock. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/buf.h"
#include "proc/program.h"

#define THREAD_NAMES_MAX 65536
#define THREAD_NAMES_BYTES MIB(8)      /* of names; when either is full, the program with most loses its own */
#define THREAD_NAMES_PROGRAMS_MAX 8192 /* with more all are forgotten, and asked for again */
#define THREAD_NAMES_WANTED_MAX 4096   /* of one program, that are asked for at once */

struct thread_names;

struct thread_wanted {
	uint32_t row, tid;
	uint64_t serial;
	char comm[ABI_COMM_SIZE]; /* the kernel's name in the sample; terminated */
};

int thread_names_new(struct thread_names **out) warn_unused;
void thread_names_free(struct thread_names *n); /* NULL is fine */

/**
 * thread_names_want - a thread of @program was sampled
 * Return: true: names of this program are to be read now. That is said at most once a second of a program, and of a
 * thread whose name is known once a minute.
 */
bool thread_names_want(struct thread_names *n, const struct program *program, uint32_t tid, struct str comm,
		       uint64_t now_ns);
/**
 * thread_names_wanted - those of @program whose names are to be read
 * @out: room for THREAD_NAMES_WANTED_MAX. Return: how many.
 */
size_t thread_names_wanted(const struct thread_names *n, const struct program *program, struct thread_wanted *out);
/** thread_names_put - what was read of a wanted one; @name empty: the runtime has none. Nothing happens when it was
 * forgotten since. Return: 0 or -ENOMEM. */
int thread_names_put(struct thread_names *n, const struct thread_wanted *wanted, struct str name,
		     uint64_t now_ns) warn_unused;
/** thread_names_find - @out: borrowed until the next call of another function. Return: 0; -ENOENT: it has none. */
int thread_names_find(const struct thread_names *n, const struct program *program, uint32_t tid, struct str comm,
		      struct str *out) warn_unused;
