/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of stacks become boxes as flamegraph.pl makes them (41fee1f of 2024-10-21: flow() and what follows it): the
 * lines are sorted with their counts, and neighbours share the frames they have in common from the root.
 *
 *	a;b 2          +---+-----+
 *	a;c;d 3        |   |  d  |
 *	               | b |  c  |
 *	               |    a    |
 */
#include "render/svg.h"

#include <inttypes.h>
#include <math.h>

#include "base/array.h"
#include "base/utf8.h"
#include "codec/folded_lines.h"
#include "render/svg_colour.h"
#include "web/assets.h"

#define SIDE 10 /* px beside the frames */
#define BOXES_MAX ((size_t)1 << 28)
#define TEXT_MAX GIB(8)
#define LABEL_LEAST 3 /* characters of a label: one and two dots */

struct line {
	size_t at, stack_len, len; /* in the text: the stack, then " count" or " before count" */
	uint64_t before, count;
};

struct box {
	struct str name;
	uint32_t depth;
	uint64_t start, end; /* in counts */
	uint64_t before;     /* of a difference with SVG_DELTA_TOTAL: what it had */
	int64_t delta;
};

struct graph {
	const struct render_svg_config *cfg;
	struct buf text;
	struct line *lines;
	size_t line_count;
	bool is_pair;
	struct box *boxes; /* by start, the outer one first; box 0 is the root */
	size_t box_count, box_cap;
	uint32_t *open; /* by depth: the box that still grows */
	size_t open_count, open_cap;
	uint64_t time; /* counts so far; in the end: of all */
	uint64_t total;
	int64_t delta_max;
	/* The picture */
	double width, frame_height, font_size, font_width, per_count, top, bottom, height, factor;
	const char *title, *font_type;
	struct str count_name;
};

static void graph_release(struct graph *g)
{
	buf_release(&g->text);
	free(g->lines);
	free(g->boxes);
	free(g->open);
}

/* Lines */

static void add_reversed(struct buf *out, struct str stack)
{
	while (stack.len) {
		ptrdiff_t last = str_rfind(stack, ';');

		buf_adds(out, str_skip(stack, (size_t)(last + 1)));
		if (last < 0)
			return;
		buf_addc(out, ';');
		stack = str_first(stack, (size_t)last);
	}
}

static int line_order(const void *a, const void *b, void *text)
{
	const struct line *x = a, *y = b;

	return str_cmp(str_n((const char *)text + x->at, x->len), str_n((const char *)text + y->at, y->len));
}

/* As the folded format would write them, sorted as text: the order of the frames from left to right. */
static int take_lines(struct graph *g, const struct folded_lines *from)
{
	g->is_pair = from->is_pair;
	g->lines = calloc(from->count + 1, sizeof(*g->lines));
	if (!g->lines)
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++) {
		struct line *line = &g->lines[i];

		line->at = g->text.len;
		line->before = from->items[i].before;
		line->count = from->items[i].count;
		if (g->cfg->reverse)
			add_reversed(&g->text, folded_line_text(from, i));
		else
			buf_adds(&g->text, folded_line_text(from, i));
		line->stack_len = g->text.len - line->at;
		if (g->is_pair)
			buf_addf(&g->text, " %" PRIu64, line->before);
		buf_addf(&g->text, " %" PRIu64, line->count);
		line->len = g->text.len - line->at;
	}
	g->line_count = from->count;
	if (!g->text.error && g->line_count && !g->cfg->flame_chart)
		qsort_r(g->lines, g->line_count, sizeof(*g->lines), line_order, g->text.ptr);
	return g->text.error;
}

/* Boxes */

static int open_box(struct graph *g, struct str name)
{
	int r = array_grow(&g->boxes, &g->box_cap, g->box_count, BOXES_MAX);

	r = r ? r : array_grow(&g->open, &g->open_cap, g->open_count, BOXES_MAX);
	if (r < 0)
		return r;
	g->boxes[g->box_count] = (struct box){ .name = name, .depth = (uint32_t)g->open_count, .start = g->time };
	g->open[g->open_count++] = (uint32_t)g->box_count++;
	return 0;
}

static void close_boxes(struct graph *g, size_t left_open)
{
	while (g->open_count > left_open)
		g->boxes[g->open[--g->open_count]].end = g->time;
}

