/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names of C++, Rust and D. */
#pragma once

#include "base/buf.h"
#include "object/elf_symbols.h"

#define DEMANGLE_NAME_MAX ELF_SYMBOL_NAME_MAX
#define DEMANGLE_TEXT_MAX KIB(64)

/**
 * demangle_add - append the readable form of a C++, Rust or D name; anything else as it is
 *
 * A readable form of more than DEMANGLE_TEXT_MAX bytes is not used. Bounded in time and size; takes up to 1 MiB of
 * stack.
 */
void demangle_add(struct str mangled, struct buf *out);
