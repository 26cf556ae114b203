/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's compressed numbers, and the line tables of methods that are made of them. Pure. */
#pragma once

#include "base/cur.h"

/**
 * java_number - UNSIGNED5: one to five bytes, of which all but the last say that another follows
 * @no_zero: no byte of it is 0 (21 and later)
 * Return: 0 with c->bad where there is none. Source: OpenJDK 17, share/code/compressedStream.hpp; OpenJDK 21,
 * share/utilities/unsigned5.hpp.
 */
uint32_t java_number(struct cur *c, bool no_zero);
/** java_signed - the same with its sign in the lowest bit. */
int32_t java_signed(struct cur *c, bool no_zero);

/**
 * java_lines_size - bytes of the table up to and with the 0 that ends it
 * @bytes: it and what follows. @first_line: of the lowest bytecode; 0: the table is empty. Return: 0: it has no end.
 */
size_t java_lines_size(struct cur bytes, bool no_zero, int32_t *first_line);

/** java_lines_find - the line of bytecode @index. Return: 0 when no line covers it. */
int32_t java_lines_find(struct cur table, bool no_zero, uint32_t index);
