/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by cfi.c (entries and their programs), cfi_expr.c (expressions) and cfi_row.c (rows). */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/cur.h"
#include "object/unwind/cfi.h"

/* How a value of the caller is found. */
enum cfi_how {
	CFI_SAME = 0, /* no rule, or the same value: what both mean for the registers we follow */
	CFI_UNDEFINED,
	CFI_VALUE,  /* base + off */
	CFI_MEMORY, /* *(base + off) + add */
	CFI_PLT,    /* for the CFA only; off: the threshold */
	CFI_OTHER,  /* a rule that cannot be expressed; off, add: place and size of its expression in the section */
	CFI_OTHER_PLACE, /* the same, and it computes where the value was saved */
};

struct cfi_value {
	uint8_t how;
	uint8_t base; /* DWARF register, or ABI_BASE_CFA */
	int64_t off, add;
};

struct cfi_state {
	struct cfi_value cfa, fp, ra;
	int64_t cfa_off; /* last one said, which a register defined behind an expression takes up again */
	bool cfa_by_expression;
};

/** cfi_expression - what a DWARF expression computes, or CFI_OTHER. @start: what is on the stack; how CFI_SAME:
 * nothing. */
struct cfi_value cfi_expression(struct cur bytes, const struct cfi_value *start);

/* Every rule in force at one address. */
struct cfi_rules {
	struct cfi_value cfa, regs[ABI_REGS]; /* that of the return address is among regs */
	uint8_t ra;                           /* register number */
};

/* Bytes of instructions of one FDE and of its CIE that cfi_rules_at() runs, once for each register. */
#define CFI_RULES_BYTES KIB(8)

/** cfi_rules_at - those of the FDE at @fde bytes of @section. Return: 0, -ENOENT: it does not cover @address; -EBADMSG,
 * -ENOTSUP, -ENOMEM or the reader's error. */
int cfi_rules_at(const struct cfi_section *section, uint64_t fde, uint64_t address, struct cfi_rules *out) warn_unused;

/** cfi_row_of - @out may become UNSUPPORTED, which is counted. Return: 0 or -ENOMEM. */
int cfi_row_of(struct cfi *c, uint16_t machine, const struct cfi_state *state, struct abi_row *out) warn_unused;

/* LEB128 with the short form inline: nearly all operands are one byte. */
static inline uint64_t cfi_uleb(struct cur *c)
{
	uint64_t value = 0;

	if (c->pos < c->end && *c->pos < 0x80)
		return *c->pos++;
	ignore(cur_uvarint(c, &value)); /* the cursor is bad then */
	return value;
}

static inline int64_t cfi_sleb(struct cur *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cur_u8(c);
		if (shift >= 64) {
			c->bad = true;
			return 0;
		}
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}
