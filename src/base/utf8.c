/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

/* Smallest code point that needs this many continuation bytes: rejects overlong forms. */
static const int32_t smallest[] = { 0, 0x80, 0x800, 0x10000 };

static size_t continuation_count(unsigned char lead)
{
	if (lead < 0x80)
		return 0;
	if ((lead & 0xe0) == 0xc0)
		return 1;
	if ((lead & 0xf0) == 0xe0)
		return 2;
	if ((lead & 0xf8) == 0xf0)
		return 3;
	return SIZE_MAX;
}

/* Return: the code point and its length, or -1. */
static int32_t decode(struct str s, size_t *len)
{
	unsigned char lead = (unsigned char)s.ptr[0];
	size_t more = continuation_count(lead);
	int32_t code;

	if (more >= s.len || more > 3)
		return -1;
	code = more == 0 ? lead : lead & (0x3f >> more);
	for (size_t i = 1; i <= more; i++) {
		unsigned char byte = (unsigned char)s.ptr[i];

		if ((byte & 0xc0) != 0x80)
			return -1;
		code = code << 6 | (byte & 0x3f);
	}
	if (code < smallest[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return -1;
	*len = more + 1;
	return code;
}

int32_t utf8_next(struct str *s)
{
	size_t len = 1;
	int32_t code = decode(*s, &len);

	*s = str_skip(*s, len);
	return code;
}

bool utf8_valid(struct str s)
{
	while (s.len)
		if (utf8_next(&s) < 0)
			return false;
	return true;
}

/* Unicode's controls, and what some readers of lines (gProfiler's) take for the end of one: U+0085, U+2028 and
 * U+2029. */
static bool is_control(int32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

void utf8_clean(struct buf *out, struct str s, char semicolon)
{
	while (s.len) {
		struct str before = s;
		int32_t code = utf8_next(&s);

		if (code < 0)
			buf_adds(out, STR("\xef\xbf\xbd"));
		else if (is_control(code))
			buf_addc(out, '?');
		else if (code == ';' && semicolon)
			buf_addc(out, semicolon);
		else
			buf_add(out, before.ptr, before.len - s.len);
	}
}

struct str utf8_uncut(struct str s)
{
	size_t rest = 0;

	while (rest < 3 && rest < s.len && ((uint8_t)s.ptr[s.len - 1 - rest] & 0xc0) == 0x80)
		rest++;
	if (rest < s.len && (uint8_t)s.ptr[s.len - 1 - rest] >= 0xc0)
		return str_first(s, s.len - 1 - rest);
	return s;
}

void utf8_add(struct buf *out, uint32_t code)
{
	char bytes[4];

	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		code = 0xfffd;
	if (code < 0x80) {
		buf_addc(out, (char)code);
		return;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		buf_add(out, bytes, 2);
	} else if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		buf_add(out, bytes, 3);
	} else {
		bytes[0] = (char)(0xf0 | code >> 18);
		bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
		bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[3] = (char)(0x80 | (code & 0x3f));
		buf_add(out, bytes, 4);
	}
}
