/* SPDX-License-Identifier: Apache-2.0 */
/* What probing one file of Node.js found, and how objects of V8 are read from a process. Pointers to objects have a
 * tag, which V8 calls "tagged"; addresses here have none unless said. */
#pragma once

#include <linux/types.h>

#include "abi/nodejs.h"
#include "base/cur.h"
#include "object/reader.h"
#include "runtime/nodejs/versions/versions.h"
#include "runtime/runtime.h"

/* Constants that V8 tells: field, whether the file is refused without it, names of symbols behind v8dbg_, one of which
 * is there in each version. */
#define NODEJS_CONSTANTS(X)                                                                                 \
	X(fp_marker, true, "off_fp_context", "")                                                            \
	X(fp_function, true, "off_fp_function", "")                                                         \
	X(fp_bytecode_array, false, "off_fp_bytecode_array", "")                                            \
	X(fp_bytecode_offset, false, "off_fp_bytecode_offset", "")                                          \
	X(function_shared, true, "class_JSFunction__shared__SharedFunctionInfo", "")                        \
	X(sfi_name, false, "class_SharedFunctionInfo__name_or_scope_info__Object",                          \
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_")                                   \
	X(sfi_name_24, false, "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", "") \
	X(sfi_script, false, "class_SharedFunctionInfo__script_or_debug_info__HeapObject",                  \
	  "class_SharedFunctionInfo__script__Tagged_HeapObject_")                                           \
	X(script_source, false, "class_Script__source__Object", "")                                         \
	X(script_name, true, "class_Script__name__Object", "")                                              \
	X(script_id, false, "class_Script__id__SMI", "")                                                    \
	X(string_length, true, "class_String__length__int32_t", "")                                         \
	X(string_chars, true, "class_SeqOneByteString__chars__char", "")                                    \
	X(string_first, true, "class_ConsString__first__String", "")                                        \
	X(string_second, true, "class_ConsString__second__String", "")                                      \
	X(string_parent, true, "class_SlicedString__parent__String", "")                                    \
	X(string_offset, true, "class_SlicedString__offset__SMI", "")                                       \
	X(string_actual, true, "class_ThinString__actual__String", "")                                      \
	X(string_resource, true, "class_ExternalString__resource__Object", "")                              \
	X(first_nonstring, true, "FirstNonstringType", "")                                                  \
	X(representation_mask, true, "StringRepresentationMask", "")                                        \
	X(encoding_mask, true, "StringEncodingMask", "")                                                    \
	X(one_byte, true, "OneByteStringTag", "")                                                           \
	X(tag_cons, true, "ConsStringTag", "")                                                              \
	X(tag_external, true, "ExternalStringTag", "")                                                      \
	X(tag_sliced, true, "SlicedStringTag", "")                                                          \
	X(tag_thin, true, "ThinStringTag", "")                                                              \
	X(map_type, true, "class_Map__instance_type__uint16_t", "")                                         \
	X(bytecode_data, false, "class_BytecodeArray__data__uintptr_t", "")                                 \
	X(array_length, true, "class_FixedArrayBase__length__SMI", "")                                      \
	X(array_data, true, "class_FixedArray__data__uintptr_t", "")                                        \
	X(scope_locals, true, "scopeinfo_idx_ncontextlocals", "")                                           \
	X(scope_first, true, "scopeinfo_idx_first_vars", "")                                                \
	X(stream_start, true, "class_InstructionStream__instruction_start__uintptr_t",                      \
	  "class_Code__instruction_start__uintptr_t")                                                       \
	X(type_sfi, true, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", "")                         \
	X(type_sfi_wrapper, false, "type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE", "") \
	X(type_scope, true, "type_ScopeInfo__SCOPE_INFO_TYPE", "")                                          \
	X(type_map, false, "type_Map__MAP_TYPE", "")                                                        \
	X(type_script, true, "type_Script__SCRIPT_TYPE", "")                                                \
	X(type_bytecode, true, "type_BytecodeArray__BYTECODE_ARRAY_TYPE", "")                               \
	X(type_interpreter_data, true, "type_InterpreterData__INTERPRETER_DATA_TYPE", "")                   \
	X(type_code, true, "type_Code__CODE_TYPE", "")                                                      \
	X(type_stream, false, "type_InstructionStream__INSTRUCTION_STREAM_TYPE", "")                        \
	X(type_bytes, true, "type_ByteArray__BYTE_ARRAY_TYPE", "")                                          \
	X(type_trusted_bytes, false, "type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", "")                  \
	X(type_array, true, "type_FixedArray__FIXED_ARRAY_TYPE", "")                                        \
	X(type_trusted_array, false, "type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE", "")                \
	X(type_protected_array, false, "type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE", "")          \
	X(type_function, true, "type_JSFunction__JS_FUNCTION_TYPE", "")                                     \
	X(frame_builtin_exit, true, "frametype_BuiltinExitFrame", "")                                       \
	X(frame_wasm, false, "frametype_WasmFrame", "frametype_WasmCompiledFrame")                          \
	X(frame_regexp, false, "frametype_IrregexpFrame", "")

