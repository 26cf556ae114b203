/* SPDX-License-Identifier: Apache-2.0 */
/* Source of all numbers: flamegraph.pl at 41fee1f (2024-10-21), functions namehash, random_namehash, color and
 * color_scale. */
#include "render/svg_colour.h"

#include "base/utf8.h"

const char *const svg_palette_names[SVG_PALETTE_COUNT + 1] = {
	[SVG_HOT] = "hot",       [SVG_MEM] = "mem",       [SVG_IO] = "io",
	[SVG_JAVA] = "java",     [SVG_JS] = "js",         [SVG_PERL] = "perl",
	[SVG_WAKEUP] = "wakeup", [SVG_RED] = "red",       [SVG_GREEN] = "green",
	[SVG_BLUE] = "blue",     [SVG_AQUA] = "aqua",     [SVG_YELLOW] = "yellow",
	[SVG_PURPLE] = "purple", [SVG_ORANGE] = "orange", [SVG_PALETTE_COUNT] = NULL,
};

/* A byte that belongs to no character counts by itself; so do the names that hearth writes, which have none. */
static uint32_t next_code(struct str *s)
{
	uint8_t byte = (uint8_t)s->ptr[0];
	int32_t code = utf8_next(s);

	return code < 0 ? byte : (uint32_t)code;
}

/* The first number of Perl's generator after srand(@seed): 48 bits of the linear congruence of drand48(), whichever the
 * C library is (perl 5.20 and later, util.c: Perl_drand48_init_r, Perl_drand48_r). */
static double first_random(uint32_t seed)
{
	const uint64_t mask = (UINT64_C(1) << 48) - 1;
	uint64_t x = ((uint64_t)seed << 16) + 0x330e;

	x = (x * UINT64_C(0x5deece66d) + 0xb) & mask;
	return (double)x / (double)(UINT64_C(1) << 48);
}

static double number_of(struct str name)
{
	uint32_t sum = 0;

	while (name.len)
		sum += next_code(&name);
	return first_random(sum);
}

#define HASHED 3 /* characters that the weighted hash looks at: its moduli are 10, 11 and 12 */

struct head { /* of a name, as characters */
	uint32_t codes[HASHED];
	size_t count;
};

static double weigh(const struct head *head)
{
	double vector = 0, weight = 1, max = 1;

	for (size_t i = 0; i < head->count; i++) {
		uint32_t modulus = 10 + (uint32_t)i;

		vector += (double)(head->codes[i] % modulus) / (double)(modulus - 1) * weight;
		max += weight;
		weight *= 0.70;
	}
	return 1 - vector / max;
}

/* What stands behind a module's name and "`" counts, where there is such a part of at least one character. */
static void take_head(struct str name, struct head *out)
{
	struct str rest = name;

	if (rest.len)
		(void)next_code(&rest);
	if (str_find(rest, '`') >= 0)
		name = str_skip(rest, (size_t)str_find(rest, '`') + 1);
	for (out->count = 0; name.len && out->count < HASHED;)
		out->codes[out->count++] = next_code(&name);
}

/* The same of the name read backwards: what stands before its last "`" but for one at its end. */
static void take_tail(struct str name, struct head *out)
{
	struct str rest = name;
	ptrdiff_t tick;

	out->count = 0;
	while (rest.len > 1 && ((uint8_t)rest.ptr[rest.len - 1] & 0xc0) == 0x80)
		rest.len--;
	rest.len -= rest.len ? 1 : 0; /* without the last character */
	tick = str_rfind(rest, '`');
	if (tick >= 0)
		name = str_first(name, (size_t)tick);
	while (name.len && out->count < HASHED) {
		size_t at = name.len - 1;
		struct str last;

		while (at && ((uint8_t)name.ptr[at] & 0xc0) == 0x80)
			at--;
		last = str_skip(name, at);
		out->codes[out->count++] = next_code(&last);
		name.len = at;
	}
}

static bool has(struct str name, struct str part)
{
	return str_search(name, part) >= 0;
}

static bool is_java_path(struct str name)
{
	static const char *const packages[] = { "java/", "javax/", "jdk/", "net/", "org/", "com/", "io/", "sun/" };

	if (name.len && name.ptr[0] == 'L')
		name = str_skip(name, 1);
	for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
		if (str_starts(name, str_of(packages[i])))
			return true;
	return false;
}

static enum svg_palette of_java(struct str name)
{
	if (str_ends(name, STR("_[j]")))
		return SVG_GREEN;
	if (str_ends(name, STR("_[i]")))
		return SVG_AQUA;
	if (is_java_path(name) || has(name, STR(":::")))
		return SVG_GREEN;
	if (has(name, STR("::")))
		return SVG_YELLOW;
	return str_ends(name, STR("_[k]")) ? SVG_ORANGE : SVG_RED;
}

static enum svg_palette of_perl(struct str name)
{
	if (has(name, STR("::")))
		return SVG_YELLOW;
	if (has(name, STR("Perl")) || has(name, STR(".pl")))
		return SVG_GREEN;
	return str_ends(name, STR("_[k]")) ? SVG_ORANGE : SVG_RED;
}

