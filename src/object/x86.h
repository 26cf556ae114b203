/* SPDX-License-Identifier: Apache-2.0 */
/* Where x86-64 instructions end, where they jump and what they refer to. Not a disassembler: what an instruction
 * computes is not known here. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (December
 * 2023), chapter 2 and the opcode maps of appendix A. */
#pragma once

#include "base/base.h"

#define X86_LENGTH_MAX 15

enum x86_flow {
	X86_FLOW_NEXT,    /* goes on behind it */
	X86_FLOW_CALL,    /* target: where to; 0 when that is in a register or in memory */
	X86_FLOW_JUMP,    /* target as above */
	X86_FLOW_JUMP_IF, /* target: always known */
	X86_FLOW_END,     /* return, hlt, ud2, int3 */
};

enum x86_memory {
	X86_MEMORY_NONE,     /* no memory operand */
	X86_MEMORY_RELATIVE, /* at address: relative to rip */
	X86_MEMORY_ABSOLUTE, /* at address: a constant (behind %fs: an offset) */
	X86_MEMORY_BASE,     /* at base + displacement, no index */
	X86_MEMORY_OTHER,
};

struct x86 {
	uint8_t length;
	uint8_t map; /* 0: one-byte opcodes, 1: 0f, 2: 0f 38, 3: 0f 3a; others of VEX and EVEX as they number them */
	uint8_t opcode;
	bool is_vector; /* VEX or EVEX */
	bool is_wide;   /* REX.W */
	bool is_fs;     /* the memory operand lies behind %fs */
	uint8_t reg;    /* of ModRM with REX.R, or of an opcode that has it in its low bits */
	uint8_t base;   /* MEMORY_BASE */
	enum x86_flow flow;
	enum x86_memory memory;
	uint64_t target, address;
	int64_t displacement, immediate;
};

/**
 * x86_decode - the instruction at the start of @code
 * @at: its address
 * Return: 0; -ENODATA when @size bytes do not hold all of it; -EBADMSG when it is none.
 */
int x86_decode(const uint8_t *code, size_t size, uint64_t at, struct x86 *out) warn_unused;
