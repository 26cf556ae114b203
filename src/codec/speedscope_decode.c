/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope's JSON to a model. The text is scanned where it lies, no tree of JSON values is built. */
#include "base/array.h"
#include "base/limit.h"
#include "codec/json.h"
#include "codec/speedscope.h"
#include "codec/speedscope_int.h"

#define BOM "\xef\xbb\xbf"
#define TEXT_MAX GIB(4)

enum quantity { QUANTITY_COUNT, QUANTITY_TIME, QUANTITY_BYTES, QUANTITIES };

static const struct unit {
	struct str name;
	enum quantity quantity;
	int to_ns; /* power of ten */
} units[] = {
	{ { "none", 4 }, QUANTITY_COUNT, 0 },         { { "nanoseconds", 11 }, QUANTITY_TIME, 0 },
	{ { "microseconds", 12 }, QUANTITY_TIME, 3 }, { { "milliseconds", 12 }, QUANTITY_TIME, 6 },
	{ { "seconds", 7 }, QUANTITY_TIME, 9 },       { { "bytes", 5 }, QUANTITY_BYTES, 0 },
};

static void in_release(struct speedscope_in *in)
{
	free(in->frames);
	free(in->path);
	free(in->nodes);
	buf_release(&in->text);
}

/* In a file of ours with times, sample @index of every profile is the same one. Return: whether it was there. */
static bool add_to_row(struct speedscope_in *in, size_t index, const struct model_sample *sample, __int128 value)
{
	const struct model_sample *row;

	if (sample->time_offset_ns == MODEL_NO_TIME || !in->column || index >= in->m->samples_count)
		return false;
	row = &in->m->samples[index];
	if (row->stack != sample->stack || row->process != sample->process ||
	    row->time_offset_ns != sample->time_offset_ns || row->end != sample->end)
		return false;
	in->m->values[row->first_value + in->column] =
		saturating_add(in->m->values[row->first_value + in->column], speedscope_settle(in, value));
	return true;
}

static int read_sample(struct speedscope_in *in, size_t index, struct str stack, struct str weight, struct str time)
{
	struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
	uint64_t time_ns;
	__int128 value;
	size_t owners;
	int r = speedscope_path(in, stack);

	if (r < 0)
		return r;
	if (!speedscope_number(weight, in->to_ns, &value))
		return speedscope_bad(in, weight, "a weight is no number");
	if (in->is_ours && time.len && str_to_u64(time, 0, MODEL_NO_TIME - 1, &time_ns) == 0)
		sample.time_offset_ns = time_ns;
	r = speedscope_owner(in, &sample.process, &owners);
	r = r ? r : speedscope_stack(in, owners, &sample);
	if (r < 0 || add_to_row(in, index, &sample, value))
		return r;
	return speedscope_sample(in, &sample, value);
}

static int read_sampled(struct speedscope_in *in, const struct speedscope_profile *p)
{
	struct str samples = p->samples, weights = p->weights, times = p->times, key, stack, weight, time = STR("");
	int r = 0;

	for (size_t i = 0; r == 0; i++) {
		int has_stack = json_member(&samples, &key, &stack), has_weight = json_member(&weights, &key, &weight);

		if (has_stack != has_weight)
			return speedscope_bad(in, has_stack ? stack : weight,
					      "there are more samples than weights, or fewer");
		if (!has_stack)
			break;
		if (times.len && !json_member(&times, &key, &time))
			time = STR("");
		r = read_sample(in, i, stack, weight, time);
		r = r ? r : speedscope_limits(in, stack);
	}
	return r;
}

/* Profiles */

static struct speedscope_profile read_profile(struct str json)
{
	static const struct str keys[] = { { "type", 4 },      { "name", 4 },        { "unit", 4 },
					   { "valueUnit", 9 }, { "startValue", 10 }, { "endValue", 8 },
					   { "samples", 7 },   { "weights", 7 },     { "times", 5 },
					   { "events", 6 } };
	struct str v[ARRAY_SIZE(keys)] = { { 0 } };

	speedscope_members(json, keys, v, ARRAY_SIZE(keys));
	return (struct speedscope_profile){ v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9] };
}

