/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign names on a terminal: nothing in them can move the cursor, and tables stay straight. */
#pragma once

#include "base/buf.h"

/**
 * terminal_add - append @s so that it can only be read, never act
 * @max: most columns to use, 0: no limit; a longer name is cut and ends in ".."
 *
 * Control bytes and malformed UTF-8 become \xNN; control, direction and invisible code points become \uNNNN.
 * Return: the columns used.
 */
size_t terminal_add(struct buf *out, struct str s, size_t max);

/** terminal_add_lines - the same of each line of @text; only the ends of lines stay as they are. */
void terminal_add_lines(struct buf *out, struct str text);

/** terminal_columns - the columns terminal_add() would use without a limit. */
size_t terminal_columns(struct str s);

/** terminal_pad - append @count blanks. */
void terminal_pad(struct buf *out, size_t count);
