/* SPDX-License-Identifier: Apache-2.0 */
/* Files that anybody can start, made to cost much: how much of them is read. */
#include "support.h"

#include <elf.h>

#include "runtime/registry.h"

#define SEGMENTS 250
#define SEGMENT_SIZE MIB(32)
#define TEXTS_AT KIB(64)
#define READ_MAX MIB(512) /* what the limits of all steps add up to, with room */

struct file { /* a head, texts at TEXTS_AT, zeros */
	uint8_t head[sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr)];
	const char *texts;
	size_t texts_size;
	uint64_t bytes_read;
};

static void copy_overlap(void *dst, size_t size, uint64_t offset, const void *from, size_t from_size, uint64_t from_at)
{
	for (size_t i = 0; i < from_size; i++)
		if (from_at + i >= offset && from_at + i - offset < size)
			((uint8_t *)dst)[from_at + i - offset] = ((const uint8_t *)from)[i];
}

static int read_file(void *self, void *dst, size_t size, uint64_t offset)
{
	struct file *f = self;

	f->bytes_read += size;
	memset(dst, 0, size);
	if (offset < sizeof(f->head))
		copy_overlap(dst, size, offset, f->head, sizeof(f->head), 0);
	if (offset < TEXTS_AT + f->texts_size && offset + size > TEXTS_AT)
		copy_overlap(dst, size, offset, f->texts, f->texts_size, TEXTS_AT);
	return 0;
}

/* A program whose segments are all the same bytes, each at its own address. */
static void lay_out(struct file *f)
{
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_EXEC,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(Elf64_Ehdr),
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = SEGMENTS };

	memcpy(f->head, &header, sizeof(header));
	for (size_t i = 0; i < SEGMENTS; i++) {
		const Elf64_Phdr segment = { .p_type = PT_LOAD,
					     .p_flags = PF_R | PF_W,
					     .p_vaddr = MIB(4) + i * 2 * SEGMENT_SIZE,
					     .p_filesz = SEGMENT_SIZE,
					     .p_memsz = SEGMENT_SIZE,
					     .p_align = KIB(4) };

		memcpy(f->head + sizeof(header) + i * sizeof(segment), &segment, sizeof(segment));
	}
}

static void many_segments_are_not_read_each(void **state)
{
	static const struct {
		const char *name, *texts;
		size_t size;
	} cases[] = {
		{ "no texts", "", 0 },
		{ "a version", "\0cpython-312\0Fatal Python error: \0", 34 },
	};
	const struct runtime *python = runtime_find(ABI_RUNTIME_PYTHON);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct file *f = calloc(1, sizeof(*f));
		struct reader in = { .read = read_file, .self = f, .size = SEGMENT_SIZE };
		struct runtime_binary *binary = NULL;
		struct elf elf = { 0 };
		const struct runtime_file file = { .elf = &elf, .path = STR("evil"), .is_program = true };

		print_message("  %s\n", cases[i].name);
		assert_non_null(f);
		f->texts = cases[i].texts;
		f->texts_size = cases[i].size;
		lay_out(f);
		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(elf.segment_count, SEGMENTS);
		assert_int_equal(python->probe(&file, &binary), 0);
		assert_true(f->bytes_read > MIB(1) && f->bytes_read < READ_MAX);
		elf_release(&elf);
		free(f);
	}
}

/* While processes wait, little is read of what is hardly a runtime. */
static void a_quick_look_reads_little(void **state)
{
	static const struct {
		const char *name, *path;
		bool is_program, be_quick;
		int want;
		uint64_t least, most; /* bytes that are read */
	} cases[] = {
		{ "a module", "/lib/_json.cpython-313-x86_64-linux-gnu.so", false, true, -EAGAIN, 0, KIB(64) },
		{ "a long look at it", "/lib/_json.cpython-313-x86_64-linux-gnu.so", false, false, 0, MIB(1),
		  READ_MAX },
		{ "a program", "/bin/program", true, true, -EAGAIN, 0, KIB(64) },
		{ "a library", "/lib/libz.so.1", false, true, 0, 0, KIB(64) },
		{ "a long look at it", "/lib/libz.so.1", false, false, 0, 0, KIB(64) },
	};
	const struct runtime *python = runtime_find(ABI_RUNTIME_PYTHON);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct file *f = calloc(1, sizeof(*f));
		struct reader in = { .read = read_file, .self = f, .size = SEGMENT_SIZE };
		struct runtime_binary *binary = NULL;
		struct elf elf = { 0 };
		const struct runtime_file file = { .elf = &elf,
						   .path = str_of(cases[i].path),
						   .is_program = cases[i].is_program,
						   .be_quick = cases[i].be_quick };

		print_message("  %s\n", cases[i].name);
		assert_non_null(f);
		lay_out(f);
		assert_int_equal(elf_parse(&in, &elf), 0);
		assert_int_equal(python->probe(&file, &binary), cases[i].want);
		assert_in_range(f->bytes_read, cases[i].least, cases[i].most);
		elf_release(&elf);
		free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(many_segments_are_not_read_each),
					    cmocka_unit_test(a_quick_look_reads_little) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
