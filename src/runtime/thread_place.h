/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread keeps a value of its own: under a pthread key, or in a thread-local variable; of glibc and musl,
 * x86-64. Nothing here is believed by itself: the caller names threads whose value is known, and a place counts when it
 * has that value there.
 *
 * glibc has the values of keys at 784 behind the thread pointer, 16 bytes each, the value at 8; those from 32 on in
 * blocks whose addresses are at 1296. musl has the address of an array at 128 (1.2) or 136 (1.1). Sources: glibc 2.36,
 * nptl/descr.h (equal from 2.21 to 2.39); musl 1.2.3 and 1.1.24, src/internal/pthread_impl.h. Thread-local variables:
 * Ulrich Drepper, ELF Handling For Thread-Local Storage, 3.4.6; glibc 2.36, sysdeps/generic/dl-dtv.h; musl 1.2.3,
 * src/thread/__tls_get_addr.c.
 *
 * Callers: CPython's attach: its key from 3.7 on by number, else by search; _Py_tss_tstate. What the next ones have:
 * Ruby up to 2.7 the key of ruby_thread_has_gvl_p, from 3.0 on the variable that rb_thread_current reads; PHP (ZTS) the
 * variable that tsrm_get_ls_cache reads; Perl the key PL_thr_key by number, checked against PL_current_context from
 * 5.36 on. Values: ruby_current_ec, tsrm's cache, the interpreter; of a thread that has none: 0. */
#pragma once

#include "object/accessor.h"
#include "runtime/runtime.h"

#define THREAD_KEYS_MAX 1024 /* PTHREAD_KEYS_MAX */

struct thread_value {
	uint64_t pointer; /* the thread pointer: on x86-64 what pthread_self() is */
	uint64_t value;   /* what it must have at the place that is looked for */
};

struct thread_key { /* from the thread pointer to the value of a key */
	int64_t at;
	uint32_t offset;  /* INDIRECT: of the value, from the address that lies at `at` */
	bool is_indirect; /* what lies at `at` is an address */
};

/** thread_read_u64 - one word of the process. Return: 0; -EAGAIN: nothing is mapped there now; -errno. */
int thread_read_u64(const struct runtime_target *target, uint64_t at, uint64_t *out) warn_unused;

/**
 * thread_key_find - where the values of pthread key @key are
 * @threads: @count of them. One that has its value there is enough: threads can end at any moment
 * Return: false when no thread has its value at any place that the key may have.
 */
bool thread_key_find(const struct runtime_target *target, uint32_t key, const struct thread_value *threads,
		     size_t count, struct thread_key *out) warn_unused;

/** thread_key_search - the same for a key whose number is not known: the first of the lowest 32 that fits. */
bool thread_key_search(const struct runtime_target *target, const struct thread_value *threads, size_t count,
		       struct thread_key *out) warn_unused;

/** thread_key_read - the value that the thread at @pointer has there. Return: 0; -ENOENT: it has none; -errno. */
int thread_key_read(const struct runtime_target *target, const struct thread_key *key, uint64_t pointer,
		    uint64_t *out) warn_unused;

/* A thread-local variable in a process. STATIC: at the same distance from every thread pointer, as in all that was
 * loaded when the program started. DYNAMIC: in a block of each thread, which is made at the first use. */
struct thread_variable {
	enum { THREAD_VARIABLE_NONE, THREAD_VARIABLE_STATIC, THREAD_VARIABLE_DYNAMIC } kind;
	int64_t at;      /* STATIC: from the thread pointer */
	uint64_t module; /* DYNAMIC: number in the thread's table of blocks */
	uint64_t offset; /* DYNAMIC: in the block */
	uint8_t entry;   /* DYNAMIC: bytes of an entry of that table: 16 in glibc, 8 in musl */
};

/**
 * thread_variable_find - what an accessor's code says (object/accessor.h), in a process
 * @tls: addresses as in the file
 * @pointer: of some thread: it tells whether its block is a static one. A block that was made later may lie as a static
 *	one would: ask for several threads, they must agree
 * @out: NONE when there is nothing that can be one
 */
void thread_variable_find(const struct runtime_target *target, const struct accessor_tls *tls, uint64_t pointer,
			  struct thread_variable *out);

/**
 * thread_variable_read - the value that the thread at @pointer has there
 * Return: 0; -ENOENT: the thread has not used it yet; -EAGAIN: nothing is mapped there now; -errno.
 */
int thread_variable_read(const struct runtime_target *target, const struct thread_variable *variable, uint64_t pointer,
			 uint64_t *out) warn_unused;
