/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime does for itself, told from its native functions: collecting garbage, compiling. */
#pragma once

#include "base/str.h"

#define RUNTIME_PHASES_MAX 8 /* names of one runtime */

struct runtime_phase {
	const char *function; /* "a::b": a function, a class or a namespace of C++, with all that is in it */
	const char *name;     /* "(garbage collector)" */
};

/**
 * runtime_phase_of - the phase that a function with the mangled name @system_name is of. Pure.
 * @phases: ends with a function NULL. Return: NULL: none.
 */
const struct runtime_phase *runtime_phase_of(const struct runtime_phase *phases, struct str system_name);
