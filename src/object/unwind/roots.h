/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for code that nothing calls although its unwind tables say otherwise: the function that a coroutine of the C
 * library returns to. They go over those of the tables. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_ROOTS_CODE_MAX MIB(8) /* bytes of a static program that are searched */

/**
 * unwind_roots_read - append a span for glibc's __start_context, where @elf has it
 * Return: 0, -E2BIG, -ENOMEM or the reader's error. Cost: one symbol looked up; in static glibc programs one pass over
 * the code.
 */
int unwind_roots_read(const struct elf *elf, struct cfi *out) warn_unused;
