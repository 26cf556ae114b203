/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "object/unwind/cfi_caller.h"
#include "object/unwind/cfi_int.h"
#include "object/unwind/table.h"

#define STACK UINT64_C(0x7fff00000000)

/* Memory that holds its own address, but for the top half of all there is. */
static int echo(void *self, void *dst, uint32_t size, uint64_t at)
{
	(void)self;
	if (at > INT64_MAX)
		return -EFAULT;
	memcpy(dst, &at, size);
	return 0;
}

static const struct cfi_memory memory = { .read = echo };

/* Register n holds STACK + n * 0x100; 17 and up are not known. */
static struct cfi_registers registers(void)
{
	struct cfi_registers r = { .known = (1u << 17) - 1 };

	for (size_t i = 0; i < ABI_REGS; i++)
		r.value[i] = STACK + i * 0x100;
	return r;
}

/* @hex may have spaces. */
static struct cur code_of(const char *hex)
{
	char plain[256];
	size_t length = 0;

	for (; *hex; hex++)
		if (*hex != ' ')
			plain[length++] = *hex;
	plain[length] = 0;
	return guard_page_hex(plain);
}

static void evaluates(void **state)
{
	static const struct {
		const char *name, *hex;
		uint64_t want;
	} cases[] = {
		{ "what was there", "", 0x40 },
		{ "register", "7710", STACK + 0x710 },
		{ "register, below", "7778", STACK + 0x6f8 },
		{ "register by number", "920310", STACK + 0x310 },
		{ "OpenSSL's array", "7900332477082206 2308", (STACK + 0x900) * 8 + STACK + 0x710 },
		{ "memory", "770006", STACK + 0x700 },
		{ "a byte of it", "77009401", 0 },
		{ "constants",
		  "08ff09ff22 0afeff0bfeff22 22 0c010000000dffffffff22 22 0e010000000000000022 1005117b22 22",
		  0xfe + 0xfffc + 1 },
		{ "dup, over, swap, rot, pick, drop", "31 32 33 17 16 13 12 22 15 01 22 14 22", 10 },
		{ "difference", "39331c", 6 },
		{ "product, quotient, remainder", "35341e321b331d", 1 },
		{ "quotient below zero", "09f8321b", (uint64_t)-4 },
		{ "and, or, xor, not", "3f331a342127 20", (uint64_t)~0x47 },
		{ "negative, absolute", "351f19", 5 },
		{ "shifts", "31 3424 31 25", 8 },
		{ "shift too far", "31084024", 0 },
		{ "arithmetic shift", "09f03226", (uint64_t)-4 },
		{ "arithmetic shift too far", "09f0086426", UINT64_MAX },
		{ "signed comparison", "09ff302d", 1 },
		{ "PLT", "77088000 3f1a3b2a332422", STACK + 0x708 },
		{ "skip", "352f0100963123 0a", 11 },
		{ "branch", "3531280100 3f", 5 },
		{ "branch not taken", "3530280100 3f", 15 },
	};
	struct cfi_registers now = registers();
	const uint64_t start = 0x40;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 7;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(cfi_evaluate(code_of(cases[i].hex), &start, &now, &memory, &value), 0);
		assert_int_equal(value, cases[i].want);
	}
}

static void refuses_expressions(void **state)
{
	static const struct {
		const char *name, *hex;
		int want;
	} cases[] = {
		{ "nothing", "", -EBADMSG },
		{ "operand cut off", "0a01", -EBADMSG },
		{ "no operands", "22", -EBADMSG },
		{ "one operand", "3122", -EBADMSG },
		{ "nothing to drop", "13", -EBADMSG },
		{ "pick too deep", "311501", -EBADMSG },
		{ "division by zero", "31301b", -EBADMSG },
		{ "remainder by zero", "31301d", -EBADMSG },
		{ "the quotient that does not fit", "0f000000000000008009ff1b", -EBADMSG },
		{ "memory that is not there", "09ff06", -EFAULT },
		{ "nine bytes", "319409", -EBADMSG },
		{ "a register that is not known", "92110 0", -ENOTSUP },
		{ "a register there is not", "92ffff7f00", -ENOTSUP },
		{ "an address of the file", "031122334455667788", -ENOTSUP },
		{ "jump out of it", "2f1000", -EBADMSG },
		{ "jump before it", "2ff0ff", -EBADMSG },
		{ "without end", "2ffdff", -ENOTSUP },
		{ "stack without end", "312ffcff", -ENOTSUP },
		{ "reads without end", "7700062ffcff", -ENOTSUP },
		{ "GNU's entry value", "f30155", -ENOTSUP },
	};
	struct cfi_registers now = registers();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 7;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(cfi_evaluate(code_of(cases[i].hex), NULL, &now, &memory, &value), cases[i].want);
		assert_int_equal(value, 7); /* untouched on failure */
	}
}

static int read_fd(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all((int)(intptr_t)self, dst, size, offset);
}

