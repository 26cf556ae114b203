/* SPDX-License-Identifier: Apache-2.0 */
/* Position in a code object -> line, by the line table of every CPython from 2.7 on. Pure; the table is a stranger's.
 *
 *	up to 3.5      co_lnotab     pairs (bytes of code, lines), both unsigned
 *	3.6 to 3.9     co_lnotab     pairs (bytes of code, lines), lines signed
 *	3.10           co_linetable  pairs (bytes of code, lines), lines signed, -128: no line
 *	3.11 on        co_linetable  entries of 1 to some 20 bytes: code units, line, columns; 15: no line
 *
 * Source: CPython, Objects/lnotab_notes.txt (3.9, 3.10), Objects/locations.md (3.11), Objects/codeobject.c. */
#pragma once

#include "runtime/runtime.h"

/**
 * python_line - what struct runtime.line() does
 * @position: abi_frame.extra: byte of the bytecode, of the instruction that runs, or that called
 * Return: the line; first_line where the instruction has none; 0 when the table does not reach that far (it was cut) or
 * is damaged.
 */
int32_t python_line(const struct runtime_function *function, uint32_t position);
