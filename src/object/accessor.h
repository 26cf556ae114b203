/* SPDX-License-Identifier: Apache-2.0 */
/* Short functions whose code tells where a variable is that has no name in a stripped file: an accessor loads it, hands
 * its address or its value to another function, or reads it from thread-local memory. Pure but for accessor_read();
 * x86-64 only: of other machines' code nothing is found. What is found is a guess: who uses it tries it in a process.
 *
 * Callers: CPython (PyInterpreterState_Head, PyGILState_GetThisThreadState, _PyThreadState_GetCurrent, Py_GetVersion);
 * V8 (DefaultEmbeddedBlobCode, the WebAssembly engine's).
 * What the next ones have: Ruby's rb_thread_current (a load of a global up to 2.7, a thread-local slot from 3.0 on),
 * rb_during_gc (a global and offsets in it), ruby_thread_has_gvl_p (a pthread key); PHP's tsrm_get_ls_cache (a
 * thread-local variable); Perl's thread-local PL_current_context has a name. */
#pragma once

#include "object/elf.h"

#define ACCESSOR_BYTES_MAX 512 /* of a function that are looked at */

struct accessor_code {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
};

/* Of a variable. OFFSET: from the start of an object whose address the function loads from the global offset table; who
 * asks knows which object that is. */
struct accessor_place {
	enum { ACCESSOR_NONE, ACCESSOR_ADDRESS, ACCESSOR_OFFSET } kind;
	uint64_t at;
};

struct accessor_tls { /* of a thread-local variable, as the code reaches it */
	enum {
		ACCESSOR_TLS_NONE,
		ACCESSOR_TLS_OFFSET, /* value: from the thread pointer, known when the program was linked */
		ACCESSOR_TLS_SLOT,   /* value: address of that offset */
		ACCESSOR_TLS_MODULE, /* value: address of {module, offset in its block}, for __tls_get_addr */
	} kind;
	uint64_t value;
};

struct accessor_value { /* what a function returns */
	uint64_t at;
	bool is_read; /* it is what lies there, of 4 or 8 bytes; otherwise it is the address */
};

/**
 * accessor_read - the first bytes of a function, fewer where the file ends
 * @address: as the file has it; @size: of the function, 0: not known
 * @room: the bytes. @out: size 0 when there are none: then nothing is found in it
 */
void accessor_read(const struct elf *elf, uint64_t address, uint64_t size, uint8_t room[ACCESSOR_BYTES_MAX],
		   struct accessor_code *out);

/** accessor_load - address of the first pointer-sized variable that a function reads. */
bool accessor_load(const struct accessor_code *code, uint64_t *out) warn_unused;
/** accessor_int_argument - address of the int that a function reads into its callee's first argument. */
bool accessor_int_argument(const struct accessor_code *code, uint64_t *out) warn_unused;
/** accessor_argument - the variable whose address is its callee's first argument; inlined: whose second int is that. */
bool accessor_argument(const struct accessor_code *code, struct accessor_place *out) warn_unused;
/** accessor_thread_local - the thread-local variable that a function reads. */
bool accessor_thread_local(const struct accessor_code *code, struct accessor_tls *out) warn_unused;
/** accessor_addresses - constant addresses that a function forms, in its order. Return: how many, at most @max. */
size_t accessor_addresses(const struct accessor_code *code, uint64_t *out, size_t max);
/**
 * accessor_value - what a function returns that does nothing else: a constant address, or what is read from there.
 * Unlike the others it knows each instruction up to the return.
 */
bool accessor_value(const struct accessor_code *code, struct accessor_value *out) warn_unused;
