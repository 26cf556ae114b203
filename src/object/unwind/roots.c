/* SPDX-License-Identifier: Apache-2.0 */
/* makecontext() puts the address of __start_context on a new stack, as if it had called the coroutine's function. So
 * the return address is the first byte of __start_context, and the byte before it, which is what a return address is
 * looked up by, is another function's. Where a shared library has makecontext, the address is what its code loads; in a
 * static program the bytes are searched. Source: glibc 2.36,
 * sysdeps/unix/sysv/linux/x86_64/{makecontext.c,__start_context.S} */
#include "object/unwind/roots.h"

#include <elf.h>

#include "object/elf_find.h"
#include "object/unwind/code.h"
#include "object/x86.h"

#define MAKER_MAX 2048 /* bytes of makecontext looked at */
#define LOADS_MAX 64   /* addresses it loads that are looked at */
#define WINDOW_SIZE KIB(64)
#define CALL_SIZE_X86 5 /* call rel32 */

static int read_at(const struct elf *elf, uint64_t offset, uint8_t *dst, size_t size)
{
	memset(dst, 0, size);
	if (offset >= elf->in.size)
		return 0;
	return reader_read(&elf->in, dst, (size_t)MIN((uint64_t)size, elf->in.size - offset), offset);
}

/* @size bytes at @address are the function. The byte before them is its row's, too, unless that can end a return or a
 * call that does not return: a frame there is of the function before, which has a caller. */
static int put_root(const struct elf *elf, uint64_t address, size_t size, struct cfi *out)
{
	size_t first = out->row_count;
	uint8_t before[CALL_SIZE_X86];
	uint64_t offset;
	bool is_others;
	int r;

	if (elf_offset_of(elf, address - sizeof(before), &offset) < 0)
		return 0;
	r = read_at(elf, offset, before, sizeof(before));
	if (r == 0)
		r = cfi_put_row(out, 0, (struct abi_row){ .cfa = ABI_CFA_STOP });
	if (r < 0)
		return r;
	is_others = before[CALL_SIZE_X86 - 1] == CODE_RETURN_X86 || before[0] == CODE_CALL_X86;
	return is_others ? cfi_put_span(out, address, (uint32_t)size, first, false)
			 : cfi_put_span(out, address - 1, (uint32_t)size + 1, first, false);
}

static int try_address(const struct elf *elf, uint64_t address, struct cfi *out, bool *found)
{
	uint8_t code[CODE_CONTEXT_SIZE];
	uint64_t offset;
	size_t size;
	int r;

	if (elf_offset_of(elf, address, &offset) < 0)
		return 0;
	r = read_at(elf, offset, code, sizeof(code));
	size = r < 0 ? 0 : code_start_context_size(elf->machine, code);
	*found = size > 0;
	return size ? put_root(elf, address, size, out) : r;
}

/* What the code at @address loads the address of: lea n(%rip), %reg. */
static int search_loads(const struct elf *elf, uint64_t address, size_t size, struct cfi *out)
{
	uint8_t code[MAKER_MAX];
	bool found = false;
	uint64_t offset;
	int r = 0;

	if (elf_offset_of(elf, address, &offset) < 0)
		return 0;
	size = MIN(size, sizeof(code));
	r = read_at(elf, offset, code, size);
	for (size_t i = 0, loads = 0; r == 0 && !found && loads < LOADS_MAX && i + 7 <= size; i++) {
		uint32_t displacement;

		if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d || (code[i + 2] & 0xc7) != 5)
			continue;
		displacement = (uint32_t)code[i + 3] | (uint32_t)code[i + 4] << 8 | (uint32_t)code[i + 5] << 16 |
			       (uint32_t)code[i + 6] << 24;
		r = try_address(elf, address + i + 7 + (uint64_t)(int64_t)(int32_t)displacement, out, &found);
		loads++;
	}
	return r;
}

/* The whole code of a static program, as far as the limit goes. */
static int search_code(const struct elf *elf, const struct elf_segment *s, struct cfi *out)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	struct reader in = reader_slice(&elf->in, s->offset, MIN(s->file_size, (uint64_t)UNWIND_ROOTS_CODE_MAX));
	bool found = false;
	int r = reader_window_init(&w, &in, WINDOW_SIZE);

	for (uint64_t at = 0; r == 0 && !found && at < in.size;) {
		size_t chunk = (size_t)MIN((uint64_t)WINDOW_SIZE, in.size - at);
		const uint8_t *code = reader_window_get(&w, at, chunk);
		ptrdiff_t hit;

		if (!code)
			return w.error;
		hit = code_find_start_context(elf->machine, code, chunk);
		if (hit >= 0) {
			uint64_t start = at + (uint64_t)hit;

			r = try_address(elf, s->address + start, out, &found);
			at = start + 1;
		} else {
			at += chunk > CODE_CONTEXT_SIZE ? chunk - CODE_CONTEXT_SIZE : chunk;
		}
	}
	return r;
}

