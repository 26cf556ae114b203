/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/thread_place.h"

#include "base/cur.h"

#define GLIBC_KEYS 784
#define GLIBC_BLOCKS 1296
#define GLIBC_BLOCK_KEYS 32
#define GLIBC_KEY_SIZE 16
#define GLIBC_KEY_VALUE 8
#define MUSL_KEYS 128
#define MUSL_KEYS_1_1 136
#define TLS_MODULES_MAX 4096
#define TLS_REACH ((int64_t)16 << 20) /* from the thread pointer down to the end of the static block; of a block */
#define TLS_TABLE 8                   /* from the thread pointer */
#define TLS_ALIGN_MAX KIB(64)         /* between what malloc() gave and the block in it */
#define TLS_UNUSED UINT64_MAX         /* glibc: the thread has no block yet */

int thread_read_u64(const struct runtime_target *target, uint64_t at, uint64_t *out)
{
	uint8_t bytes[8];
	int r = target->read(target->self, bytes, sizeof(bytes), at);
	struct cur c = cur_of(bytes, sizeof(bytes));

	if (r == 0)
		*out = cur_le64(&c);
	return r == -EFAULT ? -EAGAIN : r; /* not mapped yet, or not any more */
}

/* ---- keys ---- */

int thread_key_read(const struct runtime_target *target, const struct thread_key *key, uint64_t pointer, uint64_t *out)
{
	uint64_t at = pointer + (uint64_t)key->at;
	int r = key->is_indirect ? thread_read_u64(target, at, &at) : 0;

	if (r == 0 && key->is_indirect && !at)
		return -ENOENT;
	return r < 0 ? r : thread_read_u64(target, at + key->offset, out);
}

static bool is_right(const struct runtime_target *target, const struct thread_key *key,
		     const struct thread_value *threads, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		if (thread_key_read(target, key, threads[i].pointer, &value) == 0 && value == threads[i].value)
			return true;
	}
	return false;
}

bool thread_key_find(const struct runtime_target *target, uint32_t key, const struct thread_value *threads,
		     size_t count, struct thread_key *out)
{
	const struct thread_key forms[] = {
		key < GLIBC_BLOCK_KEYS
			? (struct thread_key){ GLIBC_KEYS + (int64_t)key * GLIBC_KEY_SIZE + GLIBC_KEY_VALUE, 0, false }
			: (struct thread_key){ GLIBC_BLOCKS + (int64_t)(key / GLIBC_BLOCK_KEYS) * 8,
					       key % GLIBC_BLOCK_KEYS * GLIBC_KEY_SIZE + GLIBC_KEY_VALUE, true },
		{ MUSL_KEYS, key * 8, true },
		{ MUSL_KEYS_1_1, key * 8, true },
	};

	if (key >= THREAD_KEYS_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (!is_right(target, &forms[i], threads, count))
			continue;
		*out = forms[i];
		return true;
	}
	return false;
}

bool thread_key_search(const struct runtime_target *target, const struct thread_value *threads, size_t count,
		       struct thread_key *out)
{
	for (uint32_t key = 0; key < GLIBC_BLOCK_KEYS; key++)
		if (thread_key_find(target, key, threads, count, out))
			return true;
	return false;
}

/* ---- variables ---- */

static bool take_static(uint64_t block, uint64_t offset, uint64_t pointer, struct thread_variable *out)
{
	int64_t at = (int64_t)(block + offset - pointer);

	if (at >= 0 || at < -TLS_REACH)
		return false;
	*out = (struct thread_variable){ .kind = THREAD_VARIABLE_STATIC, .at = at };
	return true;
}

/* glibc: {block, what to free}[]: a block that is to be freed is of one thread only. musl: block[]. */
static void find_in_module(const struct runtime_target *target, uint64_t slot, uint64_t pointer,
			   struct thread_variable *out)
{
	uint64_t module, offset, table, block = 0, own = 0;
	bool is_glibc = false;

	if (thread_read_u64(target, slot, &module) < 0 || thread_read_u64(target, slot + 8, &offset) < 0 || !module ||
	    module > TLS_MODULES_MAX || offset > (uint64_t)TLS_REACH ||
	    thread_read_u64(target, pointer + TLS_TABLE, &table) < 0)
		return;
	if (thread_read_u64(target, table + module * 16, &block) == 0 &&
	    thread_read_u64(target, table + module * 16 + 8, &own) == 0) {
		if (block != TLS_UNUSED && !own && take_static(block, offset, pointer, out))
			return;
		is_glibc = block == TLS_UNUSED || (own && own <= block && block - own < TLS_ALIGN_MAX);
	}
	if (!is_glibc &&
	    (thread_read_u64(target, table + module * 8, &block) < 0 || take_static(block, offset, pointer, out)))
		return;
	*out = (struct thread_variable){ THREAD_VARIABLE_DYNAMIC, 0, module, offset, is_glibc ? 16 : 8 };
}

void thread_variable_find(const struct runtime_target *target, const struct accessor_tls *tls, uint64_t pointer,
			  struct thread_variable *out)
{
	uint64_t at = tls->value;

	*out = (struct thread_variable){ 0 };
	switch (tls->kind) {
	case ACCESSOR_TLS_SLOT:
		if (thread_read_u64(target, tls->value + target->bias, &at) < 0)
			return;
		*out = (struct thread_variable){ .kind = THREAD_VARIABLE_STATIC, .at = (int64_t)at };
		return;
	case ACCESSOR_TLS_OFFSET:
		*out = (struct thread_variable){ .kind = THREAD_VARIABLE_STATIC, .at = (int64_t)at };
		return;
	case ACCESSOR_TLS_MODULE:
		find_in_module(target, tls->value + target->bias, pointer, out);
		return;
	default:
		return;
	}
}

int thread_variable_read(const struct runtime_target *target, const struct thread_variable *variable, uint64_t pointer,
			 uint64_t *out)
{
	uint64_t table, block;
	int r;

	switch (variable->kind) {
	case THREAD_VARIABLE_STATIC:
		return thread_read_u64(target, pointer + (uint64_t)variable->at, out);
	case THREAD_VARIABLE_DYNAMIC:
		r = thread_read_u64(target, pointer + TLS_TABLE, &table);
		if (r == 0)
			r = thread_read_u64(target, table + variable->module * variable->entry, &block);
		if (r == 0 && (!block || block == TLS_UNUSED))
			return -ENOENT;
		return r < 0 ? r : thread_read_u64(target, block + variable->offset, out);
	default:
		return -ENOENT;
	}
}
