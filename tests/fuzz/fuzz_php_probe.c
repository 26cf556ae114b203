/* SPDX-License-Identifier: Apache-2.0 */
/* A file that may be PHP is probed, then attached to over memory that answers anything: the file's bytes again, from a
 * place that the address chooses. */
#include "fuzz.h"

#include "runtime/php/php_int.h"

#define READS_MAX 10000

struct memory {
	const uint8_t *bytes;
	size_t size, reads;
};

static int read_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct memory *m = self;
	uint8_t *to = dst;

	must(++m->reads < READS_MAX); /* attaching is bounded for any lists */
	if (at % 64 == 63)
		return -EFAULT;
	for (uint32_t i = 0; i < size; i++)
		to[i] = m->bytes[(at + i) % m->size];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(elf_release) struct elf elf = { 0 };
	struct runtime_file file = { .elf = &elf, .path = STR("/usr/bin/php8.2"), .is_program = true };
	struct runtime_binary *binary = NULL;
	struct reader in = reader_of(data, size);
	struct memory memory = { .bytes = data, .size = size };
	struct runtime_target target = { .pid = 1, .read = read_memory, .self = &memory };
	uint8_t info[RUNTIME_INFO_MAX];
	int r;

	if (elf_parse(&in, &elf) < 0)
		return 0;
	r = php_probe(&file, &binary);
	must((r == 1) == (binary != NULL));
	if (r != 1)
		return 0;
	must(binary->loop_count <= RUNTIME_RANGES_MAX);
	for (size_t i = 0; i < binary->loop_count; i++)
		must(binary->loops[i].start < binary->loops[i].end);
	must(memchr(binary->version, 0, sizeof(binary->version)) &&
	     memchr(binary->refused, 0, sizeof(binary->refused)));
	r = php_attach(binary, &target, info);
	must(r < 0 || r == (int)sizeof(struct abi_php));
	php_release(binary);
	return 0;
}