static const struct unit *unit_of(const struct speedscope_profile *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (str_eq(units[i].name, speedscope_key(p->unit)))
			return &units[i];
	return &units[0];
}

/* What the profiles of a file are: the columns of one profile, or threads. */
struct plan {
	size_t count, of_quantity[QUANTITIES];
	bool by_name; /* each is a column of its own, called as the profile */
	size_t column[QUANTITIES];
};

static int add_type(struct speedscope_in *in, struct str type, struct str unit)
{
	if (in->m->value_type_count == MODEL_VALUE_TYPES_MAX) {
		codec_fail(in->error, 0, false, "more than %d profiles with values of their own",
			   MODEL_VALUE_TYPES_MAX);
		return -E2BIG;
	}
	return model_add_value_type(in->m, type, unit);
}

static const struct {
	struct str type, unit;
} usual[QUANTITIES] = {
	[QUANTITY_COUNT] = { { "samples", 7 }, { "count", 5 } },
	[QUANTITY_TIME] = { { "time", 4 }, { "nanoseconds", 11 } },
	[QUANTITY_BYTES] = { { "space", 5 }, { "bytes", 5 } },
};

/* A unit of ours that speedscope does not know stands beside "none". Those it knows stay as they are: our values are
 * whole. Times of others become nanoseconds, so that files can be merged. */
static int add_named_type(struct speedscope_in *in, const struct speedscope_profile *p)
{
	scoped(buf_release) struct buf type = BUF_INIT(TEXT_MAX), unit = BUF_INIT(TEXT_MAX);
	const struct unit *known = unit_of(p);
	int r = json_text(p->name, &type);

	if (r == -EBADMSG) /* it has no name */
		buf_clear(&type);
	if (in->is_ours && p->value_unit.len)
		r = json_text(p->value_unit, &unit);
	else
		buf_adds(&unit,
			 in->is_ours && known->quantity == QUANTITY_TIME ? known->name : usual[known->quantity].unit);
	if (type.error || unit.error)
		return -ENOMEM;
	return add_type(in, codec_text(in->limits, buf_str(&type)), codec_text(in->limits, buf_str(&unit)));
}

static int make_plan(struct speedscope_in *in, struct str profiles, struct plan *plan)
{
	struct str list = profiles, key, json;
	int r = 0;

	while (json_member(&list, &key, &json)) {
		struct speedscope_profile p = read_profile(json);

		plan->of_quantity[unit_of(&p)->quantity]++;
		plan->count++;
	}
	plan->by_name = in->is_ours || plan->count > 1;
	for (size_t i = 0; i < QUANTITIES; i++)
		plan->by_name &= in->is_ours || plan->of_quantity[i] <= 1;
	for (size_t i = 0; r == 0 && !plan->by_name && i < QUANTITIES; i++) {
		plan->column[i] = in->m->value_type_count;
		if (plan->of_quantity[i])
			r = add_type(in, usual[i].type, usual[i].unit);
	}
	for (list = profiles; r == 0 && plan->by_name && json_member(&list, &key, &json);) {
		struct speedscope_profile p = read_profile(json);

		r = add_named_type(in, &p);
	}
	return r;
}

static int add_thread(struct speedscope_in *in, struct str name)
{
	struct model_thread row = { 0 };
	int r = speedscope_text(in, name, &row.name);

	in->thread = 0;
	return r || !row.name ? r : model_add_thread(in->m, &row, &in->thread);
}

static int read_one(struct speedscope_in *in, const struct plan *plan, size_t index, struct str json)
{
	const struct speedscope_profile p = read_profile(json);
	const struct unit *unit = unit_of(&p);
	int r = 0;

	in->column = plan->by_name ? index : plan->column[unit->quantity];
	in->to_ns = in->is_ours ? 0 : unit->to_ns;
	in->has_clock = !in->is_ours && unit->quantity == QUANTITY_TIME;
	in->passed = 0;
	if (!plan->by_name && plan->count > 1)
		r = add_thread(in, p.name);
	if (r < 0)
		return r;
	if (str_eq(p.type, STR("\"sampled\"")))
		return read_sampled(in, &p);
	if (str_eq(p.type, STR("\"evented\"")))
		return speedscope_events(in, &p);
	return speedscope_bad(in, json, "a profile is neither sampled nor evented");
}