/* A program that names no loader and starts as glibc's programs do. */
static bool is_static_glibc(const struct elf *elf)
{
	uint8_t code[CODE_ENTRY_SIZE];
	uint64_t offset;

	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_INTERP)
			return false;
	return elf_offset_of(elf, elf->entry, &offset) == 0 && read_at(elf, offset, code, sizeof(code)) == 0 &&
	       code_is_glibc_entry(elf->machine, code);
}

/* ---- musl ---- */

/* In the code at @address, up to its first jump or return: the target of the first direct call or jump, or with
 * @want_load the last address that is loaded. 0: there is none. */
static uint64_t search_target(const struct elf *elf, uint64_t address, bool want_load)
{
	uint8_t code[CODE_START_SIZE];
	struct x86 i;
	uint64_t offset, load = 0;

	if (elf_offset_of(elf, address, &offset) < 0 || read_at(elf, offset, code, sizeof(code)) < 0)
		return 0;
	for (size_t at = 0; at < sizeof(code); at += i.length) {
		if (x86_decode(code + at, sizeof(code) - at, address + at, &i) < 0 || i.flow == X86_FLOW_END)
			break;
		if (!i.map && i.opcode == 0x8d && i.memory == X86_MEMORY_RELATIVE)
			load = i.address;
		if (!want_load && (i.flow == X86_FLOW_CALL || i.flow == X86_FLOW_JUMP))
			return i.target;
		if (i.flow == X86_FLOW_JUMP)
			break;
	}
	return want_load ? load : 0;
}

/* @start_main: the address of __libc_start_main, whose last load of an address is that of the function that calls main
 * and exit. Nothing else calls it, and it does not return. */
static int read_start_main(const struct elf *elf, uint64_t start_main, struct cfi *out)
{
	uint64_t stage2 = search_target(elf, start_main, true), offset;
	uint8_t code[CODE_START_SIZE];
	size_t size, first = out->row_count;
	int r;

	if (!stage2 || elf_offset_of(elf, stage2, &offset) < 0)
		return 0;
	r = read_at(elf, offset, code, sizeof(code));
	size = r < 0 ? 0 : code_exit_call_size(elf->machine, code, sizeof(code));
	if (!size)
		return r;
	r = cfi_put_row(out, 0, (struct abi_row){ .cfa = ABI_CFA_STOP });
	return r < 0 ? r : cfi_put_span(out, stage2, (uint32_t)size, first, false);
}

/* musl's _start calls _start_c, and that calls __libc_start_main. */
static uint64_t start_main_of_entry(const struct elf *elf)
{
	uint8_t code[CODE_ENTRY_SIZE];
	uint64_t offset, start_c;
	size_t size;

	if (elf_offset_of(elf, elf->entry, &offset) < 0 || read_at(elf, offset, code, sizeof(code)) < 0)
		return 0;
	size = code_musl_entry_size(elf->machine, code);
	if (!size)
		return 0;
	start_c = search_target(elf, elf->entry + size - 5, false);
	return start_c ? search_target(elf, start_c, false) : 0;
}

int unwind_roots_read(const struct elf *elf, struct cfi *out)
{
	struct elf_dynamic dynamic;
	struct elf_found maker, start_main;
	bool has_symbols;
	uint64_t start;
	int r = 0;

	if (elf->machine != EM_X86_64)
		return 0;
	has_symbols = elf_dynamic_read(elf, &dynamic) == 0;
	if (has_symbols && elf_dynamic_find(elf, &dynamic, "makecontext", &maker) == 0)
		return search_loads(elf, maker.address, (size_t)MIN(maker.size, (uint64_t)MAKER_MAX), out);
	if (has_symbols && elf_dynamic_find(elf, &dynamic, "__libc_start_main", &start_main) == 0)
		return read_start_main(elf, start_main.address, out);
	start = start_main_of_entry(elf);
	if (start)
		return read_start_main(elf, start, out);
	if (!is_static_glibc(elf))
		return 0;
	for (size_t i = 0; r == 0 && i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			r = search_code(elf, &elf->segments[i], out);
	return r;
}
