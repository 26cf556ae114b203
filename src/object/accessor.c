/* SPDX-License-Identifier: Apache-2.0 */
#include "object/accessor.h"

#include <elf.h>

#include "object/x86.h"

#define REG_AX 0
#define REG_SP 4
#define REG_BP 5
#define REG_DI 7
#define OP_LEA 0x8d
#define OP_LOAD 0x8b
#define OP_RETURN 0xc3
#define SIZE_UNKNOWN 128
#define OBJECT_MAX (1u << 20) /* a large one: CPython's _PyRuntime is 283,320 bytes in 3.13.0 */

struct steps { /* instruction by instruction, up to the first that does not go on */
	const struct accessor_code *code;
	size_t at;
	struct x86 now;
	bool ended;
};

static bool next(struct steps *s)
{
	const struct accessor_code *code = s->code;
	size_t limit = MIN(code->size, (size_t)ACCESSOR_BYTES_MAX);

	if (s->ended || s->at >= limit ||
	    x86_decode(code->bytes + s->at, limit - s->at, code->address + s->at, &s->now) < 0)
		return false;
	s->at += s->now.length;
	/* Cold paths lie behind the return; what is wanted comes before it. A conditional jump goes on. */
	s->ended = s->now.flow == X86_FLOW_END || s->now.flow == X86_FLOW_JUMP;
	return true;
}

static bool is_plain(const struct x86 *i, uint8_t opcode)
{
	return !i->map && !i->is_vector && i->opcode == opcode;
}

/* mov $number, %register */
static bool is_constant(const struct x86 *i)
{
	return !i->map && !i->is_vector && (i->opcode & 0xf8) == 0xb8;
}

/* endbr64, and what fills lines */
static bool is_hint(const struct x86 *i)
{
	return i->map == 1 && !i->is_vector && (i->opcode == 0x1e || i->opcode == 0x1f);
}

static bool has_address(const struct x86 *i)
{
	return i->memory == X86_MEMORY_RELATIVE || (i->memory == X86_MEMORY_ABSOLUTE && !i->is_fs);
}

void accessor_read(const struct elf *elf, uint64_t address, uint64_t size, uint8_t room[ACCESSOR_BYTES_MAX],
		   struct accessor_code *out)
{
	uint64_t offset;

	*out = (struct accessor_code){ .bytes = room, .address = address };
	if (elf->machine != EM_X86_64 || elf_offset_of(elf, address, &offset) < 0 || offset >= elf->in.size)
		return;
	size = MIN(size ? size : (uint64_t)SIZE_UNKNOWN, (uint64_t)ACCESSOR_BYTES_MAX);
	size = MIN(size, elf->in.size - offset);
	if (reader_read(&elf->in, room, (size_t)size, offset) == 0)
		out->size = (size_t)size;
}

bool accessor_load(const struct accessor_code *code, uint64_t *out)
{
	struct steps s = { .code = code };

	while (next(&s)) {
		if (is_plain(&s.now, OP_LOAD) && s.now.is_wide && has_address(&s.now)) {
			*out = s.now.address;
			return true;
		}
	}
	return false;
}

bool accessor_int_argument(const struct accessor_code *code, uint64_t *out)
{
	struct steps s = { .code = code };

	while (next(&s)) {
		if (is_plain(&s.now, OP_LOAD) && !s.now.is_wide && s.now.reg == REG_DI && has_address(&s.now)) {
			*out = s.now.address;
			return true;
		}
	}
	return false;
}

/* Through the global offset table: mov _PyRuntime@GOT(%rip), %rax; lea 0x570(%rax), %rdi. Without: lea x(%rip), %rdi;
 * in a program at a fixed address: mov $x, %edi. Inlined: mov x+4(%rip), %edi, for the number lies 4 bytes in. */