#define NODEJS_BYTECODES_MAX 256

struct nodejs_layout {
#define X(field, required, name, other) int16_t field;
	NODEJS_CONSTANTS(X)
#undef X
	struct nodejs_version version;
	/* Bytes of each bytecode with operands of 1, 2 and 4 bytes. No count: baseline code has no lines. */
	uint8_t bytecode_sizes[3][NODEJS_BYTECODES_MAX];
	uint16_t bytecode_count;
	uint64_t wasm_manager; /* address in the file of the pointer to V8's WasmCodeManager; 0: not known */
};

struct nodejs_binary {
	struct runtime_binary base;
	struct nodejs_layout layout;
	uint64_t builtins, builtins_size; /* addresses of the file; size 0: not known */
	uint64_t builtins_pointer;        /* where the address lies that they have in the process; 0: builtins counts */
	uint64_t here;                    /* some address in it */
	uint64_t metadata;                /* address in it of what says the version of Node.js; 0: not known */
};

/* Files of Node.js are mapped twice and more: again for V8's built-in code, which then lies near the code that it
 * makes; from V8 12 on for each isolate. Up to V8 10.2 an isolate that is far from the file has one in other memory. */
struct nodejs_maps {
	uint64_t builtins[ABI_NODEJS_BUILTINS]; /* as struct abi_nodejs has them */
	uint64_t maybe[ABI_NODEJS_BUILTINS];    /* memory of that size: its bytes say whether it is a copy */
	uint64_t builtins_size;
	struct abi_code_range ranges[ABI_CODE_RANGES];
	size_t builtin_count, maybe_count, range_count;
};

/** nodejs_maps_read - of the text of /proc/PID/maps. Pure.
 * @builtins, @size: where they lie in the process, by the file's symbols; size 0: not known
 * @here: an address in the file's first mapping */
void nodejs_maps_read(struct str maps, uint64_t builtins, uint64_t size, uint64_t here, struct nodejs_maps *out);
/** nodejs_maps_prove - those of @maps->maybe with the same bytes in @target as at @builtins, tried at four places, are
 * copies of the built-in code */
void nodejs_maps_prove(const struct runtime_target *target, uint64_t builtins, struct nodejs_maps *maps);
/** nodejs_take_builtins - what @maps has of built-in code becomes @out's; the rest of @out stays */
void nodejs_take_builtins(const struct nodejs_maps *maps, struct abi_nodejs *out);

/* ---- objects ---- */

struct nodejs_lines { /* where a script's lines end */
	uint64_t script, source;
	uint32_t source_length; /* as the string itself says */
	uint32_t length, count; /* length 0: the lines could not be read */
	uint32_t *ends;         /* character of each line's end */
	uint64_t size;          /* of the text as UTF-8 */
	uint64_t map_id;        /* nodejs_source_map() */
	bool map_is_known;
	uint64_t used;
};

#define NODEJS_SCRIPTS_MAX 256
#define NODEJS_LINES_MAX (4U << 20)    /* of all scripts of a process that are kept */
#define NODEJS_SOURCE_MAX MIB(64)      /* of a script, in bytes */
#define NODEJS_LINES_BYTES_MAX MIB(64) /* of all processes together */
#define NODEJS_SCAN_PER_S MIB(64)      /* characters of sources that are gone through for one process in a second */
#define NODEJS_TEXT_MAX KIB(4)         /* of a name */
/* So many different pieces of compiled code whose tables contradict each other, and none that is right: only each
 * CODES_TRIED-th piece of the process is read from then on, until one is right. */
