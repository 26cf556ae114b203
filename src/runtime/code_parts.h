/* SPDX-License-Identifier: Apache-2.0 */
/* All parts of an interpreter's loop. Compilers put parts of a function elsewhere; what belongs together is told by
 * jumps: one that leads into the middle of another stretch, or a conditional one, never calls a function. A jump to the
 * start of one may be a call in tail position and says nothing. Not done for aarch64. */
#pragma once

#include "object/elf_fde.h"
#include "runtime/runtime.h"

/**
 * code_parts - fill out->loops
 * @seeds: @count stretches that are known, addresses of the file; size 0: what .eh_frame says that begins there
 * Return: 0; -ENOMEM or the reader's error.
 */
int code_parts(const struct elf *elf, const struct elf_fde *seeds, size_t count,
	       struct runtime_binary *out) warn_unused;
