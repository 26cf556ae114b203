/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind rows of one ELF file in the form that walk/ reads (abi/unwind.h): from .eh_frame, .debug_frame (also of
 * the separate debug file), and what files without either say of themselves: Go's function table, musl's entry code. */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"
#include "object/elf.h"

/* Limits on what one file may make us do. */
#define UNWIND_ROWS_MAX (16u << 20)
#define UNWIND_PAGES_MAX (1u << 20) /* 4 GiB of code */
#define UNWIND_SECTION_MAX MIB(512) /* bytes of one section of call frame information */

struct unwind_span {         /* what a mapping has to know before the rows are there */
	uint64_t first_page; /* file offset >> ABI_PAGE_SHIFT of the first byte of code */
	uint32_t pages;      /* 0: no code */
};

struct unwind_stats {
	uint64_t fdes, rows, rules; /* rules: rows that needed a struct abi_rule */
	uint64_t unsupported;       /* rows that could not be expressed */
	uint64_t leaf_only;         /* rules that hold for a top frame only */
	uint64_t bad;               /* entries (CIE, FDE) that were malformed and left out */
};

enum unwind_source { UNWIND_SOURCE_NONE, UNWIND_SOURCE_CFI, UNWIND_SOURCE_GO };

struct unwind_table {
	union abi_element *elements; /* owned; elements[0].head.size of them */
	enum unwind_source source;   /* NONE: elements is NULL, frame pointers are all there is */
	struct unwind_stats stats;
};

/** unwind_span_of - from the program headers alone: cheap. Equals what the table's head will say. */
void unwind_span_of(const struct elf *elf, struct unwind_span *out);

/**
 * unwind_table_build - read all rows of @elf and lay them out
 * @debug: the separate debug file, whose .debug_frame is read too; or NULL
 *
 * A malformed entry is counted and left out; what it would have covered has no row. Addresses become file offsets by
 * the executable PT_LOADs. Return: 0 (also without any row: out->source says NONE); -EBADMSG when nothing of the
 * section can be believed; -E2BIG over a limit; -ENOMEM; or the reader's error. Pure; fuzzed. Cost: about 30 ns a row.
 */
int unwind_table_build(const struct elf *elf, const struct elf *debug, struct unwind_table *out) warn_unused;
void unwind_table_release(struct unwind_table *t);

/** unwind_table_find - the row in force at a file offset, as the walkers find it. NULL: no page, no row. For tests. */
const struct abi_row *unwind_table_find(const union abi_element *elements, uint64_t offset);