/* What a row says of the frame that @now stands in. Return: false when it says nothing that can be compared. */
static bool by_row(const struct abi_row *row, const struct cfi_registers *now, uint64_t *cfa, uint64_t *fp)
{
	if (!row || (row->cfa != ABI_CFA_SP && row->cfa != ABI_CFA_FP) || row->saved == ABI_SAVED_UNDEFINED)
		return false;
	*cfa = now->value[row->cfa == ABI_CFA_SP ? 7 : 6] + row->cfa_off * 8u;
	*fp = row->saved == ABI_SAVED_SAME ? now->value[6] : *cfa + (uint64_t)(int64_t)(row->fp_off * 8);
	return true;
}

/* Every function of a file, at its first byte and in its middle. */
static void compare_file(const char *path, uint64_t *compared)
{
	scoped(unwind_table_release) struct unwind_table t = { 0 };
	scoped(elf_release) struct elf elf = { 0 };
	scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader in = { .read = read_fd, .self = (void *)(intptr_t)fd, .size = (uint64_t)lseek(fd, 0, SEEK_END) };
	struct cfi_registers now = registers(), up;
	struct cfi_file file;

	if (fd < 0)
		return;
	assert_int_equal(elf_parse(&in, &elf), 0);
	if (elf.machine != EM_X86_64)
		return;
	assert_int_equal(unwind_table_build(&elf, NULL, &t), 0);
	assert_int_equal(cfi_file_open(&elf, &file), 0);
	for (uint32_t i = 0; i < file.fdes.count; i += 7) {
		struct elf_fde fde;

		if (elf_fde_at(&elf, &file.fdes, i, &fde) < 0)
			continue;
		for (uint64_t at = fde.start; at < fde.start + fde.size; at += fde.size / 2 + 1) {
			const struct abi_row *row;
			uint64_t offset, cfa, fp;

			if (elf_offset_of(&elf, at, &offset) < 0)
				continue;
			row = unwind_table_find(t.elements, offset);
			if (!by_row(row, &now, &cfa, &fp))
				continue;
			assert_int_equal(cfi_caller(&file, at, false, &now, &memory, &up), 0);
			assert_int_equal(up.value[7], cfa);
			assert_int_equal(up.value[16], cfa - 8);
			assert_int_equal(up.value[6], fp);
			(*compared)++;
		}
	}
}

static void agrees_with_the_rows(void **state)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/git",
					     "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					     "/usr/lib/x86_64-linux-gnu/libstdc++.so.6" };
	uint64_t compared = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		compare_file(paths[i], &compared);
	print_message("  %llu places\n", (unsigned long long)compared);
	if (!compared)
		skip_because("none of the files is there");
}

static void put(struct buf *b, const void *bytes, size_t size)
{
	uint8_t *to = buf_reserve(b, size);

	assert_non_null(to);
	memcpy(to, bytes, size);
	b->len += size;
}

/* An entry of .eh_frame: @head, then @nops instructions that do nothing. */
static void put_entry(struct buf *b, const void *head, size_t size, size_t nops)
{
	uint32_t length = (uint32_t)(size + nops);

	put(b, &length, sizeof(length));
	put(b, head, size);
	for (size_t i = 0; i < nops; i++)
		put(b, "", 1);
}

/* A hostile file makes each instruction be run once for each register, in every frame of a stack. */
static void long_programs_are_refused(void **state)
{
	static const struct {
		const char *name;
		size_t common, function; /* instructions */
		int want;
	} cases[] = {
		{ "short", 0, 0, 0 },
		{ "just short enough", KIB(8) - 64, KIB(8) - 64, 0 },
		{ "a long one of all functions", KIB(8) + 64, 0, -ENOTSUP },
		{ "a long one of the function", 0, KIB(8) + 64, -ENOTSUP },
	};
	/* id, version, no augmentation, factors 1 and -8, return address 16; CFA rsp + 8, return address there */
	static const uint8_t common[] = { 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf b = BUF_INIT(KIB(64));
		struct cfi_section section = { .machine = EM_X86_64, .is_eh = true };
		struct cfi_rules rules = { .ra = 77 };
		struct {
			uint32_t common;
			uint64_t start, size;
		} __attribute__((packed)) function = { .start = 0x1000, .size = 0x10000 };
		size_t at;

		print_message("  %s\n", cases[i].name);
		put_entry(&b, common, sizeof(common), cases[i].common);
		at = b.len;
		function.common = (uint32_t)at + 4;
		put_entry(&b, &function, sizeof(function), cases[i].function);
		section.in = reader_of(b.ptr, b.len);
		assert_int_equal(cfi_rules_at(&section, at, 0x2000, &rules), cases[i].want);
		assert_int_equal(rules.ra, cases[i].want ? 77 : 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evaluates),
		cmocka_unit_test(refuses_expressions),
		cmocka_unit_test(agrees_with_the_rows),
		cmocka_unit_test(long_programs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
