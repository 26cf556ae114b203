/* SPDX-License-Identifier: Apache-2.0 */
/* Where finished unwind rows go: into the maps of the kernel, or nowhere but memory. Two implementations:
 * sampler/bpf_tables.c and unwind/table_memory.c. Called by one thread, the unwind worker. */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"
#include "base/base.h"

#define TABLES_MAX ABI_TABLES_MAX /* numbers 1 .. TABLES_MAX - 1; 0 is never a table */

struct table {                             /* the rows of one file, in place */
	const union abi_element *elements; /* readable by the host; NULL while it is hidden */
	uint32_t count;
	size_t bytes;  /* what it costs, the kernel's rounding included: counts against the budget */
	int fd;        /* the sink's; -1: none */
	bool keeps_fd; /* the sink's: fd stays after the table has got its number */
};

struct table_change {
	uint32_t number;
	struct table *table; /* NULL: take it away; a table is put under one number, once */
};

struct map_change { /* a mapping comes (map->kind != NONE) or goes */
	uint32_t space;
	struct abi_map map;
};

struct table_sink {
	/** cost - what a table of @count elements will count against the budget. */
	size_t (*cost)(void *self, uint32_t count);
	/** put - copy @count elements to where walkers can read them. Return: 0, -ENOMEM, -errno. */
	int (*put)(void *self, const union abi_element *elements, uint32_t count, struct table *out);
	/** view - make elements readable again after hide(). Return: 0 or -errno. NULL: nothing hides here. */
	int (*view)(void *self, struct table *table);
	/** hide - elements will not be read for a while: give back what it costs to have them mapped. It may stay. */
	void (*hide)(void *self, struct table *table);
	/** drop - free it; after it was taken away from its number. */
	void (*drop)(void *self, struct table *table);
	/** change_tables - in one batch: each single change of an outer map waits for a grace period. */
	int (*change_tables)(void *self, const struct table_change *changes, size_t count);
	int (*change_maps)(void *self, const struct map_change *changes, size_t count);
	/** set_space - @space NULL: forget the process. */
	int (*set_space)(void *self, uint32_t pid, const struct abi_space *space);
	void *self;
};
