/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, which stripping leaves in place. Nothing is loaded: a look-up reads what it needs.
 * Source: go1.22 src/debug/gosym/pclntab.go and src/runtime/symtab.go (formats of Go 1.2, 1.16, 1.18 and 1.20). */
#pragma once

#include "object/elf.h"

#define PCLNTAB_FUNCTIONS_MAX (UINT64_C(1) << 24)

struct pclntab {
	struct reader in;          /* from the header on */
	uint64_t count;            /* functions */
	uint64_t functions, names; /* offsets of the two tables */
	uint64_t text;             /* added to a function's address */
	uint8_t pointer_size;
	uint8_t field_size; /* of an address in the table of functions */
	bool in_functions;  /* offsets of functions count from there, not from the header */
};

/**
 * pclntab_parse - the header in the first bytes of @in
 * @text: of runtime.text, for a header (Go 1.18 on) whose own field is 0 because a relocation fills it
 *
 * Return: 0, -EBADMSG, -ENOTSUP (a later Go), or the reader's error.
 */
int pclntab_parse(const struct reader *in, uint64_t text, struct pclntab *out) warn_unused;

/** pclntab_open - find the table in a file: by its section, or inside .data.rel.ro. Return: 0, -ENOENT or as above. */
int pclntab_open(const struct elf *elf, struct pclntab *out) warn_unused;

/**
 * pclntab_find - the function at an address
 * @text: @size bytes, where the name goes; @name is borrowed from it
 *
 * Return: 0, -ENOENT outside of all functions, -EBADMSG, or the reader's error. O(log n) reads.
 */
int pclntab_find(const struct pclntab *t, uint64_t address, char *text, size_t size, struct str *name,
		 uint64_t *start) warn_unused;
