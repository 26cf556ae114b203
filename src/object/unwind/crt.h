/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for small functions that have no unwind tables on x86-64: the compiler's start and end code (_init and _fini,
 * __do_global_dtors_aux, frame_dummy, register_tm_clones and deregister_tm_clones), and what V8 saves registers with
 * for its collector (PushAllRegistersAndIterateStack). */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_CRT_MIN 9 /* bytes of the shortest */

/**
 * unwind_crt_scan - spans for what is recognised in @size bytes from the file's @offset on, which are at @address
 *
 * Every byte that is not an address or a distance must be as GCC, or V8's assembly, makes it. Each such function
 * returns with all that it took off the stack put back, so its rows follow from its bytes, wherever they stand.
 * Sources: GCC 12, libgcc/crtstuff.c; glibc 2.36, sysdeps/x86_64/crti.S and crtn.S; V8 11.3,
 * src/heap/base/asm/x64/push_registers_asm.cc. Return: 0, -E2BIG, -ENOMEM or the reader's error. Cost: one pass.
 */
int unwind_crt_scan(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size,
		    struct cfi *out) warn_unused;
