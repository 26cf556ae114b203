/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own symbol list, packed: about 30 bytes per function.
 * Source: linux 6.1, kernel/kallsyms.c, s_show(): "%px %c %s\t[%s]\n". */
#pragma once

#include "object/lines.h"

#define KALLSYMS_SYMBOLS_MAX ((size_t)1 << 20)
#define KALLSYMS_NAMES_MAX MIB(32)
#define KALLSYMS_LINE_MAX 1024
#define KALLSYMS_MODULES_MAX 4096

struct kallsyms_item {
	uint32_t start; /* from base */
	uint32_t name;  /* in names; with KALLSYMS_IN_MODULE two bytes of module number stand before it */
};

struct kallsyms {
	uint64_t base; /* 2 GiB below the first function: kernel and modules lie within 4 GiB (branches reach 2 GiB) */
	struct kallsyms_item *items; /* by start, one per start once finished */
	size_t count, cap;
	struct buf names;        /* NUL-terminated */
	struct buf modules;      /* their names in brackets, NUL-terminated */
	uint32_t *module_starts; /* in modules */
	size_t module_count, module_cap;
	struct lines lines;
	size_t bad_lines, zero_lines, far_lines; /* far: outside of the 4 GiB */
	int error;                               /* -ENOMEM or -E2BIG; sticks */
};

struct kallsyms_hit {
	uint64_t start;
	struct str name;   /* borrowed from the table */
	struct str module; /* "[ext4]", or empty for the kernel itself */
};

void kallsyms_init(struct kallsyms *k);
void kallsyms_release(struct kallsyms *k);

/** kallsyms_feed - the next bytes of the list, cut anywhere. Malformed and overlong lines are counted and skipped. */
void kallsyms_feed(struct kallsyms *k, const void *bytes, size_t size);

/**
 * kallsyms_finish - after the last byte: sort, choose between aliases, give spare memory back
 * Return: 0; -EACCES when every address is zero (kptr_restrict, no CAP_SYSLOG); -ENOENT without any function; or the
 * error met while feeding.
 */
int kallsyms_finish(struct kallsyms *k) warn_unused;

/**
 * kallsyms_find - the function an address lies in
 * The list has no sizes: a function ends where the next one starts, and the last before a hole ends after 1 MiB.
 * Return: 0 or -ENOENT.
 */
int kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_hit *out) warn_unused;

/** kallsyms_size - bytes of memory held. */
size_t kallsyms_size(const struct kallsyms *k);
