/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the vDSO of aarch64, which the kernel links without call frame information (linux 6.1,
 * arch/arm64/kernel/vdso/vdso.lds.S): read from the instructions of its few functions. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_VDSO_SYMBOLS_MAX 64
#define UNWIND_VDSO_FUNCTION_MAX KIB(16)

/** unwind_vdso_read - append spans. Return: 0, also when @elf is something else; -E2BIG, -ENOMEM, reader's error. */
int unwind_vdso_read(const struct elf *elf, struct cfi *out) warn_unused;
