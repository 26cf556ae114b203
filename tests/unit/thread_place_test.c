/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads keep values of their own: made-up memory of glibc and musl, and this process's own. */
#include "support.h"

#include <elf.h>
#include <pthread.h>

#include "runtime/thread_place.h"

#define POINTER 0x100000
#define VALUE 0xabcd00
#define WORDS 32

struct memory { /* words that are mapped; others are not */
	struct {
		uint64_t at, word;
	} words[WORDS];
	size_t count;
};

static void put(struct memory *m, uint64_t at, uint64_t word)
{
	assert_true(m->count < WORDS);
	m->words[m->count].at = at;
	m->words[m->count++].word = word;
}

static int memory_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct memory *m = self;

	assert_int_equal(size, 8);
	for (size_t i = 0; i < m->count; i++)
		if (m->words[i].at == at) {
			memcpy(dst, &m->words[i].word, 8);
			return 0;
		}
	return -EFAULT;
}

static struct runtime_target target_of(struct memory *m)
{
	return (struct runtime_target){ .pid = 1, .read = memory_read, .self = m, .bias = 0x1000 };
}

static const struct thread_value thread = { POINTER, VALUE }, other = { 0x900000, 0x777 };

static void keys_of_both_libraries(void **state)
{
	static const struct {
		const char *name;
		uint32_t key;
		uint64_t array_at, array, value_at; /* array_at 0: the value lies beside the thread pointer */
		struct thread_key want;
	} cases[] = {
		{ "glibc", 5, 0, 0, POINTER + 784 + 5 * 16 + 8, { 784 + 5 * 16 + 8, 0, false } },
		{ "glibc, last of the first block", 31, 0, 0, POINTER + 1288, { 1288, 0, false } },
		{ "glibc, second block", 40, POINTER + 1304, 0x50000, 0x50000 + 136, { 1304, 136, true } },
		{ "glibc, last", 1023, POINTER + 1544, 0x50000, 0x50000 + 504, { 1544, 504, true } },
		{ "musl 1.2", 3, POINTER + 128, 0x50000, 0x50018, { 128, 24, true } },
		{ "musl 1.1", 3, POINTER + 136, 0x50000, 0x50018, { 136, 24, true } },
	};
	const struct thread_value threads[] = { other, thread }; /* the first has ended */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct memory m = { 0 };
		const struct runtime_target target = target_of(&m);
		struct thread_key key = { 0 };
		uint64_t value;

		print_message("  %s\n", cases[i].name);
		assert_false(thread_key_find(&target, cases[i].key, threads, 2, &key));
		if (cases[i].array_at)
			put(&m, cases[i].array_at, cases[i].array);
		put(&m, cases[i].value_at, VALUE);
		assert_true(thread_key_find(&target, cases[i].key, threads, 2, &key));
		assert_int_equal(key.at, cases[i].want.at);
		assert_int_equal(key.offset, cases[i].want.offset);
		assert_int_equal(key.is_indirect, cases[i].want.is_indirect);
		assert_int_equal(thread_key_read(&target, &key, POINTER, &value), 0);
		assert_int_equal(value, VALUE);
		if (cases[i].key < 32) {
			struct thread_key found;

			assert_true(thread_key_search(&target, threads, 2, &found));
			assert_int_equal(found.at, key.at);
			assert_int_equal(found.offset, key.offset);
		}
	}
}

static void keys_that_are_none(void **state)
{
	struct memory m = { 0 };
	const struct runtime_target target = target_of(&m);
	struct thread_key key;
	uint64_t value;

	(void)state;
	put(&m, POINTER + 784 + 5 * 16 + 8, 0x12345); /* another value */
	put(&m, POINTER + 128, 0);                    /* no array */
	assert_false(thread_key_find(&target, 5, &thread, 1, &key));
	assert_false(thread_key_find(&target, 5, NULL, 0, &key));
	assert_false(thread_key_find(&target, 1024, &thread, 1, &key));
	assert_false(thread_key_find(&target, UINT32_MAX, &thread, 1, &key));
	assert_false(thread_key_search(&target, &thread, 1, &key));
	key = (struct thread_key){ 128, 8, true };
	assert_int_equal(thread_key_read(&target, &key, POINTER, &value), -ENOENT);
	assert_int_equal(thread_key_read(&target, &key, POINTER + 8, &value), -EAGAIN);
}

