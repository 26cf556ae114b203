/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind_code.h"

#include <elf.h>

#include "base/str.h"

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
