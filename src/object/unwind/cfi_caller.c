/* SPDX-License-Identifier: Apache-2.0 */
#include "object/unwind/cfi_caller.h"

#include <elf.h>

#include "object/unwind/cfi_int.h"
#include "object/unwind/dwarf_op.h"

#define STACK_MAX 32
#define X86_SP 7
#define X86_PC 16
#define AARCH64_SP 31
#define AARCH64_PC 32

/* ---- expressions ---- */

struct machine {
	uint64_t stack[STACK_MAX];
	unsigned int count, reads;
	struct cur code;
	const uint8_t *start;
	const struct cfi_registers *now;
	const struct cfi_memory *memory;
};

static int push(struct machine *m, uint64_t value)
{
	if (m->count >= STACK_MAX)
		return -ENOTSUP;
	m->stack[m->count++] = value;
	return 0;
}

static int push_register(struct machine *m, uint64_t reg, int64_t off)
{
	if (reg >= ABI_REGS || !(m->now->known >> reg & 1))
		return -ENOTSUP;
	return push(m, m->now->value[reg] + (uint64_t)off);
}

/* The item @depth below the top. NULL: there is none. */
static uint64_t *item(struct machine *m, uint64_t depth)
{
	return depth < m->count ? &m->stack[m->count - 1 - depth] : NULL;
}

static int dereference(struct machine *m, uint8_t size)
{
	uint64_t *top = item(m, 0), value = 0;

	if (!top || !size || size > 8)
		return -EBADMSG;
	if (m->reads++ >= CFI_EXPRESSION_READS)
		return -ENOTSUP;
	if (m->memory->read(m->memory->self, &value, size, *top) != 0) /* the machines we know are little-endian */
		return -EFAULT;
	*top = value;
	return 0;
}

static int jump(struct machine *m, bool taken)
{
	int64_t distance = (int16_t)cur_le16(&m->code), at = m->code.pos - m->start + distance;

	if (m->code.bad || at < 0 || at > m->code.end - m->start)
		return -EBADMSG;
	if (taken)
		m->code.pos = m->start + at;
	return 0;
}

static int divide(uint8_t op, uint64_t *below, uint64_t top)
{
	if (!top || (op == OP_DIV && *below == (uint64_t)INT64_MIN && top == UINT64_MAX))
		return -EBADMSG;
	*below = op == OP_DIV ? (uint64_t)((int64_t)*below / (int64_t)top) : *below % top;
	return 0;
}

static bool compare(uint8_t op, int64_t a, int64_t b)
{
	switch (op) {
	case OP_EQ:
		return a == b;
	case OP_GE:
		return a >= b;
	case OP_GT:
		return a > b;
	case OP_LE:
		return a <= b;
	case OP_LT:
		return a < b;
	default:
		return a != b;
	}
}

/* Those that take two items and leave one. */
static int binary(struct machine *m, uint8_t op)
{
	uint64_t *below = item(m, 1), top;

	if (!below)
		return -EBADMSG;
	top = m->stack[--m->count];
	switch (op) {
	case OP_AND:
		*below &= top;
		return 0;
	case OP_OR:
		*below |= top;
		return 0;
	case OP_XOR:
		*below ^= top;
		return 0;
	case OP_PLUS:
		*below += top;
		return 0;
	case OP_MINUS:
		*below -= top;
		return 0;
	case OP_MUL:
		*below *= top;
		return 0;
	case OP_SHL:
		*below = top < 64 ? *below << top : 0;
		return 0;
	case OP_SHR:
		*below = top < 64 ? *below >> top : 0;
		return 0;
	case OP_SHRA:
		*below = (uint64_t)((int64_t)*below >> MIN(top, (uint64_t)63));
		return 0;
	case OP_DIV:
	case OP_MOD:
		return divide(op, below, top);
	default:
		*below = compare(op, (int64_t)*below, (int64_t)top);
		return 0;
	}
}

static int constant(struct machine *m, uint8_t op)
{
	struct cur *c = &m->code;

	switch (op) {
	case OP_CONST1U:
		return push(m, cur_u8(c));
	case OP_CONST1S:
		return push(m, (uint64_t)(int8_t)cur_u8(c));
	case OP_CONST2U:
		return push(m, cur_le16(c));
	case OP_CONST2S:
		return push(m, (uint64_t)(int16_t)cur_le16(c));
	case OP_CONST4U:
		return push(m, cur_le32(c));
	case OP_CONST4S:
		return push(m, (uint64_t)(int32_t)cur_le32(c));
	case OP_CONST8U:
	case OP_CONST8S:
		return push(m, cur_le64(c));
	case OP_CONSTU:
		return push(m, cfi_uleb(c));
	default:
		return push(m, (uint64_t)cfi_sleb(c));
	}
}

