/* SPDX-License-Identifier: Apache-2.0 */
/* All that attaching to one JVM read (tests/walk/java_record.c): the numbers below, 8 bytes each; then pieces of
 * memory: address and size (8 bytes each), bytes, padding up to a multiple of 8. Its performance counters are left out.
 * AARCH64 among the flags says which machine it was. */
#pragma once

#include <elf.h>

#include "base/cur.h"
#include "runtime/java/java_int.h"

#define JAVA_ATTACH_AARCH64 (UINT32_C(1) << 31)

#define JAVA_ATTACH_FIELDS(X)  \
	X(flags)               \
	X(code_heaps)          \
	X(code_low)            \
	X(code_high)           \
	X(interpreter)         \
	X(call_stub_return)    \
	X(array_length)        \
	X(array_data)          \
	X(heap_memory)         \
	X(heap_segments)       \
	X(heap_shift)          \
	X(space_low)           \
	X(space_low_bound)     \
	X(space_high_bound)    \
	X(heap_block_size)     \
	X(queue_buffer)        \
	X(queue_limit)         \
	X(queue_begin)         \
	X(queue_end)           \
	X(codelet_size)        \
	X(codelet_description) \
	X(blob_kind)           \
	X(threads)

struct java_attach_image {
	struct java_binary binary;
	struct java_layout layout;
	uint64_t bias;
	struct cur pieces;
	size_t reads, fails_at; /* the read with that number fails; 0: none does */
};

/* Return: false when it is cut off before the pieces. */
static inline bool java_attach_open(struct cur in, struct java_attach_image *out)
{
	*out = (struct java_attach_image){ .bias = cur_le64(&in) };
	out->binary.literals[JAVA_LITERAL_NATIVE] = cur_le64(&in);
	out->binary.literals[JAVA_LITERAL_ADAPTER] = cur_le64(&in);
	out->binary.literals[JAVA_LITERAL_COMPILED] = cur_le64(&in);
#define X(field) out->layout.field = (__typeof__(out->layout.field))cur_le64(&in);
	JAVA_ATTACH_FIELDS(X)
#undef X
	out->binary.machine = out->layout.flags & JAVA_ATTACH_AARCH64 ? EM_AARCH64 : EM_X86_64;
	out->layout.flags &= ~JAVA_ATTACH_AARCH64;
	out->pieces = in;
	return !in.bad;
}

/* As struct runtime_target wants it: what was read then, and nothing else. */
static inline int java_attach_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct java_attach_image *image = self;
	struct cur c = image->pieces;

	if (++image->reads == image->fails_at)
		return -EFAULT;
	while (cur_left(&c)) {
		uint64_t start = cur_le64(&c), length = cur_le64(&c);
		const uint8_t *bytes = cur_bytes(&c, length);

		if (!bytes)
			return -EFAULT;
		ignore(cur_bytes(&c, (8 - length % 8) % 8) == NULL);
		if (at < start || at - start > length || size > length - (at - start))
			continue;
		memcpy(dst, bytes + (at - start), size);
		return 0;
	}
	return -EFAULT;
}
