/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "object/elf_fde.h"
#include "object/elf_find.h"

static void find_functions(const struct elf *elf)
{
	struct elf_fdes fdes;
	struct elf_fde fde, again;

	if (elf_fdes_open(elf, &fdes) < 0)
		return;
	for (uint32_t i = 0; i < fdes.count && i < 1000; i++) {
		if (elf_fde_at(elf, &fdes, i, &fde) < 0 || !fde.size)
			continue;
		if (elf_fde_find(elf, &fdes, fde.start + fde.size / 2, &again) == 0)
			must(fde.start + fde.size / 2 - again.start < again.size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "main", "_start", "answer", "errno", "counter" };
	struct elf_found found, table[ARRAY_SIZE(names)] = { 0 };
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size);
	struct elf_dynamic dynamic;
	uint64_t slot;

	if (elf_parse(&in, &elf) < 0)
		return 0;
	find_functions(&elf);
	ignore(elf_symtab_find(&elf, names, ARRAY_SIZE(names), table));
	if (elf_dynamic_read(&elf, &dynamic) < 0) {
		must(elf_needs(&elf, STR("libc.so.6")) < 0);
		return 0;
	}
	ignore(elf_needs(&elf, STR("libc.so.6")));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf_dynamic_find(&elf, &dynamic, names[i], &found) == 0)
			must(found.info && found.section);
		ignore(elf_dynamic_slot(&elf, &dynamic, names[i], &slot));
	}
	return 0;
}
