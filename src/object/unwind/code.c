/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/code.h"

#include <elf.h>

#include "object/x86.h"

static bool has(const uint8_t *bytes, size_t size, struct str wanted)
{
	return str_search(str_n((const char *)bytes, size), wanted) >= 0;
}

static bool begins(const uint8_t *bytes, size_t size, struct str wanted)
{
	return str_starts(str_n((const char *)bytes, size), wanted);
}

bool code_is_clone_child(uint16_t machine, const uint8_t *at)
{
	if (machine == EM_X86_64) { /* xor %ebp,%ebp ... call *%reg | mov %rax,%rdi; mov $60,%eax; syscall */
		const uint8_t *move =
			at[0] == 0x48 ? at + 1 : at; /* or mov %eax,%edi; musl: xor %eax,%eax; mov $60,%al */

		return at[-2] == 0xff && (at[-1] & 0xf8) == 0xd0 &&
		       has(at - CODE_BEFORE, CODE_BEFORE, STR("\x31\xed")) &&
		       (begins(move, 9, STR("\x89\xc7\xb8\x3c\0\0\0\x0f\x05")) ||
			begins(move, 9, STR("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05")));
	}
	if (machine == EM_AARCH64) /* blr xN | mov x8, #93; svc #0 */
		return (at[-4] & 0x1f) == 0 && (at[-3] & 0xfc) == 0 && at[-2] == 0x3f && at[-1] == 0xd6 &&
		       begins(at, CODE_AFTER, STR("\xa8\x0b\x80\xd2\x01\0\0\xd4"));
	return false;
}

size_t code_fork_size(uint16_t machine, const uint8_t *child)
{
	const uint8_t *p = child;

	if (machine != EM_X86_64 || !begins(child, 2, STR("\x31\xed"))) /* xor %ebp,%ebp */
		return 0;
	/* glibc: syscall; test %rax,%rax; jl error; je child; ret */
	if (begins(p - 10, 6, STR("\x0f\x05\x48\x85\xc0\x7c")) && begins(p - 3, 3, STR("\x74\x01\xc3")))
		return 10;
	if (begins(p - 14, 7, STR("\x0f\x05\x48\x85\xc0\x0f\x8c")) && begins(p - 3, 3, STR("\x74\x01\xc3")))
		return 14;
	/* musl: syscall; test %eax,%eax; jne parent */
	return begins(p - 6, 5, STR("\x0f\x05\x85\xc0\x75")) ? 6 : 0;
}

/* call *%reg; mov %eax,%edi; call exit */
static size_t exit_call_at(const struct x86 *call, const uint8_t *behind, size_t left)
{
	return call->flow == X86_FLOW_CALL && !call->target && call->memory == X86_MEMORY_NONE &&
			       begins(behind, left, STR("\x89\xc7\xe8")) && left >= 7
		       ? 7
		       : 0;
}

size_t code_exit_call_size(uint16_t machine, const uint8_t *code, size_t size)
{
	struct x86 instruction;

	for (size_t at = 0; machine == EM_X86_64 && at < size; at += instruction.length) {
		size_t end, more;

		if (x86_decode(code + at, size - at, at, &instruction) < 0 || instruction.flow == X86_FLOW_END ||
		    instruction.flow == X86_FLOW_JUMP)
			return 0;
		end = at + instruction.length;
		more = exit_call_at(&instruction, code + end, size - end);
		if (more)
			return end + more;
	}
	return 0;
}

ptrdiff_t code_find_sigreturn(uint16_t machine, const uint8_t *code, size_t size)
{
	struct str bytes = str_n((const char *)code, size);

	if (machine == EM_X86_64) /* mov $15,%rax; syscall */
		return str_search(bytes, STR("\x48\xc7\xc0\x0f\0\0\0\x0f\x05"));
	if (machine == EM_AARCH64) /* mov x8, #139; svc #0 */
		return str_search(bytes, STR("\x68\x11\x80\xd2\x01\0\0\xd4"));
	return -1;
}

/* xor %rbp,%rbp; mov %rsp,%rdi; lea _DYNAMIC(%rip),%rsi; and $-16,%rsp; call _start_c */
size_t code_musl_entry_size(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE])
{
	const uint8_t *p = begins(entry, 4, STR("\xf3\x0f\x1e\xfa")) ? entry + 4 : entry;

	return machine == EM_X86_64 && begins(p, 16, STR("\x48\x31\xed\x48\x89\xe7\x48\x8d\x35")) && p[17] == 0xe8
		       ? (size_t)(p - entry) + 22
		       : 0;
}

