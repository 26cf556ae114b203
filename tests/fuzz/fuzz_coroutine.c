/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of a file begin coroutines, by the file's code. */
#include "fuzz.h"

#include "object/elf_fde.h"
#include "object/unwind/coroutine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size);
	struct elf_fdes fdes;
	struct elf_fde fde;

	if (elf_parse(&in, &elf) < 0 || elf_fdes_open(&elf, &fdes) < 0)
		return 0;
	for (uint32_t i = 0; i < fdes.count && i < 8; i++)
		if (elf_fde_at(&elf, &fdes, i, &fde) == 0 && fde.size)
			must(coroutine_begins(&elf, fde.start) <= 1);
	return 0;
}
