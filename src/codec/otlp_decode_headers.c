/* SPDX-License-Identifier: Apache-2.0 */
/* Resources, scopes, and what the profiles of an OTLP file say of themselves. */
#include "codec/otlp_in.h"

#define COMMENTS_MAX 65536
#define PROFILES_MAX 65536 /* profiles, resources and scopes of a file */

static int read_key_value(struct otlp_in *in, struct cur c, uint64_t at, struct attribute *out)
{
	struct wire_field f;
	int r = 0;

	*out = (struct attribute){ 0 };
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == KEY_VALUE_KEY && wire_fits(&c, &f, WIRE_BYTES))
			r = otlp_text(in, wire_str(&f), at, &out->key);
		else if (f.number == KEY_VALUE_VALUE && wire_fits(&c, &f, WIRE_BYTES))
			r = otlp_any(in, f.bytes, at, out);
		else if (f.number == KEY_VALUE_KEY_INDEX && wire_fits(&c, &f, WIRE_VARINT))
			r = otlp_string(in, f.value, at, &out->key);
	}
	return r == 0 && c.bad ? bad(in, at, "malformed attribute") : r;
}

static int resource_attribute(struct otlp_in *in, struct resource_in *resource, struct cur c, uint64_t at)
{
	struct attribute a;
	size_t before = in->label_count = 0;
	int r = read_key_value(in, c, at, &a);

	if (r < 0)
		return r;
	if (a.form == FORM_TEXT && a.key == in->host_key && !resource->host) {
		resource->host = a.text;
		return 0;
	}
	if (a.form == FORM_TEXT && a.key == in->service_key && !resource->service) {
		resource->service = a.text;
		return 0;
	}
	r = otlp_add_attribute(in, &a, resource->slots, false, at);
	if (r < 0 || in->label_count == before)
		return r;
	r = failed(in, at, array_grow(&resource->attributes, &resource->cap, resource->count, MODEL_LABELS_MAX));
	if (r == 0)
		resource->attributes[resource->count++] = a;
	return r;
}

static int read_resource(struct otlp_in *in, struct resource_in *resource, struct cur c, uint64_t at)
{
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == RESOURCE_ATTRIBUTES && wire_fits(&c, &f, WIRE_BYTES))
			r = resource_attribute(in, resource, f.bytes, position(in, &f.bytes));
		else if (f.number == RESOURCE_DROPPED && wire_fits(&c, &f, WIRE_VARINT))
			in->dropped += (uint32_t)f.value;
	}
	return r == 0 && c.bad ? bad(in, at, "malformed resource") : r;
}

static int set_label(struct otlp_in *in, const char *name, struct str text, uint64_t at)
{
	struct str clean = otlp_clean(text, &in->clean);

	if (in->clean.error)
		return failed(in, at, in->clean.error);
	return text.len ? failed(in, at, window_add_label(in->window, str_of(name), clean)) : 0;
}

static int scope_attribute(struct otlp_in *in, struct cur c, uint64_t at)
{
	struct attribute a;
	int r = read_key_value(in, c, at, &a);

	if (r < 0)
		return r;
	if (a.form == FORM_TEXT && str_eq(model_string(in->m, a.key), STR(OTLP_DEFAULT_TYPE)))
		in->m->default_type = in->m->default_type ? in->m->default_type : a.text;
	else
		in->lost_attributes++;
	return 0;
}

/* Whose file it is: that of the first scope. */
static int read_scope(struct otlp_in *in, struct cur c, uint64_t at)
{
	struct str name = STR(""), version = STR("");
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == SCOPE_NAME && wire_fits(&c, &f, WIRE_BYTES))
			name = wire_str(&f);
		else if (f.number == SCOPE_VERSION && wire_fits(&c, &f, WIRE_BYTES))
			version = wire_str(&f);
		else if (f.number == SCOPE_ATTRIBUTES && wire_fits(&c, &f, WIRE_BYTES))
			r = scope_attribute(in, f.bytes, position(in, &f.bytes));
	}
	if (r == 0 && c.bad)
		return bad(in, at, "malformed scope");
	if (r < 0 || in->scopes > 1)
		return r;
	in->is_ours = str_eq(name, STR(OTLP_SCOPE));
	if (in->is_ours)
		return 0;
	r = set_label(in, "otel.scope.name", name, at);
	return r ? r : set_label(in, "otel.scope.version", version, at);
}