#define NODEJS_CODES_FEW 8
#define NODEJS_CODES_TRIED 64
#define NODEJS_READS_MAX 20000 /* for one name or one piece of code; sources not counted */

/* What is kept between reads of names: learn_process(). learn_file() keeps the layout alone in it. */
struct nodejs_process {
	struct nodejs_layout layout;
	struct nodejs_lines scripts[NODEJS_SCRIPTS_MAX];
	size_t script_count, line_count;
	uint64_t clock;
	/* Of compiled code that was read; of wrong pieces: the last one's key, and those left out since there were FEW.
	 */
	uint32_t codes_right, codes_wrong, codes_left;
	uint64_t code_wrong;
	uint64_t second, scanned; /* characters in the second of CLOCK_MONOTONIC that it was last */
};

struct nodejs_heap { /* how objects of one process are read */
	const struct runtime_target *target;
	const struct nodejs_layout *layout;
	struct nodejs_process *process; /* NULL: no lines are wanted */
	uint64_t *left; /* what may still be read: nodejs_read() takes 1, and 1 more for each 4 KiB. NULL: any number */
};

/** nodejs_read - Return: 0; -E2BIG: nothing is left; the reader's error. */
int nodejs_read(const struct nodejs_heap *h, void *dst, uint32_t size, uint64_t at) warn_unused;

int nodejs_word(const struct nodejs_heap *h, uint64_t at, uint64_t *out) warn_unused;
/** nodejs_type - instance type of @object, tagged. Return: it, or -errno. */
int nodejs_type(const struct nodejs_heap *h, uint64_t object) warn_unused;
/** nodejs_text - append a string's first NODEJS_TEXT_MAX bytes as UTF-8. @is_cut: there is more. Return: 0, -errno. */
int nodejs_text(const struct nodejs_heap *h, uint64_t object, struct buf *out, bool *is_cut) warn_unused;
/** nodejs_take_scan - Return: whether @length characters or bytes of @p may be gone through now (NODEJS_SCAN_PER_S). */
bool nodejs_take_scan(struct nodejs_process *p, uint32_t length) warn_unused;
/** nodejs_script_lines - NULL: nobody can tell now; length 0: nobody can */
struct nodejs_lines *nodejs_script_lines(const struct nodejs_heap *h, uint64_t script);
/** nodejs_scripts_drop - forget all lines of a process */
void nodejs_scripts_drop(struct nodejs_process *p);
struct nodejs_place {
	int32_t line, column; /* from 1 on, the column in characters of V8's strings (16 bits); line 0: not known */
};

/** nodejs_place_of - line 0: character @position lies in no line */
struct nodejs_place nodejs_place_of(const struct nodejs_lines *lines, uint32_t position);

#define NODEJS_PATH_MAX (4 * NODEJS_TEXT_MAX)

/**
 * nodejs_path_of_url - make what stands in @text from @at on a path, where it is a URL of a file: "file:///a%20b.mjs?x"
 *
 * What is escaped is a byte. A URL with what no path has (%00, %2F, an escape that is none, bytes that are not UTF-8)
 * stays as it is written, without its scheme. What stands behind '?' or '#' is not the file's. Pure.
 */
void nodejs_path_of_url(struct buf *text, size_t at);

struct nodejs_function { /* texts lie in a buffer at these places */
	size_t file_at, file_len, name_at, name_len;
	uint64_t script; /* tagged; 0: none */
	uint64_t data;   /* of SharedFunctionInfo */
	struct nodejs_place first;
	int32_t name_column; /* in the first line, where its name stands; 0: not known */
	uint64_t map_id;
	bool is_cut;
	bool lacks_lines; /* of the script; they may be read later */
};

/** nodejs_function_read - what a SharedFunctionInfo (no tag) says of a function; @words: ABI_NODEJS_SFI_BYTES of it,
 * zeros behind them */
