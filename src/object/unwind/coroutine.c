/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/coroutine.h"

#include <elf.h>

#include "object/elf_fde.h"
#include "object/x86.h"

#define WINDOW_SIZE KIB(64)
#define BEFORE 64    /* bytes in front of the store of 0 in which the stack's end is rounded */
#define AFTER 64     /* bytes behind it in which the address is stored */
#define STORE_MIN 8  /* bytes of movq $0,-8(%A) */
#define STEPS_MAX 10 /* instructions behind it */
#define LEA_SIZE 7   /* lea n(%rip),%D */
#define REGISTERS 16
#define OP_STORE 0x89
#define OP_LEA 0x8d

/* movq $0,-8(%A). Return: its size with *base, or 0. Those by rsp and r12 have a byte more. */
static size_t zero_store(const uint8_t *p, uint8_t *base)
{
	static const uint8_t behind[] = { 0xf8, 0, 0, 0, 0 };
	bool has_sib = (p[2] & 7) == 4;

	if ((p[0] & 0xfe) != 0x48 || p[1] != 0xc7 || (p[2] & 0xf8) != 0x40 || (has_sib && p[3] != 0x24) ||
	    memcmp(p + 3 + has_sib, behind, sizeof(behind)) != 0)
		return 0;
	*base = (uint8_t)((p[0] & 1) << 3 | (p[2] & 7));
	return STORE_MIN + has_sib;
}

/* Is and $-16,%A among the bytes before @end? */
static bool is_rounded(const uint8_t *end, uint8_t base)
{
	const uint8_t wanted[] = { (uint8_t)(0x48 | base >> 3), 0x83, (uint8_t)(0xe0 | (base & 7)), 0xf0 };

	return str_search(str_n((const char *)end - BEFORE, BEFORE), str_n((const char *)wanted, sizeof(wanted))) >= 0;
}

/* Which registers may have the address @start at @end, @at in the file: bits. */
static uint32_t loaded_before(const uint8_t *end, uint64_t at, uint64_t start)
{
	uint32_t registers = 0;

	for (size_t back = LEA_SIZE; back <= BEFORE; back++) {
		struct x86 i;

		if (x86_decode(end - back, back, at - back, &i) == 0 && !i.map && i.opcode == OP_LEA && i.is_wide &&
		    i.memory == X86_MEMORY_RELATIVE && i.address == start && i.reg < REGISTERS)
			registers |= 1U << i.reg;
	}
	return registers;
}

/* Is the address @start stored at -8 from a register in the code from @code on, before anything jumps? */
static bool is_stored(const uint8_t *code, uint64_t at, uint64_t start, uint32_t registers)
{
	size_t done = 0;

	for (int step = 0; step < STEPS_MAX; step++) {
		struct x86 i;

		if (x86_decode(code + done, AFTER - done, at + done, &i) < 0 || i.flow != X86_FLOW_NEXT)
			return false;
		done += i.length;
		if (i.map || i.reg >= REGISTERS || !i.is_wide)
			continue;
		if (i.opcode == OP_LEA && i.memory == X86_MEMORY_RELATIVE && i.address == start)
			registers |= 1U << i.reg;
		else if (i.opcode == OP_STORE && i.memory == X86_MEMORY_BASE && i.displacement == -8)
			return registers >> i.reg & 1;
		else if (i.opcode == OP_LEA || i.opcode == 0x8b) /* another value */
			registers &= ~(1U << i.reg);
	}
	return false;
}

static bool is_maker(const uint8_t *code, uint64_t at, uint64_t start)
{
	uint8_t base;
	size_t size = zero_store(code, &base);

	return size && is_rounded(code, base) &&
	       is_stored(code + size, at + size, start, loaded_before(code, at, start));
}

/* @size bytes of code from the file's @offset on, which are at @address. Return: 1, 0 or an error. */
static int search(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size, uint64_t start)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	const size_t around = BEFORE + STORE_MIN + 1 + AFTER;
	struct reader in = reader_slice(&elf->in, offset, size);
	int r = reader_window_init(&w, &in, WINDOW_SIZE);

	for (uint64_t at = 0; r == 0 && in.size > around && at < in.size - around;) {
		size_t chunk = (size_t)MIN((uint64_t)WINDOW_SIZE, in.size - at);
		const uint8_t *code = reader_window_get(&w, at, chunk);

		if (!code)
			return w.error;
		for (size_t i = BEFORE; i + around - BEFORE <= chunk; i++)
			if (code[i + 1] == 0xc7 && is_maker(code + i, address + at + i, start))
				return 1;
		at += chunk - around + 1;
	}
	return r;
}

int coroutine_begins(const struct elf *elf, uint64_t address)
{
	struct elf_fdes fdes;
	struct elf_fde fde;

	if (elf->machine != EM_X86_64 || !elf->is_64 || elf_fdes_open(elf, &fdes) < 0 ||
	    elf_fde_find(elf, &fdes, address, &fde) < 0)
		return 0;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t in = fde.start - s->address, first, end;

		if (s->type != PT_LOAD || !(s->flags & PF_X) || in >= s->file_size)
			continue;
		first = in - MIN(in, (uint64_t)COROUTINE_REACH);
		end = in + MIN(s->file_size - in, (uint64_t)COROUTINE_REACH);
		return search(elf, s->offset + first, s->address + first, end - first, fde.start);
	}
	return 0;
}
