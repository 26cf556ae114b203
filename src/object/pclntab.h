/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, which stripping leaves in place. Nothing is loaded: a look-up reads what it needs.
 * Source: go1.22 src/debug/gosym/pclntab.go and src/runtime/symtab.go (formats of Go 1.2, 1.16, 1.18 and 1.20). */
#pragma once

#include "base/cur.h"
#include "object/elf.h"

#define PCLNTAB_FUNCTIONS_MAX (UINT64_C(1) << 24)

struct pclntab {
	struct reader in;          /* from the header on */
	uint64_t count;            /* functions */
	uint64_t functions, names; /* offsets of the two tables */
	uint64_t steps;            /* and of the one that says how deep the stack is where; 0 before Go 1.16 */
	uint64_t text;             /* added to a function's address */
	uint8_t pointer_size;
	uint8_t field_size; /* of an address in the table of functions */
	uint8_t code_unit;  /* addresses in steps count in these */
	uint8_t flags_at;   /* where in a function's struct its flags are */
	bool in_functions;  /* offsets of functions count from there, not from the header */
	bool has_flags;     /* Go 1.17 has them under the same magic as 1.16, where the byte is 0 */
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

enum {                       /* go1.22 src/internal/abi/symtab.go, FuncFlag */
       PCLNTAB_TOP = 1,      /* the outermost frame of a stack */
       PCLNTAB_SP_WRITE = 2, /* sets the stack pointer to something else */
       PCLNTAB_ASM = 4,
};

struct pclntab_function {
	uint64_t start, end; /* end: where the next one starts */
	uint64_t name;       /* offset of it */
	uint64_t steps;      /* offset behind pclntab.steps */
	uint8_t flags;
};

struct pclntab_walk { /* over all functions, by address */
	const struct pclntab *table;
	struct reader_window entries, functions;
	uint64_t index;
};

int pclntab_walk_init(struct pclntab_walk *w, const struct pclntab *t) warn_unused;
void pclntab_walk_release(struct pclntab_walk *w);
/** pclntab_walk_next - Return: 1; 0 behind the last; -EBADMSG also when addresses do not ascend; the reader's error. */
int pclntab_walk_next(struct pclntab_walk *w, struct pclntab_function *out) warn_unused;

struct pclntab_steps { /* how far the stack pointer is below its value at the function's first instruction */
	struct cur bytes;
	uint64_t at;   /* bytes of code behind the function's start */
	int64_t depth; /* from there up to where the next step ends */
	uint8_t code_unit;
	bool is_started;
};

/**
 * pclntab_step - the next stretch of code with one depth: [*from, s->at) has s->depth
 * Return: 1; 0 behind the last; -EBADMSG. Source: go1.22 src/runtime/symtab.go, step()
 */
int pclntab_step(struct pclntab_steps *s, uint64_t *from) warn_unused;
