/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/svg_options.h"

#include <math.h>

const char *const svg_delta_names[] = { "auto", "self", "total", NULL };

/* Digits with or without a dot, as flamegraph.pl takes them. */
static bool read_number(struct str text, double *out)
{
	char copy[32];
	char *end;

	if (!text.len || text.len >= sizeof(copy))
		return false;
	for (size_t i = 0; i < text.len; i++)
		if ((text.ptr[i] < '0' || text.ptr[i] > '9') && text.ptr[i] != '.')
			return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = 0;
	*out = strtod(copy, &end);
	return !*end && isfinite(*out);
}

static int bad(const struct command *c, const char *option, const char *text, const char *wanted)
{
	command_fail(c, "--%s: '%s' is not %s", option, text, wanted);
	return EXIT_USAGE;
}

static int get_min_width(const struct command *c, const char *text, struct render_svg_config *out)
{
	struct str number = str_of(text);

	if (!text)
		return EXIT_DONE;
	out->min_width_is_percent = str_ends(number, STR("%"));
	if (out->min_width_is_percent)
		number.len--;
	if (!read_number(number, &out->min_width))
		return bad(c, "minwidth", text, "a number of px, or of percent: 0.5, 1%");
	if (out->min_width == 0)
		out->min_width = -1;
	return EXIT_DONE;
}

static int get_number(const struct command *c, const char *option, const char *text, double *out)
{
	if (!text)
		return EXIT_DONE;
	if (!read_number(str_of(text), out) || *out <= 0)
		return bad(c, option, text, "a number above 0");
	return EXIT_DONE;
}

int svg_options_get(const struct command *c, const struct svg_options *o, enum svg_delta usual,
		    struct render_svg_config *out)
{
	int r;

	*out = (struct render_svg_config){
		.subtitle = o->subtitle,
		.notes = o->notes,
		.count_name = o->count_name,
		.name_type = o->name_type,
		.font_type = o->font_type,
		.background = o->background,
		.width = (uint32_t)o->width,
		.frame_height = (uint32_t)o->height,
		.font_size = (uint32_t)o->font_size,
		.total = o->total,
		.palette = (enum svg_palette)o->palette,
		.hash = o->hash,
		.reverse = o->reverse,
		.inverted = o->inverted,
		.flame_chart = o->flame_chart,
		.negate = o->negate,
		.delta = o->delta ? (enum svg_delta)(o->delta - 1) : usual,
	};
	if (o->background && !svg_background_known(str_of(o->background)))
		return bad(c, "bgcolors", o->background, "yellow, blue, green, grey or #rrggbb");
	r = get_min_width(c, o->min_width, out);
	r = r == EXIT_DONE ? get_number(c, "fontwidth", o->font_width, &out->font_width) : r;
	return r == EXIT_DONE ? get_number(c, "factor", o->factor, &out->factor) : r;
}
