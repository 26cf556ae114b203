/* SPDX-License-Identifier: Apache-2.0 */
#include "query/proto.h"

#include <math.h>

#include "base/utf8.h"

#define NUMBER_MAX 40 /* bytes of a number in JSON that is looked at */

void proto_add_text(struct buf *b, uint32_t number, struct str text)
{
	struct str rest = text;
	size_t size = 0;

	if (utf8_valid(text)) {
		wire_add_bytes(b, number, text);
		return;
	}
	while (rest.len) {
		size_t left = rest.len;
		int32_t code = utf8_next(&rest);

		size += code < 0 ? 3 : left - rest.len;
	}
	wire_add_tag(b, number, WIRE_BYTES);
	wire_add_varint(b, size);
	while (text.len) {
		int32_t code = utf8_next(&text);

		utf8_add(b, code < 0 ? 0xfffd : (uint32_t)code);
	}
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void add_fixed64(struct buf *b, uint32_t number, uint64_t bits)
{
	wire_add_tag(b, number, WIRE_FIXED64);
	for (unsigned int i = 0; i < 64; i += 8)
		buf_addc(b, (char)(bits >> i));
}

void proto_add_double(struct buf *b, uint32_t number, double value)
{
	uint64_t bits = bits_of(value);

	if (bits)
		add_fixed64(b, number, bits);
}

const struct proto_field *proto_field_of(const struct proto_message *m, uint64_t number)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->fields[i].number == number)
			return &m->fields[i];
	return NULL;
}

/* JSON to protobuf */

static const struct proto_field *field_named(const struct proto_message *m, struct str key)
{
	struct str name = key.len >= 2 ? str_n(key.ptr + 1, key.len - 2) : STR("");

	for (size_t i = 0; i < m->count; i++)
		if (str_eq(name, str_of(m->fields[i].name)) ||
		    (m->fields[i].json && str_eq(name, str_of(m->fields[i].json))))
			return &m->fields[i];
	return NULL;
}

/* Numbers may stand in quotes. */
static struct str unquoted(struct str value)
{
	bool quoted = value.len >= 2 && value.ptr[0] == '"';

	return quoted ? str_n(value.ptr + 1, value.len - 2) : value;
}

static int read_double(struct str value, double *out)
{
	char text[NUMBER_MAX + 1] = "", *end = NULL;
	struct str number = unquoted(value);

	if (str_eq(number, STR("NaN")) || str_eq(number, STR("Infinity")) || str_eq(number, STR("-Infinity"))) {
		*out = number.ptr[0] == 'N' ? (double)NAN : number.ptr[0] == 'I' ? (double)INFINITY : -(double)INFINITY;
		return 0;
	}
	if (!number.len || number.len > NUMBER_MAX || !strchr("-0123456789", number.ptr[0]) || !number.ptr[0])
		return -EBADMSG;
	memcpy(text, number.ptr, number.len);
	for (size_t i = 0; i < number.len; i++)
		if (!text[i] || !strchr("+-.0123456789eE", text[i]))
			return -EBADMSG;
	*out = strtod(text, &end);
	return *end || !isfinite(*out) ? -EBADMSG : 0;
}

static int read_int(struct str value, int64_t *out)
{
	double number;

	if (str_to_i64(unquoted(value), out) == 0)
		return 0;
	if (read_double(value, &number) < 0 || number != floor(number) || fabs(number) > 0x1p53) /* 1e3, 5.0 */
		return -EBADMSG;
	*out = (int64_t)number;
	return 0;
}

static int read_enum(const struct proto_field *f, struct str value, int64_t *out)
{
	if (value.ptr[0] != '"')
		return read_int(value, out);
	for (int64_t i = 0; f->values && f->values[i]; i++)
		if (str_eq(unquoted(value), str_of(f->values[i]))) {
			*out = i;
			return 0;
		}
	return -EBADMSG;
}

static int add_text(const struct proto_field *f, struct str value, struct buf *out)
{
	scoped(buf_release) struct buf text = BUF_INIT(value.len * 3 + 16);
	int r = json_text(value, &text);

	if (r == 0)
		proto_add_text(out, f->number, buf_str(&text));
	return r;
}

static int add_object(const struct proto_field *f, struct str value, struct buf *out)
{
	scoped(buf_release) struct buf inner = BUF_INIT(out->max);
	int r = proto_from_json(f->message, value, &inner);

	if (r == 0)
		wire_add_bytes(out, f->number, buf_str(&inner));
	return r;
}

