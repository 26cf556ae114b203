/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_parse.h"

#include <arpa/inet.h>
#include <strings.h>

static int hex_of(char c)
{
	uint64_t value;

	return str_to_hex64(str_n(&c, 1), &value) < 0 ? -1 : (int)value;
}

int http_decode(struct str s, bool plus, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '%') {
			int high = i + 2 < s.len ? hex_of(s.ptr[i + 1]) : -1,
			    low = i + 2 < s.len ? hex_of(s.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EBADMSG;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		buf_addc(out, c);
	}
	return out->error;
}

void http_encode(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c && strchr("-_.~", c)))
			buf_addc(out, (char)c);
		else
			buf_addf(out, "%%%02X", c);
	}
}

/* Query strings */

void http_query_release(struct http_query *q)
{
	buf_release(&q->bytes);
	*q = (struct http_query){ 0 };
}

struct str http_query_get(const struct http_query *q, struct str name)
{
	for (size_t i = 0; i < q->count; i++)
		if (str_eq(q->items[i].name, name))
			return q->items[i].value;
	return (struct str){ 0 };
}

/* Decoding never grows: room for @raw and a byte each is all that is needed, so that the views stay where they are. */
static int add_param(struct http_query *q, struct str piece)
{
	ptrdiff_t equals = str_find(piece, '=');
	struct str name = equals < 0 ? piece : str_first(piece, (size_t)equals);
	struct str value = equals < 0 ? STR("") : str_skip(piece, (size_t)equals + 1);
	struct http_param *p = &q->items[q->count];
	size_t at = q->bytes.len, middle;
	int r;

	if (q->count == HTTP_QUERY_MAX)
		return -E2BIG;
	r = http_decode(name, true, &q->bytes);
	middle = q->bytes.len;
	r = r ? r : http_decode(value, true, &q->bytes);
	if (r < 0)
		return r;
	p->name = str_n(q->bytes.ptr + at, middle - at);
	p->value = str_n(q->bytes.ptr + middle, q->bytes.len - middle);
	q->count++;
	return 0;
}

int http_query_parse(struct str raw, struct http_query *out)
{
	struct http_query q = { .bytes = BUF_INIT(raw.len + 1) };
	struct str rest = raw, piece;
	int r = buf_reserve(&q.bytes, raw.len + 1) ? 0 : q.bytes.error;

	while (r == 0 && str_next(&rest, '&', &piece))
		if (piece.len)
			r = add_param(&q, piece);
	if (r < 0) {
		http_query_release(&q);
		return r;
	}
	*out = q;
	return 0;
}

int http_path_clean(struct str raw, struct buf *out)
{
	size_t base = out->len;
	struct str rest = raw, piece = STR("");
	bool slash_behind;

	if (!raw.len || raw.ptr[0] != '/')
		return -EBADMSG;
	slash_behind = raw.ptr[raw.len - 1] == '/' || str_ends(raw, STR("/.")) || str_ends(raw, STR("/.."));
	while (str_next(&rest, '/', &piece)) {
		if (!piece.len || str_eq(piece, STR(".")))
			continue;
		if (str_eq(piece, STR(".."))) {
			ptrdiff_t parent = str_rfind(str_n(out->ptr + base, out->len - base), '/');

			out->len = base + (parent < 0 ? 0 : (size_t)parent);
			continue;
		}
		buf_addc(out, '/');
		buf_adds(out, piece);
	}
	if (slash_behind || out->len == base)
		buf_addc(out, '/');
	return out->error;
}

/* Credentials */

int http_base64(struct str text, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, held = 0;

	while (text.len && text.ptr[text.len - 1] == '=')
		text.len--;
	if (text.len % 4 == 1)
		return -EBADMSG;
	for (size_t i = 0; i < text.len; i++) {
		const char *digit = memchr(digits, text.ptr[i], sizeof(digits) - 1);

		if (!digit)
			return -EBADMSG;
		bits = bits << 6 | (uint32_t)(digit - digits);
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		buf_addc(out, (char)(bits >> held & 0xff));
	}
	return bits & ((1U << held) - 1) ? -EBADMSG : out->error;
}

