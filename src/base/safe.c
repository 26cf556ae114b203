/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"

#include "base/utf8.h"

/* What hides or reorders its neighbours, or shows nothing (Unicode 15): C1 controls, soft hyphen, joiners and fillers,
 * zero-width and bidirectional controls, line and paragraph separators, byte order mark, tags and variation selectors
 * beyond the 16 that emoji use. In order. */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{ 0x0000, 0x001f },   { 0x007f, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f }, { 0x061c, 0x061c },
	{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f }, { 0x2028, 0x202e },
	{ 0x2060, 0x206f },   { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb },
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

bool safe_hides(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden) && hidden[i].first <= code; i++)
		if (code <= hidden[i].last)
			return true;
	return false;
}

struct safe_piece safe_next(struct str *s)
{
	const char *start = s->ptr;
	struct safe_piece piece = { .code = utf8_next(s) };
	int written = 0;

	piece.size = (size_t)(s->ptr - start);
	if (piece.code < 0x20 || piece.code == 0x7f)
		written = snprintf(piece.text, sizeof(piece.text), "\\x%02x", (unsigned int)(unsigned char)*start);
	else if (safe_hides((uint32_t)piece.code))
		written = snprintf(piece.text, sizeof(piece.text), "\\u%04x", (unsigned int)piece.code);
	else
		memcpy(piece.text, start, MIN(piece.size, sizeof(piece.text)));
	if (written > 0) {
		piece.size = (size_t)written;
		piece.code = -1;
	}
	return piece;
}

void safe_add(struct buf *out, struct str s)
{
	while (s.len) {
		struct safe_piece piece = safe_next(&s);

		buf_add(out, piece.text, piece.size);
	}
}

void safe_add_json(struct buf *out, struct str s)
{
	buf_addc(out, '"');
	while (s.len) {
		int32_t code = utf8_next(&s);

		if (code == '"' || code == '\\')
			buf_addf(out, "\\%c", (char)code);
		else if (code > 0xffff && safe_hides((uint32_t)code)) /* as a surrogate pair (RFC 8259 7) */
			buf_addf(out, "\\u%04x\\u%04x", 0xd800 + (((uint32_t)code - 0x10000) >> 10),
				 0xdc00 + (((uint32_t)code - 0x10000) & 0x3ff));
		else if (code >= 0 && safe_hides((uint32_t)code))
			buf_addf(out, "\\u%04x", (unsigned int)code);
		else
			utf8_add(out, code < 0 ? 0xfffd : (uint32_t)code);
	}
	buf_addc(out, '"');
}

static bool ends_word(char c)
{
	return c == ' ' || c == '\'' || c == '"' || c == '\n' || c == '\t';
}

/* A password may have any byte: from the scheme, else from the start of the word, up to the word's last '@'. */
static void add_word(struct buf *out, struct str word)
{
	ptrdiff_t at = str_rfind(word, '@'), scheme = str_search(word, STR("://"));

	if (at >= 0) {
		buf_adds(out, str_first(word, scheme >= 0 && scheme < at ? (size_t)scheme + 3 : 0));
		buf_adds(out, STR("***"));
		word = str_skip(word, (size_t)at);
	}
	safe_add(out, word);
}

void safe_add_url(struct buf *out, struct str s)
{
	size_t size;

	if (str_search(s, STR("://")) >= 0 && str_search(s, STR("://")) < 12 && str_find(s, '@') >= 0) {
		add_word(out, s); /* a URL as a whole: a password may have blanks in it */
		return;
	}
	for (; s.len; s = str_skip(s, size)) {
		for (size = 0; size < s.len && !ends_word(s.ptr[size]);)
			size++;
		add_word(out, str_first(s, size));
		if (size < s.len)
			safe_add(out, str_n(s.ptr + size++, 1));
	}
}
