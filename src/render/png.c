/* SPDX-License-Identifier: Apache-2.0 */
#include "render/png.h"

#ifdef HEARTH_CAIRO

#include <cairo.h>
#include <libdeflate.h>

#include "base/utf8.h"
#include "render/page_colour.h"
#include "render/svg_colour.h"

/* Pixels, as go-profile has them. */
#define BAR 16 /* with one of ground above it */
#define BOTTOM 34
#define SIDE 10
#define TITLE_BASELINE 24
#define TOP 34
#define TEXT_LEFT 3
#define TEXT_BASELINE 12
#define FONT_SIZE 12
#define TITLE_SIZE 17
#define LABEL_LEAST 3 /* characters */
#define LABEL_BYTES 512
#define DEPTH_MAX 1024
#define WIDTH_LEAST 0.1 /* of a bar that is drawn */
#define LEVEL 1         /* of compression: a picture is mostly runs */

struct place {
	uint32_t node, child; /* child: first of its children in order that is not drawn yet */
	uint32_t child_end;
	double x, scale;
};

struct picture {
	const struct tree *t;
	const struct render_png_config *cfg;
	struct page_colours *colours;
	cairo_surface_t *surface;
	cairo_t *cr;
	uint32_t *order, *end; /* by node: children in order; where its subtree ends */
	struct place *places;  /* DEPTH_MAX */
	double advance;        /* of a character */
};

static void picture_release(struct picture *p)
{
	page_colours_free(p->colours);
	cairo_destroy(p->cr);
	cairo_surface_destroy(p->surface);
	free(p->order);
	free(p->end);
	free(p->places);
}

static int status_of(cairo_status_t status)
{
	return status == CAIRO_STATUS_SUCCESS ? 0 : -ENOMEM;
}

/* Text that is UTF-8 without control characters, of at most @chars characters; ".." stands for what is cut off. */
static void make_label(struct str name, size_t chars, struct buf *out)
{
	scoped(buf_release) struct buf clean = BUF_INIT(4 * LABEL_BYTES);
	struct str rest;
	size_t count = 0, cut = 0;

	utf8_clean(&clean, str_first(name, LABEL_BYTES), 0);
	rest = buf_str(&clean);
	while (rest.len) {
		if (count == chars - 2)
			cut = clean.len - rest.len;
		ignore(utf8_next(&rest)); /* it is clean */
		count++;
	}
	if (count > chars)
		buf_addf(out, STR_FMT "..", STR_ARG(str_first(buf_str(&clean), cut)));
	else
		buf_adds(out, buf_str(&clean));
}

static void draw_label(struct picture *p, struct str name, double x, double y, double width)
{
	scoped(buf_release) struct buf label = BUF_INIT(4 * LABEL_BYTES);
	const double room = (width - 2 * TEXT_LEFT) / p->advance;

	if (room < LABEL_LEAST)
		return;
	make_label(name, (size_t)room, &label);
	cairo_set_source_rgb(p->cr, 0, 0, 0);
	cairo_move_to(p->cr, x + TEXT_LEFT, y + TEXT_BASELINE);
	cairo_show_text(p->cr, buf_cstr(&label));
}

/* Half of it is the frame's own hot colour, half is of a gradient from bar to bar that goes on by a tenth with each
 * picture. Source: what go-profile's pictures show. */
static struct page_colour moving_colour(const struct picture *p, uint32_t node)
{
	const struct svg_colour own = svg_colour_of(SVG_HOT, false, tree_frame_text(p->t, p->t->frame[node]));
	const uint64_t tenths = (p->cfg->shimmer + p->t->level[node]) % 20;
	const uint64_t at = tenths < 10 ? tenths : 20 - tenths; /* there and back again */

	return (struct page_colour){ (uint8_t)((own.red + 205 + 5 * at) / 2), (uint8_t)((own.green + 23 * at) / 2),
				     (uint8_t)((own.blue + 5 * at) / 2) };
}

