/* SPDX-License-Identifier: Apache-2.0 */
#include "render/terminal.h"

#include "base/safe.h"

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

static bool in_ranges(const struct range *ranges, size_t count, uint32_t c)
{
	for (size_t i = 0; i < count && ranges[i].first <= c; i++) {
		if (c <= ranges[i].last)
			return true;
	}
	return false;
}

struct glyph {
	struct safe_piece piece;
	size_t columns;
};

/* Eats one code point or one malformed byte of *s, which is not empty. */
static struct glyph glyph_next(struct str *s)
{
	struct glyph g = { .piece = safe_next(s), .columns = 1 };
	uint32_t code = (uint32_t)g.piece.code;

	if (g.piece.code < 0)
		g.columns = g.piece.size;
	else if (in_ranges(no_columns, ARRAY_SIZE(no_columns), code))
		g.columns = 0;
	else if (in_ranges(two_columns, ARRAY_SIZE(two_columns), code))
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
		buf_add(out, g.piece.text, g.piece.size);
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
