/* SPDX-License-Identifier: Apache-2.0 */
#include "object/x86.h"

#include "base/cur.h"

/* What follows an opcode. */
#define M 1   /* ModRM */
#define B 2   /* one byte */
#define Z 4   /* four bytes, two behind the prefix 66 */
#define J 8   /* four bytes of a jump: always */
#define W 16  /* two bytes */
#define X 32  /* no instruction of 64-bit mode */
#define V 64  /* the width of the register: mov imm, %reg */
#define P 128 /* eight bytes: mov moffs */

/* The one-byte opcodes, 16 to a row. F6 and F7 have an immediate only as TEST: see immediate_of(). */
static const uint8_t one_byte[256] = {
	M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X, /* 00: 0f is not looked up */
	M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X, /* 10 */
	M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X, /* 20 */
	M,     M,     M, M,     B, Z, X,     X,     M,     M,     M, M,     B, Z, X, X, /* 30 */
	X,     X,     X, X,     X, X, X,     X,     X,     X,     X, X,     X, X, X, X, /* 40: REX */
	0,     0,     0, 0,     0, 0, 0,     0,     0,     0,     0, 0,     0, 0, 0, 0, /* 50: push, pop */
	X,     X,     X, M,     X, X, X,     X,     Z,     M | Z, B, M | B, 0, 0, 0, 0, /* 60 */
	B,     B,     B, B,     B, B, B,     B,     B,     B,     B, B,     B, B, B, B, /* 70: jumps */
	M | B, M | Z, X, M | B, M, M, M,     M,     M,     M,     M, M,     M, M, M, M, /* 80 */
	0,     0,     0, 0,     0, 0, 0,     0,     0,     0,     X, 0,     0, 0, 0, 0, /* 90 */
	P,     P,     P, P,     0, 0, 0,     0,     B,     Z,     0, 0,     0, 0, 0, 0, /* a0 */
	B,     B,     B, B,     B, B, B,     B,     V,     V,     V, V,     V, V, V, V, /* b0 */
	M | B, M | B, W, 0,     X, X, M | B, M | Z, B | W, 0,     W, 0,     0, B, X, 0, /* c0 */
	M,     M,     M, M,     X, X, X,     0,     M,     M,     M, M,     M, M, M, M, /* d0 */
	B,     B,     B, B,     B, B, B,     B,     J,     J,     X, B,     0, 0, 0, 0, /* e0 */
	X,     0,     X, X,     0, 0, M,     M,     0,     0,     0, 0,     0, 0, M, M, /* f0 */
};

/* Those behind 0f, and of VEX and EVEX map 1. */
static const uint8_t two_bytes[256] = {
	M,     M,     M,     M,     X,     0,     0,     0,
	0,     0,     X,     0,     X,     M,     0,     M | B, /* 00 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* 10 */
	M,     M,     M,     M,     X,     X,     X,     X,
	M,     M,     M,     M,     M,     M,     M,     M, /* 20 */
	0,     0,     0,     0,     0,     0,     X,     0,
	X,     X,     X,     X,     X,     X,     X,     X, /* 30: 38 and 3a are not looked up */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* 40 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* 50 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* 60 */
	M | B, M | B, M | B, M | B, M,     M,     M,     0,
	M,     M,     X,     X,     M,     M,     M,     M, /* 70 */
	J,     J,     J,     J,     J,     J,     J,     J,
	J,     J,     J,     J,     J,     J,     J,     J, /* 80: jumps */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* 90 */
	0,     0,     0,     M,     M | B, M,     X,     X,
	0,     0,     0,     M,     M | B, M,     M,     M, /* a0 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M | B, M,     M,     M,     M,     M, /* b0 */
	M,     M,     M | B, M,     M | B, M | B, M | B, M,
	0,     0,     0,     0,     0,     0,     0,     0, /* c0 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* d0 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* e0 */
	M,     M,     M,     M,     M,     M,     M,     M,
	M,     M,     M,     M,     M,     M,     M,     M, /* f0 */
};

