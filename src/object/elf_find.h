/* SPDX-License-Identifier: Apache-2.0 */
/* Single symbols by name, without keeping a table: a few reads through the hash of the dynamic symbols, or one pass
 * over .symtab. Any symbol that has a place counts, data and thread-local ones too. */
#pragma once

#include "object/elf.h"

struct elf_found {
	uint64_t address, size; /* thread-local: address is the offset in the module's block */
	uint16_t section;
	uint8_t info; /* binding and type, as ELF64_ST_INFO makes them; 0: not found, or a label, which has a section */
};

struct elf_dynamic { /* where things lie, as file offsets; 0: there is none */
	uint64_t symbols, strings, gnu_hash, hash, relocations;
	uint64_t strings_size, relocations_size;
};

/**
 * elf_dynamic_read - the dynamic table, by the program headers: it is there in stripped files too
 * Return: 0; -ENOENT: the file has none; -EBADMSG or the reader's error. 64 bits only. Source: gabi 4.1, chapter 5.
 */
int elf_dynamic_read(const struct elf *elf, struct elf_dynamic *out) warn_unused;

/**
 * elf_needs - does the file ask the loader for the library of that name (DT_NEEDED)?
 * @name: without folders. Return: 1, 0, -ENOENT: it has no dynamic table, -EBADMSG, -ENOMEM or the reader's error.
 */
int elf_needs(const struct elf *elf, struct str name) warn_unused;

/** elf_dynamic_find - a defined dynamic symbol, by DT_GNU_HASH or DT_HASH. Return: 0, -ENOENT, -EBADMSG or the
 * reader's. */
int elf_dynamic_find(const struct elf *elf, const struct elf_dynamic *dynamic, const char *name,
		     struct elf_found *out) warn_unused;

/**
 * elf_dynamic_slot - the place that a relocation fills with the address of the data symbol @name (R_*_GLOB_DAT)
 * Through it code finds the symbol where it really is, which a copy relocation may have moved. Return: 0 and its
 * address, -ENOENT, -EBADMSG or the reader's error.
 */
int elf_dynamic_slot(const struct elf *elf, const struct elf_dynamic *dynamic, const char *name,
		     uint64_t *out) warn_unused;

#define ELF_FIND_NAMES_MAX 32

/**
 * elf_symtab_find - look several names up in .symtab, in one pass; what is not found keeps info and section 0
 *
 * Labels of assembly (local, without a type) are found where no other symbol has the name.
 * @names: at most ELF_FIND_NAMES_MAX; @out: as many
 * Return: how many were found; -ENOENT: no such table; -EBADMSG, -E2BIG, -ENOMEM or the reader's error.
 */
int elf_symtab_find(const struct elf *elf, const char *const *names, size_t count, struct elf_found *out) warn_unused;
