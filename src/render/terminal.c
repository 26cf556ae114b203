/* SPDX-License-Identifier: Apache-2.0 */
#include "render/terminal.h"

#include "base/utf8.h"

struct range {
	uint32_t first, last;
};

/* Nonspacing marks of the scripts that use them most (Unicode 15, general category Mn). */
static const struct range no_columns[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a }, { 0x064b, 0x065f },
	{ 0x06d6, 0x06dc }, { 0x0e31, 0x0e31 }, { 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xe0100, 0xe01ef },
};

/* East Asian Width W and F, and the emoji that terminals draw twice as wide (Unicode 15, EastAsianWidth.txt). */
static const struct range two_columns[] = {
	{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },   { 0x23e9, 0x23ec },   { 0x2e80, 0x303e },
	{ 0x3041, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe10, 0xfe19 },
	{ 0xfe30, 0xfe6f },   { 0xff01, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x16fe0, 0x18aff }, { 0x1b000, 0x1b2ff },
	{ 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
};

/* C1 controls, soft hyphen, and what hides or reorders its neighbours: zero-width and bidirectional controls, line and
 * paragraph separators, byte order mark, tags. */
static const struct range unsafe[] = {
	{ 0x0080, 0x009f }, { 0x00ad, 0x00ad }, { 0x061c, 0x061c }, { 0x180e, 0x180e }, { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t c)
{
	for (size_t i = 0; i < count && ranges[i].first <= c; i++) {
		if (c <= ranges[i].last)
			return true;
	}
	return false;
}

struct glyph {
	char text[16];
	size_t size, columns;
};

/* Eats one code point or one malformed byte of *s, which is not empty. */
static struct glyph glyph_next(struct str *s)
{
	const char *start = s->ptr;
	int32_t c = utf8_next(s);
	struct glyph g = { .size = (size_t)(s->ptr - start), .columns = 1 };
	int written = 0;

	if (c >= 0x20 && c < 0x7f) {
		g.text[0] = (char)c;
		return g;
	}
	if (c < 0x20 || c == 0x7f)
		written = snprintf(g.text, sizeof(g.text), "\\x%02x", (unsigned int)(unsigned char)*start);
	else if (in_ranges(unsafe, ARRAY_SIZE(unsafe), (uint32_t)c))
		written = snprintf(g.text, sizeof(g.text), "\\u%04x", (unsigned int)c);
	if (written > 0) {
		g.size = g.columns = (size_t)written;
		return g;
	}
	memcpy(g.text, start, MIN(g.size, sizeof(g.text)));
	if (in_ranges(no_columns, ARRAY_SIZE(no_columns), (uint32_t)c))
		g.columns = 0;
	else if (in_ranges(two_columns, ARRAY_SIZE(two_columns), (uint32_t)c))
		g.columns = 2;
	return g;
}

size_t terminal_columns(struct str s)
{
	size_t columns = 0;

	while (s.len)
		columns += glyph_next(&s).columns;
	return columns;
}

size_t terminal_add(struct buf *out, struct str s, size_t max)
{
	size_t used = 0, room = SIZE_MAX;

	if (max && terminal_columns(s) > max)
		room = max > 2 ? max - 2 : 0;
	while (s.len) {
		struct glyph g = glyph_next(&s);

		if (g.columns > room - used) {
			for (size_t dots = MIN(max, (size_t)2); dots--; used++)
				buf_addc(out, '.');
			break;
		}
		buf_add(out, g.text, g.size);
		used += g.columns;
	}
	return used;
}

void terminal_add_lines(struct buf *out, struct str text)
{
	while (text.len) {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t size = end ? (size_t)(end - text.ptr) : text.len;

		terminal_add(out, str_first(text, size), 0);
		if (end)
			buf_addc(out, '\n');
		text = str_skip(text, size + (end != NULL));
	}
}

void terminal_pad(struct buf *out, size_t count)
{
	while (count--)
		buf_addc(out, ' ');
}