struct decoder {
	struct cur in;
	bool has_66, has_67;
	uint8_t rex; /* W 8, R 4, X 2, B 1 */
	uint8_t modrm;
};

/* Prefixes in any order, then REX. */
static uint8_t prefixes(struct decoder *d, struct x86 *out)
{
	for (;;) {
		uint8_t byte = cur_u8(&d->in);

		switch (byte) {
		case 0x66:
			d->has_66 = true;
			break;
		case 0x67:
			d->has_67 = true;
			break;
		case 0x64:
			out->is_fs = true;
			break;
		case 0x26: /* other segments, lock, repeat */
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x65:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return byte;
			d->rex = byte & 15;
			return cur_u8(&d->in);
		}
		if (d->in.bad)
			return 0;
	}
}

static void vex(struct decoder *d, uint8_t first, struct x86 *out)
{
	uint8_t byte = cur_u8(&d->in);

	out->is_vector = true;
	d->rex = byte & 0x80 ? 0 : 4;
	if (first == 0xc5) {
		out->map = 1;
	} else if (first == 0xc4) {
		d->rex |= (uint8_t)((byte & 0x40 ? 0 : 2) | (byte & 0x20 ? 0 : 1));
		out->map = byte & 31;
		d->rex |= cur_u8(&d->in) & 0x80 ? 8 : 0;
	} else { /* EVEX */
		d->rex |= (uint8_t)((byte & 0x40 ? 0 : 2) | (byte & 0x20 ? 0 : 1));
		out->map = byte & 7;
		d->rex |= cur_u8(&d->in) & 0x80 ? 8 : 0;
		cur_u8(&d->in);
	}
	out->opcode = cur_u8(&d->in);
}

static uint8_t opcode(struct decoder *d, struct x86 *out)
{
	uint8_t byte = prefixes(d, out);

	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
		vex(d, byte, out);
	} else if (byte != 0x0f) {
		out->opcode = byte;
		return one_byte[byte];
	} else {
		out->map = 1;
		out->opcode = cur_u8(&d->in);
		if (out->opcode == 0x38 || out->opcode == 0x3a) {
			out->map = out->opcode == 0x38 ? 2 : 3;
			out->opcode = cur_u8(&d->in);
		}
	}
	switch (out->map) {
	case 1:
		return two_bytes[out->opcode];
	case 3:
		return M | B;
	case 2:
	case 5:
	case 6:
		return M;
	default:
		return X;
	}
}

static int64_t signed_bytes(struct cur *in, size_t size)
{
	switch (size) {
	case 1:
		return (int8_t)cur_u8(in);
	case 2:
		return (int16_t)cur_le16(in);
	case 4:
		return (int32_t)cur_le32(in);
	default:
		return (int64_t)cur_le64(in);
	}
}

/* The memory operand; where it is relative to rip is known once the length is. */
static void operand(struct decoder *d, struct x86 *out)
{
	uint8_t mod, low, sib = 0;

	d->modrm = cur_u8(&d->in);
	mod = d->modrm >> 6;
	low = d->modrm & 7;
	out->reg = (uint8_t)((d->modrm >> 3 & 7) | (d->rex & 4) << 1);
	if (mod == 3)
		return;
	out->memory = X86_MEMORY_BASE;
	out->base = (uint8_t)(low | (d->rex & 1) << 3);
	if (low == 4) {
		sib = cur_u8(&d->in);
		out->base = (uint8_t)((sib & 7) | (d->rex & 1) << 3);
		if ((sib >> 3 & 7) != 4 || (d->rex & 2))
			out->memory = X86_MEMORY_OTHER;
		if (mod == 0 && (sib & 7) == 5) {
			out->displacement = signed_bytes(&d->in, 4);
			if (out->memory == X86_MEMORY_BASE)
				out->memory = X86_MEMORY_ABSOLUTE;
			out->address = (uint64_t)out->displacement;
			return;
		}
	} else if (mod == 0 && low == 5) {
		out->displacement = signed_bytes(&d->in, 4);
		out->memory = X86_MEMORY_RELATIVE;
		return;
	}
	if (mod)
		out->displacement = signed_bytes(&d->in, mod == 1 ? 1 : 4);
}

