/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a made-up JVM: one block at JAVA_BASE, in which objects lie as OpenJDK 17 has them. The method is first. */
#pragma once

#include "base/cur.h"
#include "runtime/java/names.h"

#define JAVA_BASE 0x10000

static const struct java_layout java_layout_17 = {
	.version = 17,
	.method_const = 8,
	.method_access = 40,
	.method_size = 88,
	.const_pool = 8,
	.const_size = 24,
	.const_flags = 28,
	.const_code_size = 32,
	.const_name = 34,
	.const_signature = 36,
	.const_header = 48,
	.const_has_lines = 1,
	.pool_holder = 24,
	.pool_length = 60,
	.pool_source = 54,
	.pool_header = 72,
	.class_name = 24,
	.symbol_length = 4,
	.symbol_body = 6,
};

static inline int java_block_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct cur *block = self;

	if (at < JAVA_BASE || at - JAVA_BASE > cur_left(block) || size > cur_left(block) - (at - JAVA_BASE))
		return -EFAULT;
	memcpy(dst, block->pos + (at - JAVA_BASE), size);
	return 0;
}
