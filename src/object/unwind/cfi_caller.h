/* SPDX-License-Identifier: Apache-2.0 */
/* All registers of a frame's caller, by the full rules of call frame information: also those that no unwind row can
 * hold. For walks on the host; rows are what the kernel walks by.
 * Source: DWARF 5, sections 2.5.1 (expressions), 6.4 and 7.7.1. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/cur.h"
#include "object/elf.h"
#include "object/elf_fde.h"
#include "object/unwind/cfi.h"

#define CFI_EXPRESSION_STEPS 512 /* operations of one expression that are run */
#define CFI_EXPRESSION_READS 64  /* words of memory it may ask for */
#define CFI_EXPRESSION_BYTES 512 /* longer ones are not evaluated */

struct cfi_registers { /* by DWARF number; x86-64: 16 is the program counter, aarch64: 32 */
	uint64_t value[ABI_REGS];
	uint64_t known; /* bit n: value[n] holds */
};

struct cfi_memory { /* of the process. Return: 0 when all @size bytes were copied. */
	int (*read)(void *self, void *dst, uint32_t size, uint64_t at);
	void *self;
};

struct cfi_file { /* one ELF file, as a walk asks it about its functions */
	const struct elf *elf;
	struct elf_fdes fdes;
};

/** cfi_file_open - by .eh_frame_hdr. @elf is borrowed. Return: 0, -ENOENT, -ENOTSUP, -EBADMSG or the reader's error. */
int cfi_file_open(const struct elf *elf, struct cfi_file *out) warn_unused;

/**
 * cfi_caller - the registers of the caller of the frame that stands at @now
 * @address: the file's own address of the instruction, for a return address that of the byte before it
 * @is_leaf: all registers are those of an interrupted instruction
 *
 * Registers without a rule keep their values, as in libgcc: only calls that preserve them are described so.
 * Return: 0; -ENOENT: no rule covers @address; -ENOTSUP: a register that is not known is needed, or the return address
 * is undefined; -EFAULT: memory is needed that cannot be read; -EBADMSG, -ENOMEM or the reader's error.
 */
int cfi_caller(const struct cfi_file *file, uint64_t address, bool is_leaf, const struct cfi_registers *now,
	       const struct cfi_memory *memory, struct cfi_registers *out) warn_unused;

/**
 * cfi_evaluate - what an expression computes; bounded. Pure but for @memory; fuzzed.
 * @start: what is on its stack at the beginning, or NULL
 * Return: 0; -ENOTSUP: an operation or register that is not known, or over a limit; -EFAULT; -EBADMSG: malformed.
 */
int cfi_evaluate(struct cur bytes, const uint64_t *start, const struct cfi_registers *now,
		 const struct cfi_memory *memory, uint64_t *out) warn_unused;
