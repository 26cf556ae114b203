/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libelf and libdw that are used. Loaded by dlopen, so that hearth does not wait for them at every
 * start (libdw_shared.c); the static build has them inside (libdw_static.c). */
#pragma once

#include <elfutils/libdw.h>

#include "base/base.h"

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

/** libdw_load - Return: 0, or -ENOTSUP when libdw.so.1 is missing or too old. It stays loaded. */
int libdw_load(struct libdw *out) warn_unused;
