/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/bare.h"

#include <elf.h>

#include "object/unwind/code.h"

#define WINDOW_SIZE KIB(64)
#define FORK_MAX 16    /* bytes from the system call of clone to the child's code */
#define SYSCALL_MAX 10 /* bytes from the first instruction of a call of exit or rt_sigreturn to its end */

static int put(struct cfi *out, uint64_t address, uint32_t size, uint8_t cfa)
{
	size_t first = out->row_count;
	int r = cfi_put_row(out, 0, (struct abi_row){ .cfa = cfa });

	return r < 0 ? r : cfi_put_span(out, address, size, first, cfa == ABI_CFA_SIGNAL);
}

static int put_fork(struct cfi *out, uint64_t address, uint32_t size)
{
	size_t first = out->row_count;
	int r = cfi_put_row(out, 0, (struct abi_row){ .cfa = ABI_CFA_FORKED, .cfa_off = 1 });

	return r < 0 ? r : cfi_put_span(out, address, size, first, false);
}

int unwind_bare_entry(const struct elf *elf, struct cfi *out)
{
	uint8_t code[CODE_ENTRY_SIZE] = { 0 };
	uint64_t offset;
	size_t size;
	int r;

	if (elf_offset_of(elf, elf->entry, &offset) < 0 || offset >= elf->in.size)
		return 0;
	r = reader_read(&elf->in, code, (size_t)MIN((uint64_t)sizeof(code), elf->in.size - offset), offset);
	size = r < 0 ? 0 : code_entry_size(elf->machine, code);
	return size ? put(out, elf->entry, (uint32_t)size, ABI_CFA_STOP) : r;
}

/* A system call ends at @end; CODE_BEFORE + SYSCALL_MAX bytes before it and CODE_AFTER behind it can be read. */
static int judge_syscall(uint16_t machine, const uint8_t *end, uint64_t address, struct cfi *out)
{
	ptrdiff_t at = code_find_sigreturn(machine, end - 9, 9);

	if (at >= 0)
		return put(out, address - 9 + (uint64_t)at, 9 - (uint32_t)at, ABI_CFA_SIGNAL);
	for (unsigned int back = 6; back <= SYSCALL_MAX; back++) {
		const uint8_t *call = end - back, *start = call - 4;
		size_t fork_size;

		if (!code_is_clone_child(machine, call))
			continue;
		/* x86-64: from where the frame pointer is cleared; aarch64: the call itself. */
		if (machine == EM_X86_64)
			start = call - CODE_BEFORE;
		while (machine == EM_X86_64 && start < call - 2 && memcmp(start, "\x31\xed", 2) != 0)
			start++;
		fork_size = code_fork_size(machine, start);
		if (fork_size) {
			int r = put_fork(out, address - (uint64_t)(end - start) - fork_size, (uint32_t)fork_size);

			if (r < 0)
				return r;
		}
		return put(out, address - (uint64_t)(end - start), (uint32_t)(end - start), ABI_CFA_STOP);
	}
	return 0;
}

/* Is it behind the jump of a coroutine's first code? */
static int judge_jump(uint16_t machine, const uint8_t *behind, uint64_t address, struct cfi *out)
{
	size_t size, before = code_fcontext_start(machine, behind, &size);

	return before ? put(out, address - before, (uint32_t)size, ABI_CFA_STOP) : 0;
}

static bool is_jump(uint16_t machine, const uint8_t *behind)
{
	return machine == EM_X86_64 && behind[-2] == 0xff && behind[-1] == 0xe3; /* jmp *%rbx */
}

static bool is_syscall(uint16_t machine, const uint8_t *end)
{
	return machine == EM_X86_64 ? end[-2] == 0x0f && end[-1] == 0x05 : !memcmp(end - 4, "\x01\0\0\xd4", 4);
}

int unwind_bare_scan(const struct elf *elf, uint64_t offset, uint64_t address, uint64_t size, struct cfi *out)
{
	scoped(reader_window_release) struct reader_window w = { 0 };
	const size_t before = CODE_BEFORE + SYSCALL_MAX + FORK_MAX, around = before + CODE_AFTER;
	struct reader in = reader_slice(&elf->in, offset, size);
	uint64_t at = 0;
	int r = reader_window_init(&w, &in, WINDOW_SIZE);

	/* Windows overlap by what is looked at around a place; the edges of the whole hold no such code. */
	while (r == 0 && in.size > around && at < in.size - around) {
		size_t chunk = (size_t)MIN((uint64_t)WINDOW_SIZE, in.size - at);
		const uint8_t *code = reader_window_get(&w, at, chunk);

		if (!code)
			return w.error;
		for (size_t i = before; r == 0 && i + CODE_AFTER <= chunk; i++)
			if (is_syscall(elf->machine, code + i))
				r = judge_syscall(elf->machine, code + i, address + at + i, out);
			else if (is_jump(elf->machine, code + i))
				r = judge_jump(elf->machine, code + i, address + at + i, out);
		at += chunk - around + 1;
	}
	return r;
}
