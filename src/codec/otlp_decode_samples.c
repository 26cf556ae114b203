/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of an OTLP file. Each of its profiles has one value type; those of one scope that have the same samples
 * in the same order are columns of one table. */
#include "codec/otlp_in.h"

static bool fits_slot(const struct attribute *a, enum otlp_slot slot)
{
	if (slot < OTLP_FIRST_TEXT)
		return a->form == FORM_NUMBER && !a->unit && a->number >= 1 && a->number <= otlp_slot_max(slot);
	return a->form == FORM_TEXT && a->text && !a->unit;
}

static int add_label(struct otlp_in *in, const struct model_label *label, uint64_t at)
{
	if (in->label_count == MODEL_LABELS_MAX) {
		codec_fail(in->error, at, false, "more than %d attributes in one sample", MODEL_LABELS_MAX);
		return -E2BIG;
	}
	in->labels[in->label_count++] = *label;
	return 0;
}

int otlp_add_attribute(struct otlp_in *in, const struct attribute *a, struct attribute *slots, bool has_container,
		       uint64_t at)
{
	for (int slot = 0; slot < OTLP_SLOT_COUNT; slot++) {
		bool is_container = slot == OTLP_CONTAINER_NAME || slot == OTLP_CONTAINER_ID;

		if (a->key != in->slot_keys[slot] || slots[slot].form || !fits_slot(a, (enum otlp_slot)slot) ||
		    (is_container && has_container))
			continue;
		slots[slot] = *a;
		return 0;
	}
	if (a->form != FORM_TEXT && a->form != FORM_NUMBER) {
		in->lost_lists++;
		return 0;
	}
	return add_label(in,
			 &(struct model_label){ .key = a->key,
						.text = a->form == FORM_TEXT ? a->text : 0,
						.is_number = a->form == FORM_NUMBER,
						.number = a->form == FORM_NUMBER ? a->number : 0,
						.unit = a->form == FORM_NUMBER ? a->unit : 0 },
			 at);
}

/* Which samples the next profile of a scope may have in common with the first one. */
struct columns {
	uint32_t scope, used; /* bit for each column that has values */
	size_t first, count;  /* samples of the model */
	size_t at;            /* of the profile that is being read */
};

struct sample_ctx {
	const struct profile_in *profile;
	const struct resource_in *resource;
	struct columns *columns;
	bool is_first; /* profile of these columns */
	struct attribute slots[OTLP_SLOT_COUNT];
	struct model_sample row;
};

static int sample_attribute(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx)
{
	struct sample_ctx *s = ctx;
	bool has_container = s->resource->slots[OTLP_CONTAINER_NAME].form || s->resource->slots[OTLP_CONTAINER_ID].form;
	const struct attribute *a;
	int r = otlp_attribute(in, index, at, &a);

	if (r < 0 || !index)
		return r;
	return otlp_add_attribute(in, a, s->slots, has_container, at);
}

static int sample_value(struct otlp_in *in, uint64_t value, uint64_t at, void *ctx)
{
	int r = failed(in, at, array_grow(&in->values, &in->values_cap, in->values_count, ROWS_MAX));

	(void)ctx;
	if (r == 0)
		in->values[in->values_count++] = (int64_t)value;
	return r;
}

static int sample_times(struct otlp_in *in, struct wire_field *f, uint64_t at)
{
	bool is_packed = f->type == WIRE_BYTES;

	if (!is_packed && f->type != WIRE_FIXED64)
		return otlp_other(in, at, "1.7.0 and older");
	if (is_packed && cur_left(&f->bytes) % 8)
		return bad(in, at, "timestamps are cut off");
	while (!is_packed || cur_left(&f->bytes)) {
		int r = failed(in, at, array_grow(&in->times, &in->times_cap, in->times_count, ROWS_MAX));

		r = r ? r : otlp_step(in);
		if (r < 0)
			return r;
		in->times[in->times_count++] = is_packed ? cur_le64(&f->bytes) : f->value;
		if (!is_packed)
			break;
	}
	return 0;
}

static int read_link(struct otlp_in *in, uint64_t index, uint64_t at, struct link_in *out)
{
	struct str ids[2] = { STR(""), STR("") };
	uint32_t *const texts[2] = { &out->trace, &out->span };
	struct wire_field f;
	struct cur c = span_cur(in, in->tables[TABLE_LINK].items[index]);
	int r = 0;

	while (wire_next(&c, &f))
		if ((f.number == LINK_TRACE || f.number == LINK_SPAN) && wire_fits(&c, &f, WIRE_BYTES))
			ids[f.number - LINK_TRACE] = wire_str(&f);
	if (c.bad || ids[0].len > OTLP_TRACE_SIZE || ids[1].len > OTLP_SPAN_SIZE)
		return bad(in, at, "malformed link");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ids); i++) {
		buf_clear(&in->text);
		for (size_t b = 0; b < ids[i].len; b++)
			buf_addf(&in->text, "%02x", (unsigned int)(unsigned char)ids[i].ptr[b]);
		r = in->text.error ? failed(in, at, in->text.error) : otlp_text(in, buf_str(&in->text), at, texts[i]);
	}
	out->is_read = r == 0;
	return r;
}