static void variables(void **state)
{
	static const struct {
		const char *name;
		struct accessor_tls tls;
		struct {
			uint64_t at, word;
		} memory[8];
		struct thread_variable want;
		int result; /* of reading it */
	} cases[] = {
		{ "known when it was linked",
		  { ACCESSOR_TLS_OFFSET, (uint64_t)-24 },
		  { { POINTER - 24, VALUE } },
		  { THREAD_VARIABLE_STATIC, -24 },
		  0 },
		{ "through a slot",
		  { ACCESSOR_TLS_SLOT, 0x2000 },
		  { { 0x3000, (uint64_t)-32 }, { POINTER - 32, VALUE } },
		  { THREAD_VARIABLE_STATIC, -32 },
		  0 },
		{ "a slot that is not there",
		  { ACCESSOR_TLS_SLOT, 0x2000 },
		  { { 0 } },
		  { THREAD_VARIABLE_NONE },
		  -ENOENT },
		{ "glibc, static block",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 2 },
		    { 0x3008, 16 },
		    { POINTER + 8, 0x8000 },
		    { 0x8020, POINTER - 0x100 },
		    { 0x8028, 0 },
		    { POINTER - 0xf0, VALUE } },
		  { THREAD_VARIABLE_STATIC, -0xf0 },
		  0 },
		{ "glibc, a block of this thread",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 2 },
		    { 0x3008, 16 },
		    { POINTER + 8, 0x8000 },
		    { 0x8020, 0x60010 },
		    { 0x8028, 0x60000 },
		    { 0x8010, 0 },
		    { 0x60020, VALUE } },
		  { THREAD_VARIABLE_DYNAMIC, 0, 2, 16, 16 },
		  0 },
		{ "glibc, not used yet",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 2 }, { 0x3008, 16 }, { POINTER + 8, 0x8000 }, { 0x8020, UINT64_MAX }, { 0x8028, 0 } },
		  { THREAD_VARIABLE_DYNAMIC, 0, 2, 16, 16 },
		  -ENOENT },
		{ "musl, static block",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 2 },
		    { 0x3008, 16 },
		    { POINTER + 8, 0x8000 },
		    { 0x8010, POINTER - 0x100 },
		    { POINTER - 0xf0, VALUE } },
		  { THREAD_VARIABLE_STATIC, -0xf0 },
		  0 },
		{ "musl, a block of this thread",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 2 },
		    { 0x3008, 16 },
		    { POINTER + 8, 0x8000 },
		    { 0x8010, 0x7f0000060000 },
		    { 0x7f0000060010, VALUE } },
		  { THREAD_VARIABLE_DYNAMIC, 0, 2, 16, 8 },
		  0 },
		{ "a module that none is",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 99999 }, { 0x3008, 16 }, { POINTER + 8, 0x8000 } },
		  { THREAD_VARIABLE_NONE },
		  -ENOENT },
		{ "module 0",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 0 }, { 0x3008, 16 }, { POINTER + 8, 0x8000 } },
		  { THREAD_VARIABLE_NONE },
		  -ENOENT },
		{ "an offset that none is",
		  { ACCESSOR_TLS_MODULE, 0x2000 },
		  { { 0x3000, 1 }, { 0x3008, UINT64_MAX }, { POINTER + 8, 0x8000 } },
		  { THREAD_VARIABLE_NONE },
		  -ENOENT },
		{ "nothing was found", { ACCESSOR_TLS_NONE, 0 }, { { 0 } }, { THREAD_VARIABLE_NONE }, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct memory m = { 0 };
		const struct runtime_target target = target_of(&m);
		struct thread_variable variable;
		uint64_t value = 0;

		print_message("  %s\n", cases[i].name);
		for (size_t k = 0; k < ARRAY_SIZE(cases[i].memory) && cases[i].memory[k].at; k++)
			put(&m, cases[i].memory[k].at, cases[i].memory[k].word);
		thread_variable_find(&target, &cases[i].tls, POINTER, &variable);
		assert_int_equal(variable.kind, cases[i].want.kind);
		assert_int_equal(variable.at, cases[i].want.at);
		assert_int_equal(variable.module, cases[i].want.module);
		assert_int_equal(variable.entry, cases[i].want.entry);
		assert_int_equal(thread_variable_read(&target, &variable, POINTER, &value), cases[i].result);
		if (!cases[i].result)
			assert_int_equal(value, VALUE);
	}
}

/* ---- this process ---- */

static int own_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	(void)self;
	if (at < 4096)
		return -EFAULT;
	memcpy(dst, (const void *)(uintptr_t)at, size);
	return 0;
}

static __thread uint64_t variable_here;

static void *look_for_own(void *arg)
{
	const struct runtime_target target = { .pid = 1, .read = own_read };
	const pthread_key_t key = *(const pthread_key_t *)arg;
	const struct thread_value self = { (uint64_t)pthread_self(), 0x1234500 };
	struct accessor_tls tls = { ACCESSOR_TLS_OFFSET, (uint64_t)(uintptr_t)&variable_here - self.pointer };
	struct thread_variable variable;
	struct thread_key found;
	uint64_t value;

	pthread_setspecific(key, (void *)(uintptr_t)self.value);
	variable_here = 42;
	if (!thread_key_find(&target, key, &self, 1, &found) ||
	    thread_key_read(&target, &found, self.pointer, &value) < 0 || value != self.value)
		return "the key";
	thread_variable_find(&target, &tls, self.pointer, &variable);
	if (thread_variable_read(&target, &variable, self.pointer, &value) < 0 || value != 42)
		return "the variable";
	return NULL;
}

/* Values of keys of the C library that runs this test, of low and high numbers, in another thread. */
static void own_keys(void **state)
{
	pthread_key_t keys[80];
	pthread_t thread_id;
	void *failed;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_int_equal(pthread_key_create(&keys[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i += 39) {
		assert_int_equal(pthread_create(&thread_id, NULL, look_for_own, &keys[i]), 0);
		assert_int_equal(pthread_join(thread_id, &failed), 0);
		assert_null(failed);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		pthread_key_delete(keys[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_both_libraries),
		cmocka_unit_test(keys_that_are_none),
		cmocka_unit_test(variables),
		cmocka_unit_test(own_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
