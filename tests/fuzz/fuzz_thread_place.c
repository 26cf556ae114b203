/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process that says anything about its keys and thread-local variables: every read gives the next bytes. */
#include "fuzz.h"

#include "runtime/thread_place.h"

struct bytes {
	const uint8_t *at, *end;
};

static int next_bytes(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct bytes *b = self;

	(void)at;
	if (size > (size_t)(b->end - b->at) || *b->at == 0xff)
		return -EFAULT;
	memcpy(dst, b->at, size);
	b->at += size;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data + 1, data + size };
	const struct runtime_target target = { .read = next_bytes, .self = &b };
	const struct thread_value threads[] = { { 0x1000, 1 }, { 0x2000, 2 } };
	struct accessor_tls tls = { .value = 0x3000 };
	struct thread_variable variable;
	struct thread_key key;
	uint64_t value;

	if (size < 1)
		return 0;
	tls.kind = data[0] & 3;
	thread_variable_find(&target, &tls, 0x1000, &variable);
	must(variable.kind != THREAD_VARIABLE_DYNAMIC || variable.entry == 8 || variable.entry == 16);
	ignore(thread_variable_read(&target, &variable, 0x1000, &value) < 0);
	if (thread_key_find(&target, data[0] * 5u, threads, ARRAY_SIZE(threads), &key))
		must(data[0] * 5u < THREAD_KEYS_MAX);
	ignore(thread_key_search(&target, threads, ARRAY_SIZE(threads), &key));
	return 0;
}
