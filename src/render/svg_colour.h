/* SPDX-License-Identifier: Apache-2.0 */
/* The colours of the classic flame graph. Internal to src/render. */
#pragma once

#include "render/svg.h"

struct svg_colour {
	uint8_t red, green, blue;
};

/**
 * svg_colour_of - the colour of a frame
 * @name: with its suffix
 * @hash: the weighted hash of its first and last characters; otherwise one number from all of them
 *
 * Equal names have equal colours in all graphs, the same as in flamegraph.pl's.
 */
struct svg_colour svg_colour_of(enum svg_palette palette, bool hash, struct str name);

/** svg_colour_of_delta - white at 0, towards red at @max, towards blue at -@max. @max is at least 1. */
struct svg_colour svg_colour_of_delta(int64_t delta, int64_t max);

/** svg_background - both ends of the picture's gradient, as "#rrggbb". */
void svg_background(const struct render_svg_config *cfg, struct str *top, struct str *bottom);
