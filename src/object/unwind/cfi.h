/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information (.eh_frame, .debug_frame) -> unwind rows, by address. Of the registers only those are followed
 * that a walk needs: where the frame begins (CFA), the caller's frame register and the return address.
 * Sources: DWARF 5, sections 6.4 and 7.24; Linux Standard Base core 5.0, chapter 10.6 (.eh_frame); x86-64 psABI 1.0,
 * section 3.6; DWARF for AArch64 2023Q3, sections 4.1 and 4.4. */
#pragma once

#include <linux/types.h>

#include "abi/unwind.h"
#include "base/u64map.h"
#include "object/elf.h"

/* What one file may make us keep or do. libLLVM 14 has 94,994 FDEs, few CIEs and entries below 20 KiB. */
#define CFI_FDES_MAX ((size_t)2 << 20)
#define CFI_CIES_MAX ((size_t)1 << 18)
#define CFI_ENTRY_MAX MIB(1)
#define CFI_STATES_MAX 64   /* depth of DW_CFA_remember_state */
#define CFI_RULES_MAX 65536 /* what a row's cfa_off can number */
#define CFI_STACK_MAX 8     /* of an expression */

/* In struct cfi_row only: the return address lies below the stack pointer. A root, if the code says so too. */
#define CFI_CFA_POPPED ABI_CFA_COUNT

struct cfi_row {
	uint32_t at;        /* bytes behind the start of its span */
	struct abi_row row; /* low is not used */
};

struct cfi_span { /* the code of one FDE; until the next row, row first + i is in force */
	uint64_t start;
	uint32_t size;
	uint32_t first, count; /* of cfi.rows; the first has at 0 */
	bool is_signal;        /* the FDE says that this is where a signal handler returns to */
};

struct cfi_stats {
	uint64_t fdes, unsupported, leaf_only, bad; /* see struct unwind_stats */
};

struct cfi {
	struct cfi_row *rows;
	size_t row_count, row_cap, row_max;
	struct cfi_span *spans; /* in the order of the file */
	size_t span_count, span_cap;
	struct abi_rule *rules;
	size_t rule_count, rule_cap;
	struct u64map rules_by_content;
	struct cfi_stats stats;
};

struct cfi_section {
	struct reader in;
	uint64_t address; /* where the first byte will be in memory */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	bool is_eh;       /* .eh_frame, otherwise .debug_frame */
	bool has_end;     /* its size was guessed: a zero length ends it */
};

void cfi_init(struct cfi *c, size_t row_max);
void cfi_release(struct cfi *c);

/**
 * cfi_read - append the rows of every FDE in @section
 *
 * A malformed entry is counted and left out. Return: 0; -EBADMSG when nothing of a section that is not empty could be
 * used; -E2BIG over a limit; -ENOMEM; or the reader's error: @out can be released then, no more. Pure, linear.
 */
int cfi_read(const struct cfi_section *section, struct cfi *out) warn_unused;

/** cfi_put_row - append. Return: 0, -E2BIG or -ENOMEM. */
int cfi_put_row(struct cfi *c, uint32_t at, struct abi_row row) warn_unused;
/** cfi_put_span - append; rows from @first on are its. Return: 0, -E2BIG or -ENOMEM. */
int cfi_put_span(struct cfi *c, uint64_t start, uint32_t size, size_t first, bool is_signal) warn_unused;
