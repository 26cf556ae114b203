/* SPDX-License-Identifier: Apache-2.0 */
/* Writing OTLP profiles. Samples come first, because they number the rows of the dictionary in the order of their first
 * use. A file has one ResourceProfiles for each container and service, in it one scope, in that one Profile for each
 * value type: all with the same samples in the same order. */
#include "codec/otlp_out.h"
#include "codec/pprof.h"

static void otlp_out_release(struct otlp_out *o)
{
	struct buf *const bufs[] = { &o->combo_bytes, &o->any,     &o->row,   &o->parts,
				     &o->clean,       &o->profile, &o->scope, &o->resource };

	for (size_t i = 0; i < ARRAY_SIZE(o->tables); i++)
		intern_release(&o->tables[i]);
	free(o->strings);
	free(o->mappings);
	free(o->functions);
	free(o->locations);
	free(o->stacks);
	intern_release(&o->combo_keys);
	intern_release(&o->combo_contents);
	free(o->keys);
	free(o->next_of_resource);
	intern_release(&o->resource_keys);
	intern_release(&o->group_keys);
	free(o->combos);
	free(o->resources);
	free(o->groups);
	free(o->group_of_key);
	free(o->next_sample);
	for (size_t i = 0; i < ARRAY_SIZE(bufs); i++)
		buf_release(bufs[i]);
}

static int otlp_out_init(struct otlp_out *o)
{
	const struct model *m = o->m;
	struct buf *const bufs[] = { &o->combo_bytes, &o->any,     &o->row,   &o->parts,
				     &o->clean,       &o->profile, &o->scope, &o->resource };

	for (size_t i = 0; i < ARRAY_SIZE(o->tables); i++)
		intern_init(&o->tables[i], TABLE_MAX);
	intern_init(&o->combo_keys, TABLE_MAX);
	intern_init(&o->combo_contents, TABLE_MAX);
	intern_init(&o->resource_keys, TABLE_MAX);
	intern_init(&o->group_keys, TABLE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(bufs); i++)
		bufs[i]->max = TABLE_MAX;
	o->strings = calloc(intern_count(&m->strings), sizeof(*o->strings));
	o->mappings = calloc(m->mappings_count, sizeof(*o->mappings));
	o->functions = calloc(m->functions_count, sizeof(*o->functions));
	o->locations = calloc(m->locations_count, sizeof(*o->locations));
	o->stacks = calloc(m->stacks_count, sizeof(*o->stacks));
	o->next_sample = calloc(m->samples_count + 1, sizeof(*o->next_sample));
	o->next_of_resource = calloc(m->samples_count + 1, sizeof(*o->next_of_resource));
	return o->strings && o->mappings && o->functions && o->locations && o->stacks && o->next_sample &&
			       o->next_of_resource
		       ? 0
		       : -ENOMEM;
}

/* Two columns of one name are one type here: they are added up. */
static int find_columns(struct otlp_out *o)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->m->value_type_count; i++) {
		struct column column = { .index = i };
		size_t same = 0;

		r = otlp_string_index(o, o->m->value_types[i].type, &column.type);
		r = r ? r : otlp_string_index(o, o->m->value_types[i].unit, &column.unit);
		while (same < o->columns_count &&
		       (o->columns[same].type != column.type || o->columns[same].unit != column.unit))
			same++;
		if (r == 0 && same == o->columns_count)
			o->columns[o->columns_count++] = column;
	}
	return r;
}

static bool is_column(const struct otlp_out *o, size_t index, const struct column *column)
{
	const struct model_value_type *type = &o->m->value_types[index];

	return o->strings[type->type] == column->type + 1 && o->strings[type->unit] == column->unit + 1;
}

