/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by elf_symbols.c and elf_plt.c. */
#pragma once

#include "object/elf_symbols.h"

#define ELF_SYMBOL_RANK_SHIFT 28
#define ELF_SYMBOL_SIZE_MASK ((1u << ELF_SYMBOL_RANK_SHIFT) - 1)
#define ELF_SYMBOL_DYNAMIC (1u << 31) /* the name is in .dynsym's strings */
#define ELF_SYMBOL_PLT (1u << 30)
#define ELF_SYMBOL_NAME_MASK (ELF_SYMBOL_PLT - 1)

struct elf_sym { /* one entry of a symbol table */
	uint64_t address, size;
	uint32_t name;
	uint16_t section;
	uint8_t info;
};

struct elf_sym elf_sym_parse(const uint8_t *bytes, bool is_64);
int elf_symbols_put(struct elf_symbols *t, uint64_t address, uint64_t size, uint32_t rank, uint32_t name) warn_unused;
