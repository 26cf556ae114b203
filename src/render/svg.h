/* SPDX-License-Identifier: Apache-2.0 */
/* The classic flame graph: one SVG file with a small script, drawn as flamegraph.pl draws it (docs/formats/svg.md). */
#pragma once

#include "base/buf.h"
#include "codec/codec.h"
#include "model/window.h"

/* What a name's colour is chosen from. */
enum svg_palette {
	SVG_HOT,
	SVG_MEM,
	SVG_IO,
	SVG_JAVA,
	SVG_JS,
	SVG_PERL,
	SVG_WAKEUP,
	SVG_RED,
	SVG_GREEN,
	SVG_BLUE,
	SVG_AQUA,
	SVG_YELLOW,
	SVG_PURPLE,
	SVG_ORANGE,
	SVG_PALETTE_COUNT,
};

extern const char *const svg_palette_names[SVG_PALETTE_COUNT + 1]; /* NULL behind the last */

/* What a frame of a difference says. */
enum svg_delta {
	SVG_DELTA_SELF,  /* as flamegraph.pl: what changed in stacks that end there */
	SVG_DELTA_TOTAL, /* what changed in all stacks that go through it */
};

/* Zeroed means: as flamegraph.pl does when it is not told. */
struct render_svg_config {
	const char *subtitle, *notes;
	const char *count_name; /* "samples" and "bytes" behind numbers; NULL: what the column counts */
	const char *name_type;  /* before the text of the frame under the mouse: "Function:" */
	const char *font_type;
	uint32_t width, frame_height, font_size; /* px: 1200, 16, 12 */
	double font_width;                       /* of a character, as a part of the font's size: 0.59 */
	double min_width;                        /* narrower frames are left out; negative: none are; 0: 0.1 px */
	bool min_width_is_percent;               /* of the total, otherwise px */
	double factor;                           /* numbers are shown times this; 0: 1 */
	uint64_t total;                          /* what the whole width stands for, when that is more than there is */
	enum svg_palette palette;
	const char *background; /* "yellow", "blue", "green", "grey" or "#rrggbb"; NULL: by palette */
	bool hash;              /* colours by flamegraph.pl's --hash */
	bool reverse;           /* stacks are turned round: frames are merged from the leaf */
	bool inverted;          /* the root at the top */
	bool flame_chart;       /* stacks stand in the order of the samples, and only neighbours are merged */
	bool negate;            /* blue for more, red for less */
	enum svg_delta delta;
	uint64_t gone_count; /* of a difference: stacks that are not there any more, for the root's text */
};

/** svg_background_known - whether render_svg_config.background may be this. */
bool svg_background_known(struct str name);

/**
 * render_svg - append the whole file
 * @options: value: the column (usually samples); frames; title; svg: NULL: defaults. A model with the columns "before"
 *and another one is drawn as a difference, as wide as the second.
 *
 * Equal input gives equal bytes. Without a sample the picture says so. Samples with values below zero are left out and
 * said in options->lost. The sum saturates at 63 bits. Return: 0, -ENOMEM, -E2BIG.
 */
int render_svg(const struct window *w, const struct codec_options *options, struct buf *out) warn_unused;
