/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "object/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size);
	uint8_t id[ELF_BUILD_ID_MAX];
	char name[ELF_LINK_NAME_MAX];
	uint64_t address, offset;
	uint32_t crc;

	if (elf_parse(&in, &elf) < 0)
		return 0;
	must(elf_build_id(&elf, id) <= ELF_BUILD_ID_MAX);
	if (elf_debug_link(&elf, name, &crc) == 0)
		must(name[0] && !strchr(name, '/'));
	for (size_t i = 0; i < elf.section_count; i++) {
		struct reader section = elf_section_reader(&elf, &elf.sections[i]);

		must(section.base <= size && section.size <= size - section.base);
		must(elf_section_find(&elf, elf_section_name(&elf, &elf.sections[i])));
	}
	for (size_t i = 0; i < elf.segment_count; i++) {
		uint64_t at = elf.segments[i].offset;

		if (elf_address_of(&elf, at, &address) == 0)
			ignore(elf_offset_of(&elf, address, &offset)); /* overlapping segments need not agree */
	}
	return 0;
}