static void credit(const struct graph *g, const struct line *line, bool is_leaf_new)
{
	const int64_t delta = (int64_t)line->count - (int64_t)line->before; /* both are below 2^63 */

	if (g->cfg->delta == SVG_DELTA_SELF) {
		if (is_leaf_new)
			g->boxes[g->open[g->open_count - 1]].delta = delta;
		return;
	}
	for (size_t i = 0; i < g->open_count; i++) {
		struct box *box = &g->boxes[g->open[i]];

		box->delta = saturating_add(box->delta, delta);
		box->before = MIN(box->before + line->before, (uint64_t)INT64_MAX);
	}
}

static int add_line(struct graph *g, const struct line *line)
{
	struct str rest = str_n(g->text.ptr + line->at, line->stack_len), frame;
	size_t depth = 1;
	bool shared = true;
	int r = 0;

	while (r == 0 && str_next(&rest, ';', &frame)) {
		if (shared && depth < g->open_count && str_eq(g->boxes[g->open[depth]].name, frame)) {
			depth++;
			continue;
		}
		if (shared)
			close_boxes(g, depth);
		shared = false;
		r = open_box(g, frame);
	}
	if (shared)
		close_boxes(g, depth);
	if (r < 0)
		return r;
	if (g->is_pair)
		credit(g, line, !shared);
	g->time = MIN(g->time + line->count, (uint64_t)INT64_MAX); /* both are below 2^63 */
	return 0;
}

static int make_boxes(struct graph *g)
{
	int r = open_box(g, STR(""));

	for (size_t i = 0; i < g->line_count && r == 0; i++)
		r = add_line(g, &g->lines[i]);
	close_boxes(g, 0);
	return r;
}

/* The largest change is the strongest colour. Of a line, as flamegraph.pl; of a box, but for the root, where those
 * count. */
static void find_delta_max(struct graph *g)
{
	g->delta_max = 1;
	for (size_t i = 0; i < g->line_count && g->cfg->delta == SVG_DELTA_SELF; i++) {
		int64_t delta = (int64_t)g->lines[i].count - (int64_t)g->lines[i].before;

		g->delta_max = MAX(g->delta_max, saturating_abs(delta));
	}
	for (size_t i = 1; i < g->box_count && g->cfg->delta == SVG_DELTA_TOTAL; i++)
		g->delta_max = MAX(g->delta_max, saturating_abs(g->boxes[i].delta));
}

/* The picture */

/* Text as XML has it: the few characters that XML 1.0 (2.2) does not know, and malformed bytes, are U+FFFD. */
static void add_text(struct buf *out, struct str text)
{
	while (text.len) {
		struct str before = text;
		int32_t code = utf8_next(&text);

		if (code == '&')
			buf_adds(out, STR("&amp;"));
		else if (code == '<')
			buf_adds(out, STR("&lt;"));
		else if (code == '>')
			buf_adds(out, STR("&gt;"));
		else if (code == '"')
			buf_adds(out, STR("&quot;"));
		else if (code == '\'')
			buf_adds(out, STR("&#39;"));
		else if (code < 0x20 || code == 0x7f || code == 0xfffe || code == 0xffff)
			buf_adds(out, STR("\xef\xbf\xbd"));
		else
			buf_add(out, before.ptr, before.len - text.len);
	}
}

/* "1,234,567" */
static void add_number(struct buf *out, double value)
{
	char digits[64];
	int len = snprintf(digits, sizeof(digits), "%.0f", value);

	for (int i = 0; i < len && i < (int)sizeof(digits); i++) {
		if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf_addc(out, ',');
		buf_addc(out, digits[i]);
	}
}

/* Without the suffix of a frame's kind, of those that flamegraph.pl knows. */
static struct str bare(struct str name)
{
	static const struct str suffixes[] = { { "_[k]", 4 }, { "_[w]", 4 }, { "_[i]", 4 }, { "_[j]", 4 } };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (str_ends(name, suffixes[i]))
			return str_first(name, name.len - 4);
	return name;
}

static double whole(double value)
{
	return rint(value); /* half to even, as printf() */
}

static int64_t delta_of(const struct graph *g, const struct box *box)
{
	if (!g->cfg->negate)
		return box->delta;
	return box->delta == INT64_MIN ? INT64_MAX : -box->delta;
}

