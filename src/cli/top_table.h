/* SPDX-License-Identifier: Apache-2.0 */
/* What hearth top shows: rows of functions in an order, filtered, and the callers of one; and what keys do to it. Knows
 * nothing of the terminal but its size. */
#pragma once

#include "cli/top_counts.h"

enum top_sort { TOP_SORT_SELF, TOP_SORT_TOTAL, TOP_SORT_PROCESS, TOP_SORT_CONTAINER, TOP_SORT_FUNCTION };

extern const char *const top_sort_names[]; /* of --sort; NULL ends */

enum top_key {
	TOP_KEY_NONE,
	/* Bytes as they are, 1 to 255 */
	TOP_KEY_UP = 256,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
};

/** top_key_read - the key at the front of @text, which advances. A lone escape byte is TOP_KEY_ESCAPE. */
int top_key_read(struct str *text);

#define TOP_FILTER_MAX 128

struct top_table {
	enum top_sort sort;
	bool is_reversed, is_paused, shows_help, is_typing, shows_callers;
	char filter[TOP_FILTER_MAX + 1], typed[TOP_FILTER_MAX + 1]; /* typed: what the filter was before */
	size_t first, at;                                           /* line at the top; chosen line */
	bool is_chosen;                                             /* the chosen row keeps its place in the order */
	uint32_t name, group;                                       /* of the chosen row; of the callers */
	size_t callers_first, shown;                                /* shown: rows that fit, when last drawn */
	uint32_t *order;                                            /* indexes of rows, filled by top_table_draw() */
	size_t order_count, order_cap;
	uint64_t over_ns, refresh_ns; /* the range; for words */
};

void top_table_release(struct top_table *t);

/** top_table_press - a key. Return: false: it means the end. */
bool top_table_press(struct top_table *t, const struct top_counts *c, int key);

/** top_table_renamed - names and groups have new numbers: what was chosen is let go. */
void top_table_renamed(struct top_table *t);

/**
 * top_table_draw - append lines that end in \n
 * @width, @height: of the terminal; no line is wider, nor are there more of them. @height 0: no limit and no keys
 * @rows: most rows when @height is 0
 * @marks: the chosen line and the head are in reverse video
 */
void top_table_draw(struct top_table *t, struct top_counts *c, size_t width, size_t height, size_t rows, bool marks,
		    struct buf *out);
