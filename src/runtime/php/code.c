/* SPDX-License-Identifier: Apache-2.0 */
/* Does the code of a file find frames and functions where the table of its version says? Three functions that every
 * build exports for extensions go there:
 *
 *	zend_get_executed_lineno       executor_globals.current_execute_data, func, prev_execute_data
 *	zend_get_executed_filename_ex  these, and filename
 *	pass_two                       last, opcodes
 *
 * Each must have all of its offsets in its code. The code was compared in builds of 7.4, 8.2, 8.3, 8.4 and 8.5 of
 * Debian, Amazon Linux and AlmaLinux (cli, fpm, cgi, mod_php, embed; one for threads). line_start stands directly
 * behind filename in all versions; type and function_name have one place in all of them. Sources: php-src,
 * Zend/zend_execute_API.c and Zend/zend_opcode.c of 7.0 to 8.5; Arm Architecture Reference Manual for A-profile, C6.2,
 * for the encodings of adrp, add, and of loads and stores of one register and of two. */
#include <elf.h>

#include "base/cur.h"
#include "object/x86.h"
#include "runtime/php/php_int.h"

#define CODE_MAX 512 /* bytes of a function that are looked at */
#define WANT_MAX 4

struct wanted {
	uint64_t globals; /* address of executor_globals; 0: not known */
	uint32_t current; /* in it: code may have the sum alone */
	uint32_t offsets[WANT_MAX];
	size_t count;
	uint32_t found; /* a bit for each */
};

static void meet(struct wanted *w, uint64_t offset)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->offsets[i] == offset)
			w->found |= 1U << i;
}

/* A constant address, of which code that is not moved makes one with the offset in it. */
static void meet_address(struct wanted *w, uint64_t address)
{
	if (w->globals && address - w->globals == w->current)
		meet(w, w->current);
}

/* Return: bytes that were looked at: all, up to an instruction that cannot be decoded. */
static size_t look_x86(const uint8_t *bytes, size_t size, uint64_t address, struct wanted *w)
{
	struct x86 i;
	size_t at;

	for (at = 0; at < size; at += i.length) {
		if (x86_decode(bytes + at, size - at, address + at, &i) < 0)
			break;
		if (i.memory == X86_MEMORY_BASE || i.memory == X86_MEMORY_OTHER)
			meet(w, (uint64_t)i.displacement);
		else if (i.memory != X86_MEMORY_NONE)
			meet_address(w, i.address);
	}
	return at;
}

#define AARCH64_ADRP(op) (((op)&0x9f000000) == 0x90000000)
#define AARCH64_ADD(op) (((op)&0xffc00000) == 0x91000000)
#define AARCH64_ACCESS(op) (((op)&0x3f000000) == 0x39000000) /* at an unsigned offset, in units of its size */
#define AARCH64_PAIR(op) (((op)&0x7f800000) == 0x29000000)

static uint64_t aarch64_page(uint32_t op, uint64_t at)
{
	uint64_t pages = (op >> 3 & 0x1ffffc) | (op >> 29 & 3);

	if (pages & 0x100000) /* the sign of 21 bits */
		pages |= ~UINT64_C(0x1fffff);
	return (at & ~UINT64_C(0xfff)) + (pages << 12);
}

static void look_aarch64(const uint8_t *bytes, size_t size, uint64_t address, struct wanted *w)
{
	struct cur in = cur_of(bytes, size);
	uint64_t pages[32] = { 0 }; /* that each register was set to last */

	for (uint64_t at = address; size - (size_t)(at - address) >= 4; at += 4) {
		uint32_t op = cur_le32(&in), base = op >> 5 & 31, imm = op >> 10 & 0xfff;

		if (AARCH64_ADRP(op)) {
			pages[op & 31] = aarch64_page(op, at);
		} else if (AARCH64_ADD(op)) {
			meet(w, imm);
			meet_address(w, pages[base] + imm);
		} else if (AARCH64_ACCESS(op)) {
			imm <<= op >> 30;
			meet(w, imm);
			meet_address(w, pages[base] + imm);
		} else if (AARCH64_PAIR(op) &&
			   !(op >> 21 & 1)) { /* bit 21 is the sign: negative offsets are left out */
			imm = (op >> 15 & 63) << (op >> 31 ? 3 : 2);
			meet(w, imm);
			meet(w, imm + (op >> 31 ? 8 : 4));
		}
	}
}

static enum php_code_says ask(const struct elf *elf, const struct php_code *code, struct wanted *w)
{
	uint8_t bytes[CODE_MAX];
	uint64_t offset, size = MIN(code->size, (uint64_t)CODE_MAX);
	size_t looked = (size_t)size;

	if (!size || elf_offset_of(elf, code->address, &offset) < 0 || offset >= elf->in.size ||
	    size > elf->in.size - offset || reader_read(&elf->in, bytes, (size_t)size, offset) < 0)
		return PHP_CODE_UNSURE;
	if (elf->machine == EM_X86_64)
		looked = look_x86(bytes, (size_t)size, code->address, w);
	else
		look_aarch64(bytes, (size_t)size, code->address, w);
	if (w->found == (1U << w->count) - 1)
		return PHP_CODE_AGREES;
	/* Half of a function that has nothing of what is wanted is another one's. */
	if (looked < code->size && (w->found || looked < size / 2))
		return PHP_CODE_UNSURE;
	return PHP_CODE_DISAGREES;
}

enum php_code_says php_code_says(const struct elf *elf, const struct php_code code[PHP_CODE_COUNT],
				 const struct abi_php_layout *l, uint64_t globals, const char **function)
{
	enum php_code_says all = PHP_CODE_AGREES;
	const struct {
		const char *name;
		uint32_t offsets[WANT_MAX];
		size_t count;
	} rows[] = {
		[PHP_CODE_LINE] = { "zend_get_executed_lineno", { l->current, ABI_PHP_FRAME_FUNC, l->frame_prev }, 3 },
		[PHP_CODE_FILE] = { "zend_get_executed_filename_ex",
				    { l->current, ABI_PHP_FRAME_FUNC, l->frame_prev, l->func_file },
				    4 },
		[PHP_CODE_PASS] = { "pass_two", { l->func_last, l->func_opcodes }, 2 },
	};

	_Static_assert(ARRAY_SIZE(rows) == PHP_CODE_COUNT, "a row for each function");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wanted w = { .globals = globals, .current = l->current, .count = rows[i].count };
		enum php_code_says says;

		memcpy(w.offsets, rows[i].offsets, sizeof(w.offsets));
		says = ask(elf, &code[i], &w);
		if (says <= all)
			continue;
		all = says;
		*function = rows[i].name;
	}
	return all;
}
