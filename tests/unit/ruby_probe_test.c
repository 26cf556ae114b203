/* SPDX-License-Identifier: Apache-2.0 */
/* What is found in files that say they are Ruby (tests/corpus/ruby_probe/): versions that are known, others, and code
 * that is not what the table of its version says. */
#include "support.h"

#include "base/io.h"
#include "object/accessor.h"
#include "runtime/ruby/ruby_int.h"

static void read_file(const char *name, struct buf *out)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(4));
	const char *root = getenv("HEARTH_SOURCE_ROOT");

	buf_addf(&path, "%s/tests/corpus/ruby_probe/%s", root ? root : ".", name);
	assert_int_equal(io_read_file(buf_cstr(&path), out), 0);
}

/* Of the only place where @old is. */
static void replace(struct buf *bytes, const void *old, const void *new, size_t size)
{
	uint8_t *found = memmem(bytes->ptr, bytes->len, old, size);

	assert_non_null(found);
	memcpy(found, new, size);
	assert_null(memmem(found + 1, (size_t)((uint8_t *)bytes->ptr + bytes->len - found) - 1, old, size));
}

static struct ruby_binary *probed(const struct buf *bytes)
{
	scoped(elf_release) struct elf elf = { 0 };
	const struct runtime_file file = { .elf = &elf, .path = STR("/usr/lib/libruby.so") };
	struct reader in = reader_of(bytes->ptr, bytes->len);
	struct runtime_binary *binary = NULL;

	assert_int_equal(elf_parse(&in, &elf), 0);
	assert_int_equal(ruby_probe(&file, &binary), 1);
	return (struct ruby_binary *)binary;
}

static void versions(void **state)
{
	static const struct {
		const char *file, *old, *new, *refused;
	} cases[] = {
		{ "2", "2.7.4", "2.7.4", "" },
		{ "2", "2.7.4", "2.6.9", "" },
		{ "3", "3.3.8", "3.3.8", "" },
		{ "3", "3.3.8", "3.4.1", "" },
		{ "3", "3.3.8", "4.0.0", "" },
		{ "2", "2.7.4", "2.4.9", "version 2.4.9 is not known, 2.5 to 4.0 are" },
		{ "2", "2.7.4", "1.9.3", "version 1.9.3 is not known, 2.5 to 4.0 are" },
		{ "3", "3.3.8", "4.1.0", "version 4.1.0 is not known, 2.5 to 4.0 are" },
		{ "3", "3.3.8", "9.9.9", "version 9.9.9 is not known, 2.5 to 4.0 are" },
		/* its code has the context's thread at 48, the table of these versions elsewhere */
		{ "3", "3.3.8", "3.0.4", "rb_thread_current() is not that of version 3.0 on x86-64" },
		/* 56 there */
		{ "2", "2.7.4", "2.5.9", "rb_thread_current() is not that of version 2.5 on x86-64" },
		/* no thread-local variable, and no key */
		{ "2", "2.7.4", "3.1.2", "rb_thread_current() is not that of version 3.1 on x86-64" },
		{ "3", "3.3.8", "2.7.4", "rb_thread_current() is not that of version 2.7 on x86-64" },
		{ "3", "3.3.8", "x.3.8", "its version cannot be found" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
		struct ruby_binary *b;

		print_message("  %s\n", cases[i].new);
		read_file(cases[i].file, &bytes);
		replace(&bytes, cases[i].old, cases[i].new, strlen(cases[i].old));
		b = probed(&bytes);
		assert_string_equal(b->base.refused, cases[i].refused);
		assert_int_equal(b->version != NULL, !cases[i].refused[0]);
		if (b->version)
			assert_string_equal(b->base.version, cases[i].new);
		ruby_release(&b->base);
	}
}

static int no_memory(void *self, void *dst, uint32_t size, uint64_t at)
{
	(void)self;
	(void)dst;
	(void)size;
	(void)at;
	fail();
	return -EFAULT;
}

/* The version is right, and one byte of the code is not: the load of the context's thread has another offset. */
static void code_that_disagrees(void **state)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(KIB(64));
	const struct runtime_target target = { .pid = 1, .read = no_memory };
	uint8_t info[RUNTIME_INFO_MAX];
	struct ruby_binary *b;
	uint8_t *code;

	(void)state;
	read_file("3", &bytes);
	code = (uint8_t *)bytes.ptr + 0x264; /* rb_thread_current(), 36 bytes */
	for (size_t i = 0; i + 3 < 36; i++)
		if (code[i] == 0x48 && code[i + 1] == 0x8b && code[i + 3] == 48) /* mov 48(r),r */
			code[i + 3] = 56;
	b = probed(&bytes);
	assert_string_equal(b->base.refused, "rb_thread_current() is not that of version 3.3 on x86-64");
	assert_null(b->version);
	assert_int_equal(ruby_attach(&b->base, &target, info), -ENOTSUP); /* nothing is read */
	ruby_release(&b->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(code_that_disagrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
