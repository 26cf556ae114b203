/* SPDX-License-Identifier: Apache-2.0 */
/* Where the C library has a thread's own struct, which on x86-64 is what its thread pointer holds. Nothing in /proc
 * says it, but the struct says of itself where it lies and which thread it is of. glibc lays it at the end of the
 * thread's stack, the first thread's into memory of the loader; a list leads from each to all others.
 *
 * Sources: glibc 2.36, sysdeps/x86_64/nptl/tls.h (tcbhead_t: tcb 0, self 16), nptl/descr.h (list 704, tid 720: the same
 * from 2.17 to 2.41); musl 1.2.3, src/internal/pthread_impl.h (self 0, tid 48). */
#pragma once

#include "sampler/remote/proc.h"

/**
 * remote_pointer_find - the thread pointer of @t, whose inner_tid is known
 * Looks through the process's memory when it is not known from before: 64 KiB of each anonymous mapping.
 * Return: 0, and t->tp is set; -ENOENT: it was not found; -ENOTSUP: not on this architecture; -ENOMEM; -errno.
 */
int remote_pointer_find(struct remote_process *p, struct remote_thread *t) warn_unused;
