/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads over hostile memory. An odd number of bytes: fields of classes are streams, as from 21 on. */
#include "fuzz.h"

#include "base/utf8.h"
#include "java_memory.h"
#include "runtime/java/threads.h"

static int take(void *ctx, uint32_t tid, struct str name)
{
	size_t *count = ctx;

	must(tid && name.len <= RUNTIME_THREAD_NAME_MAX && utf8_valid(name));
	return ++*count > JAVA_THREADS_MAX ? -E2BIG : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur block = cur_of(data, size);
	struct java_layout layout = java_layout_17;
	const struct java_process process = { { java_block_read, &block }, &layout, 0, 0 };
	size_t count = 0;

	if (size & 1)
		layout.class_field_count = JAVA_NONE;
	ignore(java_threads_learn(&process, &layout) < 0);
	must(java_threads_each(&process, take, &count) != -E2BIG);
	return 0;
}
