/* SPDX-License-Identifier: Apache-2.0 */
/* What short functions of CPython give away about variables that have no name in a stripped file. Pure; x86-64 only: of
 * other machines' code nothing is found. */
#pragma once

#include "base/base.h"

#define PYTHON_DECODE_MAX 512 /* bytes of a function looked at */

struct python_code {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
};

struct python_place {                                                                /* of a variable */
	enum { PYTHON_PLACE_NONE, PYTHON_PLACE_ADDRESS, PYTHON_PLACE_RUNTIME } kind; /* RUNTIME: offset in _PyRuntime */
	uint64_t at;
};

struct python_tls { /* of the thread-local variable _Py_tss_tstate */
	enum {
		PYTHON_TLS_NONE,
		PYTHON_TLS_OFFSET, /* value: from the thread pointer, known when the program was linked */
		PYTHON_TLS_SLOT,   /* value: address of that offset */
		PYTHON_TLS_MODULE, /* value: address of {module, offset in its block}, for __tls_get_addr */
	} kind;
	uint64_t value;
};

/** python_decode_load - the first variable that a function reads: of PyInterpreterState_Head, interp_head. */
bool python_decode_load(const struct python_code *code, uint64_t *out) warn_unused;
/** python_decode_key - PyGILState_GetThisThreadState, up to 3.6: the int autoTLSkey, an argument of the call it makes.
 */
bool python_decode_key(const struct python_code *code, uint64_t *out) warn_unused;
/** python_decode_tss_key - the same, from 3.7 on: _PyRuntime's autoTSSkey. */
bool python_decode_tss_key(const struct python_code *code, struct python_place *out) warn_unused;
/** python_decode_tls - _PyThreadState_GetCurrent and its like, from 3.12 on. */
bool python_decode_tls(const struct python_code *code, struct python_tls *out) warn_unused;
/** python_decode_addresses - constant addresses that a function forms, in its order. Return: how many, at most @max. */
size_t python_decode_addresses(const struct python_code *code, uint64_t *out, size_t max);