static void add_change(const struct graph *g, const struct box *box, struct buf *out)
{
	int64_t delta = delta_of(g, box);

	buf_addf(out, delta > 0 ? "; +%.2f%%" : "; %.2f%%", 100 * (double)delta / (double)g->total);
	if (g->cfg->delta != SVG_DELTA_TOTAL)
		return;
	buf_adds(out, STR("; before "));
	add_number(out, whole((double)box->before * g->factor));
	if (!box->before)
		buf_adds(out, STR(", new"));
}

static void add_title(const struct graph *g, const struct box *box, struct buf *out)
{
	bool is_root = box == g->boxes;
	double count = whole((double)((is_root ? g->total : box->end) - box->start) * g->factor);

	if (is_root)
		buf_adds(out, STR("all ("));
	else
		add_text(out, bare(box->name));
	if (!is_root)
		buf_adds(out, STR(" ("));
	add_number(out, count);
	buf_addc(out, ' ');
	add_text(out, g->count_name);
	if (is_root)
		buf_adds(out, STR(", 100%"));
	else
		buf_addf(out, ", %.2f%%", 100 * count / ((double)g->total * g->factor));
	if (g->is_pair && (!is_root || g->cfg->delta == SVG_DELTA_TOTAL))
		add_change(g, box, out);
	if (is_root && g->cfg->gone_count) {
		buf_adds(out, STR("; stacks that are gone: "));
		add_number(out, (double)g->cfg->gone_count);
	}
	buf_addc(out, ')');
}

static struct svg_colour colour_of(const struct graph *g, const struct box *box)
{
	if (str_eq(box->name, STR("--")))
		return (struct svg_colour){ 160, 160, 160 };
	if (str_eq(box->name, STR("-")))
		return (struct svg_colour){ 200, 200, 200 };
	if (g->is_pair && g->cfg->delta == SVG_DELTA_TOTAL && box != g->boxes && !box->before)
		return (struct svg_colour){ 255, 190, 60 }; /* new: on no scale */
	if (g->is_pair)
		return svg_colour_of_delta(delta_of(g, box), g->delta_max);
	return svg_colour_of(g->cfg->palette, g->cfg->hash, box->name);
}

/* What of a name fits into @chars characters: all of it, or its beginning and two dots. */
static void add_label(struct buf *out, struct str name, double chars)
{
	struct str rest = name;
	size_t count = 0, max = (size_t)MIN(chars, 1e9), cut = name.len;

	for (; rest.len; count++) {
		if (count == max - 2)
			cut = name.len - rest.len;
		ignore(utf8_next(&rest));
	}
	if (count <= max)
		add_text(out, name);
	else
		add_text(out, str_first(name, cut));
	if (count > max)
		buf_adds(out, STR(".."));
}

static double tenth(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.1f", value);
	return strtod(text, NULL);
}

static void add_box(const struct graph *g, const struct box *box, struct buf *out)
{
	const uint64_t end = box == g->boxes ? g->total : box->end;
	const double x1 = SIDE + (double)box->start * g->per_count, x2 = SIDE + (double)end * g->per_count;
	const double left = tenth(x1), y = g->cfg->inverted
						   ? g->top + box->depth * g->frame_height
						   : g->height - g->bottom - (box->depth + 1) * g->frame_height + 1;
	const struct svg_colour fill = colour_of(g, box);
	const double chars = floor((x2 - x1) / (g->font_size * g->font_width));

	buf_adds(out, STR("<g>\n<title>"));
	add_title(g, box, out);
	buf_addf(out, "</title><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.1f\" fill=\"rgb(%u,%u,%u)\"", left,
		 y, tenth(x2) - left, g->frame_height - 1, fill.red, fill.green, fill.blue);
	buf_addf(out, " rx=\"2\" ry=\"2\" data-at=\"%" PRIu64 "\" data-n=\"%" PRIu64 "\"/>\n", box->start,
		 end - box->start);
	if (chars >= LABEL_LEAST) {
		buf_addf(out, "<text x=\"%.2f\" y=\"%.1f\">", x1 + 3, 3 + y + (g->frame_height - 1) / 2);
		add_label(out, box == g->boxes ? STR("all") : bare(box->name), chars);
		buf_adds(out, STR("</text>\n"));
	}
	buf_adds(out, STR("</g>\n"));
}

static void add_control(struct buf *out, const char *id, double x, double y, const char *more, const char *text)
{
	buf_addf(out, "<text id=\"%s\" x=\"%.2f\" y=\"%g\"%s>%s</text>\n", id, x, y, more, text);
}