int nodejs_function_read(const struct nodejs_heap *h, const __u64 *words, struct buf *room,
			 struct nodejs_function *out) warn_unused;
/** nodejs_is_sfi - of an object's first word */
bool nodejs_is_sfi(const struct runtime_target *target, const struct abi_nodejs *info, uint64_t map);
/** nodejs_guard - walk_nodejs_guard() of a SharedFunctionInfo with @words */
uint64_t nodejs_guard(const struct runtime_target *target, const struct abi_nodejs *info, const __u64 *words);
/** nodejs_bytecode - append the bytes of a BytecodeArray. Return: 0; -E2BIG; the reader's error. */
int nodejs_bytecode(const struct nodejs_heap *h, uint64_t bytecode, struct buf *out) warn_unused;
/** nodejs_bytes - the bytes of an array of bytes, at most @max. Return: 0; -ENODATA: it is none; -errno. */
int nodejs_bytes(const struct nodejs_heap *h, uint64_t object, size_t max, struct buf *out) warn_unused;

/* ---- tables of source positions; pure ---- */

struct nodejs_positions {
	struct cur in;
	int64_t offset, position; /* of the entry at hand */
	uint8_t shift;
};

void nodejs_positions_init(struct nodejs_positions *p, const struct nodejs_version *version, struct cur table);
/** nodejs_positions_next - Return: whether there is one more. */
bool nodejs_positions_next(struct nodejs_positions *p);
/** nodejs_position_at - the entry in force at @offset. Return: false: there is none. */
bool nodejs_position_at(const struct nodejs_version *version, struct cur table, int64_t offset, uint64_t *position);

/**
 * nodejs_code_positions_fit - may @table be one of compiled code of @size bytes with @inlined inlined calls? It ends
 *with an entry, and its entries lie in the code and name no other call.
 */
bool nodejs_code_positions_fit(const struct nodejs_version *version, struct cur table, uint64_t size,
			       uint32_t inlined) warn_unused;

#define NODEJS_POSITION(p) ((int64_t)((p) >> 1 & 0x3fffffff) - 1) /* character in the script; -1: none */
#define NODEJS_INLINING(p) ((int32_t)((p) >> 31 & 0xffff) - 1)    /* -1: not inlined */

/* ---- what nodejs_line() reads: three differences each, varints, the last two with their sign in the lowest bit: byte
 * of the bytecode or of baseline code, line, column ---- */

struct nodejs_line_writer {
	struct buf *out;
	int64_t offset;
	struct nodejs_place place;
	bool is_full; /* there is more than NODEJS_LINES_TABLE_MAX */
};

#define NODEJS_LINES_TABLE_MAX KIB(256)

/** nodejs_line_add - the place from @offset on; @offset must not become less; line 0: not known */
void nodejs_line_add(struct nodejs_line_writer *w, int64_t offset, struct nodejs_place place);
void nodejs_varint_add(struct buf *out, uint64_t value);

/* ---- bytecode; pure ---- */

struct nodejs_bytecodes {
	struct cur in;
	uint32_t offset, size; /* of the one at hand */
};

/** nodejs_bytecodes_next - Return: whether there is one more. */
bool nodejs_bytecodes_next(struct nodejs_bytecodes *b, const struct nodejs_layout *l);
/**
 * nodejs_baseline_lines - lines by the distance from the first instruction of baseline code, in the form that
 *	nodejs_line() reads
 * @lengths: bytes of code in front of the first bytecode, then of each one
 * @positions: the bytecode's table
 * Return: 0; -ENODATA: how long bytecodes are is not known; -EBADMSG: both tables are not of this bytecode; -E2BIG:
 * there are more lines than in @out.
 */
int nodejs_baseline_lines(const struct nodejs_layout *l, struct cur bytecode, struct cur lengths, struct cur positions,
			  const struct nodejs_lines *lines, struct buf *out) warn_unused;
/**
 * nodejs_positions_fit - is @table one of @bytecode? Each of its entries begins a bytecode, and it ends with an entry.
 *	Where it is not known how long bytecodes are, entries lie in the bytecode.
 */
bool nodejs_positions_fit(const struct nodejs_layout *l, struct cur bytecode, struct cur table) warn_unused;

