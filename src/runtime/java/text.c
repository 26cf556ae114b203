/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/java/text.h"

#include "base/utf8.h"

/* A surrogate in three bytes, which UTF-8 has not. Return: 0: there is none. */
static uint32_t surrogate_at(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.ptr;

	if (s.len < 3 || p[0] != 0xed || (p[1] & 0xe0) != 0xa0 || (p[2] & 0xc0) != 0x80)
		return 0;
	return 0xd000U | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
}

static uint32_t next_code(struct str *s)
{
	uint32_t high = surrogate_at(*s), low = high ? surrogate_at(str_skip(*s, 3)) : 0;
	int32_t code;

	if (s->len >= 2 && (uint8_t)s->ptr[0] == 0xc0 && (uint8_t)s->ptr[1] == 0x80) {
		*s = str_skip(*s, 2);
		return 0xfffd; /* a 0 in a name */
	}
	if (high >= 0xd800 && high < 0xdc00 && low >= 0xdc00) {
		*s = str_skip(*s, 6);
		return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	if (high) {
		*s = str_skip(*s, 3);
		return 0xfffd;
	}
	code = utf8_next(s);
	return code > 0 ? (uint32_t)code : 0xfffd;
}

void java_text_add(struct buf *out, struct str symbol)
{
	if (utf8_valid(symbol) && !(symbol.len && memchr(symbol.ptr, 0, symbol.len))) {
		buf_adds(out, symbol);
		return;
	}
	while (symbol.len)
		utf8_add(out, next_code(&symbol));
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static struct str without_digits(struct str s)
{
	while (s.len && s.ptr[s.len - 1] >= '0' && s.ptr[s.len - 1] <= '9')
		s.len--;
	return s;
}

/* "+0x7c02a000", or '/' for '+', at the end: a hidden class. Source: OpenJDK 17, share/classfile/classFileParser.cpp,
 * mangle_hidden_class_name(). */
static struct str without_address(struct str s)
{
	size_t at = s.len;

	while (at && is_hex(s.ptr[at - 1]))
		at--;
	if (at == s.len || at < 4 || s.ptr[at - 1] != 'x' || s.ptr[at - 2] != '0' ||
	    (s.ptr[at - 3] != '+' && s.ptr[at - 3] != '/'))
		return s;
	return str_first(s, at - 3);
}

void java_class_add(struct buf *out, struct str symbol)
{
	struct str s = without_address(symbol), plain = without_digits(s), last = str_base(plain);

	if (str_ends(plain, STR("$$Lambda$")))
		s = str_first(plain, plain.len - 1);
	else if (str_starts(last, STR("Generated")) && str_ends(last, STR("Accessor")))
		s = plain;
	java_text_add(out, s);
}

static const struct modifier {
	uint32_t flag;
	struct str text;
} modifiers[] = {
	{ 0x1, { "public ", 7 } },         { 0x2, { "private ", 8 } },  { 0x4, { "protected ", 10 } },
	{ 0x400, { "abstract ", 9 } },     { 0x8, { "static ", 7 } },   { 0x10, { "final ", 6 } },
	{ 0x20, { "synchronized ", 13 } }, { 0x100, { "native ", 7 } },
};

void java_modifiers_add(struct buf *out, uint32_t flags)
{
	for (size_t i = 0; i < ARRAY_SIZE(modifiers); i++)
		if (flags & modifiers[i].flag)
			buf_adds(out, modifiers[i].text);
}

static struct str without_modifiers(struct str s)
{
	for (size_t i = 0; i < ARRAY_SIZE(modifiers); i++)
		if (str_starts(s, modifiers[i].text))
			s = str_skip(s, modifiers[i].text.len);
	return s;
}

void java_readable(struct str name, struct buf *out)
{
	struct str s = without_modifiers(name);
	ptrdiff_t open = str_find(s, '(');

	if (open <= 0) {
		buf_adds(out, name);
		return;
	}
	for (size_t i = 0; i < (size_t)open; i++)
		buf_addc(out, (char)(s.ptr[i] == '/' ? '.' : s.ptr[i]));
}
