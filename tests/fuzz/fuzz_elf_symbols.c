/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <elf.h>

#include "object/elf_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(elf_symbols_release) struct elf_symbols symbols = { 0 };
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size), strings[ELF_STRINGS_COUNT] = { 0 };
	struct elf_symbol_hit hit;

	if (elf_parse(&in, &elf) < 0)
		return 0;
	elf_symbols_init(&symbols, elf_base(&elf));
	ignore(elf_symbols_use_fdes(&symbols, &elf));
	ignore(elf_symbols_add(&symbols, &elf, SHT_SYMTAB));
	ignore(elf_symbols_add(&symbols, &elf, SHT_DYNSYM));
	ignore(elf_symbols_add_plt(&symbols, &elf));
	ignore(elf_symbols_strings(&elf, SHT_SYMTAB, &strings[ELF_STRINGS_STATIC]));
	ignore(elf_symbols_strings(&elf, SHT_DYNSYM, &strings[ELF_STRINGS_DYNAMIC]));
	elf_symbols_finish(&symbols, &elf, strings);
	for (size_t i = 0; i < symbols.count; i++) {
		uint64_t start = symbols.base + symbols.items[i].start, last = start + symbols.items[i].size - 1;
		char name[256];
		struct str text;

		must(i == 0 || symbols.items[i - 1].start < symbols.items[i].start);
		if (!symbols.items[i].size)
			continue;
		must(elf_symbols_find(&symbols, start, &hit) == 0 && hit.start == start);
		if (last >= start && elf_symbols_find(&symbols, last, &hit) == 0)
			must(last - hit.start < hit.size);
		ignore(reader_text(&strings[hit.strings], hit.name, name, sizeof(name), &text));
	}
	return 0;
}