static int64_t value_of(const struct otlp_out *o, const struct column *column, uint32_t sample)
{
	const int64_t *values = model_values(o->m, &o->m->samples[sample]);
	int64_t sum = values[column->index];

	if (o->columns_count < o->m->value_type_count)
		for (size_t i = column->index + 1; i < o->m->value_type_count; i++)
			if (is_column(o, i, column))
				sum = saturating_add(sum, values[i]);
	return sum;
}

/* Messages */

static int add_sample(struct otlp_out *o, const struct column *column, const struct group *group)
{
	const struct combo *combo = &o->combos[group->combo];
	bool has_time = o->m->samples[group->first].time_offset_ns != MODEL_NO_TIME;
	uint32_t stack;
	int r = otlp_stack_index(o, group->stack, &stack);

	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_number(&o->row, SAMPLE_STACK, stack);
	if (combo->attributes_size)
		wire_add_bytes(&o->row, SAMPLE_ATTRIBUTES,
			       str_n(o->combo_bytes.ptr + combo->attributes, combo->attributes_size));
	wire_add_number(&o->row, SAMPLE_LINK, combo->link);
	buf_clear(&o->parts);
	for (uint32_t i = group->first + 1; i; i = o->next_sample[i - 1])
		wire_add_varint(&o->parts, (uint64_t)value_of(o, column, i - 1));
	wire_add_bytes(&o->row, SAMPLE_VALUES, buf_str(&o->parts));
	buf_clear(&o->parts);
	for (uint32_t i = group->first + 1; i && has_time; i = o->next_sample[i - 1])
		wire_add_fixed64(&o->parts,
				 o->w->start_ns + o->m->samples[i - 1].time_offset_ns); /* may wrap: and back */
	if (has_time)
		wire_add_bytes(&o->row, SAMPLE_TIMES, buf_str(&o->parts));
	wire_add_bytes(&o->profile, PROFILE_SAMPLES, buf_str(&o->row));
	return o->row.error | o->parts.error ? -ENOMEM : o->profile.error;
}

static void add_value_type(struct buf *out, uint32_t field, uint32_t type, uint32_t unit)
{
	wire_add_tag(out, field, WIRE_BYTES);
	wire_add_varint(out, wire_number_size(VALUE_TYPE_TYPE, type) + wire_number_size(VALUE_TYPE_UNIT, unit));
	wire_add_number(out, VALUE_TYPE_TYPE, type);
	wire_add_number(out, VALUE_TYPE_UNIT, unit);
}

static int add_comment(void *ctx, struct str text)
{
	struct otlp_out *o = ctx;

	buf_clear(&o->any);
	wire_add_bytes(&o->any, ANY_STRING, otlp_out_clean(o, text));
	wire_add_bytes(&o->parts, ARRAY_VALUES, buf_str(&o->any));
	return o->clean.error | o->any.error ? -ENOMEM : o->parts.error;
}

/* The window's facts and the profile's comments, as pprof has them. */
static int add_comments(struct otlp_out *o, struct buf *to)
{
	int r;

	buf_clear(&o->parts);
	r = pprof_comments_each(o->w, add_comment, o);
	for (size_t i = 0; r == 0 && i < o->m->comments_count; i++)
		r = add_comment(o, model_string(o->m, o->m->comments[i]));
	if (r < 0 || !o->parts.len)
		return r;
	buf_clear(&o->any);
	wire_add_bytes(&o->any, ANY_ARRAY, buf_str(&o->parts));
	return otlp_add_named(o, STR(OTLP_COMMENT), to);
}

static int add_profile_attributes(struct otlp_out *o, struct buf *to)
{
	const struct model *m = o->m;
	const struct {
		struct str name;
		uint32_t text;
	} texts[] = { { STR(OTLP_DOC_URL), m->doc_url },
		      { STR(OTLP_DROP_FRAMES), m->drop_frames },
		      { STR(OTLP_KEEP_FRAMES), m->keep_frames } };
	int r = add_comments(o, to);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		if (texts[i].text)
			r = otlp_add_text(o, texts[i].name, model_string(m, texts[i].text), to);
	return r;
}