/* The link's ids as labels, in front of all others. */
static int add_link(struct otlp_in *in, uint64_t index, uint64_t at)
{
	struct link_in *link = &in->links[index < in->tables[TABLE_LINK].count ? index : 0];
	int r = 0;

	if (!index)
		return 0;
	if (index >= in->tables[TABLE_LINK].count)
		return bad(in, at, "link index outside the link table");
	if (!link->is_read)
		r = read_link(in, index, at, link);
	for (size_t i = 0, count = 0; r == 0 && i < 2; i++) {
		struct model_label label = { .key = i ? in->span_key : in->trace_key,
					     .text = i ? link->span : link->trace };

		if (!label.text)
			continue;
		r = add_label(in, &label, at);
		if (r < 0)
			break;
		memmove(in->labels + count + 1, in->labels + count, (in->label_count - 1 - count) * sizeof(label));
		in->labels[count++] = label;
	}
	return r;
}

static const struct attribute *slot_of(const struct sample_ctx *s, enum otlp_slot slot)
{
	return s->slots[slot].form ? &s->slots[slot] : &s->resource->slots[slot];
}

/* The container's name, or its id where it has none. With both, the id stays a label. */
static int find_container(struct otlp_in *in, const struct sample_ctx *s, uint64_t at, uint32_t *out)
{
	const struct attribute *name = slot_of(s, OTLP_CONTAINER_NAME), *id = slot_of(s, OTLP_CONTAINER_ID);

	*out = name->form ? name->text : id->text;
	if (!name->form || !id->form)
		return 0;
	return add_label(in, &(struct model_label){ .key = in->slot_keys[OTLP_CONTAINER_ID], .text = id->text }, at);
}

static int find_process(struct otlp_in *in, struct sample_ctx *s, uint64_t at)
{
	struct model_process process = { .pid = (uint32_t)slot_of(s, OTLP_PID)->number,
					 .start_ns = (uint64_t)slot_of(s, OTLP_START)->number,
					 .comm = slot_of(s, OTLP_COMM)->text,
					 .app_id = slot_of(s, OTLP_APP_ID)->text,
					 .service_kind = slot_of(s, OTLP_SERVICE_KIND)->text };
	struct model_thread thread = { .tid = (uint32_t)slot_of(s, OTLP_TID)->number,
				       .name = slot_of(s, OTLP_THREAD)->text };
	uint32_t service = s->resource->service;
	int r = find_container(in, s, at, &process.container);

	if (service == in->service_label)
		service = 0;
	if (r < 0)
		return r;
	if (process.pid || process.start_ns || process.comm || process.app_id || process.container) {
		process.workload = service;
		r = failed(in, at, model_add_process(in->m, &process, &s->row.process));
	} else if (service) {
		r = add_label(in, &(struct model_label){ .key = in->service_key, .text = service }, at);
	}
	thread.process = s->row.process;
	if (r == 0 && (thread.tid || thread.name))
		r = failed(in, at, model_add_thread(in->m, &thread, &s->row.thread));
	return r;
}

static bool is_same(const struct model_sample *a, const struct model_sample *b)
{
	return a->stack == b->stack && a->process == b->process && a->thread == b->thread &&
	       a->label_set == b->label_set && a->end == b->end && a->time_offset_ns == b->time_offset_ns;
}

static int place_value(struct otlp_in *in, struct sample_ctx *s, int64_t value, uint64_t at)
{
	struct columns *columns = s->columns;
	int64_t values[MODEL_VALUE_TYPES_MAX] = { 0 };
	struct model *m = in->m;
	size_t position = columns->at++;
	int r;

	if (!s->is_first && position < columns->count) {
		const struct model_sample *same = &m->samples[columns->first + position];

		if (is_same(same, &s->row)) {
			m->values[same->first_value + s->profile->column] = value;
			return 0;
		}
	}
	if (in->limits->samples_max && m->samples_count == in->limits->samples_max) {
		codec_fail(in->error, at, false, "more than %zu samples", in->limits->samples_max);
		return -E2BIG;
	}
	values[s->profile->column] = value;
	r = failed(in, at, model_add_sample(m, &s->row, values));
	return r ? r : otlp_step(in);
}