static void immediate(struct decoder *d, uint8_t form, struct x86 *out)
{
	if (!out->map && (out->opcode == 0xf6 || out->opcode == 0xf7) && (d->modrm & 0x30) == 0)
		form |= out->opcode == 0xf6 ? B : Z;
	if (form & W)
		out->immediate = signed_bytes(&d->in, 2);
	if (form & B)
		out->immediate = signed_bytes(&d->in, 1);
	if (form & J)
		out->immediate = signed_bytes(&d->in, 4);
	if (form & Z)
		out->immediate = signed_bytes(&d->in, d->has_66 && !(d->rex & 8) ? 2 : 4);
	if (form & P)
		out->immediate = signed_bytes(&d->in, d->has_67 ? 4 : 8);
	if (form & V) {
		size_t size = d->rex & 8 ? 8 : d->has_66 ? 2 : 4;

		out->immediate = signed_bytes(&d->in, size);
		if (size == 4)
			out->immediate = (uint32_t)out->immediate; /* the upper half becomes zero */
		out->reg = (uint8_t)((out->opcode & 7) | (d->rex & 1) << 3);
	}
}

static bool is_one_of(uint8_t byte, const char *set)
{
	return strchr(set, byte) && byte;
}

static void flow(const struct decoder *d, uint64_t next, struct x86 *out)
{
	uint64_t target = next + (uint64_t)out->immediate;
	uint8_t op = out->opcode, kind = d->modrm >> 3 & 7;

	if (out->is_vector)
		return;
	/* NOLINTNEXTLINE(bugprone-branch-clone): one branch for each opcode map */
	if (out->map == 1 && (op & 0xf0) == 0x80) {
		out->flow = X86_FLOW_JUMP_IF;
	} else if (out->map == 1 && op == 0x0b) {
		out->flow = X86_FLOW_END;
	} else if (out->map) {
		return;
	} else if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3)) {
		out->flow = X86_FLOW_JUMP_IF;
	} else if (op == 0xe8) {
		out->flow = X86_FLOW_CALL;
	} else if (op == 0xe9 || op == 0xeb) {
		out->flow = X86_FLOW_JUMP;
	} else if (op == 0xff && kind >= 2 && kind <= 5) {
		out->flow = kind < 4 ? X86_FLOW_CALL : X86_FLOW_JUMP;
		return;
	} else if (is_one_of(op, "\xc2\xc3\xca\xcb\xcc\xcf\xf4")) {
		out->flow = X86_FLOW_END;
		return;
	}
	if (out->flow != X86_FLOW_NEXT && out->flow != X86_FLOW_END)
		out->target = target;
}

int x86_decode(const uint8_t *code, size_t size, uint64_t at, struct x86 *out)
{
	struct decoder d = { .in = cur_of(code, MIN(size, (size_t)X86_LENGTH_MAX)) };
	struct x86 result = { 0 };
	uint8_t form = opcode(&d, &result);
	uint64_t next;

	if (!d.in.bad && (form & X))
		return -EBADMSG;
	if (form & M)
		operand(&d, &result);
	immediate(&d, form, &result);
	if (d.in.bad)
		return size < X86_LENGTH_MAX ? -ENODATA : -EBADMSG;
	result.length = (uint8_t)(d.in.pos - code);
	result.is_wide = d.rex & 8;
	next = at + result.length;
	if (result.memory == X86_MEMORY_RELATIVE)
		result.address = next + (uint64_t)result.displacement;
	flow(&d, next, &result);
	*out = result;
	return 0;
}
