/* SPDX-License-Identifier: Apache-2.0 */
/* Which stretch of code one address belongs to, by .eh_frame_hdr: its function, or the part of a function that the
 * compiler put elsewhere. It is there in stripped files too. */
#pragma once

#include "object/elf.h"

#define ELF_FDES_ENTRY 8 /* bytes of the table: start of the code, FDE */

struct elf_fdes { /* the sorted table of .eh_frame_hdr */
	struct reader table;
	uint64_t address; /* of .eh_frame_hdr: entries are relative to it */
	uint32_t count;
};

struct elf_fde {
	uint64_t start, size; /* the file's own addresses */
	uint64_t at;          /* of the entry itself, in .eh_frame */
};

/**
 * elf_fdes_open - Return: 0; -ENOENT: there is no such table; -ENOTSUP: in another form than linkers write; -EBADMSG or
 * the reader's error. Source: Linux Standard Base core 5.0, chapter 10.6.2.
 */
int elf_fdes_open(const struct elf *elf, struct elf_fdes *out) warn_unused;

/** elf_fdes_start - the address that an entry of the table speaks of */
uint64_t elf_fdes_start(const struct elf_fdes *fdes, const uint8_t entry[ELF_FDES_ENTRY]);

/** elf_fde_find - what covers @address. Return: 0, -ENOENT, -ENOTSUP, -EBADMSG or the reader's error. O(log n). */
int elf_fde_find(const struct elf *elf, const struct elf_fdes *fdes, uint64_t address, struct elf_fde *out) warn_unused;
/** elf_fde_at - the @index'th, by address. */
int elf_fde_at(const struct elf *elf, const struct elf_fdes *fdes, uint32_t index, struct elf_fde *out) warn_unused;
/** elf_fde_room - bytes up to the next one: never less than its size, and much cheaper to know; 0: unreadable. */
uint64_t elf_fde_room(const struct elf_fdes *fdes, uint32_t index);