static int read_value_type(struct otlp_in *in, struct cur c, uint64_t at, struct model_value_type *out)
{
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == VALUE_TYPE_TYPE && wire_fits(&c, &f, WIRE_VARINT))
			r = otlp_string(in, f.value, at, &out->type);
		else if (f.number == VALUE_TYPE_UNIT && wire_fits(&c, &f, WIRE_VARINT))
			r = otlp_string(in, f.value, at, &out->unit);
	}
	return r == 0 && c.bad ? bad(in, at, "malformed value type") : r;
}

static int add_comments(struct otlp_in *in, const struct attribute *a, uint64_t at)
{
	struct cur c = span_cur(in, a->list);
	struct attribute text;
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number != ARRAY_VALUES || !wire_fits(&c, &f, WIRE_BYTES))
			continue;
		r = otlp_any(in, f.bytes, at, &text);
		if (r == 0 && text.form != FORM_TEXT)
			in->lost_lists++;
		else if (r == 0 && in->m->comments_count == COMMENTS_MAX)
			r = failed(in, at, -E2BIG);
		else if (r == 0)
			r = failed(in, at, model_add_comment(in->m, model_string(in->m, text.text)));
	}
	return r == 0 && c.bad ? bad(in, at, "malformed comments") : r;
}

static int profile_attribute(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx)
{
	struct model *m = in->m;
	const struct attribute *a;
	int r = otlp_attribute(in, index, at, &a);
	struct str key;

	(void)ctx;
	if (r < 0 || !index)
		return r;
	key = model_string(m, a->key);
	if (str_eq(key, STR(OTLP_COMMENT)) && a->form == FORM_LIST) {
		if (in->comments_read[index])
			return 0;
		in->comments_read[index] = 1;
		return add_comments(in, a, at);
	}
	if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_DOC_URL)))
		m->doc_url = m->doc_url ? m->doc_url : a->text;
	else if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_DROP_FRAMES)))
		m->drop_frames = m->drop_frames ? m->drop_frames : a->text;
	else if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_KEEP_FRAMES)))
		m->keep_frames = m->keep_frames ? m->keep_frames : a->text;
	else
		in->lost_attributes++;
	return 0;
}

struct profile_ctx {
	struct profile_in row;
	struct model_value_type type, period_type;
	uint64_t time, duration;
	int64_t period;
};

/* What a field of another type than ours tells of the version. */
static int wrong_type(struct otlp_in *in, const struct wire_field *f, uint64_t at)
{
	if (f->number == PROFILE_SAMPLES)
		return otlp_other(in, at, "1.4.0 and older");
	if (f->number >= PROFILE_DROPPED)
		return otlp_other(in, at, "1.8.0 and older");
	return otlp_other(in, at, "1.7.0 and older");
}

static int profile_message(struct otlp_in *in, struct profile_ctx *p, struct wire_field *f, uint64_t at)
{
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		if (p->row.has_type)
			return otlp_other(in, at, "1.7.0 and older");
		p->row.has_type = true;
		return read_value_type(in, f->bytes, at, &p->type);
	case PROFILE_SAMPLES:
		p->row.has_samples = true;
		return 0;
	case PROFILE_PERIOD_TYPE:
		return read_value_type(in, f->bytes, at, &p->period_type);
	case PROFILE_PAYLOAD_FORMAT:
		in->payload_format = wire_str(f);
		return 0;
	case PROFILE_PAYLOAD:
		in->payload_bytes += cur_left(&f->bytes);
		in->done += cur_left(&f->bytes);
		return 0;
	default: /* an id is nothing of the profile itself */
		return 0;
	}
}

static int profile_field(struct otlp_in *in, struct profile_ctx *p, struct wire_field *f, uint64_t at)
{
	static const uint8_t types[] = { [PROFILE_SAMPLE_TYPE] = WIRE_BYTES,
					 [PROFILE_SAMPLES] = WIRE_BYTES,
					 [PROFILE_TIME] = WIRE_FIXED64,
					 [PROFILE_DURATION] = WIRE_VARINT,
					 [PROFILE_PERIOD_TYPE] = WIRE_BYTES,
					 [PROFILE_PERIOD] = WIRE_VARINT,
					 [PROFILE_ID] = WIRE_BYTES,
					 [PROFILE_DROPPED] = WIRE_VARINT,
					 [PROFILE_PAYLOAD_FORMAT] = WIRE_BYTES,
					 [PROFILE_PAYLOAD] = WIRE_BYTES };

	if (f->number == PROFILE_ATTRIBUTES)
		return otlp_indices(in, f, at, profile_attribute, NULL);
	if (f->number < PROFILE_SAMPLE_TYPE || f->number > PROFILE_PAYLOAD)
		return 0;
	if (f->type != types[f->number])
		return wrong_type(in, f, at);
	switch (f->number) {
	case PROFILE_TIME:
		p->time = f->value;
		return 0;
	case PROFILE_DURATION:
		p->duration = MIN(f->value, (uint64_t)INT64_MAX);
		return 0;
	case PROFILE_PERIOD:
		p->period = (int64_t)f->value;
		return 0;
	case PROFILE_DROPPED:
		in->dropped += (uint32_t)f->value;
		return 0;
	default:
		return profile_message(in, p, f, at);
	}
}

