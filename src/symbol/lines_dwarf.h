/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined frames and lines of one ELF file by libdw. Runs only in the confined child (lines_child.c): libdw is loaded
 * there, by dlopen, so that hearth itself neither waits for it at every start nor parses a stranger's DWARF. */
#pragma once

#include <elfutils/libdw.h>

#include "symbol/lines_wire.h"

/* As they are in libelf 0.188 and libdw 0.188; all of them are in 0.171 (2018), too. */
#define LIBDW_FUNCTIONS(X)      \
	X(elf_version)          \
	X(elf_begin)            \
	X(elf_end)              \
	X(dwarf_begin_elf)      \
	X(dwarf_end)            \
	X(dwarf_setalt)         \
	X(dwarf_get_units)      \
	X(dwarf_tag)            \
	X(dwarf_child)          \
	X(dwarf_siblingof)      \
	X(dwarf_ranges)         \
	X(dwarf_attr)           \
	X(dwarf_attr_integrate) \
	X(dwarf_formstring)     \
	X(dwarf_formudata)      \
	X(dwarf_getsrc_die)     \
	X(dwarf_getsrcfiles)    \
	X(dwarf_linesrc)        \
	X(dwarf_lineno)         \
	X(dwarf_filesrc)

struct libdw {
#define X(name) __typeof__(name) *name;
	LIBDW_FUNCTIONS(X)
#undef X
};

/** libdw_load - Return: 0, or -ENOTSUP when libdw.so.1 is missing or too old. */
int libdw_load(struct libdw *out) warn_unused;

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

/** Called for each address in order; the text is borrowed. Return: 0, or negative to stop. */
typedef int lines_visit_fn(void *ctx, const struct lines_answer *answer);

/** lines_dwarf_find - @addresses: ascending. Return: 0, -ETIMEDOUT, -ENOMEM, or what @visit returned. */
int lines_dwarf_find(struct lines_dwarf *d, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
		     lines_visit_fn *visit, void *ctx) warn_unused;