static void add_heading(const struct graph *g, const char *id, double y, double size, const char *text, struct buf *out)
{
	buf_addf(out, "<text id=\"%s\" x=\"%.2f\" y=\"%g\" font-size=\"%g\" text-anchor=\"middle\">", id,
		 floor(g->width / 2), y, size);
	add_text(out, str_of(text));
	buf_adds(out, STR("</text>\n"));
}

static const char *usual_title(const struct render_svg_config *cfg)
{
	return cfg->flame_chart ? "Flame Chart" : cfg->inverted ? "Icicle Graph" : "Flame Graph";
}

static void add_head(const struct graph *g, struct buf *out)
{
	struct str top, bottom;

	buf_adds(out, STR("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"));
	buf_addf(out, "<svg version=\"1.1\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\"", g->width,
		 g->height, g->width, g->height);
	buf_adds(out, STR(" xmlns=\"http://www.w3.org/2000/svg\" font-family=\""));
	add_text(out, str_of(g->font_type));
	buf_addf(out, "\" font-size=\"%g\" fill=\"rgb(0,0,0)\">\n", g->font_size);
	if (g->cfg->notes && *g->cfg->notes) {
		buf_adds(out, STR("<desc>"));
		add_text(out, str_of(g->cfg->notes));
		buf_adds(out, STR("</desc>\n"));
	}
	svg_background(g->cfg, &top, &bottom);
	buf_adds(out, STR("<defs>\n<linearGradient id=\"background\" y1=\"0\" y2=\"1\" x1=\"0\" x2=\"0\">\n"));
	buf_addf(out, "<stop stop-color=\"" STR_FMT "\" offset=\"5%%\"/>\n", STR_ARG(top));
	buf_addf(out, "<stop stop-color=\"" STR_FMT "\" offset=\"95%%\"/>\n", STR_ARG(bottom));
	buf_adds(out, STR("</linearGradient>\n</defs>\n<style>\n"
			  "#search, #ignorecase { opacity: 0.1; cursor: pointer; }\n"
			  "#search:hover, #search.show, #ignorecase:hover, #ignorecase.show { opacity: 1; }\n"
			  "#subtitle { fill: rgb(90,90,90); }\n"
			  "#unzoom { cursor: pointer; }\n"
			  "#frames > *:hover { stroke: black; stroke-width: 0.5; cursor: pointer; }\n"
			  "#frames text { pointer-events: none; stroke: none; }\n"
			  ".hide { display: none; }\n"
			  ".parent { opacity: 0.5; }\n"
			  ".match rect { fill: rgb(230,0,230); }\n"
			  "</style>\n"));
	buf_addf(out, "<rect x=\"0\" y=\"0\" width=\"%.1f\" height=\"%.1f\" fill=\"url(#background)\"/>\n", g->width,
		 g->height);
}

#define BUTTON " role=\"button\" tabindex=\"0\""

static void add_controls(const struct graph *g, struct buf *out)
{
	const double y = 2 * g->font_size, right = g->width - SIDE, low = g->height - g->bottom / 2;

	add_heading(g, "title", y, g->font_size + 5, g->title, out);
	if (g->cfg->subtitle && *g->cfg->subtitle)
		add_heading(g, "subtitle", 2 * y, g->font_size, g->cfg->subtitle, out);
	add_control(out, "details", SIDE, low, "", " ");
	add_control(out, "unzoom", SIDE, y, BUTTON " class=\"hide\"", "Reset Zoom");
	add_control(out, "search", right - 100, y, BUTTON, "Search");
	add_control(out, "ignorecase", right - 16, y, BUTTON, "ic");
	add_control(out, "matched", right - 100, low, "", " ");
}

static void add_frames(const struct graph *g, uint64_t least, struct buf *out)
{
	buf_addf(out, "<g id=\"frames\" data-side=\"%d\" data-inverted=\"%d\" data-font=\"%g\"", SIDE, g->cfg->inverted,
		 g->font_size * g->font_width);
	buf_adds(out, STR(" data-nametype=\""));
	add_text(out, str_of(g->cfg->name_type ? g->cfg->name_type : "Function:"));
	buf_adds(out, STR("\">\n"));
	for (size_t i = 0; i < g->box_count && !out->error; i++)
		if (g->boxes[i].end - g->boxes[i].start >= least)
			add_box(g, &g->boxes[i], out);
	buf_adds(out, STR("</g>\n"));
}

