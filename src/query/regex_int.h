/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a regular expression: regex_compile.c makes it, regex.c follows it. */
#pragma once

#include "query/regex.h"

#define CODE_MAX 0x10ffff

enum op { OP_SET, OP_SPLIT, OP_JMP, OP_BEGIN, OP_END, OP_MATCH };

struct regex_state {
	uint8_t op;
	bool negated, folded;
	int32_t x, y;   /* of SPLIT and JMP: relative. Of SET: the first range, how many */
	int32_t lo, hi; /* of SET without ranges */
};

struct regex_range {
	int32_t lo, hi;
};
