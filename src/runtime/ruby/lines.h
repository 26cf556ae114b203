/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Ruby's bytecode. runtime_function.lines.bytes: struct ruby_lines, the index, the entries; as they lie in the
 * process. */
#pragma once

#include <linux/types.h>

#include "runtime/runtime.h"

#define RUBY_LINES_MAX KIB(256) /* bytes of one function's table */

struct ruby_lines {
	uint32_t code_size;  /* words of the code */
	uint32_t count;      /* entries that there are in the process */
	uint32_t index_size; /* bytes of the index that follow */
	uint8_t line_bytes, line_at;
	uint8_t by_array; /* the entries have their positions: 2.5 */
	uint8_t reserved;
};

/** ruby_index_size - bytes of the index of a function with that many words of code; 0: too many. */
uint32_t ruby_index_size(uint32_t code_size);
/** ruby_line - struct runtime's. */
int32_t ruby_line(const struct runtime_function *function, uint32_t position);
