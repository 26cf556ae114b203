/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <elf.h>

#include "object/elf.h"

/* A 64-bit header with one program header, as far as @size goes. */
static struct cur image(const Elf64_Ehdr *head, const Elf64_Phdr *segment, size_t size)
{
	uint8_t bytes[sizeof(*head) + sizeof(*segment)];

	memcpy(bytes, head, sizeof(*head));
	memcpy(bytes + sizeof(*head), segment, sizeof(*segment));
	return guard_page(bytes, MIN(size, sizeof(bytes)));
}

static const Elf64_Ehdr good_head = {
	.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	.e_type = ET_DYN,
	.e_machine = EM_X86_64,
	.e_version = 1,
	.e_entry = 0x2000,
	.e_phoff = sizeof(Elf64_Ehdr),
	.e_ehsize = sizeof(Elf64_Ehdr),
	.e_phentsize = sizeof(Elf64_Phdr),
	.e_phnum = 1,
};
static const Elf64_Phdr good_segment = {
	.p_type = PT_LOAD,
	.p_flags = PF_R | PF_X,
	.p_offset = 0x1234,
	.p_vaddr = 0x402234,
	.p_filesz = 0x1000,
	.p_memsz = 0x1000,
};

static int parse(struct cur in, struct elf *out)
{
	struct reader reader = reader_of(in.pos, cur_left(&in));

	return elf_parse(&reader, out);
}

static void translates_offsets(void **state)
{
	static const struct {
		const char *name;
		uint64_t offset, address;
		int want;
	} cases[] = {
		{ "first byte", 0x1234, 0x402234, 0 },
		{ "last byte", 0x2233, 0x403233, 0 },
		{ "the page's head, before the segment", 0x1000, 0x402000, 0 },
		{ "the page's tail", 0x2240, 0x403240, 0 },
		{ "another page", 0x4000, 0, -ENOENT },
		{ "before", 0xfff, 0, -ENOENT },
		{ "far", UINT64_MAX, 0, -ENOENT },
	};
	scoped(elf_release) struct elf elf = { 0 };
	uint64_t back;

	(void)state;
	assert_int_equal(parse(image(&good_head, &good_segment, SIZE_MAX), &elf), 0);
	assert_int_equal(elf_base(&elf), 0x402234);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t address = 0;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(elf_address_of(&elf, cases[i].offset, &address), cases[i].want);
		assert_int_equal(address, cases[i].address);
	}
	assert_int_equal(elf_offset_of(&elf, 0x402240, &back), 0);
	assert_int_equal(back, 0x1240);
	assert_int_equal(elf_offset_of(&elf, 0x403234, &back), -ENOENT);
}

static void survives_every_truncation(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(good_head) + sizeof(good_segment); size++) {
		struct elf elf = { .entry = 7 };

		assert_int_equal(parse(image(&good_head, &good_segment, size), &elf), -EBADMSG);
		assert_int_equal(elf.entry, 7); /* untouched on failure */
	}
}

static void judges_headers(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		static const char *const names[] = { "magic", "class", "big-endian", "version", "entry size", "count" };
		static const int want[] = { -EBADMSG, -EBADMSG, -ENOTSUP, -EBADMSG, -EBADMSG, -E2BIG };
		Elf64_Ehdr head = good_head;
		struct elf elf;

		print_message("  %s\n", names[i]);
		if (i == 0)
			head.e_ident[1] = 'e';
		else if (i == 1)
			head.e_ident[EI_CLASS] = 3;
		else if (i == 2)
			head.e_ident[EI_DATA] = ELFDATA2MSB;
		else if (i == 3)
			head.e_ident[EI_VERSION] = 2;
		else if (i == 4)
			head.e_phentsize = 55;
		else
			head.e_phnum = 0xfffe;
		assert_int_equal(parse(image(&head, &good_segment, SIZE_MAX), &elf), want[i]);
	}
}

static void a_broken_section_table_costs_only_itself(void **state)
{
	scoped(elf_release) struct elf elf = { 0 };
	Elf64_Ehdr head = good_head;

	(void)state;
	head.e_shoff = UINT64_MAX - 10;
	head.e_shnum = 20;
	head.e_shentsize = sizeof(Elf64_Shdr);
	assert_int_equal(parse(image(&head, &good_segment, SIZE_MAX), &elf), 0);
	assert_int_equal(elf.segment_count, 1);
	assert_int_equal(elf.section_count, 0);
	assert_null(elf_section_find(&elf, STR(".text")));
}

static void reads_build_ids(void **state)
{
	static const struct {
		const char *name, *hex;
		int want;
	} cases[] = {
		{ "plain",
		  "0400000004000000"
		  "03000000"
		  "474e5500"
		  "01020304",
		  4 },
		{ "behind another",
		  "0400000001000000"
		  "05000000"
		  "474e5500"
		  "ff000000"
		  "0400000003000000"
		  "03000000"
		  "474e5500"
		  "010203",
		  3 },
		{ "other owner",
		  "0400000004000000"
		  "03000000"
		  "58585800"
		  "01020304",
		  -ENOENT },
		{ "none", "", -ENOENT },
		{ "empty id",
		  "0400000000000000"
		  "03000000"
		  "474e5500",
		  -EBADMSG },
		{ "cut off",
		  "0400000004000000"
		  "03000000"
		  "474e5500"
		  "0102",
		  -EBADMSG },
		{ "size wraps",
		  "04000000ffffffff"
		  "03000000"
		  "474e5500"
		  "01020304",
		  -EBADMSG },
		{ "name wraps",
		  "fdffffff04000000"
		  "03000000"
		  "474e5500"
		  "01020304",
		  -EBADMSG },
		{ "too long",
		  "0400000041000000"
		  "03000000"
		  "474e5500"
		  "00000000000000000000000000000000000000000000000000000000000000000000"
		  "00000000000000000000000000000000000000000000000000000000000000000000",
		  -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cur in = guard_page_hex(cases[i].hex);
		uint8_t id[ELF_BUILD_ID_MAX];

		print_message("  %s\n", cases[i].name);
		assert_int_equal(elf_notes_build_id(in.pos, cur_left(&in), id), cases[i].want);
		if (cases[i].want > 0)
			assert_int_equal(id[2], 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(translates_offsets), cmocka_unit_test(survives_every_truncation),
		cmocka_unit_test(judges_headers),     cmocka_unit_test(a_broken_section_table_costs_only_itself),
		cmocka_unit_test(reads_build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
