/* SPDX-License-Identifier: Apache-2.0 */
/* The file systems that processes see: one number for all processes that share a root directory and a mount
 * namespace, with a descriptor of that root, opened while one of them lived. Used by one thread: the ring reader. */
#pragma once

#include "proc/proc.h"

#define ORIGINS_MAX 128 /* descriptors held; the one met longest ago goes first */

struct origins;

/** origins_new - @host_root: "" on the host; copied. */
int origins_new(const char *host_root, struct origins **out) warn_unused;
void origins_free(struct origins *o); /* NULL is fine */
/**
 * origins_of - where the files of @p lie
 * @root_fd: a descriptor for openat(2) with O_PATH, borrowed until the next call; -1: none
 *
 * A process that is gone gets the number that all others of its container had, if they agree. Return: its number,
 * dense from 1, never used again; 0: not known.
 */
uint32_t origins_of(struct origins *o, const struct proc *p, int *root_fd);
/** origins_cut - a window has ended: close the descriptors that were not asked for since the last one; numbers stay.
 * An open descriptor keeps its file system from being unmounted. */
void origins_cut(struct origins *o);
