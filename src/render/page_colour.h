/* SPDX-License-Identifier: Apache-2.0 */
/* The colours that the pages give to frames (web/colour.js), for pictures that are drawn here. Both have the same
 * table; tests/e2e/check_frames.py compares them. */
#pragma once

#include "render/tree.h"

struct page_colour {
	uint8_t red, green, blue;
};

struct page_colours;

/** page_colours_new - for the frames of @t, which may go. NULL: no memory. */
struct page_colours *page_colours_new(const struct tree *t) warn_unused;
void page_colours_free(struct page_colours *c); /* NULL is fine */
void page_colours_freep(struct page_colours **c);
/** page_colours_of - of frame @frame of @t, the tree they were made for; of the root for t->frame_count. */
struct page_colour page_colours_of(const struct page_colours *c, const struct tree *t, uint32_t frame);
