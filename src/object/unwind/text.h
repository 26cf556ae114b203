/* SPDX-License-Identifier: Apache-2.0 */
/* A table as text, one row a line, to be held against `readelf -wF`. */
#pragma once

#include "base/buf.h"
#include "object/unwind/table.h"

/**
 * unwind_text - address in the file, CFA, frame register, return address of every row in force
 *
 *	0000000000001139 rsp+16 c-16 c-8
 *
 * As in readelf: c is the CFA, u undefined, s the same value; *(...) is what memory holds there. In place of a CFA:
 * none, stop, forked:sp+N (ABI_CFA_FORKED), unsupported, plt:N (ABI_CFA_PLT), signal, frame-record. Pages repeat the
 * row in force; this does not.
 */
void unwind_text(const struct elf *elf, const struct unwind_table *t, struct buf *out);