static void draw_bar(struct picture *p, uint32_t node, double x, double width)
{
	const struct tree *t = p->t;
	const struct page_colour c =
		p->cfg->shimmer ? moving_colour(p, node) : page_colours_of(p->colours, t, t->frame[node]);
	const double y = (double)p->cfg->height - BOTTOM - BAR * ((double)t->level[node] + 1);

	if (y < TOP)
		return;
	cairo_set_source_rgb(p->cr, c.red / 255.0, c.green / 255.0, c.blue / 255.0);
	cairo_rectangle(p->cr, x, y, width, BAR - 1);
	cairo_fill(p->cr);
	if (node)
		draw_label(p, tree_frame_text(t, t->frame[node]), x, y, width);
}

/* Where subtrees end: preorder, so a later node of the same level or above it. */
static int find_ends(struct picture *p)
{
	const struct tree *t = p->t;
	uint32_t *open;
	uint32_t depth = 0;

	p->end = calloc((size_t)t->node_count + 1, sizeof(uint32_t));
	open = calloc((size_t)t->node_count + 1, sizeof(uint32_t));
	if (p->end && open)
		for (uint32_t n = 0; n <= t->node_count; n++) {
			while (depth && (n == t->node_count || t->level[open[depth - 1]] >= t->level[n]))
				p->end[open[--depth]] = n;
			open[depth++] = n;
		}
	free(open);
	return p->end && open ? 0 : -ENOMEM;
}

static int by_frame(const void *a, const void *b, void *ctx)
{
	const struct tree *t = ctx;
	const uint32_t x = t->frame[*(const uint32_t *)a], y = t->frame[*(const uint32_t *)b];

	return (x > y) - (x < y); /* frames are sorted by name */
}

/* The children of @node, into the free part of the order. */
static uint32_t order_children(struct picture *p, uint32_t node, uint32_t at)
{
	const uint32_t first = at;

	for (uint32_t n = node + 1; n < p->end[node]; n = p->end[n])
		p->order[at++] = n;
	qsort_r(p->order + first, at - first, sizeof(uint32_t), by_frame, (void *)p->t);
	return at;
}

static void draw_tree(struct picture *p)
{
	const struct tree *t = p->t;
	const double width = (double)p->cfg->width - 2 * SIDE, scale = width / (double)MAX(t->total[0], UINT64_C(1));
	struct place *stack = p->places;
	size_t depth = 1;

	stack[0] = (struct place){ 0, 0, order_children(p, 0, 0), SIDE, scale };
	draw_bar(p, 0, SIDE, width);
	while (depth) {
		struct place *at = &stack[depth - 1];
		uint32_t node;
		double x = at->x;

		if (at->child == at->child_end) {
			depth--;
			continue;
		}
		node = p->order[at->child++];
		at->x += (double)t->total[node] * scale;
		if (at->x - x < WIDTH_LEAST)
			continue;
		draw_bar(p, node, x, at->x - x);
		if (depth < DEPTH_MAX) {
			const uint32_t begin = at->child_end;

			stack[depth++] = (struct place){ node, begin, order_children(p, node, begin), x, scale };
		}
	}
}

static void set_font(struct picture *p, double size)
{
	cairo_select_font_face(p->cr, "monospace", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(p->cr, size);
}

static void draw_ground(struct picture *p)
{
	const char *title = p->cfg->title ? p->cfg->title : "Flame Graph";
	cairo_text_extents_t extents;

	cairo_set_source_rgb(p->cr, 0, 0, 0);
	cairo_paint(p->cr);
	set_font(p, TITLE_SIZE);
	cairo_text_extents(p->cr, title, &extents);
	cairo_set_source_rgb(p->cr, 1, 1, 1);
	cairo_move_to(p->cr, (p->cfg->width - extents.x_advance) / 2, TITLE_BASELINE);
	cairo_show_text(p->cr, title);
	set_font(p, FONT_SIZE);
	cairo_text_extents(p->cr, "mmmmmmmmmm", &extents);
	p->advance = MAX(extents.x_advance / 10, 1.0);
}

/* The file: https://www.w3.org/TR/png-3 */

static void add_be32(struct buf *out, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
				  (uint8_t)value };

	buf_add(out, bytes, sizeof(bytes));
}

