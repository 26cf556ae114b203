/* SPDX-License-Identifier: Apache-2.0 */
/* What V8's own metadata (symbols v8dbg_*) lack, for each version that was tried. Measured with real processes; V8's
 * sources of the same version say the same: src/objects/code.h, bytecode-array.h, code-kind.h,
 * deoptimization-data.h, shared-function-info.tq, script.tq. */
#pragma once

#include <stdint.h>

#define NODEJS_NO_KIND 0xff

/* Of V8's objects of C++ that know WebAssembly's code; all 0: not tried. Maps are those of libstdc++: where their root
 * is.
 */
struct nodejs_wasm {
	uint16_t manager_modules;                               /* WasmCodeManager: its map of memory for code */
	uint16_t module_codes, module_fresh, module_bytes;      /* NativeModule */
	uint8_t code_module, code_start, code_size, code_index; /* WasmCode; its last two: 4 bytes each */
};

/* A digit for each bytecode: its bytes, and how many operands of it have 2 or 4 bytes, not 1, behind a prefix. */
struct nodejs_bytecode_sizes {
	const char *narrow, *operands;
};

/* Bytes from an object's first one, unless said otherwise. */
struct nodejs_version {
	uint8_t major, minor; /* of V8 */
	uint8_t node;         /* of Node.js, for people */
	/* What the file's own constants say from some version on; 0: they do. Bytes from the frame pointer: */
	int8_t fp_bytecode_array, fp_bytecode_offset;
	uint8_t bytecode_data, sfi_script, script_source, script_id;
	uint8_t sfi_data;           /* SharedFunctionInfo: bytecode, or baseline code; a small integer in built-ins */
	uint8_t bytecode_positions; /* BytecodeArray: its table of source positions */
	uint8_t code_deopt;         /* Code: deoptimization data; of baseline code its bytecode */
	uint8_t code_positions;     /* Code: its table of source positions */
	uint8_t code_start, code_size; /* Code: address of its first instruction; 0: they follow the object's head */
	uint8_t code_flags;
	uint8_t kind_shift, kind_mask; /* which bits of the flags say what the code is */
	uint8_t kind_baseline, kind_maglev, kind_turbofan, kind_regexp; /* NODEJS_NO_KIND: there is none */
	uint8_t kind_js_to_wasm; /* leads from JavaScript into WebAssembly; several exported functions may have one */
	uint8_t baseline_pair;   /* SharedFunctionInfo -> {code, bytecode}, not the baseline code itself */
	uint8_t stream_code;     /* InstructionStream: its Code; 0: the Code itself lies in front of them */
	/* Deoptimization data, indexes of an array. */
	uint8_t deopt_inlined_count, deopt_literals, deopt_sfi, deopt_inlining;
	uint8_t own_maps;    /* each isolate has maps of its own; from 10 on they have all the same */
	uint8_t scope_words; /* ScopeInfo: its first word behind the head, which has the length up to V8 8.4 */
	uint8_t scope_start; /* ScopeInfo: index of the function's first character; 0: behind its names */
	/* Tables of source positions: the offset that differences count from; low bits of a difference that are none */
	int8_t positions_from;
	uint8_t positions_shift;
	struct nodejs_wasm wasm;
	const struct nodejs_bytecode_sizes
		*bytecodes; /* for files without .symtab; NULL: not known, or every file has them */
};

/** nodejs_version_find - NULL: not tried. */
const struct nodejs_version *nodejs_version_find(uint32_t major, uint32_t minor);