static bool takes_scheme(struct str *text, const char *scheme)
{
	size_t len = strlen(scheme);

	if (text->len <= len || strncasecmp(text->ptr, scheme, len) != 0 || text->ptr[len] != ' ')
		return false;
	*text = str_trim(str_skip(*text, len));
	return true;
}

int http_credentials(struct str authorization, struct buf *out)
{
	struct str text = str_trim(authorization);
	scoped(buf_release) struct buf pair = BUF_INIT(KIB(8));
	ptrdiff_t colon;
	int r;

	if (takes_scheme(&text, "Bearer")) {
		buf_adds(out, text);
		return out->error;
	}
	if (!takes_scheme(&text, "Basic"))
		return -ENOTSUP;
	r = http_base64(text, &pair);
	if (r < 0)
		return r == -E2BIG ? -EBADMSG : r;
	colon = str_find(buf_str(&pair), ':');
	if (colon < 0)
		return -EBADMSG;
	buf_adds(out, str_skip(buf_str(&pair), (size_t)colon + 1));
	return out->error;
}

/* Hosts */

/* The value of name=value among pieces with ';' between them, without quotation marks around it. */
static int find_pair(struct str header, struct str name, bool (*same)(struct str, struct str), struct str *out)
{
	struct str rest = header, piece;

	while (str_next(&rest, ';', &piece)) {
		ptrdiff_t equals = str_find(piece, '=');
		struct str value;

		if (equals < 0 || !same(str_trim(str_first(piece, (size_t)equals)), name))
			continue;
		value = str_trim(str_skip(piece, (size_t)equals + 1));
		if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
			value = str_n(value.ptr + 1, value.len - 2);
		*out = value;
		return 0;
	}
	return -ENOENT;
}

int http_cookie(struct str header, struct str name, struct str *out)
{
	return find_pair(header, name, str_eq, out);
}

int http_host_split(struct str text, struct str *host, uint16_t *port)
{
	ptrdiff_t end = text.len && text.ptr[0] == '[' ? str_find(text, ']') : -1;
	struct str rest;
	uint64_t number = 0;

	if (end >= 0) {
		*host = str_n(text.ptr + 1, (size_t)end - 1);
		rest = str_skip(text, (size_t)end + 1);
	} else {
		ptrdiff_t colon = str_rfind(text, ':');

		if (text.len && text.ptr[0] == '[')
			return -EBADMSG;
		*host = colon < 0 ? text : str_first(text, (size_t)colon);
		rest = colon < 0 ? STR("") : str_skip(text, (size_t)colon);
		if (str_find(*host, ':') >= 0)
			return -EBADMSG;
	}
	if (rest.len && (rest.ptr[0] != ':' || str_to_u64(str_skip(rest, 1), 0, UINT16_MAX, &number) < 0))
		return -EBADMSG;
	*port = (uint16_t)number;
	return 0;
}

bool http_host_is_loopback(struct str host)
{
	uint64_t byte;
	struct str piece;
	int pieces = 0;

	if (host.len == 9 && strncasecmp(host.ptr, "localhost", 9) == 0)
		return true;
	if (str_eq(host, STR("::1")))
		return true;
	if (host.len > 7 && strncasecmp(host.ptr, "::ffff:", 7) == 0) /* IPv4 inside of IPv6 (RFC 4291 2.5.5.2) */
		host = str_skip(host, 7);
	if (!str_starts(host, STR("127.")))
		return false;
	for (struct str rest = host; str_next(&rest, '.', &piece); pieces++)
		if (str_to_u64(piece, 0, 255, &byte) < 0)
			return false;
	return pieces == 4;
}

