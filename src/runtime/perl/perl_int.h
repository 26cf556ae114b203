/* SPDX-License-Identifier: Apache-2.0 */
/* What probing one file of Perl found, for attaching to processes that have it mapped. Addresses are the file's own. */
#pragma once

#include <linux/types.h>

#include "abi/perl.h"
#include "object/elf_find.h"
#include "runtime/perl/versions/layouts.h"
#include "runtime/runtime.h"

/* Symbols that are asked for by name. The first one tells whether it is Perl. */
#define PERL_SYMBOLS(X)                      \
	X(RUNOPS, "Perl_runops_standard")    \
	X(RUNOPS_DEBUG, "Perl_runops_debug") \
	X(REVISION, "PL_revision")           \
	X(VERSION, "PL_version")             \
	X(SUBVERSION, "PL_subversion")       \
	X(THREAD_KEY, "PL_thr_key")          \
	X(INTERPRETER, "PL_curinterp")       \
	X(COP, "PL_curcop")                  \
	X(INFO, "PL_curstackinfo")

#define X(id, name) PERL_SYMBOL_##id,
enum perl_symbol { PERL_SYMBOLS(X) PERL_SYMBOL_COUNT };
#undef X

struct perl_binary {
	struct runtime_binary base;
	const struct perl_version *version; /* NULL: refused */
	uint8_t minor, micro;               /* 5.36.0: 36, 0 */
	uint16_t machine;
	/* With threads: a pthread key's number, and the first thread's interpreter. Without: two variables. 0: there is
	 * none. */
	uint64_t thread_key, interpreter;
	uint64_t cop, info;
};

/** perl_probe, perl_release, perl_attach - struct runtime's; see runtime.h. */
int perl_probe(const struct runtime_file *file, struct runtime_binary **out) warn_unused;
void perl_release(struct runtime_binary *binary);
int perl_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info) warn_unused;

/** perl_decode_name - struct runtime's. Pure. */
int perl_decode_name(const uint8_t *bytes, size_t size, struct buf *room, struct runtime_function *out) warn_unused;
