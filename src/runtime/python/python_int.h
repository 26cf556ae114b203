/* SPDX-License-Identifier: Apache-2.0 */
/* What probing one file of CPython found, for attaching to processes that have it mapped. Addresses are the file's own.
 */
#pragma once

#include <linux/types.h>
#include <stdatomic.h>

#include "abi/python.h"
#include "object/accessor.h"
#include "object/elf_find.h"
#include "runtime/python/versions/layouts.h"
#include "runtime/runtime.h"

/* Symbols that are asked for by name. */
#define PYTHON_SYMBOLS(X)                               \
	X(RUNTIME, "_PyRuntime")                        \
	X(CURRENT, "_PyThreadState_Current")            \
	X(EVAL_DEFAULT, "_PyEval_EvalFrameDefault")     \
	X(EVAL_EX, "PyEval_EvalFrameEx")                \
	X(EVAL_COLD, "_PyEval_EvalFrameDefault.cold")   \
	X(EVAL_EX_COLD, "PyEval_EvalFrameEx.cold")      \
	X(GET_VERSION, "Py_GetVersion")                 \
	X(VERSION, "Py_Version")                        \
	X(HEAD, "PyInterpreterState_Head")              \
	X(THIS_THREAD, "PyGILState_GetThisThreadState") \
	X(GET_CURRENT, "_PyThreadState_GetCurrent")     \
	X(GET_UNCHECKED, "PyThreadState_GetUnchecked")  \
	X(UNCHECKED_GET, "_PyThreadState_UncheckedGet") \
	X(NONE, "_Py_NoneStruct")                       \
	X(CLEANUP, "_Py_InitCleanup")                   \
	X(CODE_TYPE, "PyCode_Type")

#define X(id, name) PYTHON_SYMBOL_##id,
enum python_symbol { PYTHON_SYMBOLS(X) PYTHON_SYMBOL_COUNT };
#undef X

struct python_binary {
	struct runtime_binary base;
	const struct python_version *version; /* NULL: refused */
	uint8_t major, minor, micro;
	uint16_t machine;
	uint64_t runtime;     /* _PyRuntime; 0: not known */
	uint64_t current;     /* _PyThreadState_Current, up to 3.6; 0: not known */
	uint64_t interp_head; /* up to 3.6; 0: not known */
	struct accessor_place key;
	struct accessor_tls tls;
	uint64_t none, none_slot; /* none_slot: what holds its address in the process, when that may be elsewhere */
	uint64_t code_type_slot;
	uint64_t cleanup, code_type;
	uint64_t data_start, data_end; /* what is writable at first, and bss */
	/* Without names: where attaching found the head of the interpreters in some process, which may lie: each tries
	 * it first and searches itself when it does not hold there. 0: not yet. */
	bool is_stripped;
	_Atomic uint64_t found;
	_Atomic uint64_t tries; /* work spent on looking for it, less what time has forgiven */
	_Atomic uint64_t tried_ns;
};

struct python_file { /* while it is probed */
	const struct elf *elf;
	struct elf_dynamic dynamic;
	bool has_dynamic;
	struct elf_found symbols[PYTHON_SYMBOL_COUNT]; /* info 0: not found */
};

/**
 * python_stripped - is it CPython, although it has no symbols? stripped.c
 * @file: symbols of the loop and, if there, of _PyRuntime are filled in; @version: "3.9.18"
 * Return: 1, 0 or -ENOMEM.
 */
int python_stripped(struct python_file *file, char version[32]) warn_unused;

/** python_probe, python_release, python_attach - struct runtime's; see runtime.h. */
int python_probe(const struct runtime_file *file, struct runtime_binary **out) warn_unused;
void python_release(struct runtime_binary *binary);
int python_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info) warn_unused;

/**
 * python_loops - where the interpreter's loop is: loops.c
 * The function, and what its jumps lead to outside of it; as file offsets. Return: 0, -ENOMEM or the reader's error.
 */
int python_loops(const struct python_file *file, struct runtime_binary *out) warn_unused;

/**
 * python_offsets - _Py_DebugOffsets as a layout: offsets.c
 * @bytes: of _PyRuntime's start; @version: of the file, whose row has the rest
 * Return: 0 and the place of the interpreters' head in _PyRuntime; -ENOTSUP: another version's; -EBADMSG: not
 * plausible.
 */
struct python_offsets {
	struct abi_python_layout layout;
	uint16_t thread_interp, object_type; /* object_type: of PyObject.ob_type */
	uint32_t interpreters;
	bool is_free_threaded;
};
#define PYTHON_OFFSETS_SIZE 1024
int python_offsets(const uint8_t *bytes, size_t size, const struct python_version *version,
		   struct python_offsets *out) warn_unused;

#define PYTHON_CLEANUP_SIZE 256 /* bytes of a code object up to behind its names */
#define PYTHON_CLEANUP_SCAN_MAX MIB(8)
/**
 * python_is_cleanup - is that _Py_InitCleanup: a code object whose file, name and qualified name are one string?
 * @object: PYTHON_CLEANUP_SIZE bytes, within which the layout's fields lie; @type_at: where its type
 * is; @code_type: address of PyCode_Type
 */
bool python_is_cleanup(const uint8_t *object, const struct abi_python_layout *l, uint16_t type_at, uint64_t code_type);

/**
 * python_members_agree - up to 3.10: does the process itself say the same of code objects as @l? members.c
 * @code_type: PyCode_Type in the process
 * Return: false: it says something else; true as well when it says nothing.
 */
bool python_members_agree(const struct runtime_target *target, uint64_t code_type, const struct abi_python_layout *l);