size_t http_network_of(struct str remote, uint8_t *at)
{
	char text[INET6_ADDRSTRLEN];
	ptrdiff_t zone = str_find(remote, '%');

	remote = zone < 0 ? remote : str_first(remote, (size_t)zone);
	if (remote.len >= sizeof(text))
		return 0;
	memcpy(text, remote.ptr, remote.len);
	text[remote.len] = '\0';
	if (inet_pton(AF_INET, text, at) == 1)
		return 4;
	return inet_pton(AF_INET6, text, at) == 1 ? 8 : 0;
}

/* Header values */

static bool same_word(struct str a, struct str b)
{
	return a.len == b.len && (!a.len || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

int http_value_param(struct str header, struct str name, struct str *out)
{
	return find_pair(header, name, same_word, out);
}

bool http_value_is(struct str header, struct str media)
{
	ptrdiff_t semicolon = str_find(header, ';');

	return same_word(str_trim(semicolon < 0 ? header : str_first(header, (size_t)semicolon)), media);
}

/* Whether a weight is above 0 (RFC 9110 12.4.2); one that is malformed is not. */
static bool is_some(struct str weight)
{
	bool some = false;

	for (size_t i = 0; i < weight.len; i++) {
		char c = weight.ptr[i];

		if (c != '.' && (c < '0' || c > '9'))
			return false;
		some |= c >= '1';
	}
	return some;
}

bool http_accepts(struct str header, struct str coding)
{
	struct str rest = header, piece, weight;
	bool any = false;

	while (str_next(&rest, ',', &piece)) {
		bool some = http_value_param(piece, STR("q"), &weight) < 0 || is_some(weight);

		if (http_value_is(piece, coding))
			return some;
		if (http_value_is(piece, STR("*")))
			any = some;
	}
	return any;
}

/* Multipart */

static void take_line(struct str line, struct http_part *out)
{
	ptrdiff_t colon = str_find(line, ':');
	struct str name, value;

	if (colon < 0)
		return;
	name = str_trim(str_first(line, (size_t)colon));
	value = str_trim(str_skip(line, (size_t)colon + 1));
	if (same_word(name, STR("content-type")))
		out->content_type = value;
	if (!same_word(name, STR("content-disposition")))
		return;
	(void)http_value_param(value, STR("name"), &out->name); /* stays empty without one */
	(void)http_value_param(value, STR("filename"), &out->filename);
}

/* Cuts the part's header lines off the front of @part. */
static int take_header(struct str *part, struct http_part *out)
{
	for (;;) {
		ptrdiff_t end = str_search(*part, STR("\r\n"));

		if (end < 0)
			return -EBADMSG;
		if (end == 0) {
			*part = str_skip(*part, 2);
			return 0;
		}
		take_line(str_first(*part, (size_t)end), out);
		*part = str_skip(*part, (size_t)end + 2);
	}
}

int http_multipart_next(struct str *rest, struct str boundary, struct http_part *out)
{
	char text[HTTP_BOUNDARY_MAX + 5];
	struct str mark, part;
	struct http_part found = { 0 };
	ptrdiff_t end;

	if (!boundary.len || boundary.len > HTTP_BOUNDARY_MAX)
		return -EBADMSG;
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): text has a length */
	memcpy(text, "\r\n--", 4);
	memcpy(text + 4, boundary.ptr, boundary.len);
	mark = str_n(text, boundary.len + 4);
	if (!str_starts(*rest, str_skip(mark, 2))) /* nobody writes a preamble */
		return -EBADMSG;
	*rest = str_skip(*rest, mark.len - 2);
	if (str_starts(*rest, STR("--")))
		return 0;
	if (!str_starts(*rest, STR("\r\n")))
		return -EBADMSG;
	part = str_skip(*rest, 2);
	if (take_header(&part, &found) < 0)
		return -EBADMSG;
	end = str_search(part, mark);
	if (end < 0)
		return -EBADMSG;
	found.body = str_first(part, (size_t)end);
	*rest = str_skip(part, (size_t)end + 2);
	*out = found;
	return 1;
}