#define NODEJS_ANONYMOUS "(anonymous)" /* what stands for a name that a function has not */
#define NODEJS_REGEXP "(regexp)"       /* what stands for code of regular expressions */
#define NODEJS_TO_WASM "(js-to-wasm)"  /* ... for what leads from a function into WebAssembly */
#define NODEJS_WASM "(wasm)"           /* ... for a function of WebAssembly that is not known */

/**
 * nodejs_source_map - which source map lies beside @file: target_file_id() of it; looked for once a script
 * A file that is not as long as the text that runs is another one by now, or was changed when it was read; so may be
 * its map. Return: 0: there is none of this code.
 */
uint64_t nodejs_source_map(const struct runtime_target *target, struct nodejs_lines *lines, struct str file);

#define NODEJS_BEFORE 64 /* characters in front of a function that are looked at */

/**
 * nodejs_name_before - how far in front of a function its name begins: "name(", "name=function(", "name=async ("; pure
 * @units: the @count characters in front of it; its own position is where its parameters begin
 * @name: as V8 has it; of "a.b" the last part counts, which may stand behind a dot or before ':'
 * Return: characters; 0: it does not stand there.
 */
size_t nodejs_name_before(const uint16_t *units, size_t count, struct str name);

/* ---- WebAssembly ---- */

struct nodejs_wasm_text { /* in a buffer */
	size_t at, len;
	bool is_cut;
};

struct nodejs_wasm_names {
	struct nodejs_wasm_text module, function; /* len 0: it has no name */
};

/**
 * nodejs_wasm_names_read - what a module's bytes call it and function @index; pure but for the reader
 * Return: 0; -EBADMSG: this is no module; -ENOMEM; the reader's error. Cost: one pass over the names in front of it.
 */
int nodejs_wasm_names_read(const struct reader *module, uint32_t index, struct buf *room,
			   struct nodejs_wasm_names *out) warn_unused;
/**
 * nodejs_wasm_read - the function whose code is at @pc
 * *size: of its module's bytes. Return: 0; -ENOENT: nobody knows it; as nodejs_wasm_names_read().
 */
int nodejs_wasm_read(const struct nodejs_heap *h, uint64_t pc, struct buf *room, struct nodejs_wasm_names *out,
		     uint32_t *index, uint64_t *size) warn_unused;

/* ---- what the process says of itself ---- */

#define NODEJS_VERSION_MAX 64 /* with its 0 */

/** nodejs_is_version - "20.20.2", with "-" or "+" and a suffix of letters, digits, '-', '+', '.' or without. Pure. */
bool nodejs_is_version(struct str text);
/** nodejs_version_read - that of Node.js. @at: address of node::per_process::metadata. Return: 0; -EBADMSG: it is none;
 * the reader's error. */
int nodejs_version_read(const struct runtime_target *target, uint64_t at, char out[NODEJS_VERSION_MAX]) warn_unused;

/* ---- struct runtime's ---- */

extern const struct runtime_phase nodejs_phases[];

int nodejs_probe(const struct runtime_file *file, struct runtime_binary **out) warn_unused;
void nodejs_release(struct runtime_binary *binary);
/** nodejs_metadata - struct runtime's: {node_version, link, libc, exe, execfn, arch} */
int nodejs_metadata(const struct runtime_binary *binary, const struct runtime_target *target,
		    struct buf *json) warn_unused;
int nodejs_learn_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out) warn_unused;
int nodejs_learn_process(const struct runtime_target *target, const void *info, void **out) warn_unused;
void nodejs_unlearn(void *learnt);
int nodejs_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info) warn_unused;
int nodejs_sync(const struct runtime_binary *binary, const struct runtime_target *target, void *info,
		struct abi_code_range *ranges) warn_unused;
int nodejs_read_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out) warn_unused;
int32_t nodejs_line(const struct runtime_function *function, uint32_t position);
int32_t nodejs_column(const struct runtime_function *function, uint32_t position);
int nodejs_read_code(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out) warn_unused;
size_t nodejs_expand(const struct runtime_function *code, uint32_t position, bool is_return,
		     struct runtime_shown out[RUNTIME_EXPAND_MAX]);
