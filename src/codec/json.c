/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/json.h"

#include <math.h>

#include "base/utf8.h"

static void comma(struct json_out *j)
{
	if (j->needs_comma)
		buf_adds(j->out, STR(", "));
	j->needs_comma = true;
}

void json_out_begin(struct json_out *j, char bracket)
{
	comma(j);
	buf_addc(j->out, bracket);
	j->needs_comma = false;
}

void json_out_end(struct json_out *j, char bracket)
{
	buf_addc(j->out, bracket);
	j->needs_comma = true;
}

static void add_unit(struct buf *out, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = {
		'\\', 'u', digits[unit >> 12 & 15], digits[unit >> 8 & 15], digits[unit >> 4 & 15], digits[unit & 15]
	};

	buf_add(out, text, sizeof(text));
}

/* One code point, or a lone surrogate, escaped as Python does: 0x7f is left alone. */
static void add_code(struct buf *out, uint32_t code)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = code && code < 0x80 ? strchr(plain, (int)code) : NULL;

	if (found) {
		buf_addc(out, '\\');
		buf_addc(out, letters[found - plain]);
	} else if (code >= 0x20 && code < 0x80) {
		buf_addc(out, (char)code);
	} else if (code < 0x10000) {
		add_unit(out, code);
	} else {
		add_unit(out, 0xd800 + ((code - 0x10000) >> 10));
		add_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
	}
}

void json_out_string(struct json_out *j, struct str text)
{
	comma(j);
	buf_addc(j->out, '"');
	while (text.len) {
		int32_t code = utf8_next(&text);

		add_code(j->out, code < 0 ? 0xfffd : (uint32_t)code);
	}
	buf_addc(j->out, '"');
}

void json_out_key(struct json_out *j, struct str name)
{
	json_out_string(j, name);
	buf_adds(j->out, STR(": "));
	j->needs_comma = false;
}

void json_out_u64(struct json_out *j, uint64_t value)
{
	comma(j);
	buf_addu64(j->out, value);
}

void json_out_number(struct json_out *j, double value)
{
	char text[40];

	if (!isfinite(value)) {
		json_out_raw(j, STR("null"));
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value); /* at most 24 bytes */
		if (strtod(text, NULL) == value)
			break;
	}
	if (!strpbrk(text, ".e"))
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       ".0"); /* a float, as Python shows it */
	comma(j);
	buf_adds(j->out, str_of(text));
}

void json_decimal(struct buf *out, int64_t value, int decimals)
{
	uint64_t all = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;
	char digits[32];
	int len;

	for (int i = 0; i < decimals; i++)
		unit *= 10;
	if (value < 0)
		buf_addc(out, '-');
	buf_addu64(out, all / unit);
	for (; all && decimals < 0; decimals++)
		buf_addc(out, '0');
	if (!(all % unit))
		return;
	len = snprintf(digits, sizeof(digits), ".%0*llu", decimals, (unsigned long long)(all % unit));
	while (len > 0 && digits[len - 1] == '0')
		len--;
	buf_add(out, digits, (size_t)len);
}

void json_out_raw(struct json_out *j, struct str value)
{
	comma(j);
	buf_adds(j->out, value);
}

/* Reading. A scanner with a stack of open brackets, one bit each. */

struct scanner {
	struct str rest;
	struct json_out *out; /* or NULL: only check */
	uint8_t is_object[JSON_DEPTH_MAX];
	size_t depth;
};

static struct str skip_blanks(struct str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t' || s.ptr[0] == '\n' || s.ptr[0] == '\r'))
		s = str_skip(s, 1);
	return s;
}

static bool eat(struct scanner *sc, char c)
{
	sc->rest = skip_blanks(sc->rest);
	if (!sc->rest.len || sc->rest.ptr[0] != c)
		return false;
	sc->rest = str_skip(sc->rest, 1);
	return true;
}

static int hex_unit(struct str s)
{
	uint64_t unit;

	if (s.len < 4 || str_to_hex64(str_first(s, 4), &unit) < 0)
		return -1;
	return (int)unit;
}

