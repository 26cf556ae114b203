/* SPDX-License-Identifier: Apache-2.0 */
/* Reading OTLP profiles. The dictionary stands behind the profiles, so the first pass finds its rows and the headers of
 * all profiles, then its rows become those of the model, and the last pass reads samples. Nothing is allocated from a
 * number that the file only claims. */
#include "base/limit.h"
#include "codec/otlp_in.h"
#include "codec/pprof.h"

#define OTLP_EXPANDED_MAX GIB(1)

int otlp_other(const struct otlp_in *in, uint64_t at, const char *version)
{
	codec_fail(in->error, at, false, "messages of opentelemetry-proto %s are not read, only those of " OTLP_VERSION,
		   version);
	return -ENOTSUP;
}

/* Limits */

static void otlp_in_release(struct otlp_in *in)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		free(in->tables[i].items);
	free(in->resource_profiles.items);
	free(in->strings);
	free(in->attributes);
	free(in->mappings);
	free(in->locations);
	free(in->functions);
	free(in->stacks);
	free(in->links);
	free(in->comments_read);
	for (size_t i = 0; i < in->resources_count; i++)
		free(in->resources[i].attributes);
	free(in->resources);
	free(in->profiles);
	free(in->lines);
	free(in->frames);
	free(in->nodes);
	free(in->labels);
	free(in->times);
	free(in->values);
	buf_release(&in->text);
	buf_release(&in->clean);
}

static size_t rows_memory(const struct otlp_in *in)
{
	const struct span_list *t = in->tables;

	return (in->strings ? t[TABLE_STRING].count * sizeof(*in->strings) : 0) +
	       (in->attributes ? t[TABLE_ATTRIBUTE].count * (sizeof(*in->attributes) + 1) : 0) +
	       (in->stacks
			? t[TABLE_MAPPING].count * sizeof(*in->mappings) +
				  t[TABLE_LOCATION].count * sizeof(*in->locations) +
				  t[TABLE_FUNCTION].count * sizeof(*in->functions) +
				  t[TABLE_STACK].count * sizeof(*in->stacks) + t[TABLE_LINK].count * sizeof(*in->links)
			: 0);
}

static size_t scratch_memory(const struct otlp_in *in)
{
	size_t spans = in->resource_profiles.cap;

	for (size_t i = 0; i < TABLE_COUNT; i++)
		spans += in->tables[i].cap;
	return spans * sizeof(struct span) + rows_memory(in) + in->lines_cap * sizeof(*in->lines) +
	       (in->frames_cap + in->nodes_cap) * sizeof(*in->frames) +
	       (in->times_cap + in->values_cap) * sizeof(*in->times) + in->profiles_cap * sizeof(*in->profiles) +
	       in->resources_cap * sizeof(*in->resources);
}

int otlp_limits_look(struct otlp_in *in)
{
	if (codec_stopped(in->limits, in->done))
		return -ECANCELED;
	if (in->limits->memory_max && scratch_memory(in) > in->limits->memory_max / 2) {
		codec_fail(in->error, 0, false, "too many or too long entries");
		return -E2BIG;
	}
	return 0;
}

/* First pass */

static int span_add(struct otlp_in *in, struct span_list *list, const struct wire_field *f)
{
	int r = array_grow(&list->items, &list->cap, list->count, ROWS_MAX);

	if (r < 0)
		return failed(in, position(in, &f->bytes), r);
	list->items[list->count++] = span_of(in, f);
	return otlp_step(in);
}

static int scan_dictionary(struct otlp_in *in, struct cur c, uint64_t at)
{
	struct wire_field f;
	int r = 0;

	in->has_dictionary = true;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number < TABLE_MAPPING || f.number >= TABLE_COUNT || !wire_fits(&c, &f, WIRE_BYTES))
			continue;
		if (f.number == TABLE_STRING)
			in->done += cur_left(&f.bytes);
		r = span_add(in, &in->tables[f.number], &f);
	}
	return r == 0 && c.bad ? bad(in, at, "malformed dictionary") : r;
}

