/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the few places of code without unwind tables whose bytes prove what they are: entry code, the child side of
 * clone, what signal handlers return to, what starts a coroutine. musl, ld.so and Boost have them. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_BARE_MAX MIB(8) /* bytes of code looked at in one file */

/** unwind_bare_entry - a span for the code at the entry point. Return: 0, -E2BIG, -ENOMEM or the reader's error. */
int unwind_bare_entry(const struct elf *elf, struct cfi *out) warn_unused;

/**
 * unwind_bare_scan - spans for what is recognised in @size bytes from the file's @offset on, which are at @address
 * Return: as unwind_bare_entry(). Cost: one pass.
 */
int unwind_bare_scan(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size,
		     struct cfi *out) warn_unused;
