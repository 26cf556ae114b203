/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions, as far as a row or rule can hold what they compute: a register plus a constant, what memory there
 * holds plus a constant, and the one expression that linkers write for the whole PLT. Values on the stack are kept in
 * that form, so that equal expressions written in other ways give equal rules.
 * Source: DWARF 5, sections 2.5.1 and 7.7.1. */
#include "object/unwind/cfi_int.h"
#include "object/unwind/dwarf_op.h"

/* binutils 2.40, bfd/elfxx-x86.c and elf64-x86-64.c, elf_x86_64_eh_frame_lazy_plt: rsp + 8; rip; 15; and; 11 (10 for
 * entries that start with endbr64); ge; 3; shl; plus. The entry has pushed its number from byte 11 on. */
static bool is_plt(const struct cur *c, struct cfi_value *out)
{
	static const uint8_t want[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22 };
	const uint8_t threshold = 6;
	const uint8_t *p = c->pos;

	if (cur_left(c) != sizeof(want) || p[threshold] < OP_LIT0 || p[threshold] > OP_LIT0 + 15 ||
	    memcmp(p, want, threshold) != 0 ||
	    memcmp(p + threshold + 1, want + threshold + 1, sizeof(want) - threshold - 1) != 0)
		return false;
	*out = (struct cfi_value){ .how = CFI_PLT, .off = p[threshold] - OP_LIT0 };
	return true;
}

struct stack {
	struct cfi_value items[CFI_STACK_MAX]; /* a constant has how CFI_SAME and its value in off */
	int count;
};

static bool push(struct stack *s, struct cfi_value v)
{
	if (s->count >= CFI_STACK_MAX)
		return false;
	s->items[s->count++] = v;
	return true;
}

static bool push_constant(struct stack *s, int64_t value)
{
	return push(s, (struct cfi_value){ .how = CFI_SAME, .off = value });
}

static bool push_register(struct stack *s, uint64_t reg, int64_t off)
{
	return reg < ABI_REGS && push(s, (struct cfi_value){ .how = CFI_VALUE, .base = (uint8_t)reg, .off = off });
}

static bool add_constant(struct cfi_value *v, int64_t constant)
{
	int64_t *to = v->how == CFI_MEMORY ? &v->add : &v->off;

	return !__builtin_add_overflow(*to, constant, to);
}

static bool combine(struct stack *s, bool is_minus)
{
	struct cfi_value top, *below;

	if (s->count < 2)
		return false;
	top = s->items[--s->count];
	below = &s->items[s->count - 1];
	if (top.how == CFI_SAME && !(is_minus && top.off == INT64_MIN))
		return add_constant(below, is_minus ? -top.off : top.off);
	if (is_minus || below->how != CFI_SAME)
		return false;
	if (!add_constant(&top, below->off))
		return false;
	*below = top;
	return true;
}

static bool dereference(struct stack *s)
{
	struct cfi_value *top = s->count ? &s->items[s->count - 1] : NULL;

	if (!top || top->how != CFI_VALUE)
		return false;
	top->how = CFI_MEMORY;
	return true;
}

static bool step(struct cur *c, struct stack *s)
{
	uint8_t op = cur_u8(c);
	uint64_t reg;

	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push_constant(s, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(s, op - OP_BREG0, cfi_sleb(c));
	switch (op) {
	case OP_DEREF:
		return dereference(s);
	case OP_CONST1U:
		return push_constant(s, cur_u8(c));
	case OP_CONST1S:
		return push_constant(s, (int8_t)cur_u8(c));
	case OP_CONST2U:
		return push_constant(s, cur_le16(c));
	case OP_CONST2S:
		return push_constant(s, (int16_t)cur_le16(c));
	case OP_CONST4U:
		return push_constant(s, cur_le32(c));
	case OP_CONST4S:
		return push_constant(s, (int32_t)cur_le32(c));
	case OP_CONST8U:
	case OP_CONST8S:
		return push_constant(s, (int64_t)cur_le64(c));
	case OP_CONSTU:
		return push_constant(s, (int64_t)cfi_uleb(c));
	case OP_CONSTS:
		return push_constant(s, cfi_sleb(c));
	case OP_PLUS_UCONST:
		return s->count && add_constant(&s->items[s->count - 1], (int64_t)cfi_uleb(c));
	case OP_PLUS:
	case OP_MINUS:
		return combine(s, op == OP_MINUS);
	case OP_BREGX:
		reg = cfi_uleb(c);
		return push_register(s, reg, cfi_sleb(c));
	case OP_NOP:
		return true;
	default:
		return false;
	}
}

struct cfi_value cfi_expression(struct cur bytes, const struct cfi_value *start)
{
	const struct cfi_value other = { .how = CFI_OTHER };
	struct stack stack = { .count = 0 };
	struct cfi_value plt;

	if (start->how == CFI_SAME && is_plt(&bytes, &plt))
		return plt;
	if (start->how != CFI_SAME)
		ignore(push(&stack, *start)); /* the first always fits */
	while (cur_left(&bytes))
		if (!step(&bytes, &stack))
			return other;
	if (bytes.bad || !stack.count || stack.items[stack.count - 1].how == CFI_SAME)
		return other;
	return stack.items[stack.count - 1];
}