/* The column that is shown first. */
static void set_default(struct speedscope_in *in, const struct plan *plan, struct str active)
{
	int64_t index = speedscope_line(active);

	if (plan->by_name && in->m->value_type_count > 1 && (uint64_t)index < in->m->value_type_count)
		in->m->default_type = in->m->value_types[index].type;
}

static int read_profiles(struct speedscope_in *in, struct str profiles, struct str active)
{
	struct plan plan = { 0 };
	struct str key, json;
	int r = make_plan(in, profiles, &plan);

	for (size_t i = 0; r == 0 && json_member(&profiles, &key, &json); i++)
		r = read_one(in, &plan, i, json);
	if (r < 0)
		return r;
	set_default(in, &plan, active);
	for (size_t i = 0; i < in->m->samples_count; i++)
		if (in->m->samples[i].time_offset_ns != MODEL_NO_TIME)
			return 0;
	return model_coalesce(in->m); /* a stack has its values in each of the profiles */
}

/* The file */

struct file {
	struct str shared, profiles, name, active, exporter;
};

static int read_file(struct speedscope_in *in, struct str bytes, struct file *out)
{
	static const struct str keys[] = {
		{ "shared", 6 }, { "profiles", 8 }, { "name", 4 }, { "activeProfileIndex", 18 }, { "exporter", 8 }
	};
	struct str v[ARRAY_SIZE(keys)] = { { 0 } }, rest = bytes, json;

	if (json_value(&rest, &json) < 0)
		return speedscope_bad(in, str_skip(bytes, json_fault(bytes)),
				      "the JSON text is malformed or ends here");
	if (str_trim(rest).len)
		return speedscope_bad(in, rest, "something follows the JSON text");
	speedscope_members(json, keys, v, ARRAY_SIZE(keys));
	if (!str_starts(v[0], STR("{")) || !str_starts(v[1], STR("[")))
		return speedscope_bad(in, json, "it lacks the objects \"shared\" and \"profiles\"");
	*out = (struct file){ v[0], v[1], v[2], v[3], v[4] };
	return 0;
}

static int set_title(struct speedscope_in *in, struct str name, struct window *w)
{
	uint32_t title = 0;
	int r = speedscope_text(in, name, &title);

	return r || !title ? r : window_set_text(&w->command, model_string(in->m, title));
}

static int read_all(struct speedscope_in *in, struct str bytes, struct window *w)
{
	static const struct str keys[] = { { "frames", 6 } };
	struct str frames = { 0 };
	struct file file;
	int r = read_file(in, bytes, &file);

	if (r < 0)
		return r;
	speedscope_members(file.shared, keys, &frames, 1);
	if (!str_starts(frames, STR("[")))
		return speedscope_bad(in, file.shared, "it has no list of frames");
	in->is_ours = str_eq(file.exporter, STR("\"hearth\"")) || str_starts(file.exporter, STR("\"hearth@"));
	r = speedscope_frames(in, frames);
	r = r ? r : read_profiles(in, file.profiles, file.active);
	return r ? r : set_title(in, file.name, w);
}

int speedscope_decode(struct str bytes, const struct codec_limits *limits, struct window *out,
		      struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(in_release) struct speedscope_in in = {
		.start = bytes.ptr, .size = bytes.len, .limits = limits, .error = error, .text = BUF_INIT(TEXT_MAX)
	};
	int r = window_init(&w, limit_of_sizes(bytes.len, 3, KIB(64)));

	if (r < 0) {
		codec_fail(error, 0, false, "out of memory");
		return r;
	}
	in.m = w.model;
	in.m->memory_max = limits->memory_max;
	r = read_all(&in, str_starts(bytes, STR(BOM)) ? str_skip(bytes, strlen(BOM)) : bytes, &w);
	if (r < 0 && error && !error->reason[0])
		codec_fail(error, 0, false, "%s", r == -E2BIG ? "too much for the limits" : "out of memory");
	if (r < 0)
		return r;
	in.m->memory_max = 0; /* what is done with it later has limits of its own */
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}
