/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows of Go code, which has no call frame information: from the table of functions (pclntab.h), where the Go
 * runtime's own unwinder finds how deep the stack is at every instruction. Go 1.16 and later. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_GO_STEPS_MAX MIB(128)    /* bytes of one file; Kubernetes' programs have about 10 MiB */
#define UNWIND_GO_TURNS_MAX (32u << 20) /* steps of all functions together: under a second */

/** unwind_go_read - append spans. Return: as cfi_read(); 0 and nothing when the file is not Go's. */
int unwind_go_read(const struct elf *elf, struct cfi *out) warn_unused;