static enum svg_palette of_js(struct str name)
{
	ptrdiff_t slash = str_find(name, '/');

	if (str_ends(name, STR("_[j]")))
		return slash >= 0 ? SVG_GREEN : SVG_AQUA;
	if (has(name, STR("::")))
		return SVG_YELLOW;
	if (slash >= 0 && has(str_skip(name, (size_t)slash + 1), STR(".js")))
		return SVG_GREEN;
	if (has(name, STR(":")))
		return SVG_AQUA;
	if (str_eq(name, STR(" ")))
		return SVG_GREEN;
	return has(name, STR("_[k]")) ? SVG_ORANGE : SVG_RED;
}

/* The plain palette that a mixed one takes for this name. */
static enum svg_palette plain(enum svg_palette palette, struct str name)
{
	switch (palette) {
	case SVG_JAVA:
		return of_java(name);
	case SVG_JS:
		return of_js(name);
	case SVG_PERL:
		return of_perl(name);
	case SVG_WAKEUP:
		return SVG_AQUA;
	default:
		return palette;
	}
}

static uint8_t part(uint8_t least, uint8_t span, double v)
{
	return (uint8_t)(least + (uint8_t)(span * v));
}

static struct svg_colour plain_colour(enum svg_palette palette, double v1, double v2, double v3)
{
	switch (palette) {
	case SVG_MEM:
		return (struct svg_colour){ 0, part(190, 50, v2), part(0, 210, v1) };
	case SVG_IO:
		return (struct svg_colour){ part(80, 60, v1), part(80, 60, v1), part(190, 55, v2) };
	case SVG_RED:
		return (struct svg_colour){ part(200, 55, v1), part(50, 80, v1), part(50, 80, v1) };
	case SVG_GREEN:
		return (struct svg_colour){ part(50, 60, v1), part(200, 55, v1), part(50, 60, v1) };
	case SVG_BLUE:
		return (struct svg_colour){ part(80, 60, v1), part(80, 60, v1), part(205, 50, v1) };
	case SVG_AQUA:
		return (struct svg_colour){ part(50, 60, v1), part(165, 55, v1), part(165, 55, v1) };
	case SVG_YELLOW:
		return (struct svg_colour){ part(175, 55, v1), part(175, 55, v1), part(50, 20, v1) };
	case SVG_PURPLE:
		return (struct svg_colour){ part(190, 65, v1), part(80, 60, v1), part(190, 65, v1) };
	case SVG_ORANGE:
		return (struct svg_colour){ part(190, 65, v1), part(90, 65, v1), 0 };
	default:
		return (struct svg_colour){ part(205, 50, v3), part(0, 230, v1), part(0, 55, v2) };
	}
}

struct svg_colour svg_colour_of(enum svg_palette palette, bool hash, struct str name)
{
	struct head head, tail;
	double v;

	palette = plain(palette, name);
	if (!hash) {
		v = number_of(name);
		return plain_colour(palette, v, v, v);
	}
	take_head(name, &head);
	take_tail(name, &tail);
	v = weigh(&tail);
	return plain_colour(palette, weigh(&head), v, v);
}

struct svg_colour svg_colour_of_delta(int64_t delta, int64_t max)
{
	uint64_t left = (uint64_t)(max - MIN(saturating_abs(delta), max));
	uint8_t faded = (uint8_t)((unsigned __int128)left * 210 / (uint64_t)max);

	if (!delta)
		return (struct svg_colour){ 255, 255, 255 };
	return delta > 0 ? (struct svg_colour){ 255, faded, faded } : (struct svg_colour){ faded, faded, 255 };
}

static const struct {
	const char *name, *top, *bottom;
} backgrounds[] = {
	{ "yellow", "#eeeeee", "#eeeeb0" },
	{ "blue", "#eeeeee", "#e0e0ff" },
	{ "green", "#eef2ee", "#e0ffe0" },
	{ "grey", "#f8f8f8", "#e8e8e8" },
};

static bool is_hex_colour(struct str name)
{
	uint64_t value;

	return name.len == 7 && name.ptr[0] == '#' && str_to_hex64(str_skip(name, 1), &value) == 0;
}

bool svg_background_known(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(backgrounds); i++)
		if (str_eq(name, str_of(backgrounds[i].name)))
			return true;
	return is_hex_colour(name);
}

static const char *usual_background(enum svg_palette palette)
{
	if (palette == SVG_MEM)
		return "green";
	if (palette == SVG_IO || palette == SVG_WAKEUP)
		return "blue";
	return palette >= SVG_RED ? "grey" : "yellow";
}

void svg_background(const struct render_svg_config *cfg, struct str *top, struct str *bottom)
{
	struct str name = str_of(cfg->background ? cfg->background : usual_background(cfg->palette));

	*top = *bottom = name;
	for (size_t i = 0; i < ARRAY_SIZE(backgrounds); i++) {
		if (!str_eq(name, str_of(backgrounds[i].name)))
			continue;
		*top = str_of(backgrounds[i].top);
		*bottom = str_of(backgrounds[i].bottom);
		return;
	}
	if (!is_hex_colour(name))
		*top = *bottom = STR("#ffffff");
}