/* Those that move items about or change the top one. */
static int shuffle(struct machine *m, uint8_t op)
{
	uint64_t *top = item(m, 0), *second = item(m, 1), *third = item(m, 2), *found, kept;

	switch (op) {
	case OP_DUP:
	case OP_OVER:
	case OP_PICK:
		found = item(m, op == OP_PICK ? cur_u8(&m->code) : op == OP_OVER);
		return found ? push(m, *found) : -EBADMSG;
	case OP_SWAP:
		if (!second)
			return -EBADMSG;
		kept = *top;
		*top = *second;
		*second = kept;
		return 0;
	case OP_ROT: /* the top becomes the third */
		if (!third)
			return -EBADMSG;
		kept = *top;
		*top = *second;
		*second = *third;
		*third = kept;
		return 0;
	}
	if (!top)
		return -EBADMSG;
	if (op == OP_DROP)
		m->count--;
	else if (op == OP_NOT)
		*top = ~*top;
	else if (op == OP_NEG || (int64_t)*top < 0) /* ABS */
		*top = 0 - *top;
	return 0;
}

static int step(struct machine *m)
{
	uint8_t op = cur_u8(&m->code);
	uint64_t *top, reg;

	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push(m, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(m, op - OP_BREG0, cfi_sleb(&m->code));
	if (op >= OP_CONST1U && op <= OP_CONSTS)
		return constant(m, op);
	if ((op >= OP_DUP && op <= OP_ROT) || op == OP_ABS || op == OP_NEG || op == OP_NOT)
		return shuffle(m, op);
	switch (op) {
	case OP_DEREF:
		return dereference(m, 8);
	case OP_DEREF_SIZE:
		return dereference(m, cur_u8(&m->code));
	case OP_BREGX:
		reg = cfi_uleb(&m->code);
		return push_register(m, reg, cfi_sleb(&m->code));
	case OP_PLUS_UCONST:
		top = item(m, 0);
		if (!top)
			return -EBADMSG;
		*top += cfi_uleb(&m->code);
		return 0;
	case OP_SKIP:
		return jump(m, true);
	case OP_BRA:
		if (!m->count)
			return -EBADMSG;
		return jump(m, m->stack[--m->count] != 0);
	case OP_NOP:
		return 0;
	default:
		return op >= OP_AND && op <= OP_NE ? binary(m, op) : -ENOTSUP; /* OP_ADDR: as the file has it */
	}
}

int cfi_evaluate(struct cur bytes, const uint64_t *start, const struct cfi_registers *now,
		 const struct cfi_memory *memory, uint64_t *out)
{
	struct machine m = { .code = bytes, .start = bytes.pos, .now = now, .memory = memory };
	int r = start ? push(&m, *start) : 0;

	for (unsigned int steps = 0; r == 0 && cur_left(&m.code); steps++) {
		r = steps < CFI_EXPRESSION_STEPS ? step(&m) : -ENOTSUP;
		if (m.code.bad)
			return -EBADMSG;
	}
	if (r < 0)
		return r;
	if (!m.count)
		return -EBADMSG;
	*out = m.stack[m.count - 1];
	return 0;
}

/* ---- rules ---- */

struct caller {
	const struct cfi_section *section;
	const struct cfi_registers *now;
	const struct cfi_memory *memory;
	uint64_t cfa;
	bool has_cfa;
};

static int read_word(const struct caller *c, uint64_t at, uint64_t *out)
{
	return c->memory->read(c->memory->self, out, sizeof(*out), at) == 0 ? 0 : -EFAULT;
}

static int base_of(const struct caller *c, const struct cfi_value *v, uint64_t *out)
{
	if (v->base == ABI_BASE_CFA && c->has_cfa)
		*out = c->cfa;
	else if (v->base < ABI_REGS && c->now->known >> v->base & 1)
		*out = c->now->value[v->base];
	else
		return -ENOTSUP;
	*out += (uint64_t)v->off;
	return 0;
}

static int by_expression(const struct caller *c, const struct cfi_value *v, uint64_t *out)
{
	uint8_t bytes[CFI_EXPRESSION_BYTES];
	int r;

	if (v->add <= 0 || v->add > (int64_t)sizeof(bytes))
		return -ENOTSUP;
	r = reader_read(&c->section->in, bytes, (size_t)v->add, (uint64_t)v->off);
	if (r < 0)
		return r;
	return cfi_evaluate(cur_of(bytes, (size_t)v->add), c->has_cfa ? &c->cfa : NULL, c->now, c->memory, out);
}

/* Any but SAME and UNDEFINED. */
static int value_of(const struct caller *c, const struct cfi_value *v, uint64_t *out)
{
	const struct cfi_registers *now = c->now;
	uint64_t at;
	int r;

	switch (v->how) {
	case CFI_VALUE:
		return base_of(c, v, out);
	case CFI_MEMORY:
		r = base_of(c, v, &at);
		if (r == 0)
			r = read_word(c, at, out);
		if (r == 0)
			*out += (uint64_t)v->add;
		return r;
	case CFI_PLT:
		if (~now->known & (1u << X86_SP | 1u << X86_PC))
			return -ENOTSUP;
		*out = now->value[X86_SP] + 8 + ((int64_t)(now->value[X86_PC] & 15) >= v->off ? 8 : 0);
		return 0;
	case CFI_OTHER:
		return by_expression(c, v, out);
	case CFI_OTHER_PLACE:
		r = by_expression(c, v, &at);
		return r < 0 ? r : read_word(c, at, out);
	default:
		return -ENOTSUP;
	}
}

/* A register that cannot be found is not known; only without the return address there is no caller. */
static int apply(struct caller *c, const struct cfi_rules *rules, uint8_t sp, uint8_t pc, bool is_leaf,
		 struct cfi_registers *out)
{
	const struct cfi_value *ra = &rules->regs[rules->ra];
	int r = value_of(c, &rules->cfa, &c->cfa);

	if (r < 0)
		return r;
	c->has_cfa = true;
	out->known = 0;
	for (uint8_t i = 0; i < ABI_REGS; i++) {
		const struct cfi_value *v = &rules->regs[i];

		if (v->how == CFI_UNDEFINED)
			continue;
		if (v->how == CFI_SAME)
			out->value[i] = i == sp ? c->cfa : c->now->value[i];
		else if (value_of(c, v, &out->value[i]) < 0)
			continue;
		if (v->how != CFI_SAME || i == sp || c->now->known >> i & 1)
			out->known |= UINT64_C(1) << i;
	}
	/* A register keeps the return address only until the function calls another. */
	if (ra->how == CFI_UNDEFINED || (ra->how == CFI_SAME && (rules->ra == pc || !is_leaf)) ||
	    !(out->known >> rules->ra & 1))
		return ra->how == CFI_MEMORY ? -EFAULT : -ENOTSUP;
	out->value[pc] = out->value[rules->ra];
	out->known |= UINT64_C(1) << pc;
	return 0;
}

int cfi_file_open(const struct elf *elf, struct cfi_file *out)
{
	out->elf = elf;
	return elf->is_64 && (elf->machine == EM_X86_64 || elf->machine == EM_AARCH64) ? elf_fdes_open(elf, &out->fdes)
										       : -ENOTSUP;
}

/* The segment that holds the entry, as a section of which only this entry is read. */
static int find_section(const struct elf *elf, uint64_t at, struct cfi_section *out)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type != PT_LOAD || at - s->address >= s->file_size)
			continue;
		*out = (struct cfi_section){ .in = reader_slice(&elf->in, s->offset, s->file_size),
					     .address = s->address,
					     .machine = elf->machine,
					     .is_eh = true };
		return 0;
	}
	return -EBADMSG;
}

int cfi_caller(const struct cfi_file *file, uint64_t address, bool is_leaf, const struct cfi_registers *now,
	       const struct cfi_memory *memory, struct cfi_registers *out)
{
	bool is_x86 = file->elf->machine == EM_X86_64;
	uint8_t sp = is_x86 ? X86_SP : AARCH64_SP, pc = is_x86 ? X86_PC : AARCH64_PC;
	struct cfi_registers caller = { 0 };
	struct cfi_section section;
	struct cfi_rules rules;
	struct elf_fde fde;
	struct caller c = { .section = &section, .now = now, .memory = memory };
	int r = elf_fde_find(file->elf, &file->fdes, address, &fde);

	if (r == 0)
		r = find_section(file->elf, fde.at, &section);
	if (r == 0)
		r = cfi_rules_at(&section, fde.at - section.address, address, &rules);
	if (r == 0)
		r = apply(&c, &rules, sp, pc, is_leaf, &caller);
	if (r == 0)
		*out = caller;
	return r;
}