/* @column: NULL when the profile has no values at all. The first profile of the file says what is true of all. */
static int add_profile(struct otlp_out *o, const struct column *column, const struct resource *resource, bool is_first)
{
	const struct model *m = o->m;
	scoped(buf_release) struct buf attributes = BUF_INIT(TABLE_MAX);
	uint64_t start = m->time_ns ? (uint64_t)m->time_ns : o->w->start_ns;
	uint32_t type = 0, unit = 0;
	int r = 0;

	buf_clear(&o->profile);
	if (column)
		add_value_type(&o->profile, PROFILE_SAMPLE_TYPE, column->type, column->unit);
	for (uint32_t i = resource->first; r == 0 && column && i; i = o->groups[i - 1].next)
		r = add_sample(o, column, &o->groups[i - 1]);
	r = r ? r : otlp_string_index(o, m->period_type.type, &type);
	r = r ? r : otlp_string_index(o, m->period_type.unit, &unit);
	if (r == 0 && is_first)
		r = add_profile_attributes(o, &attributes);
	if (r < 0)
		return r;
	if (start) {
		wire_add_tag(&o->profile, PROFILE_TIME, WIRE_FIXED64);
		wire_add_fixed64(&o->profile, start);
	}
	wire_add_number(&o->profile, PROFILE_DURATION, window_duration_ns(o->w));
	if (type || unit)
		add_value_type(&o->profile, PROFILE_PERIOD_TYPE, type, unit);
	wire_add_number(&o->profile, PROFILE_PERIOD, (uint64_t)m->period);
	if (attributes.len)
		wire_add_bytes(&o->profile, PROFILE_ATTRIBUTES, buf_str(&attributes));
	wire_add_bytes(&o->scope, SCOPE_PROFILES_PROFILES, buf_str(&o->profile));
	return o->profile.error ? o->profile.error : o->scope.error;
}

/* KeyValue of a resource or a scope: its texts stand in it. */
static void add_key_value(struct otlp_out *o, uint32_t field, struct str key, struct str text, struct buf *to)
{
	if (!text.len)
		return;
	otlp_any_text(o, text);
	buf_clear(&o->row);
	wire_add_bytes(&o->row, KEY_VALUE_KEY, key);
	wire_add_bytes(&o->row, KEY_VALUE_VALUE, buf_str(&o->any));
	wire_add_bytes(to, field, buf_str(&o->row));
	if (o->any.error | o->row.error)
		to->error = -ENOMEM;
}

static void add_scope(struct otlp_out *o)
{
	buf_clear(&o->parts);
	wire_add_bytes(&o->parts, SCOPE_NAME, STR(OTLP_SCOPE));
	if (o->w->agent_version && *o->w->agent_version)
		wire_add_bytes(&o->parts, SCOPE_VERSION, otlp_out_clean(o, str_of(o->w->agent_version)));
	add_key_value(o, SCOPE_ATTRIBUTES, STR(OTLP_DEFAULT_TYPE), model_string(o->m, o->m->default_type), &o->parts);
	wire_add_bytes(&o->scope, SCOPE_PROFILES_SCOPE, buf_str(&o->parts));
	if (o->parts.error | o->clean.error)
		o->scope.error = -ENOMEM;
}

static bool is_container_id(struct str text)
{
	return otlp_is_hex(text, 32) || otlp_is_hex(text, 6);
}

static void add_resource(struct otlp_out *o, const struct resource *resource)
{
	struct str key = is_container_id(resource->container) ? otlp_slot_name(OTLP_CONTAINER_ID)
							      : otlp_slot_name(OTLP_CONTAINER_NAME);

	buf_clear(&o->parts);
	add_key_value(o, RESOURCE_ATTRIBUTES, STR(OTLP_HOST), str_of(o->w->host), &o->parts);
	add_key_value(o, RESOURCE_ATTRIBUTES, STR(OTLP_SERVICE), resource->service, &o->parts);
	add_key_value(o, RESOURCE_ATTRIBUTES, key, resource->container, &o->parts);
	wire_add_bytes(&o->resource, RESOURCE_PROFILES_RESOURCE, buf_str(&o->parts));
	if (o->parts.error)
		o->resource.error = o->parts.error;
}

