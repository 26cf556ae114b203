/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind_code.h"

#include <elf.h>

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

ptrdiff_t code_find_sigreturn(uint16_t machine, const uint8_t *code, size_t size)
{
	struct str bytes = str_n((const char *)code, size);

	if (machine == EM_X86_64) /* mov $15,%rax; syscall */
		return str_search(bytes, STR("\x48\xc7\xc0\x0f\0\0\0\x0f\x05"));
	if (machine == EM_AARCH64) /* mov x8, #139; svc #0 */
		return str_search(bytes, STR("\x68\x11\x80\xd2\x01\0\0\xd4"));
	return -1;
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
	/* musl: xor %rbp,%rbp; mov %rsp,%rdi; lea _DYNAMIC(%rip),%rsi; and $-16,%rsp; call _start_c */
	if (begins(p, 16, STR("\x48\x31\xed\x48\x89\xe7\x48\x8d\x35")) && p[17] == 0xe8)
		return (size_t)(p - entry) + 22;
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