static size_t entry_size_x86(const uint8_t *entry)
{
	const uint8_t *p = entry;
	ptrdiff_t end;

	if (begins(p, CODE_ENTRY_SIZE, STR("\xf3\x0f\x1e\xfa"))) /* endbr64 */
		p += 4;
	/* ld.so: mov %rsp,%rdi; call _dl_start; mov %rax,%r12 ... call _dl_init ... jmp *%r12 */
	if (begins(p, 8, STR("\x48\x89\xe7\xe8")) && has(p, 16, STR("\x49\x89\xc4"))) {
		end = str_search(str_n((const char *)entry, CODE_ENTRY_SIZE), STR("\x41\xff\xe4"));
		return end < 0 ? 0 : (size_t)end + 3;
	}
	end = (ptrdiff_t)code_musl_entry_size(EM_X86_64, entry);
	if (end)
		return (size_t)end;
	/* glibc: xor %ebp,%ebp ... call __libc_start_main; hlt */
	if (!begins(p, 4, STR("\x31\xed")))
		return 0;
	for (size_t i = 6; i <= 64; i++)
		if (entry[i] == 0xf4 && (entry[i - 5] == 0xe8 || (entry[i - 6] == 0xff && entry[i - 5] == 0x15)))
			return i + 1;
	return 0;
}

size_t code_entry_size(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE])
{
	if (machine == EM_X86_64)
		return entry_size_x86(entry);
	/* mov x29, #0; mov x30, #0 ... bl */
	if (machine != EM_AARCH64 || !has(entry, 12, STR("\x1d\0\x80\xd2\x1e\0\x80\xd2")))
		return 0;
	for (size_t i = 8; i < 64; i += 4)
		if ((entry[i + 3] & 0xfc) == 0x94)
			return i + 8; /* with the call behind it, which is never reached: abort */
	return 0;
}

bool code_is_glibc_entry(uint16_t machine, const uint8_t entry[CODE_ENTRY_SIZE])
{
	const uint8_t *p = entry;

	if (machine != EM_X86_64)
		return false;
	if (begins(p, CODE_ENTRY_SIZE, STR("\xf3\x0f\x1e\xfa"))) /* endbr64 */
		p += 4;
	return begins(p, 4, STR("\x31\xed")) && code_entry_size(machine, entry);
}

/* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je behind the call; call __setcontext; mov %rax,%rdi; call exit; hlt.
 * With a shadow stack other ways to the same come before it. */
#define CONTEXT_HEAD STR("\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8")

size_t code_start_context_size(uint16_t machine, const uint8_t code[CODE_CONTEXT_SIZE])
{
	const size_t size = 26;
	ptrdiff_t at;

	if (machine != EM_X86_64)
		return 0;
	at = str_search(str_n((const char *)code, CODE_CONTEXT_SIZE), CONTEXT_HEAD);
	if (at < 0 || (size_t)at > CODE_CONTEXT_SIZE - size || !begins(code + at + 17, 4, STR("\x48\x89\xc7\xe8")) ||
	    code[(size_t)at + size - 1] != 0xf4)
		return 0;
	/* Of what comes before it in the same function nothing returns. */
	return has(code, (size_t)at, STR("\xc3")) ? 0 : (size_t)at + size;
}

ptrdiff_t code_find_start_context(uint16_t machine, const uint8_t *code, size_t size)
{
	return machine == EM_X86_64 ? str_search(str_n((const char *)code, size), CONTEXT_HEAD) : -1;
}

/* push %rbp; jmp *%rbx | xor %rdi,%rdi; call _exit; hlt: what is pushed is the address behind the jump. */
size_t code_fcontext_start(uint16_t machine, const uint8_t *at, size_t *size)
{
	size_t before = 3;

	if (machine != EM_X86_64 || at[-1] != 0xe3 || at[-2] != 0xff || at[-3] != 0x55 ||
	    !begins(at, CODE_AFTER, STR("\x48\x31\xff\xe8")) || at[8] != 0xf4)
		return 0;
	if (begins(at - 7, 4, STR("\xf3\x0f\x1e\xfa"))) /* endbr64 */
		before += 4;
	*size = before + 9;
	return before;
}

bool code_is_root_name(struct str name)
{
	static const char *const names[] = {
		"_start",     "_dl_start_user",   "_start_c",         "_dlstart",
		"_dlstart_c", "runtime.goexit",   "runtime.rt0_go",   "runtime.mstart",
		"_rt0_amd64", "_rt0_amd64_linux", "_rt0_arm64_linux",
	};

	if (str_ends(name, STR(".abi0")))
		name = str_first(name, name.len - 5);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}
