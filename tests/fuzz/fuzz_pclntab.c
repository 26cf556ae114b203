/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an address, then a table; the same bytes once more as an ELF file. */
#include "fuzz.h"

#include "base/cur.h"
#include "object/pclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct cur c = cur_of(data, size);
	uint64_t address = cur_le64(&c), start;
	struct reader in = reader_of(c.pos, cur_left(&c)), file = reader_of(data, size);
	struct pclntab table;
	char text[300];
	struct str name;

	if (!c.bad && pclntab_parse(&in, address, &table) == 0) {
		if (pclntab_find(&table, address, text, sizeof(text), &name, &start) == 0)
			must(start <= address && name.len < sizeof(text) && !text[name.len]);
	}
	if (elf_parse(&file, &elf) == 0 && pclntab_open(&elf, &table) == 0)
		ignore(pclntab_find(&table, address, text, sizeof(text), &name, &start));
	return 0;
}