static int find_column(struct otlp_in *in, const struct model_value_type *type, uint64_t at, uint32_t *out)
{
	struct model *m = in->m;

	for (size_t i = 0; i < m->value_type_count; i++)
		if (m->value_types[i].type == type->type && m->value_types[i].unit == type->unit) {
			*out = (uint32_t)i;
			return 0;
		}
	if (m->value_type_count == MODEL_VALUE_TYPES_MAX) {
		codec_fail(in->error, at, false, "too many sample types");
		return -E2BIG;
	}
	*out = (uint32_t)m->value_type_count;
	m->value_types[m->value_type_count++] = *type;
	return 0;
}

/* The span of time that all profiles lie in. */
static void add_times(struct otlp_in *in, const struct profile_ctx *p)
{
	uint64_t end;

	in->duration_ns = MAX(in->duration_ns, p->duration);
	if (!p->time)
		return;
	if (__builtin_add_overflow(p->time, p->duration, &end))
		end = UINT64_MAX;
	in->start_ns = in->start_ns ? MIN(in->start_ns, p->time) : p->time;
	in->end_ns = MAX(in->end_ns, end);
}

static int read_profile(struct otlp_in *in, const struct wire_field *from)
{
	struct profile_ctx p = { .row = { .span = span_of(in, from), .scope = in->scopes } };
	struct cur c = from->bytes;
	uint64_t at = position(in, &c);
	struct wire_field f;
	int r = 0;

	p.row.resource = (uint32_t)in->resources_count - 1;
	while (r == 0 && wire_next(&c, &f)) {
		r = otlp_step(in);
		r = r ? r : profile_field(in, &p, &f, at);
	}
	if (r == 0 && c.bad)
		return bad(in, at, "malformed profile");
	if (r == 0 && (p.row.has_type || p.row.has_samples))
		r = find_column(in, &p.type, at, &p.row.column);
	r = r ? r : failed(in, at, array_grow(&in->profiles, &in->profiles_cap, in->profiles_count, PROFILES_MAX));
	if (r < 0)
		return r;
	in->profiles[in->profiles_count++] = p.row;
	add_times(in, &p);
	if (!in->m->period && !in->m->period_type.type && !in->m->period_type.unit) {
		in->m->period = p.period;
		in->m->period_type = p.period_type;
	}
	return 0;
}

static int read_scope_profiles(struct otlp_in *in, struct cur c, uint64_t at)
{
	struct wire_field f;
	int r = 0;

	if (in->scopes++ == PROFILES_MAX)
		return failed(in, at, -E2BIG);
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == SCOPE_PROFILES_SCOPE && wire_fits(&c, &f, WIRE_BYTES))
			r = read_scope(in, f.bytes, position(in, &f.bytes));
		else if (f.number == SCOPE_PROFILES_PROFILES && wire_fits(&c, &f, WIRE_BYTES))
			r = read_profile(in, &f);
	}
	return r == 0 && c.bad ? bad(in, at, "malformed scope of profiles") : r;
}

int otlp_read_resource_profiles(struct otlp_in *in, struct span span)
{
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r = failed(in, span.at, array_grow(&in->resources, &in->resources_cap, in->resources_count, PROFILES_MAX));

	if (r < 0)
		return r;
	in->resources[in->resources_count++] = (struct resource_in){ 0 };
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == RESOURCE_PROFILES_RESOURCE && wire_fits(&c, &f, WIRE_BYTES))
			r = read_resource(in, &in->resources[in->resources_count - 1], f.bytes, position(in, &f.bytes));
		else if (f.number == RESOURCE_PROFILES_SCOPES && wire_fits(&c, &f, WIRE_BYTES))
			r = read_scope_profiles(in, f.bytes, position(in, &f.bytes));
	}
	return r == 0 && c.bad ? bad(in, span.at, "malformed resource of profiles") : r;
}
