/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf to JSON, as a walk that can stop behind every field: the JSON of a large answer is several times the size of
 * its protobuf form, and need not be there as a whole. */
#include <inttypes.h>
#include <math.h>

#include "query/proto.h"

void proto_json_begin(struct proto_json *j, const struct proto_message *m, struct str bytes)
{
	*j = (struct proto_json){ .depth = 1, .levels[0] = { .m = m, .rest = cur_of(bytes.ptr, bytes.len) } };
}

/* Numbers of 64 bits are texts there: many readers have doubles. */
static void write_number(struct json_out *json, bool is_signed, uint64_t value)
{
	char text[32];
	int n = is_signed ? snprintf(text, sizeof(text), "\"%" PRIi64 "\"", (int64_t)value)
			  : snprintf(text, sizeof(text), "\"%" PRIu64 "\"", value);

	json_out_raw(json, str_n(text, (size_t)n));
}

static void write_double(struct json_out *json, uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	if (isfinite(value))
		json_out_number(json, value);
	else
		json_out_string(json, isnan(value) ? STR("NaN") : value > 0 ? STR("Infinity") : STR("-Infinity"));
}

static void write_enum(struct json_out *json, const struct proto_field *f, uint64_t value)
{
	for (uint64_t i = 0; f->values && f->values[i]; i++)
		if (i == value) {
			json_out_string(json, str_of(f->values[i]));
			return;
		}
	json_out_u64(json, value);
}

static void write_scalar(struct json_out *json, const struct proto_field *f, uint64_t value)
{
	if (f->kind == PROTO_BOOL)
		json_out_raw(json, value ? STR("true") : STR("false"));
	else if (f->kind == PROTO_DOUBLE)
		write_double(json, value);
	else if (f->kind == PROTO_ENUM)
		write_enum(json, f, value);
	else
		write_number(json, f->kind == PROTO_INT, value);
}

static int write_packed(struct proto_json *j, const struct proto_field *f)
{
	uint64_t value = f->kind == PROTO_DOUBLE ? cur_le64(&j->packed) : wire_varint(&j->packed);

	if (j->packed.bad)
		return -EBADMSG;
	write_scalar(&j->json, f, value);
	return 0;
}

static void close_array(struct proto_json *j, struct proto_level *level)
{
	if (level->open)
		json_out_end(&j->json, ']');
	level->open = NULL;
}

static void open_field(struct proto_json *j, struct proto_level *level, const struct proto_field *f)
{
	if (level->open == f)
		return;
	close_array(j, level);
	json_out_key(&j->json, str_of(f->json ? f->json : f->name));
	if (!f->repeated)
		return;
	json_out_begin(&j->json, '[');
	level->open = f;
}

static int write_field(struct proto_json *j, const struct proto_field *f, const struct wire_field *w)
{
	if (f->kind == PROTO_MESSAGE) {
		if (w->type != WIRE_BYTES || j->depth == PROTO_DEPTH_MAX)
			return -EBADMSG;
		j->levels[j->depth++] = (struct proto_level){ .m = f->message, .rest = w->bytes };
		json_out_begin(&j->json, '{');
		return 0;
	}
	if (f->kind == PROTO_TEXT) {
		if (w->type != WIRE_BYTES)
			return -EBADMSG;
		json_out_string(&j->json, wire_str(w));
		return 0;
	}
	if (w->type == WIRE_BYTES && f->repeated) {
		j->packed = w->bytes;
		return 0;
	}
	if (w->type != (f->kind == PROTO_DOUBLE ? WIRE_FIXED64 : WIRE_VARINT))
		return -EBADMSG;
	write_scalar(&j->json, f, w->value);
	return 0;
}

static int step(struct proto_json *j)
{
	struct proto_level *level = &j->levels[j->depth - 1];
	const struct proto_field *f;
	struct wire_field w;

	if (cur_left(&j->packed))
		return write_packed(j, level->open);
	if (!wire_next(&level->rest, &w)) {
		if (level->rest.bad)
			return -EBADMSG;
		close_array(j, level);
		json_out_end(&j->json, '}');
		j->depth--;
		return 0;
	}
	f = proto_field_of(level->m, w.number);
	if (!f)
		return 0;
	open_field(j, level, f);
	return write_field(j, f, &w);
}

int proto_json_next(struct proto_json *j, size_t size, struct buf *out)
{
	size_t from = out->len;
	int r = 0;

	j->json.out = out;
	if (!j->begun)
		json_out_begin(&j->json, '{');
	j->begun = true;
	while (r == 0 && j->depth && !out->error && out->len - from < size)
		r = step(j);
	return r ? r : out->error ? out->error : j->depth > 0;
}
