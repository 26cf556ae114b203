/* SPDX-License-Identifier: Apache-2.0 */
/* Names for PLT entries. Linkers order and pad the PLT in their own ways (bfd, gold, lld, mold), so an entry is read:
 * its jump names a slot of the GOT, and the relocation of that slot names the function. */
#include <elf.h>

#include "base/array.h"
#include "base/cur.h"
#include "object/elf_symbols_int.h"

#define SLOTS_MAX 65536                     /* relocations of one file looked at for slots */
#define RELOCATIONS_MAX ((uint64_t)4 << 20) /* of one file; the rest is not looked at */
#define ENTRIES_MAX 65536                   /* PLT entries of one file */
#define WINDOW_SIZE KIB(24)                 /* a multiple of the relocation's 24 bytes */
#define ENTRY_SIZE 16
#define GOT_ENTRY_SIZE 8 /* entries of .plt.got without IBT */

struct slot {
	uint64_t address;
	uint32_t name; /* in .dynsym's strings */
};

struct slots {
	struct slot *items;
	size_t count, cap;
	uint64_t relocations, entries; /* looked at so far, of all sections */
};

static void slots_release(struct slots *s)
{
	free(s->items);
}

static int compare_slots(const void *a, const void *b)
{
	uint64_t x = ((const struct slot *)a)->address, y = ((const struct slot *)b)->address;

	return (x > y) - (x < y);
}

static bool fills_slot(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return machine == EM_AARCH64 && (type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT);
}

/* Layout: {u64 offset, u64 info = symbol << 32 | type, u64 addend}. */
static int add_slots(const struct elf *elf, const struct elf_section *section, struct reader_window *symbols,
		     struct slots *out)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = elf_section_reader(elf, section);
	int r = reader_window_init(&w, &in, WINDOW_SIZE);

	for (uint64_t at = 0; r == 0 && at + sizeof(Elf64_Rela) <= in.size && out->relocations < RELOCATIONS_MAX;
	     at += sizeof(Elf64_Rela), out->relocations++) {
		const uint8_t *bytes = reader_window_get(&w, at, sizeof(Elf64_Rela));
		struct cur c = cur_of(bytes, bytes ? sizeof(Elf64_Rela) : 0);
		uint64_t address = cur_le64(&c), info = cur_le64(&c);
		uint64_t index = info >> 32;

		if (!bytes)
			return w.error;
		if (!fills_slot(elf->machine, (uint32_t)info) || !index || out->count >= SLOTS_MAX)
			continue;
		bytes = reader_window_get(symbols, index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
		if (!bytes)
			return symbols->error;
		r = array_grow(&out->items, &out->cap, out->count, SLOTS_MAX);
		if (r == 0)
			out->items[out->count++] = (struct slot){ address, elf_sym_parse(bytes, true).name };
	}
	return r;
}

static int32_t le32(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

/* x86-64: jmp *displacement(%rip) (ff 25 disp32), maybe behind endbr64 and a bnd prefix. */
static bool slot_of_x86(const uint8_t *code, size_t size, uint64_t address, uint64_t *out)
{
	for (size_t i = 0; i + 6 <= size; i++) {
		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		*out = address + i + 6 + (uint64_t)(int64_t)le32(code + i + 2);
		return true;
	}
	return false;
}

/* aarch64: adrp x16, page; ldr x17, [x16, #low]; maybe behind bti c. */
static bool slot_of_aarch64(const uint8_t *code, size_t size, uint64_t address, uint64_t *out)
{
	for (size_t i = 0; i + 8 <= size; i += 4) {
		uint32_t adrp = (uint32_t)le32(code + i), ldr = (uint32_t)le32(code + i + 4);
		uint64_t pages;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		if (pages & 1u << 20)
			pages |= ~UINT64_C(0x1fffff);
		*out = ((address + i) & ~UINT64_C(0xfff)) + (pages << 12) + ((uint64_t)(ldr >> 10 & 0xfff) << 3);
		return true;
	}
	return false;
}

static int add_entries(struct elf_symbols *t, const struct elf *elf, const struct elf_section *section,
		       struct slots *slots)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = elf_section_reader(elf, section);
	size_t step = section->entry_size == GOT_ENTRY_SIZE ? GOT_ENTRY_SIZE : ENTRY_SIZE;
	int r = reader_window_init(&w, &in, WINDOW_SIZE);

	for (uint64_t at = 0; r == 0 && at + step <= in.size && slots->entries < ENTRIES_MAX;
	     at += step, slots->entries++) {
		const uint8_t *code = reader_window_get(&w, at, step);
		struct slot key, *slot;
		bool found;

		if (!code)
			return w.error;
		found = elf->machine == EM_X86_64 ? slot_of_x86(code, step, section->address + at, &key.address)
						  : slot_of_aarch64(code, step, section->address + at, &key.address);
		slot = found ? bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots) : NULL;
		if (slot && slot->name && slot->name <= ELF_SYMBOL_NAME_MASK)
			r = elf_symbols_put(t, section->address + at, step, 0,
					    slot->name | ELF_SYMBOL_PLT | ELF_SYMBOL_DYNAMIC);
	}
	return r;
}

int elf_symbols_add_plt(struct elf_symbols *t, const struct elf *elf)
{
	const struct elf_section *dynamic = elf_section_of_type(elf, SHT_DYNSYM);
	scoped(reader_window_release) struct reader_window symbols = { 0 };
	scoped(slots_release) struct slots slots = { 0 };
	struct reader in;
	int r;

	if (!elf->is_64 || !dynamic || (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return -ENOENT;
	in = elf_section_reader(elf, dynamic);
	r = reader_window_init(&symbols, &in, WINDOW_SIZE);
	for (size_t i = 0; r == 0 && i < elf->section_count; i++)
		if (elf->sections[i].type == SHT_RELA)
			r = add_slots(elf, &elf->sections[i], &symbols, &slots);
	if (r < 0)
		return r;
	if (!slots.count)
		return -ENOENT;
	qsort(slots.items, slots.count, sizeof(*slots.items), compare_slots);
	for (size_t i = 0; r == 0 && i < elf->section_count; i++)
		if (str_starts(elf_section_name(elf, &elf->sections[i]), STR(".plt")))
			r = add_entries(t, elf, &elf->sections[i], &slots);
	return r;
}