bool accessor_argument(const struct accessor_code *code, struct accessor_place *out)
{
	struct steps s = { .code = code };

	while (next(&s)) {
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_RELATIVE) {
			*out = (struct accessor_place){ ACCESSOR_ADDRESS, s.now.address };
			return true;
		}
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_BASE && s.now.base != REG_SP &&
		    s.now.base != REG_BP && s.now.displacement > 0 && s.now.displacement < OBJECT_MAX) {
			*out = (struct accessor_place){ ACCESSOR_OFFSET, (uint64_t)s.now.displacement };
			return true;
		}
		if (is_plain(&s.now, OP_LOAD) && !s.now.is_wide && s.now.reg == REG_DI &&
		    s.now.memory == X86_MEMORY_RELATIVE) {
			*out = (struct accessor_place){ ACCESSOR_ADDRESS, s.now.address - 4 };
			return true;
		}
		if (is_constant(&s.now) && s.now.immediate >= (int64_t)OBJECT_MAX) {
			*out = (struct accessor_place){ ACCESSOR_ADDRESS, (uint64_t)s.now.immediate };
			return true;
		}
	}
	return false;
}

bool accessor_thread_local(const struct accessor_code *code, struct accessor_tls *out)
{
	struct steps s = { .code = code };
	uint64_t slot = 0, module = 0;

	while (next(&s)) {
		const struct x86 *i = &s.now;

		if (is_plain(i, OP_LOAD) && i->is_fs && i->memory == X86_MEMORY_ABSOLUTE) {
			*out = (struct accessor_tls){ ACCESSOR_TLS_OFFSET, i->address };
			return true;
		}
		if (is_plain(i, OP_LOAD) && i->is_fs && i->memory != X86_MEMORY_NONE && slot) {
			*out = (struct accessor_tls){ ACCESSOR_TLS_SLOT, slot };
			return true;
		}
		if (i->flow == X86_FLOW_CALL) {
			if (!module)
				return false; /* a call of something else; behind it nothing is certain */
			*out = (struct accessor_tls){ ACCESSOR_TLS_MODULE, module };
			return true;
		}
		slot = is_plain(i, OP_LOAD) && i->is_wide && i->memory == X86_MEMORY_RELATIVE ? i->address : slot;
		module = is_plain(i, OP_LEA) && i->reg == REG_DI && i->memory == X86_MEMORY_RELATIVE ? i->address
												     : module;
	}
	return false;
}

size_t accessor_addresses(const struct accessor_code *code, uint64_t *out, size_t max)
{
	struct steps s = { .code = code };
	size_t count = 0;

	while (count < max && next(&s)) {
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_RELATIVE)
			out[count++] = s.now.address;
		else if (is_constant(&s.now) && s.now.immediate > 0)
			out[count++] = (uint64_t)s.now.immediate;
	}
	return count;
}

bool accessor_value(const struct accessor_code *code, struct accessor_value *out)
{
	struct steps s = { .code = code };
	struct accessor_value found;
	bool has_value = false;

	while (next(&s)) {
		const struct x86 *i = &s.now;

		if (is_hint(i))
			continue;
		if (is_plain(i, OP_RETURN)) {
			if (has_value)
				*out = found;
			return has_value;
		}
		if (i->reg != REG_AX)
			return false;
		if (!has_value && is_plain(i, OP_LEA) && i->is_wide && i->memory == X86_MEMORY_RELATIVE)
			found = (struct accessor_value){ i->address, false };
		else if (!has_value && is_plain(i, OP_LOAD) && has_address(i))
			found = (struct accessor_value){ i->address, true };
		else if (!has_value && is_constant(i))
			found = (struct accessor_value){ i->is_wide ? (uint64_t)i->immediate : (uint32_t)i->immediate,
							 false };
		else if (has_value && !found.is_read && is_plain(i, OP_LOAD) && i->memory == X86_MEMORY_BASE &&
			 i->base == REG_AX && !i->displacement && !i->is_fs)
			found.is_read = true;
		else
			return false;
		has_value = true;
	}
	return false;
}
