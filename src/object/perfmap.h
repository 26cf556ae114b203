/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT-compiled code: lines "START SIZE name", hexadecimal with or without 0x, written by the profiled process,
 * so hostile. Code is moved and replaced: of overlapping lines the one written last wins.
 * Source: linux 6.1, tools/perf/Documentation/jit-interface.txt. */
#pragma once

#include "object/lines.h"

#define PERFMAP_LINE_MAX KIB(16) /* longer lines are skipped */
#define PERFMAP_LEVELS_MAX 40

struct perfmap_entry {
	uint64_t start;
	uint32_t size; /* not 0; start + size does not wrap */
	uint32_t name; /* in names */
};

struct perfmap_level { /* by start, none overlapping another of the same level */
	struct perfmap_entry *entries;
	size_t count, cap;
};

/* Levels are kept like the digits of a counter: each is at least twice as large as the next, later written one, and
 * what a later one covers is hidden below it. So a look-up asks few levels, and lines are merged rarely. */
struct perfmap {
	struct perfmap_level levels[PERFMAP_LEVELS_MAX];
	size_t level_count;
	struct perfmap_level run; /* the newest lines, as long as they ascend */
	struct buf names;         /* NUL-terminated */
	struct lines lines;
	bool full; /* what is there stays, further lines are dropped */
	size_t memory_max;
	size_t bad_lines, dropped_lines; /* dropped: over the memory limit */
	int error;                       /* -ENOMEM; sticks */
};

/** perfmap_init - @memory_max: bytes of entries and names */
void perfmap_init(struct perfmap *map, size_t memory_max);
void perfmap_release(struct perfmap *map);

/** perfmap_feed - the next bytes of the file, cut anywhere. Bad lines are counted and skipped. */
void perfmap_feed(struct perfmap *map, const void *bytes, size_t size);

/**
 * perfmap_find - name the JIT-compiled function that covers an address
 * @name: borrowed from @map until the next perfmap_feed()
 * @start: of the function, or of what later lines have left of it
 *
 * Return: 0, or -ENOENT when nothing covers @address; outputs untouched then. No allocation.
 */
int perfmap_find(const struct perfmap *map, uint64_t address, struct str *name, uint64_t *start) warn_unused;

/** perfmap_size - bytes of memory held. */
size_t perfmap_size(const struct perfmap *map);