static int scan(struct otlp_in *in)
{
	struct cur c = cur_of(in->bytes.ptr, in->bytes.len);
	struct wire_field f;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == DATA_RESOURCE_PROFILES && wire_fits(&c, &f, WIRE_BYTES))
			r = span_add(in, &in->resource_profiles, &f);
		else if (f.number == DATA_DICTIONARY && wire_fits(&c, &f, WIRE_BYTES))
			r = scan_dictionary(in, f.bytes, position(in, &f.bytes));
		if (!c.bad)
			at = position(in, &c);
	}
	return r == 0 && c.bad ? bad(in, at, "malformed or cut off protobuf field") : r;
}

/* What resources say, beside what the comments of our own files say. */

static int set_host(struct otlp_in *in)
{
	struct str own = str_of(in->window->host);
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->resources_count; i++) {
		struct resource_in *resource = &in->resources[i];
		struct str host = model_string(in->m, resource->host);

		if (host.len && !in->window->host) {
			r = failed(in, 0, window_set_text(&in->window->host, host));
			own = str_of(in->window->host);
		}
		if (r < 0 || !host.len || str_eq(host, own) || memchr(host.ptr, 0, host.len))
			continue;
		r = failed(in, 0, array_grow(&resource->attributes, &resource->cap, resource->count, MODEL_LABELS_MAX));
		if (r == 0)
			resource->attributes[resource->count++] =
				(struct attribute){ .key = in->host_key, .text = resource->host, .form = FORM_TEXT };
	}
	return r;
}

static int set_service(struct otlp_in *in)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !in->is_ours && i < in->resources_count; i++)
		if (in->resources[i].service && !window_label(in->window, STR("service")).len)
			r = failed(in, 0,
				   window_add_label(in->window, STR("service"),
						    model_string(in->m, in->resources[i].service)));
	return r ? r
		 : failed(in, 0, model_add_string(in->m, window_label(in->window, STR("service")), &in->service_label));
}

static int prepare_keys(struct otlp_in *in)
{
	const struct {
		uint32_t *id;
		const char *name;
	} keys[] = { { &in->trace_key, OTLP_TRACE_ID },
		     { &in->span_key, OTLP_SPAN_ID },
		     { &in->service_key, OTLP_SERVICE },
		     { &in->host_key, OTLP_HOST } };
	int r = 0;

	in->labels = calloc(MODEL_LABELS_MAX, sizeof(*in->labels));
	if (!in->labels)
		return failed(in, 0, -ENOMEM);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
		r = failed(in, 0, model_add_string(in->m, str_of(keys[i].name), keys[i].id));
	for (int i = 0; r == 0 && i < OTLP_SLOT_COUNT; i++)
		r = failed(in, 0, model_add_string(in->m, otlp_slot_name((enum otlp_slot)i), &in->slot_keys[i]));
	return r;
}

static void set_times(struct otlp_in *in)
{
	struct window *w = in->window;
	uint64_t duration = MAX(in->duration_ns, in->start_ns ? in->end_ns - in->start_ns : 0);

	duration = MIN(duration, (uint64_t)INT64_MAX);
	in->m->time_ns = (int64_t)in->start_ns;
	in->m->duration_ns = (int64_t)duration;
	if (in->m->time_ns <= 0)
		return;
	w->start_ns = in->start_ns;
	w->end_ns = in->start_ns + duration; /* two of 63 bits: fits */
}

static int check_dictionary(const struct otlp_in *in)
{
	for (size_t i = 0; i < in->profiles_count; i++)
		if (in->profiles[i].has_samples && !in->has_dictionary)
			return otlp_other(in, in->profiles[i].span.at, "1.6.0 and older (no dictionary)");
	return 0;
}

static int read_data(struct otlp_in *in)
{
	int r = prepare_keys(in);

	r = r ? r : scan(in);
	r = r ? r : otlp_read_attributes(in);
	for (size_t i = 0; r == 0 && i < in->resource_profiles.count; i++)
		r = otlp_read_resource_profiles(in, in->resource_profiles.items[i]);
	r = r ? r : check_dictionary(in);
	if (r < 0)
		return r;
	set_times(in);
	r = failed(in, 0, pprof_comments_lift(in->window));
	r = r ? r : set_host(in);
	r = r ? r : set_service(in);
	r = r ? r : otlp_read_tables(in);
	return r ? r : otlp_read_samples(in);
}

