/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/python_decode.h"

#include "object/x86.h"

#define REG_SP 4
#define REG_BP 5
#define REG_DI 7
#define OP_LEA 0x8d
#define OP_LOAD 0x8b
#define RUNTIME_MAX (1u << 20) /* _PyRuntime is 283,320 bytes in 3.13.0 */

struct steps { /* instruction by instruction, up to the first that does not go on */
	const struct python_code *code;
	size_t at;
	struct x86 now;
	bool ended;
};

static bool next(struct steps *s)
{
	const struct python_code *code = s->code;
	size_t limit = MIN(code->size, (size_t)PYTHON_DECODE_MAX);

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

static bool has_address(const struct x86 *i)
{
	return i->memory == X86_MEMORY_RELATIVE || (i->memory == X86_MEMORY_ABSOLUTE && !i->is_fs);
}

bool python_decode_load(const struct python_code *code, uint64_t *out)
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

bool python_decode_key(const struct python_code *code, uint64_t *out)
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
bool python_decode_tss_key(const struct python_code *code, struct python_place *out)
{
	struct steps s = { .code = code };

	while (next(&s)) {
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_RELATIVE) {
			*out = (struct python_place){ PYTHON_PLACE_ADDRESS, s.now.address };
			return true;
		}
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_BASE && s.now.base != REG_SP &&
		    s.now.base != REG_BP && s.now.displacement > 0 && s.now.displacement < RUNTIME_MAX) {
			*out = (struct python_place){ PYTHON_PLACE_RUNTIME, (uint64_t)s.now.displacement };
			return true;
		}
		if (is_plain(&s.now, OP_LOAD) && !s.now.is_wide && s.now.reg == REG_DI &&
		    s.now.memory == X86_MEMORY_RELATIVE) {
			*out = (struct python_place){ PYTHON_PLACE_ADDRESS, s.now.address - 4 };
			return true;
		}
		if (!s.now.map && !s.now.is_vector && (s.now.opcode & 0xf8) == 0xb8 &&
		    s.now.immediate >= (int64_t)RUNTIME_MAX) {
			*out = (struct python_place){ PYTHON_PLACE_ADDRESS, (uint64_t)s.now.immediate };
			return true;
		}
	}
	return false;
}

bool python_decode_tls(const struct python_code *code, struct python_tls *out)
{
	struct steps s = { .code = code };
	uint64_t slot = 0, module = 0;

	while (next(&s)) {
		const struct x86 *i = &s.now;

		if (is_plain(i, OP_LOAD) && i->is_fs && i->memory == X86_MEMORY_ABSOLUTE) {
			*out = (struct python_tls){ PYTHON_TLS_OFFSET, i->address };
			return true;
		}
		if (is_plain(i, OP_LOAD) && i->is_fs && i->memory != X86_MEMORY_NONE && slot) {
			*out = (struct python_tls){ PYTHON_TLS_SLOT, slot };
			return true;
		}
		if (i->flow == X86_FLOW_CALL) {
			if (!module)
				return false; /* a call of something else; behind it nothing is certain */
			*out = (struct python_tls){ PYTHON_TLS_MODULE, module };
			return true;
		}
		slot = is_plain(i, OP_LOAD) && i->is_wide && i->memory == X86_MEMORY_RELATIVE ? i->address : slot;
		module = is_plain(i, OP_LEA) && i->reg == REG_DI && i->memory == X86_MEMORY_RELATIVE ? i->address
												     : module;
	}
	return false;
}

size_t python_decode_addresses(const struct python_code *code, uint64_t *out, size_t max)
{
	struct steps s = { .code = code };
	size_t count = 0;

	while (count < max && next(&s)) {
		if (is_plain(&s.now, OP_LEA) && s.now.memory == X86_MEMORY_RELATIVE)
			out[count++] = s.now.address;
		else if (!s.now.map && !s.now.is_vector && (s.now.opcode & 0xf8) == 0xb8 && s.now.immediate > 0)
			out[count++] = (uint64_t)s.now.immediate;
	}
	return count;
}
