/* SPDX-License-Identifier: Apache-2.0 */
/* Services by cost, as hearth up shows them on a terminal: fed one window after the other, drawn whenever asked.
 *
 * Threads: up_table_add() and up_table_draw() may be called from different ones. */
#pragma once

#include "model/window.h"

#define UP_TABLE_ROWS 12      /* lines of services; all others are one line */
#define UP_TABLE_WINDOWS 30   /* that the trend covers */
#define UP_TABLE_SERVICES 512 /* that have a trend; what costs more takes the place of what costs least */

struct up_table;

/** up_table_new - @window_ns: what each window covers, for words. The caller frees it. NULL: no memory. */
struct up_table *up_table_new(uint64_t window_ns);
void up_table_free(struct up_table *t); /* NULL is fine */
/** up_table_add - take the CPU time of each service from @w. When memory runs out, the table says so. */
void up_table_add(struct up_table *t, const struct window *w);
/**
 * up_table_draw - append the table, each line with a line end
 * @width, @height: of the terminal, at least 20 and 6; no line is wider, nor are there more lines
 * @blocks: the terminal shows UTF-8: trends are drawn
 *
 * Before the first window one line says what it waits for.
 */
void up_table_draw(struct up_table *t, size_t width, size_t height, bool blocks, struct buf *out);
