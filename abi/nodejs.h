/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the walker of V8's frames (walk/walk_nodejs.h) must know of one process of Node.js. Offsets are bytes: from the
 * frame pointer, or from the first byte of an object, whose pointers have ABI_NODEJS_TAG set.
 *
 * Sources: the metadata that V8 exports for debuggers (symbols v8dbg_*, tools/gen-postmortem-metadata.py), V8's
 * src/execution/frame-constants.h; src/runtime/nodejs/versions/ has what these lack. */
#pragma once

#define ABI_NODEJS_TAG 1 /* kHeapObjectTag: lowest bit of a pointer to an object; a small integer has 0 there */
/* Places for V8's built-in code: the file's own, and from V8 12 on a copy for each isolate. A power of two: the walker
 * halves. */
#define ABI_NODEJS_BUILTINS 32
#define ABI_NODEJS_NO_BUILTINS 0x7fffffffffffffffULL /* behind the last one: no address is as high */
#define ABI_NODEJS_NOWHERE 0xffffffffU               /* abi_frame.extra: the place in the bytecode is not known */
/* Read at a SharedFunctionInfo: no more than it has (V8 11: 56). What lies behind it may not be in memory yet. */
#define ABI_NODEJS_SFI_BYTES 48
#define ABI_NODEJS_SFI_WORDS 8  /* room for them: whatever the offsets below say, a word of it is meant */
#define ABI_NODEJS_TYPES_MAX 64 /* frame types are smaller */

/* Keys of frames that no function stands for; objects lie higher. Their cookie is ABI_NODEJS_PLAIN. */
enum abi_nodejs_plain {
	ABI_NODEJS_REGEXP = 2,
};
#define ABI_NODEJS_WASM 1 /* in the cookie of WebAssembly's code in place of a function */
#define ABI_NODEJS_PLAIN 1
#define ABI_NODEJS_PLAIN_MAX 16

/* Value of the map `nodejses`; its key is the pid. Valid only when start_ns and exec_id are those of the task. A child
 * that forks has its parent's. */
struct abi_nodejs {
	__u64 start_ns; /* CLOCK_BOOTTIME start of the leader */
	__u32 exec_id;
	__u16 version_major, version_minor;  /* of V8 */
	__u64 sfi_map, bytecode_map;         /* tagged: first word of each SharedFunctionInfo, of each BytecodeArray */
	__u64 code_map;                      /* the same of what lies in front of compiled code; the host's */
	__u64 builtins_size;                 /* V8's built-in code: the same bytes wherever it is mapped */
	__u64 builtins[ABI_NODEJS_BUILTINS]; /* where: from the lowest up, NO_BUILTINS behind them */
	__s16 fp_marker, fp_function;        /* the marker's slot has a context in JS frames */
	__s16 fp_bytecode_array, fp_bytecode_offset;
	__s16 fp_target;                      /* the function of a built-in exit frame */
	__u16 function_shared;                /* JSFunction -> SharedFunctionInfo */
	__u16 sfi_data, sfi_name, sfi_script; /* words of a SharedFunctionInfo; sfi_data: small integer in built-ins */
	__u16 bytecode_data;                  /* BytecodeArray: its first bytecode */
	__u8 frame_builtin_exit, frame_wasm, frame_regexp; /* frame types; 0: this version has none */
	/* Code: address of its first instruction; 0: they lie stream_start bytes behind its own. Its size: 4 bytes. */
	__u8 code_start, code_size, stream_start;
	__u8 baseline_pair; /* SharedFunctionInfo -> {code, bytecode}, not the code itself */
	__u8 script_id;     /* Script: its number, a small integer; 0: not known */
	/* Types of objects, where each isolate has maps of its own: the three above are those of one of them. 0: all
	 * have the same. */
	__u16 type_sfi, type_bytecode;
};

#define ABI_NODEJS_MAP_TYPE 12 /* Map: 2 bytes, the type of its objects */

#define ABI_NODEJS_CODE_FROM 40 /* of the Code: code_start and code_size lie in the CODE_BYTES from here on */
#define ABI_NODEJS_CODE_BYTES 24

_Static_assert(sizeof(struct abi_nodejs) == 16 + 24 + 8 + 256 + 32, "layout changed: bump ABI_VERSION");