/* The escape behind a backslash. Return: its code unit, or -1. */
static int read_escape(struct str *s)
{
	static const char letters[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
	const char *found;
	int unit;

	if (!s->len || !s->ptr[0])
		return -1;
	if (s->ptr[0] == 'u') {
		unit = hex_unit(str_skip(*s, 1));
		*s = str_skip(*s, 5);
		return unit;
	}
	found = strchr(letters, s->ptr[0]);
	*s = str_skip(*s, 1);
	return found ? plain[found - letters] : -1;
}

/* One code point inside a string; joined surrogates, lone ones as they are. Return: -1 when malformed. */
static int32_t read_code(struct str *s)
{
	int32_t code;
	int low;

	if (s->ptr[0] != '\\') {
		if ((unsigned char)s->ptr[0] < 0x20)
			return -1;
		code = utf8_next(s);
		return code < 0 ? 0xfffd : code;
	}
	*s = str_skip(*s, 1);
	code = read_escape(s);
	if (code < 0 || (code & 0xfc00) != 0xd800 || !str_starts(*s, STR("\\u")))
		return code;
	low = hex_unit(str_skip(*s, 2));
	if (low < 0 || (low & 0xfc00) != 0xdc00)
		return code; /* what follows is read on its own */
	*s = str_skip(*s, 6);
	return 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
}

static int scan_string(struct scanner *sc)
{
	struct str s = str_skip(sc->rest, 1);

	if (sc->out) {
		comma(sc->out);
		buf_addc(sc->out->out, '"');
	}
	while (s.len && s.ptr[0] != '"') {
		int32_t code = read_code(&s);

		if (code < 0)
			return -EBADMSG;
		if (sc->out)
			add_code(sc->out->out, (uint32_t)code);
	}
	if (!s.len)
		return -EBADMSG;
	if (sc->out)
		buf_addc(sc->out->out, '"');
	sc->rest = str_skip(s, 1);
	return 0;
}

static size_t count_digits(struct str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n;
}

/* The length of a number by JSON's grammar, or 0. */
static size_t number_length(struct str all)
{
	struct str s = str_starts(all, STR("-")) ? str_skip(all, 1) : all;
	size_t digits = count_digits(s);

	if (!digits || (digits > 1 && s.ptr[0] == '0'))
		return 0;
	s = str_skip(s, digits);
	if (s.len && s.ptr[0] == '.') {
		digits = count_digits(str_skip(s, 1));
		if (!digits)
			return 0;
		s = str_skip(s, 1 + digits);
	}
	if (s.len && (s.ptr[0] == 'e' || s.ptr[0] == 'E')) {
		s = str_skip(s, 1);
		if (s.len && (s.ptr[0] == '+' || s.ptr[0] == '-'))
			s = str_skip(s, 1);
		digits = count_digits(s);
		if (!digits)
			return 0;
		s = str_skip(s, digits);
	}
	return all.len - s.len;
}

/* A number, true, false, null, and what Python adds to JSON: NaN, Infinity, -Infinity. */
static int scan_plain(struct scanner *sc)
{
	static const struct str words[] = { { "true", 4 }, { "false", 5 },    { "null", 4 },
					    { "NaN", 3 },  { "Infinity", 8 }, { "-Infinity", 9 } };
	size_t len = number_length(sc->rest);

	for (size_t i = 0; !len && i < ARRAY_SIZE(words); i++)
		if (str_starts(sc->rest, words[i]))
			len = words[i].len;
	if (!len)
		return -EBADMSG;
	if (sc->out)
		json_out_raw(sc->out, str_first(sc->rest, len));
	sc->rest = str_skip(sc->rest, len);
	return 0;
}

static int scan_key(struct scanner *sc)
{
	int r;

	sc->rest = skip_blanks(sc->rest);
	if (!sc->rest.len || sc->rest.ptr[0] != '"')
		return -EBADMSG;
	r = scan_string(sc);
	if (r < 0 || !eat(sc, ':'))
		return -EBADMSG;
	if (sc->out) {
		buf_adds(sc->out->out, STR(": "));
		sc->out->needs_comma = false;
	}
	return 0;
}

/* An opening bracket. Return: 1 when a value must follow, 0 when the bracket closed at once, or -EBADMSG. */
static int scan_open(struct scanner *sc)
{
	bool is_object = sc->rest.ptr[0] == '{';

	if (sc->depth == JSON_DEPTH_MAX)
		return -EBADMSG;
	sc->rest = str_skip(sc->rest, 1);
	if (sc->out)
		json_out_begin(sc->out, is_object ? '{' : '[');
	if (eat(sc, is_object ? '}' : ']')) {
		if (sc->out)
			json_out_end(sc->out, is_object ? '}' : ']');
		return 0;
	}
	sc->is_object[sc->depth++] = is_object;
	return is_object && scan_key(sc) < 0 ? -EBADMSG : 1;
}

/* What follows a finished value. Return: 1 when another value must follow, 0 when all is closed, or -EBADMSG. */
static int scan_after(struct scanner *sc)
{
	while (sc->depth) {
		bool is_object = sc->is_object[sc->depth - 1];

		if (eat(sc, ','))
			return is_object && scan_key(sc) < 0 ? -EBADMSG : 1;
		if (!eat(sc, is_object ? '}' : ']'))
			return -EBADMSG;
		if (sc->out)
			json_out_end(sc->out, is_object ? '}' : ']');
		sc->depth--;
	}
	return 0;
}

static int scan(struct scanner *sc)
{
	int r = 1;

	while (r > 0) {
		sc->rest = skip_blanks(sc->rest);
		if (!sc->rest.len)
			return -EBADMSG;
		if (sc->rest.ptr[0] == '{' || sc->rest.ptr[0] == '[') {
			r = scan_open(sc);
			if (r != 0)
				continue; /* its first value, or an error */
		} else {
			r = sc->rest.ptr[0] == '"' ? scan_string(sc) : scan_plain(sc);
			if (r < 0)
				return r;
		}
		r = scan_after(sc);
	}
	return r;
}

int json_value(struct str *rest, struct str *out)
{
	struct scanner sc = { .rest = skip_blanks(*rest) };
	const char *start = sc.rest.ptr;
	int r = scan(&sc);

	if (r < 0)
		return r;
	*out = str_n(start, (size_t)(sc.rest.ptr - start));
	*rest = sc.rest;
	return 0;
}

size_t json_fault(struct str text)
{
	struct scanner sc = { .rest = text };

	ignore(scan(&sc)); /* where it stands is the answer */
	return text.len - sc.rest.len;
}

int json_member(struct str *rest, struct str *key, struct str *value)
{
	struct str s = skip_blanks(*rest), name = STR("");

	if (!s.len || !s.ptr[0] || !strchr("{[,", s.ptr[0]))
		return 0;
	s = skip_blanks(str_skip(s, 1));
	if (!s.len || s.ptr[0] == '}' || s.ptr[0] == ']' || json_value(&s, &name) < 0)
		return 0;
	s = skip_blanks(s);
	if (s.len && s.ptr[0] == ':') {
		s = str_skip(s, 1);
		if (json_value(&s, value) < 0)
			return 0;
	} else {
		*value = name;
		name = STR("");
	}
	*key = name;
	*rest = s;
	return 1;
}

int json_text(struct str value, struct buf *out)
{
	struct str s = str_skip(value, 1);

	if (value.len < 2 || value.ptr[0] != '"')
		return -EBADMSG;
	while (s.len && s.ptr[0] != '"') {
		int32_t code = read_code(&s);

		if (code < 0)
			return -EBADMSG;
		utf8_add(out, (uint32_t)code);
	}
	return out->error;
}

int json_reformat(struct str json, struct buf *out)
{
	struct json_out j = { .out = out };
	struct scanner sc = { .rest = json, .out = &j };
	size_t before = out->len;
	int r = scan(&sc);

	if (r == 0 && skip_blanks(sc.rest).len)
		r = -EBADMSG;
	if (r < 0) {
		out->len = before;
		return r;
	}
	return out->error;
}