static void add_script(struct buf *out)
{
	buf_adds(out, STR("<script><![CDATA[\n"));
	buf_add(out, web_svg, web_svg_size);
	buf_adds(out, STR("]]></script>\n"));
}

/* The fewest counts that a box needs to be drawn. */
static uint64_t least_count(const struct graph *g)
{
	double width = g->cfg->min_width < 0 ? 0 : g->cfg->min_width > 0 ? g->cfg->min_width : 0.1;
	double least = g->cfg->min_width_is_percent ? (double)g->total * width / 100 : width / g->per_count;

	return least >= 0x1p63 ? UINT64_C(1) << 63 : (uint64_t)ceil(least);
}

static void measure(struct graph *g, uint64_t *least)
{
	const struct render_svg_config *cfg = g->cfg;
	uint32_t deepest = 0;

	g->total = MAX(g->time, cfg->total);
	g->per_count = MAX(g->width - 2 * SIDE, 1.0) / (double)MAX(g->total, UINT64_C(1));
	*least = least_count(g);
	for (size_t i = 0; i < g->box_count; i++)
		if (g->boxes[i].end - g->boxes[i].start >= *least)
			deepest = MAX(deepest, g->boxes[i].depth);
	g->top = 3 * g->font_size + (cfg->subtitle && *cfg->subtitle ? 2 * g->font_size : 0);
	g->bottom = 2 * g->font_size + 10;
	g->height = (deepest + 1.0) * g->frame_height + g->top + g->bottom;
}

static void draw_nothing(struct graph *g, struct buf *out)
{
	g->height = 5 * g->font_size;
	add_head(g, out);
	add_heading(g, "title", 2 * g->font_size, g->font_size, "The profile has no samples.", out);
	buf_adds(out, STR("</svg>\n"));
}

static void draw(struct graph *g, struct buf *out)
{
	uint64_t least;

	if (!g->time) {
		draw_nothing(g, out);
		return;
	}
	if (g->is_pair)
		find_delta_max(g);
	measure(g, &least);
	add_head(g, out);
	add_controls(g, out);
	add_frames(g, least, out);
	add_script(out);
	buf_adds(out, STR("</svg>\n"));
}

/* What the column counts: "samples", "bytes", "nanoseconds". */
static struct str usual_count_name(const struct model *m, size_t column)
{
	struct str type, unit;

	if (!m->value_type_count)
		return STR("samples");
	type = model_string(m, m->value_types[column].type);
	unit = model_string(m, m->value_types[column].unit);
	if (unit.len && !str_eq(unit, STR("count")))
		return unit;
	return type.len ? type : STR("samples");
}

static void take_config(struct graph *g, const struct model *m, const struct codec_options *options)
{
	const struct render_svg_config *cfg = g->cfg;
	size_t column = folded_is_pair(m, options) ? 1 : codec_value(m, options, model_count_value(m));

	g->width = cfg->width ? cfg->width : 1200;
	g->frame_height = cfg->frame_height ? cfg->frame_height : 16;
	g->font_size = cfg->font_size ? cfg->font_size : 12;
	g->font_width = cfg->font_width > 0 ? cfg->font_width : 0.59;
	g->factor = cfg->factor > 0 ? cfg->factor : 1;
	g->title = options->title && *options->title ? options->title : usual_title(cfg);
	g->font_type = cfg->font_type ? cfg->font_type : "Verdana";
	g->count_name = cfg->count_name ? str_of(cfg->count_name) : usual_count_name(m, column);
}

int render_svg(const struct window *w, const struct codec_options *options, struct buf *out)
{
	static const struct render_svg_config usual = { 0 };
	scoped(graph_release) struct graph g = { .cfg = options->svg ? options->svg : &usual,
						 .text = BUF_INIT(TEXT_MAX) };
	scoped(folded_lines_release) struct folded_lines lines = { 0 };
	const size_t start = out->len;
	int r = folded_lines_collect(w->model, options, g.cfg->flame_chart, &lines);

	if (r < 0)
		return r;
	take_config(&g, w->model, options);
	if (lines.left_out)
		codec_lose(options->lost, "a graph has no widths below zero: %llu samples are left out",
			   (unsigned long long)lines.left_out);
	r = take_lines(&g, &lines);
	folded_lines_release(&lines);
	r = r ? r : make_boxes(&g);
	if (r < 0)
		return r;
	draw(&g, out);
	if (out->error)
		out->len = start;
	return out->error;
}