/* The sample's values; one without values has the value 1 at each of its times. */
static int place_values(struct otlp_in *in, struct sample_ctx *s, uint64_t at)
{
	size_t count = in->times_count ? in->times_count : in->values_count;
	int r = 0;

	if (!count)
		return bad(in, at, "a sample has neither values nor times");
	if (in->values_count && in->values_count != count)
		return bad(in, at, "a sample has not as many values as times");
	for (size_t i = 0; r == 0 && i < count; i++) {
		s->row.time_offset_ns = MODEL_NO_TIME;
		if (in->times_count && in->times[i] >= in->window->start_ns)
			s->row.time_offset_ns = in->times[i] - in->window->start_ns;
		else if (in->times_count)
			in->lost_times++;
		r = place_value(in, s, in->values_count ? in->values[i] : 1, at);
	}
	return r;
}

static int sample_field(struct otlp_in *in, struct sample_ctx *s, struct wire_field *f, uint64_t at, uint64_t *number)
{
	switch (f->number) {
	case SAMPLE_STACK:
	case SAMPLE_LINK:
		if (f->type != WIRE_VARINT)
			return bad(in, at, "known field of a wrong wire type");
		number[f->number] = f->value;
		return 0;
	case SAMPLE_ATTRIBUTES:
		return otlp_indices(in, f, at, sample_attribute, s);
	case SAMPLE_VALUES:
		return otlp_indices(in, f, at, sample_value, s);
	case SAMPLE_TIMES:
		return sample_times(in, f, at);
	default:
		return 0;
	}
}

static int read_sample(struct otlp_in *in, struct sample_ctx *s, struct cur c, uint64_t at)
{
	uint64_t number[SAMPLE_LINK + 1] = { 0 };
	struct wire_field f;
	int r = 0;

	memset(s->slots, 0, sizeof(s->slots));
	s->row = (struct model_sample){ 0 };
	in->label_count = in->values_count = in->times_count = 0;
	while (r == 0 && wire_next(&c, &f))
		r = sample_field(in, s, &f, at, number);
	if (r == 0 && c.bad)
		r = bad(in, at, "malformed sample");
	if (r == 0 && number[SAMPLE_STACK] && number[SAMPLE_STACK] >= in->tables[TABLE_STACK].count)
		r = bad(in, at, "stack index outside the stack table");
	for (size_t i = 0; r == 0 && i < s->resource->count; i++)
		r = otlp_add_attribute(in, &s->resource->attributes[i], s->slots, true, at);
	r = r ? r : add_link(in, number[SAMPLE_LINK], at);
	r = r ? r : find_process(in, s, at);
	r = r ? r : failed(in, at, model_add_label_set(in->m, in->labels, in->label_count, &s->row.label_set));
	if (r < 0)
		return r;
	s->row.stack = in->stacks[number[SAMPLE_STACK]].row;
	s->row.end = in->stacks[number[SAMPLE_STACK]].is_cut ? in->cut : slot_of(s, OTLP_STACK_END)->text;
	return place_values(in, s, at);
}

/* Of the other layouts only the numbers of fields tell, so the first sample of a profile is looked at before it is
 * read.
 */
static int check_layout(const struct otlp_in *in, struct cur c, uint64_t at)
{
	bool has_attributes = false, has_values = false;
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number == SAMPLE_LINK && f.type == WIRE_BYTES)
			return otlp_other(in, at, "1.9.0 and older");
		has_attributes |= f.number == SAMPLE_ATTRIBUTES;
		has_values |= f.number == SAMPLE_VALUES || f.number == SAMPLE_TIMES;
	}
	return has_attributes && !has_values ? otlp_other(in, at, "1.9.0 and older") : 0;
}

static int read_profile(struct otlp_in *in, const struct profile_in *profile, struct columns *columns)
{
	struct sample_ctx s = { .profile = profile, .resource = &in->resources[profile->resource], .columns = columns };
	struct cur c = span_cur(in, profile->span);
	uint32_t column = UINT32_C(1) << profile->column;
	bool is_checked = false;
	struct wire_field f;
	int r = 0;

	s.is_first = columns->scope != profile->scope || (columns->used & column);
	if (s.is_first)
		*columns = (struct columns){ .scope = profile->scope, .first = in->m->samples_count };
	columns->used |= column;
	columns->at = 0;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number != PROFILE_SAMPLES)
			continue;
		r = otlp_step(in);
		in->done += cur_left(&f.bytes);
		if (r == 0 && !is_checked)
			r = check_layout(in, f.bytes, position(in, &f.bytes));
		is_checked = true;
		r = r ? r : read_sample(in, &s, f.bytes, position(in, &f.bytes));
	}
	if (s.is_first)
		columns->count = in->m->samples_count - columns->first;
	return r;
}

int otlp_read_samples(struct otlp_in *in)
{
	struct columns columns = { .scope = UINT32_MAX };
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->profiles_count; i++)
		if (in->profiles[i].has_samples)
			r = read_profile(in, &in->profiles[i], &columns);
	return r;
}
