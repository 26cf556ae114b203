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
	.class_loader = 152,
	.nm_method = 112,
	.nm_compile_id = 304,
	.nm_level = 308,
	.nm_scopes_data = 120,
	.nm_scopes_pcs = 268,
	.nm_scopes_pcs_end = 272,
	.nm_metadata = 260,
	.blob_code_begin = 32,
	.blob_code_end = 40,
	.nmethod_header_size = 352,
	.pc_desc_size = 16,
	.pc_desc_scope = 4,
	.jvm_flags = JAVA_BASE,
	.jvm_flag_count = JAVA_BASE + 8,
	.flag_address = 0,
	.flag_name = 8,
	.flag_flags = 16,
	.flag_type = 20,
	.flag_size = 24,
	.perf_start = JAVA_BASE,
	.perf_top = JAVA_BASE + 8,
	.flags = JAVA_LAYOUT_OOP_HANDLES,
	.threads = JAVA_BASE,
	.oop_base = JAVA_BASE + 8,
	.oop_shift = JAVA_BASE + 16,
	.thread_class = JAVA_BASE + 24,
	.string_class = JAVA_BASE + 32,
	.list_length = 0,
	.list_threads = 8,
	.thread_os = 0,
	.thread_object = 8,
	.os_id = 0,
	.class_constants = 8,
	.class_fields = 16,
	.class_field_count = 24,
	.array_first = 4,
	.thread_name = JAVA_NONE,
	.string_value = JAVA_NONE,
	.string_coder = JAVA_NONE,
	.object_header = JAVA_NONE,
};

static inline int java_block_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct cur *block = self;

	if (at < JAVA_BASE || at - JAVA_BASE > cur_left(block) || size > cur_left(block) - (at - JAVA_BASE))
		return -EFAULT;
	memcpy(dst, block->pos + (at - JAVA_BASE), size);
	return 0;
}
