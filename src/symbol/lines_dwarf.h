/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined frames and lines of one ELF file by libdw. Runs only in the confined child (lines_child.c): hearth
 * itself does not parse a stranger's DWARF. */
#pragma once

#include "symbol/libdw.h"
#include "symbol/lines_wire.h"

struct lines_dwarf;

/**
 * lines_dwarf_open - the debug information of an open file
 * @fd: stays the caller's and must stay open
 * @alt_fd: of its .gnu_debugaltlink, or -1
 * @deadline_ns: CLOCK_MONOTONIC
 *
 * Return: 0, -EBADMSG (none that can be read), -ETIMEDOUT or -ENOMEM.
 */
int lines_dwarf_open(const struct libdw *dw, int fd, int alt_fd, uint64_t deadline_ns,
		     struct lines_dwarf **out) warn_unused;
void lines_dwarf_close(struct lines_dwarf *d); /* NULL is fine */

/** lines_dwarf_find - @addresses: ascending. Return: 0, -ETIMEDOUT, -ENOMEM, or what @visit returned. */
int lines_dwarf_find(struct lines_dwarf *d, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
		     lines_visit_fn *visit, void *ctx) warn_unused;
