/* SPDX-License-Identifier: Apache-2.0 */
/* What V8's own metadata (symbols v8dbg_*) lack, for each version that was tried. Measured with real processes; V8's
 * sources of the same version say the same: src/objects/code.h, bytecode-array.h, code-kind.h,
 * deoptimization-data.h, shared-function-info.tq. */
#pragma once

#include <stdint.h>

/* Bytes from an object's first one, unless said otherwise. */
struct nodejs_version {
	uint8_t major, minor;       /* of V8 */
	uint8_t node;               /* of Node.js, for people */
	uint8_t sfi_data;           /* SharedFunctionInfo: bytecode, or baseline code; a small integer in built-ins */
	uint8_t bytecode_positions; /* BytecodeArray: its table of source positions */
	uint8_t code_deopt;         /* Code: deoptimization data; of baseline code its bytecode */
	uint8_t code_positions;     /* Code: its table of source positions */
	uint8_t code_start, code_size; /* Code: address of its first instruction; 0: they follow the object's head */
	uint8_t code_flags;
	uint8_t stream_code; /* InstructionStream: its Code; 0: the Code itself lies in front of them */
	uint8_t kind_baseline, kind_maglev, kind_turbofan; /* low 4 bits of the flags; 0: there is none */
	/* Deoptimization data, indexes of an array. */
	uint8_t deopt_inlined_count, deopt_literals, deopt_sfi, deopt_inlining;
	uint8_t scope_start; /* ScopeInfo: index of the function's first character; 0: behind its names */
};

/** nodejs_version_find - NULL: not tried. */
const struct nodejs_version *nodejs_version_find(uint32_t major, uint32_t minor);