static void add_chunk(struct buf *out, const char *type, const void *bytes, size_t size)
{
	uint32_t crc = libdeflate_crc32(0, type, 4);

	add_be32(out, (uint32_t)size);
	buf_add(out, type, 4);
	buf_add(out, bytes, size);
	add_be32(out, libdeflate_crc32(crc, bytes, size));
}

/* Rows without a filter: a byte 0, then red, green, blue of each pixel. */
static uint8_t *make_rows(const struct picture *p, size_t *size)
{
	const size_t stride = (size_t)cairo_image_surface_get_stride(p->surface), row = 1 + 3 * (size_t)p->cfg->width;
	const unsigned char *pixels = cairo_image_surface_get_data(p->surface);
	uint8_t *rows = malloc(row * p->cfg->height), *to = rows;

	*size = row * p->cfg->height;
	for (size_t y = 0; rows && y < p->cfg->height; y++) {
		const uint32_t *from = (const uint32_t *)(const void *)(pixels + y * stride);

		*to++ = 0;
		for (size_t x = 0; x < p->cfg->width; x++) {
			*to++ = (uint8_t)(from[x] >> 16);
			*to++ = (uint8_t)(from[x] >> 8);
			*to++ = (uint8_t)from[x];
		}
	}
	return rows;
}

static int add_pixels(struct buf *out, const uint8_t *rows, size_t size)
{
	struct libdeflate_compressor *z = libdeflate_alloc_compressor(LEVEL);
	const size_t bound = z ? libdeflate_zlib_compress_bound(z, size) : 0;
	void *packed = z ? malloc(bound) : NULL;
	size_t len = packed ? libdeflate_zlib_compress(z, rows, size, packed, bound) : 0;

	if (len)
		add_chunk(out, "IDAT", packed, len);
	free(packed);
	if (z)
		libdeflate_free_compressor(z);
	return len ? 0 : -ENOMEM;
}

static int add_file(const struct picture *p, struct buf *out)
{
	static const uint8_t signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	scoped(buf_release) struct buf head = BUF_INIT(64);
	static const uint8_t rest[] = { 8, 2, 0, 0, 0 }; /* 8 bits, RGB, deflate, the usual filters, not interlaced */
	size_t size;
	uint8_t *rows = make_rows(p, &size);
	int r;

	if (!rows)
		return -ENOMEM;
	add_be32(&head, p->cfg->width);
	add_be32(&head, p->cfg->height);
	buf_add(&head, rest, sizeof(rest));
	buf_add(out, signature, sizeof(signature));
	add_chunk(out, "IHDR", head.ptr, head.len);
	r = add_pixels(out, rows, size);
	free(rows);
	add_chunk(out, "IEND", "", 0);
	return r ? r : head.error ? head.error : out->error;
}

static int draw(struct picture *p)
{
	int r = 0;

	p->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->cfg->width, (int)p->cfg->height);
	r = status_of(cairo_surface_status(p->surface));
	if (r < 0)
		return r;
	p->cr = cairo_create(p->surface);
	draw_ground(p);
	if (p->t && p->t->node_count && p->t->total[0]) {
		p->order = calloc((size_t)p->t->node_count * 2 + 1, sizeof(uint32_t));
		p->colours = page_colours_new(p->t);
		p->places = calloc(DEPTH_MAX, sizeof(*p->places));
		r = p->order && p->colours && p->places ? find_ends(p) : -ENOMEM;
		if (r == 0)
			draw_tree(p);
	}
	cairo_surface_flush(p->surface);
	return r ? r : status_of(cairo_status(p->cr));
}

bool render_png_possible(void)
{
	return true;
}

int render_png(const struct tree *t, const struct render_png_config *cfg, struct buf *out)
{
	scoped(picture_release) struct picture p = { .t = t, .cfg = cfg };
	int r = draw(&p);

	return r ? r : add_file(&p, out);
}

#else

bool render_png_possible(void)
{
	return false;
}

int render_png(const struct tree *t, const struct render_png_config *cfg, struct buf *out)
{
	(void)t;
	(void)cfg;
	(void)out;
	return -ENOTSUP;
}

#endif
