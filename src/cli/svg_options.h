/* SPDX-License-Identifier: Apache-2.0 */
/* The options of classic flame graphs, under flamegraph.pl's names: rows of option tables, for every command that
 * writes them. */
#pragma once

#include "cli/command.h"
#include "render/svg.h"

struct svg_options { /* a member of the command's configuration */
	const char *title, *subtitle, *notes, *count_name, *name_type, *font_type, *font_width, *min_width, *factor,
		*background;
	uint64_t width, height, font_size, total;
	size_t palette; /* enum svg_palette */
	size_t delta;   /* enum svg_delta + 1, 0: the command's own choice */
	bool hash, reverse, inverted, flame_chart, negate;
};

extern const char *const svg_delta_names[];

#define SVG_ROW(config, field, long_name, kind, value, explained)                                      \
	{                                                                                              \
		long_name, 0, kind, .at = offsetof(config, field), .arg = (value), .help = (explained) \
	}
#define SVG_SIZE(config, field, long_name, least, most, usual, explained)                             \
	{                                                                                             \
		long_name, 0, OPT_UINT, .at = offsetof(config, field), .min = (least), .max = (most), \
					.fallback = (usual), .arg = "PX", .help = (explained)         \
	}
#define SVG_CHOICE(config, field, long_name, names, usual, explained)                                             \
	{                                                                                                         \
		long_name, 0, OPT_CHOICE, .at = offsetof(config, field), .choices = (names), .fallback = (usual), \
					  .arg = "NAME", .help = (explained)                                      \
	}

/* A whole table over @config (a type) whose @m is a struct svg_options. */
#define SVG_OPTIONS(config, m)                                                                                         \
	{                                                                                                              \
		SVG_ROW(config, m.title, "title", OPT_TEXT, "TEXT", "heading of the graph, and title of a page"),      \
			SVG_ROW(config, m.subtitle, "subtitle", OPT_TEXT, "TEXT", "second heading"),                   \
			SVG_CHOICE(config, m.palette, "colors", svg_palette_names, "hot",                              \
				   "what frames are coloured by"),                                                     \
			{ "color", 0, OPT_CHOICE, .at = offsetof(config, m.palette), .choices = svg_palette_names },   \
			SVG_ROW(config, m.background, "bgcolors", OPT_TEXT, "NAME",                                    \
				"background: yellow, blue, green, grey or #rrggbb (default: by colors)"),              \
			SVG_ROW(config, m.hash, "hash", OPT_FLAG, NULL,                                                \
				"colours by the first and last letters of a name"),                                    \
			SVG_SIZE(config, m.width, "width", 100, 1000000, "1200", "width of the graph"),                \
			SVG_SIZE(config, m.height, "height", 2, 1000, "16", "height of a frame"),                      \
			SVG_ROW(config, m.min_width, "minwidth", OPT_TEXT, "PX|N%",                                    \
				"leave out narrower frames: in px, or in percent of the total (default: 0.1)"),        \
			SVG_ROW(config, m.font_type, "fonttype", OPT_TEXT, "NAME", "font (default: Verdana)"),         \
			SVG_SIZE(config, m.font_size, "fontsize", 1, 1000, "12", "size of letters"),                   \
			SVG_ROW(config, m.font_width, "fontwidth", OPT_TEXT, "N",                                      \
				"width of a letter in parts of its size, for cutting names (default: 0.59)"),          \
			SVG_ROW(config, m.count_name, "countname", OPT_TEXT, "WORD",                                   \
				"what numbers count (default: as the profile says)"),                                  \
			SVG_ROW(config, m.name_type, "nametype", OPT_TEXT, "TEXT",                                     \
				"before the name of the frame under the mouse (default: Function:)"),                  \
			SVG_ROW(config, m.inverted, "inverted", OPT_FLAG, NULL,                                        \
				"the root at the top: an icicle graph"),                                               \
			SVG_ROW(config, m.reverse, "reverse", OPT_FLAG, NULL,                                          \
				"turn stacks round: merged from the leaf"),                                            \
			SVG_ROW(config, m.flame_chart, "flamechart", OPT_FLAG, NULL,                                   \
				"stacks in the order of the file, not sorted"),                                        \
			{ "total",                                                                                     \
			  0,                                                                                           \
			  OPT_UINT,                                                                                    \
			  .at = offsetof(config, m.total),                                                             \
			  .max = INT64_MAX,                                                                            \
			  .arg = "N",                                                                                  \
			  .help = "what the whole width stands for, when that is more than the profile has" },         \
			SVG_ROW(config, m.factor, "factor", OPT_TEXT, "N", "show numbers times this (default: 1)"),    \
			SVG_ROW(config, m.negate, "negate", OPT_FLAG, NULL,                                            \
				"of a difference: blue for more, red for less"),                                       \
			SVG_CHOICE(config, m.delta, "delta", svg_delta_names, "auto",                                  \
				   "of a difference: a frame's colour is what changed in it and all it calls "         \
				   "(total), or "                                                                      \
				   "only where stacks end, as flamegraph.pl (self); auto: total in hearth diff, else " \
				   "self"),                                                                            \
			SVG_ROW(config, m.notes, "notes", OPT_TEXT, "TEXT", "a description inside the file"),          \
		{                                                                                                      \
			0                                                                                              \
		}                                                                                                      \
	}

/**
 * svg_options_get - what render_svg() is told
 * @usual: when --delta does not say
 * @out: text is borrowed from @o
 *
 * Return: EXIT_DONE, or EXIT_USAGE after saying in one line which option is wrong.
 */
int svg_options_get(const struct command *c, const struct svg_options *o, enum svg_delta usual,
		    struct render_svg_config *out);
