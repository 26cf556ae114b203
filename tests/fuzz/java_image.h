/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a real JVM as tests/runtime/java_tables.py --image writes them: u64 base, u64 symbols[], then the memory
 * from base on. Zeros lie behind it, up to the end of a page and one chunk. */
#pragma once

#include "base/cur.h"
#include "runtime/java/tables.h"

struct java_image {
	uint64_t base, symbols[JAVA_SYMBOL_COUNT];
	struct cur memory;
	size_t reads;
};

static inline bool java_image_open(struct cur in, struct java_image *out)
{
	out->base = cur_le64(&in);
	for (size_t i = 0; i < JAVA_SYMBOL_COUNT; i++)
		out->symbols[i] = cur_le64(&in);
	out->memory = in;
	out->reads = 0;
	return !in.bad;
}

static inline int java_image_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct java_image *image = self;
	size_t there = cur_left(&image->memory), first;

	image->reads++;
	if (at < image->base || at - image->base > there + KIB(4) || size > there + KIB(32) - (at - image->base))
		return -EFAULT;
	at -= image->base;
	first = at < there ? MIN((size_t)size, there - at) : 0;
	memset(dst, 0, size);
	if (first)
		memcpy(dst, image->memory.pos + at, first);
	return 0;
}
