/* SPDX-License-Identifier: Apache-2.0 */
/* Input: one byte that says how to read the rest. An ELF file: the caller of every function, in its middle. Otherwise
 * an expression, or a section of call frame information whose first entry is asked. */
#include "fuzz.h"

#include <elf.h>

#include "object/unwind/cfi_caller.h"
#include "object/unwind/cfi_int.h"

#define IS_FILE 1
#define IS_SECTION 2
#define IS_AARCH64 4
#define IS_DEBUG 8

static unsigned int reads;

static int echo(void *self, void *dst, uint32_t size, uint64_t at)
{
	(void)self;
	must(size && size <= 8);
	reads++;
	if (at > INT64_MAX)
		return -EFAULT;
	memcpy(dst, &at, size);
	return 0;
}

static const struct cfi_memory memory = { .read = echo };

static struct cfi_registers registers(void)
{
	struct cfi_registers r = { .known = 0x1ffff };

	for (size_t i = 0; i < ABI_REGS; i++)
		r.value[i] = 0x7fff0000 + i * 0x100;
	return r;
}

static void try_file(const uint8_t *data, size_t size)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct reader in = reader_of(data, size);
	struct cfi_registers now = registers(), up;
	struct cfi_file file;

	if (elf_parse(&in, &elf) < 0 || cfi_file_open(&elf, &file) < 0)
		return;
	for (uint32_t i = 0; i < MIN(file.fdes.count, 64u); i++) {
		struct elf_fde fde;

		if (elf_fde_at(&elf, &file.fdes, i, &fde) == 0 &&
		    cfi_caller(&file, fde.start + fde.size / 2, i & 1, &now, &memory, &up) == 0)
			must(up.known & ((UINT64_C(1) << 32) | (1u << 16)));
	}
}

static void try_section(uint8_t how, const uint8_t *data, size_t size)
{
	struct cfi_section section = {
		.in = reader_of(data, size),
		.address = 0x1000,
		.machine = how & IS_AARCH64 ? EM_AARCH64 : EM_X86_64,
		.is_eh = !(how & IS_DEBUG),
	};
	struct cfi_rules rules;

	for (uint64_t at = 0; at < MIN(size, (size_t)256); at += 4)
		for (uint64_t address = 0x1000; address < 0x1040; address += 0x15)
			if (cfi_rules_at(&section, at, address, &rules) == 0)
				must(rules.ra < ABI_REGS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_registers now = registers();
	uint64_t start = 8, value;

	if (!size)
		return 0;
	reads = 0;
	if (data[0] & IS_FILE)
		try_file(data + 1, size - 1);
	else if (data[0] & IS_SECTION)
		try_section(data[0], data + 1, size - 1);
	else if (cfi_evaluate(cur_of(data + 1, size - 1), data[0] & IS_DEBUG ? &start : NULL, &now, &memory, &value) ==
		 0)
		must(reads <= CFI_EXPRESSION_READS);
	return 0;
}