/* A zero says nothing, but counts in a list. */
static void add_scalar(const struct proto_field *f, uint64_t bits, struct buf *out)
{
	if (!bits && !f->repeated)
		return;
	if (f->kind == PROTO_DOUBLE) {
		add_fixed64(out, f->number, bits);
		return;
	}
	wire_add_tag(out, f->number, WIRE_VARINT);
	wire_add_varint(out, bits);
}

static int add_number(const struct proto_field *f, struct str value, struct buf *out)
{
	int64_t number = 0;
	uint64_t unsigned_number;
	double real = 0;
	int r;

	if (f->kind == PROTO_DOUBLE) {
		r = read_double(value, &real);
		if (r == 0)
			add_scalar(f, bits_of(real), out);
		return r;
	}
	if (f->kind == PROTO_UINT && str_to_u64(unquoted(value), 0, UINT64_MAX, &unsigned_number) == 0) {
		add_scalar(f, unsigned_number, out);
		return 0;
	}
	r = f->kind == PROTO_ENUM ? read_enum(f, value, &number) : read_int(value, &number);
	if (r < 0 || (f->kind == PROTO_UINT && number < 0))
		return -EBADMSG;
	add_scalar(f, (uint64_t)number, out);
	return 0;
}

static int add_value(const struct proto_field *f, struct str value, struct buf *out)
{
	if (!value.len)
		return -EBADMSG;
	switch (f->kind) {
	case PROTO_TEXT:
		return add_text(f, value, out);
	case PROTO_MESSAGE:
		return value.ptr[0] == '{' ? add_object(f, value, out) : -EBADMSG;
	case PROTO_BOOL:
		if (!str_eq(value, STR("true")) && !str_eq(value, STR("false")))
			return -EBADMSG;
		add_scalar(f, value.ptr[0] == 't', out);
		return 0;
	default:
		return add_number(f, value, out);
	}
}

static int add_values(const struct proto_field *f, struct str value, struct buf *out)
{
	struct str key, element;
	int r = 0;

	if (!f->repeated)
		return add_value(f, value, out);
	if (!value.len || value.ptr[0] != '[')
		return -EBADMSG;
	while (r == 0 && json_member(&value, &key, &element))
		r = add_value(f, element, out);
	return r;
}

int proto_from_json(const struct proto_message *m, struct str json, struct buf *out)
{
	struct str rest = json, object, key, value;
	int r = json_value(&rest, &object);

	if (r < 0 || str_trim(rest).len || !object.len || object.ptr[0] != '{')
		return -EBADMSG;
	while (r == 0 && json_member(&object, &key, &value)) {
		const struct proto_field *f = field_named(m, key);

		if (f && !str_eq(value, STR("null")))
			r = add_values(f, value, out);
	}
	return r ? r : out->error;
}

/* Cleaning */

static int clean_message(const struct proto_field *f, struct str bytes, struct buf *out)
{
	scoped(buf_release) struct buf inner = BUF_INIT(out->max);
	int r = proto_clean(f->message, bytes, &inner);

	if (r == 0)
		wire_add_bytes(out, f->number, buf_str(&inner));
	return r;
}

static bool is_number_of(const struct proto_field *f, const struct wire_field *w)
{
	if (f->kind == PROTO_MESSAGE || f->kind == PROTO_TEXT)
		return false;
	return w->type == (f->kind == PROTO_DOUBLE ? WIRE_FIXED64 : WIRE_VARINT) ||
	       (w->type == WIRE_BYTES && f->repeated);
}

static int clean_field(const struct proto_field *f, const struct wire_field *w, struct buf *out)
{
	if (w->type == WIRE_BYTES && f->kind == PROTO_MESSAGE)
		return clean_message(f, wire_str(w), out);
	if (w->type == WIRE_BYTES && f->kind == PROTO_TEXT) {
		proto_add_text(out, f->number, wire_str(w));
		return 0;
	}
	if (!is_number_of(f, w))
		return -EBADMSG;
	if (w->type == WIRE_BYTES)
		wire_add_bytes(out, f->number, wire_str(w));
	else
		add_scalar(f, w->value, out);
	return 0;
}

int proto_clean(const struct proto_message *m, struct str bytes, struct buf *out)
{
	struct cur c = cur_of(bytes.ptr, bytes.len);
	struct wire_field w;
	int r = 0;

	while (r == 0 && wire_next(&c, &w)) {
		const struct proto_field *f = proto_field_of(m, w.number);

		if (f)
			r = clean_field(f, &w, out);
	}
	return r ? r : c.bad ? -EBADMSG : out->error;
}