static void say_what_is_lost(const struct otlp_in *in)
{
	struct codec_lost *lost = in->error ? &in->error->lost : NULL;

	if (in->payload_bytes)
		codec_lose(lost, "the original payload (" STR_FMT ", %llu bytes) is not read",
			   STR_ARG(str_first(in->payload_format, 20)), (unsigned long long)in->payload_bytes);
	if (in->lost_lists)
		codec_lose(lost, "%llu attributes with lists or without a value are left out",
			   (unsigned long long)in->lost_lists);
	if (in->lost_attributes)
		codec_lose(lost, "%llu attributes of mappings, locations, profiles and scopes are left out",
			   (unsigned long long)in->lost_attributes);
	if (in->unknown_types)
		codec_lose(lost, "%llu locations are of an unknown frame type", (unsigned long long)in->unknown_types);
	if (in->lost_times)
		codec_lose(lost, "%llu timestamps before the profile's start are left out",
			   (unsigned long long)in->lost_times);
	if (in->cleaned)
		codec_lose(lost, "%llu texts are not UTF-8", (unsigned long long)in->cleaned);
	if (in->dropped)
		codec_lose(lost, "%llu attributes were dropped by its writer", (unsigned long long)in->dropped);
}

static int decode_plain(struct str bytes, const struct codec_limits *limits, struct window *out,
			struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(otlp_in_release) struct otlp_in in = {
		.bytes = bytes, .limits = limits, .error = error, .text = BUF_INIT(GIB(2)), .clean = BUF_INIT(GIB(4))
	};
	int r;

	if (!bytes.len)
		return bad(&in, 0, "empty input file");
	r = window_init(&w, limit_of_sizes(bytes.len, 4, KIB(64))); /* hexadecimal digits, U+FFFD for a byte */
	if (r < 0)
		return failed(&in, 0, r);
	in.window = &w;
	in.m = w.model;
	in.m->memory_max = limits->memory_max;
	r = read_data(&in);
	if (r < 0)
		return r;
	say_what_is_lost(&in);
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int decode_limited(struct str bytes, const struct codec_limits *limits, struct window *out,
			  struct codec_error *error)
{
	scoped(buf_release) struct buf room;
	struct str plain;
	int r = codec_unpack(bytes, limits, OTLP_EXPANDED_MAX, &room, &plain, error);

	return r ? r : decode_plain(plain, limits, out, error);
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return otlp_encode(w, &usual, out);
}

/* Resources and a dictionary are all that a file has. pprof's field 1 begins with a number, these with a message: the
 * resource, a scope, or one of the tables. */
static int sniff(struct str bytes)
{
	struct cur c = cur_of(bytes.ptr, bytes.len);
	struct wire_field f;
	int fields = 0;

	while (fields < 16 && wire_next(&c, &f)) {
		bool is_data = f.number == DATA_RESOURCE_PROFILES || f.number == DATA_DICTIONARY;
		struct cur inner = f.bytes;
		struct wire_field first;

		if (!is_data || f.type != WIRE_BYTES)
			return 0;
		if (cur_left(&inner) && (!wire_next(&inner, &first) || first.type != WIRE_BYTES || !first.number ||
					 first.number >= TABLE_COUNT))
			return 0;
		fields++;
	}
	return fields > 0 && !c.bad;
}

static const char *const suffixes[] = { ".otlp", ".otlp.pb", ".otlp.gz", ".otlp.pb.gz", NULL };

const struct codec codec_otlp = {
	.name = "otlp",
	.suffixes = suffixes,
	.help = "OTLP profiles of OpenTelemetry, opentelemetry-proto " OTLP_VERSION,
	.has_labels = true,
	.encode = encode,
	.encode_as = otlp_encode,
	.sniff = sniff,
	.decode = decode,
	.decode_limited = decode_limited,
};