static int add_resource_profiles(struct otlp_out *o, const struct resource *resource, struct buf *out)
{
	bool is_first = resource == o->resources;
	int r = 0;

	buf_clear(&o->scope);
	buf_clear(&o->resource);
	add_scope(o);
	if (!o->columns_count)
		r = add_profile(o, NULL, resource, is_first);
	for (size_t i = 0; r == 0 && i < o->columns_count; i++)
		r = add_profile(o, &o->columns[i], resource, is_first && i == 0);
	if (r < 0)
		return r;
	add_resource(o, resource);
	wire_add_bytes(&o->resource, RESOURCE_PROFILES_SCOPES, buf_str(&o->scope));
	wire_add_bytes(out, DATA_RESOURCE_PROFILES, buf_str(&o->resource));
	return o->resource.error ? o->resource.error : o->scope.error ? o->scope.error : out->error;
}

/* Row 0 of links has its ids in full: codecs may want that many bytes (profiles.proto, link_table). */
static void add_no_link(struct buf *to)
{
	static const char zeros[OTLP_TRACE_SIZE];

	wire_add_tag(to, TABLE_LINK, WIRE_BYTES);
	wire_add_varint(to, 2 + OTLP_TRACE_SIZE + 2 + OTLP_SPAN_SIZE);
	wire_add_bytes(to, LINK_TRACE, str_n(zeros, OTLP_TRACE_SIZE));
	wire_add_bytes(to, LINK_SPAN, str_n(zeros, OTLP_SPAN_SIZE));
}

static int add_dictionary(struct otlp_out *o, struct buf *out)
{
	buf_clear(&o->resource);
	for (uint32_t table = TABLE_MAPPING; table < TABLE_COUNT; table++) {
		size_t count = intern_count(&o->tables[table]);

		for (uint32_t i = 0; i < count; i++) {
			if (table == TABLE_LINK && !i)
				add_no_link(&o->resource);
			else
				wire_add_bytes(&o->resource, table, intern_get(&o->tables[table], i));
		}
	}
	wire_add_bytes(out, DATA_DICTIONARY, buf_str(&o->resource));
	return o->resource.error ? o->resource.error : out->error;
}

static void say_what_is_lost(const struct otlp_out *o, const struct codec_options *options)
{
	size_t processes = 0;

	for (size_t i = 1; i < o->m->processes_count; i++)
		processes += o->m->processes[i].app_metadata != 0;
	if (o->cleaned)
		codec_lose(options->lost, "%llu texts are not UTF-8 and have U+FFFD in place of the bytes that are not",
			   (unsigned long long)o->cleaned);
	if (o->columns_count < o->m->value_type_count)
		codec_lose(options->lost, "%zu columns have the name of another and are added to it",
			   o->m->value_type_count - o->columns_count);
	if (processes || o->w->metadata_json)
		codec_lose(options->lost, "the metadata of %zu applications%s is left out", processes,
			   o->w->metadata_json ? " and of the host" : "");
}

int otlp_encode(const struct window *w, const struct codec_options *options, struct buf *out)
{
	scoped(otlp_out_release) struct otlp_out o = { .w = w, .m = w->model };
	int r = otlp_out_init(&o);

	r = r ? r : find_columns(&o);
	r = r ? r : otlp_group_samples(&o);
	for (size_t i = 0; r == 0 && i < o.resources_count; i++)
		r = add_resource_profiles(&o, &o.resources[i], out);
	r = r ? r : add_dictionary(&o, out);
	if (r == 0)
		say_what_is_lost(&o, options);
	return r;
}
