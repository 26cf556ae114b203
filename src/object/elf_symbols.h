/* SPDX-License-Identifier: Apache-2.0 */
/* The function symbols of an ELF file as a sorted table of 12 bytes each. Names stay in the file: what is kept is where
 * they are in its string table. */
#pragma once

#include "object/elf.h"

#define ELF_SYMBOLS_MAX ((size_t)2 << 20)    /* chrome has about one million */
#define ELF_ENTRIES_MAX ((uint64_t)16 << 20) /* table entries looked at: a sparse file can claim any number */
#define ELF_SYMBOL_NAME_MAX KIB(16)

enum { ELF_STRINGS_STATIC, ELF_STRINGS_DYNAMIC, ELF_STRINGS_COUNT }; /* of .symtab, of .dynsym */

struct elf_symbol {
	uint32_t start; /* from elf_symbols.base */
	uint32_t size;  /* low 28 bits; the high 4 rank aliases while the table is built */
	uint32_t name;  /* offset in a string table; the high 2 bits say which, and whether it is a PLT entry */
};

struct elf_symbols {
	uint64_t base;            /* lowest address of the file; symbols 4 GiB and more above it are left out */
	struct elf_symbol *items; /* by start; one per start once finished */
	size_t count, cap;
	uint32_t *starts; /* of the entries of .eh_frame_hdr, from the base; until the table is finished */
	size_t start_count;
	uint64_t entry; /* point of the program */
};

struct elf_symbol_hit {
	uint64_t start, size;
	uint32_t name;   /* offset in strings[strings] */
	uint8_t strings; /* ELF_STRINGS_* */
	bool is_plt;     /* "@plt" belongs behind the name */
};

/** elf_symbols_init - @base: elf_base() of the file that is mapped (a debug file has the same addresses) */
void elf_symbols_init(struct elf_symbols *t, uint64_t base);
void elf_symbols_release(struct elf_symbols *t);

/**
 * elf_symbols_use_fdes - read from @elf, the file that is mapped, where code begins: local labels are names only there
 *
 * Before elf_symbols_add(). Return: 0, also without .eh_frame_hdr, or -ENOMEM.
 */
int elf_symbols_use_fdes(struct elf_symbols *t, const struct elf *elf) warn_unused;

/**
 * elf_symbols_add - functions of the table of @type, SHT_SYMTAB or SHT_DYNSYM
 *
 * Taken are STT_FUNC and STT_GNU_IFUNC, and STT_NOTYPE labels inside sections of code (assembly) that are global, at
 * the start of an entry of .eh_frame_hdr, or the program's entry point. Return: 0, -ENOENT when there is no such table,
 * -EBADMSG, -E2BIG, -ENOMEM or the reader's error.
 */
int elf_symbols_add(struct elf_symbols *t, const struct elf *elf, uint32_t type) warn_unused;

/** elf_symbols_add_plt - entries of .plt, .plt.sec and .plt.got under the name of what they jump to; -ENOENT: none. */
int elf_symbols_add_plt(struct elf_symbols *t, const struct elf *elf) warn_unused;

/** elf_symbols_strings - the string table that belongs to the table of @type. Return: 0 or -ENOENT. */
int elf_symbols_strings(const struct elf *elf, uint32_t type, struct reader *out) warn_unused;

/**
 * elf_symbols_finish - sort, keep the best alias of each address, give sizes to symbols without one
 * @elf: the file that is mapped: its section headers and .eh_frame_hdr bound symbols without size
 * @strings: of .symtab and .dynsym, as far as symbols of them were added; read to judge labels and to choose between
 * aliases
 *
 * A symbol without size ends at the next symbol or at the end of its section; a label (STT_NOTYPE) also where an entry
 * of .eh_frame_hdr begins, and at the end of the one that it is in. Local labels that are no names do not end it:
 * assembly has them in loops. Dropped are labels inside of symbols with a size, mapping symbols ($x), local labels (.L)
 * and marks of ends (_end, _etext).
 *
 * Of several names perf's order decides (linux 6.1, tools/perf/util/symbol.c, choose_best_symbol), so that figures
 * can be compared: with a size, not weak, global, fewer leading underscores, the longer name.
 */
void elf_symbols_finish(struct elf_symbols *t, const struct elf *elf, const struct reader strings[ELF_STRINGS_COUNT]);

/** elf_symbols_find - the innermost symbol that covers @address. Return: 0 or -ENOENT. O(log n). */
int elf_symbols_find(const struct elf_symbols *t, uint64_t address, struct elf_symbol_hit *out) warn_unused;
