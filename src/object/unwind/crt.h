/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the compiler's start and end code, which has no unwind tables on x86-64: _init and _fini,
 * __do_global_dtors_aux, frame_dummy, register_tm_clones and deregister_tm_clones. */
#pragma once

#include "object/elf.h"
#include "object/unwind/cfi.h"

#define UNWIND_CRT_MIN 9 /* bytes of the shortest */

/**
 * unwind_crt_scan - spans for what is recognised in @size bytes from the file's @offset on, which are at @address
 *
 * Every byte that is not an address or a distance must be as GCC makes it. Each such function returns with all that it
 * took off the stack put back, so its rows follow from its bytes, wherever they stand. Sources: GCC 12,
 * libgcc/crtstuff.c; glibc 2.36, sysdeps/x86_64/crti.S and crtn.S. Return: 0, -E2BIG, -ENOMEM or the reader's error.
 * Cost: one pass.
 */
int unwind_crt_scan(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size,
		    struct cfi *out) warn_unused;
