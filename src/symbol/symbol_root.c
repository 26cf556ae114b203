/* SPDX-License-Identifier: Apache-2.0 */
/* Which code has no caller. A stack may be called complete only on a proof, and names alone prove little: libc's clone3
 * is not in .dynsym, a stripped program has no _start, and clone() itself returns twice. The rules:
 *
 *  1. inside of _start, _dl_start_user, _start_c (musl) and Go's entry and stack roots, by symbol: nothing calls them;
 *  2. behind the first call of the code at the ELF entry point, when that code clears the frame pointer as the ABI asks
 *     of entry code, and the call is followed by hlt (glibc), or is musl's fixed sequence, or (ld.so) passes the stack
 *     pointer to _dl_start;
 *  3. behind an indirect call that is followed by exit(result), the frame pointer having been cleared before: the child
 *     side of clone, clone3 and musl's __clone. start_thread is no root itself: clone calls it.
 *  4. in a function whose address other code of the file puts on a new stack (object/unwind/coroutine.h): only where
 * the chain ends by itself.
 *
 * An offset at the very start of a function is no proof: as a return address it belongs to the code before it.
 * Sources: glibc 2.36 sysdeps/{x86_64,aarch64}/start.S, sysdeps/unix/sysv/linux/{x86_64,aarch64}/clone{,3}.S,
 * sysdeps/x86_64/dl-machine.h (RTLD_START); musl 1.2.3 arch/{x86_64,aarch64}/crt_arch.h,
 * src/thread/{x86_64,aarch64}/clone.s; go1.19 runtime/asm_amd64.s. */
#include "object/unwind/code.h"
#include "object/unwind/coroutine.h"
#include "symbol/symbol_int.h"

struct code { /* bytes around an offset; zero where the file has none */
	uint8_t bytes[CODE_BEFORE + CODE_AFTER];
};

static bool read_code(const struct reader *in, uint64_t offset, uint8_t *dst, size_t size)
{
	memset(dst, 0, size);
	return offset < in->size && reader_read(in, dst, (size_t)MIN((uint64_t)size, in->size - offset), offset) == 0;
}

static bool is_entry(const struct symbol_object *m, const struct reader *in, uint64_t address)
{
	uint8_t entry[CODE_ENTRY_SIZE];
	uint64_t offset, at = address - m->elf.entry;

	if (address <= m->elf.entry || at >= CODE_ENTRY_SIZE || elf_offset_of(&m->elf, m->elf.entry, &offset) < 0 ||
	    !read_code(in, offset, entry, sizeof(entry)))
		return false;
	return at <= code_entry_size(m->elf.machine, entry);
}

bool symbols_root(struct symbols *s, uint32_t file_id, uint64_t offset)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	struct symbol_object *m;
	struct code code = { 0 };
	struct str name = STR("");
	uint64_t address, start;

	if (symbol_object_get(s, file_id, &m) < 0 || !m->is_elf || elf_address_of(&m->elf, offset, &address) < 0)
		return false;
	if (symbol_find_native(s, file_id, m, address, &name, &start) == 0 && name.len && code_is_root_name(name))
		return address > start;
	if (symbol_file_open(s, file_id, &file) < 0)
		return false;
	if (is_entry(m, &file.in, address))
		return true;
	if (offset < CODE_BEFORE || !read_code(&file.in, offset - CODE_BEFORE, code.bytes, sizeof(code.bytes)))
		return false;
	return code_is_clone_child(m->elf.machine, code.bytes + CODE_BEFORE);
}

#define OFFSET_BITS 48

bool symbols_begins_coroutine(struct symbols *s, uint32_t file_id, uint64_t offset, uint32_t *searches)
{
	scoped(symbol_file_release) struct symbol_file file = { .view.fd = -1 };
	uint64_t address, key = (uint64_t)file_id << OFFSET_BITS | offset;
	struct symbol_object *m;
	uint32_t begins;

	if (symbol_object_get(s, file_id, &m) < 0 || !m->is_elf || elf_address_of(&m->elf, offset, &address) < 0 ||
	    !address || offset >> OFFSET_BITS)
		return false;
	if (u64map_get(&s->coroutines, key, &begins) == 0)
		return begins;
	/* A stranger's program can have many functions without a caller. */
	if (!*searches || !symbol_work_take(s, UINT64_C(2) * COROUTINE_REACH))
		return false;
	--*searches;
	if (symbol_file_open(s, file_id, &file) < 0 || elf_parse(&file.in, &file.elf) < 0)
		return false;
	begins = coroutine_begins(&file.elf, address - 1) == 1;
	if (s->coroutines.used == SYMBOL_COROUTINES_MAX)
		u64map_clear(&s->coroutines);
	ignore(u64map_put(&s->coroutines, key, begins)); /* then it is searched again */
	return begins;
}
