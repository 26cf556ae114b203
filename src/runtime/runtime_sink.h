/* SPDX-License-Identifier: Apache-2.0 */
/* Receives what the walkers of runtimes must know of processes: into maps of the kernel (sampler/bpf_runtimes.c), or
 * into a table on the host (sampler/sampler_remote.c). Called by one thread, the runtimes' worker. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "abi/runtimes.h"
#include "base/base.h"

struct runtime_sink {
	/**
	 * set - what the walker of @runtime must know of @pid; its frames are walked once head() has said that it has
	 *them
	 * @info: the runtime's own struct of abi/ (CPython: struct abi_python), @size bytes. It holds the start time
	 *	and exec id for which it is valid.
	 * Return: 0, -ENOSPC when the runtime's map is full, -ENOSYS: this sampler never walks that runtime's frames,
	 * -errno.
	 */
	int (*set)(void *self, enum abi_runtime runtime, uint32_t pid, const void *info, size_t size);
	void (*forget)(void *self, enum abi_runtime runtime, uint32_t pid);
	/**
	 * head - which runtimes @pid has: told behind set(), and before forget() with NULL: none any more
	 * NULL: this sampler needs no more than set(). Return: as set().
	 */
	int (*head)(void *self, uint32_t pid, const struct abi_runtimes *head);
	/**
	 * set_program - a program started from this file is worth a look at once: its exec record wakes the reader
	 * @device, @inode: as /proc/PID/maps shows them, put together by makedev(). NULL: this sampler's exec records
	 * come at once anyway.
	 *
	 * Return: 0; 1: there was no room, all that was told before is forgotten; -errno.
	 */
	int (*set_program)(void *self, uint64_t device, uint64_t inode);
	/** recall - forget which names were sent: they come again with the next frames that need them. */
	void (*recall)(void *self);
	void *self;
};
