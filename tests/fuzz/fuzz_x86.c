/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "object/x86.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t base = 0x400000;
	struct x86 i;

	for (size_t at = 0; at < size; at++) { /* at every byte: that is how code is met that is none */
		if (x86_decode(data + at, size - at, base + at, &i) < 0)
			continue;
		must(i.length && i.length <= X86_LENGTH_MAX && i.length <= size - at);
		must(i.flow != X86_FLOW_JUMP_IF || i.target);
		must(i.memory != X86_MEMORY_RELATIVE || i.address - (base + at + i.length) == (uint64_t)i.displacement);
	}
	return 0;
}
