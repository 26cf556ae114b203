/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of an OTLP file: what those with one process, thread, label set and end have in common, and which become one.
 */
#include "codec/otlp_out.h"

struct facts {
	const struct model_label *labels; /* of the set; those in `taken` are written as something else */
	uint32_t count;
	bool taken[MODEL_LABELS_MAX];
	int64_t numbers[OTLP_SLOT_COUNT];
	struct str texts[OTLP_SLOT_COUNT];
	bool has_process;
};

/* The first label that a reader would take for @slot, because it has that name and form. */
static void take_slot(const struct model *m, struct facts *f, enum otlp_slot slot)
{
	for (uint32_t i = 0; i < f->count; i++) {
		const struct model_label *label = &f->labels[i];
		bool is_number = slot < OTLP_FIRST_TEXT;

		if (f->taken[i] || label->is_number != is_number ||
		    !str_eq(model_string(m, label->key), otlp_slot_name(slot)))
			continue;
		if (is_number ? label->unit || label->number < 1 || label->number > otlp_slot_max(slot) : !label->text)
			continue;
		f->taken[i] = true;
		if (is_number)
			f->numbers[slot] = label->number;
		else
			f->texts[slot] = model_string(m, label->text);
		return;
	}
}

static void collect_facts(const struct model *m, const struct model_sample *s, struct facts *f)
{
	const struct model_process *process = &m->processes[s->process];
	const struct model_thread *thread = &m->threads[s->thread];
	const struct model_label_set *set = &m->label_sets[s->label_set];
	struct str container = model_string(m, process->container);

	*f = (struct facts){ .labels = set->count ? m->labels + set->first : NULL, .count = set->count };
	f->numbers[OTLP_PID] = process->pid;
	f->numbers[OTLP_TID] = thread->tid;
	f->numbers[OTLP_START] = process->start_ns <= INT64_MAX ? (int64_t)process->start_ns : 0;
	f->texts[OTLP_COMM] = model_string(m, process->comm);
	f->texts[OTLP_THREAD] = model_string(m, thread->name);
	f->texts[OTLP_CONTAINER_NAME] = container;
	f->texts[OTLP_APP_ID] = model_string(m, process->app_id);
	f->texts[OTLP_SERVICE_KIND] = model_string(m, process->service_kind);
	f->texts[OTLP_STACK_END] = model_string(m, s->end);
	for (int slot = 0; slot < OTLP_SLOT_COUNT; slot++)
		if (slot < OTLP_FIRST_TEXT ? !f->numbers[slot] : !f->texts[slot].len)
			if (slot != OTLP_CONTAINER_ID || !f->texts[OTLP_CONTAINER_NAME].len)
				take_slot(m, f, (enum otlp_slot)slot);
	if (!f->texts[OTLP_CONTAINER_NAME].len)
		f->texts[OTLP_CONTAINER_NAME] = f->texts[OTLP_CONTAINER_ID];
	f->texts[OTLP_CONTAINER_ID] = STR("");
	f->has_process = f->numbers[OTLP_PID] || f->numbers[OTLP_START] || f->texts[OTLP_COMM].len ||
			 f->texts[OTLP_CONTAINER_NAME].len || f->texts[OTLP_APP_ID].len;
	if (!f->has_process) /* nothing that a service could be one of */
		f->texts[OTLP_SERVICE_KIND] = STR("");
}

bool otlp_is_hex(struct str text, size_t size)
{
	for (size_t i = 0; i < text.len; i++)
		if (!((text.ptr[i] >= '0' && text.ptr[i] <= '9') || (text.ptr[i] >= 'a' && text.ptr[i] <= 'f')))
			return false;
	return text.len == 2 * size;
}

static uint32_t find_id(const struct model *m, const struct facts *f, struct str name, size_t size)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (!f->taken[i] && !f->labels[i].is_number && str_eq(model_string(m, f->labels[i].key), name) &&
		    otlp_is_hex(model_string(m, f->labels[i].text), size))
			return i;
	return f->count;
}

static void add_hex(struct buf *out, struct str hex)
{
	for (size_t i = 0; i < hex.len; i += 2) {
		int high = hex.ptr[i] <= '9' ? hex.ptr[i] - '0' : hex.ptr[i] - 'a' + 10,
		    low = hex.ptr[i + 1] <= '9' ? hex.ptr[i + 1] - '0' : hex.ptr[i + 1] - 'a' + 10;

		buf_addc(out, (char)(high << 4 | low));
	}
}

static bool is_zero(struct str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i])
			return false;
	return true;
}

/* Labels of a trace and its span become a link; ids of zeros say that there is none, so they stay labels. */
static int link_index(struct otlp_out *o, struct facts *f, uint32_t *out)
{
	uint32_t trace = find_id(o->m, f, STR(OTLP_TRACE_ID), OTLP_TRACE_SIZE),
		 span = find_id(o->m, f, STR(OTLP_SPAN_ID), OTLP_SPAN_SIZE);

	*out = 0;
	if (trace == f->count || span == f->count)
		return 0;
	buf_clear(&o->parts);
	add_hex(&o->parts, model_string(o->m, f->labels[trace].text));
	add_hex(&o->parts, model_string(o->m, f->labels[span].text));
	if (o->parts.error || is_zero(buf_str(&o->parts)))
		return o->parts.error;
	buf_clear(&o->row);
	wire_add_bytes(&o->row, LINK_TRACE, str_first(buf_str(&o->parts), OTLP_TRACE_SIZE));
	wire_add_bytes(&o->row, LINK_SPAN, str_skip(buf_str(&o->parts), OTLP_TRACE_SIZE));
	f->taken[trace] = f->taken[span] = true;
	return otlp_row_index(o, TABLE_LINK, out);
}

static int add_label(struct otlp_out *o, const struct model_label *label, struct buf *to)
{
	uint32_t key, unit = 0, index;
	int r = otlp_string_index(o, label->key, &key);

	if (r == 0 && label->is_number)
		r = otlp_string_index(o, label->unit, &unit);
	if (r < 0)
		return r;
	if (label->is_number)
		otlp_any_number(o, ANY_INT, label->number);
	else
		otlp_any_text(o, model_string(o->m, label->text));
	r = otlp_attribute_index(o, key, unit, &index);
	if (r == 0)
		wire_add_varint(to, index);
	return r ? r : to->error;
}

static int add_sample_attributes(struct otlp_out *o, const struct facts *f, struct buf *to)
{
	int r = 0;

	for (int i = 0; r == 0 && i < OTLP_SLOT_COUNT; i++) {
		struct str name = otlp_slot_name((enum otlp_slot)i);

		if (i < OTLP_FIRST_TEXT && f->numbers[i])
			r = otlp_add_number(o, name, ANY_INT, f->numbers[i], to);
		else if (i >= OTLP_FIRST_TEXT && f->texts[i].len && i != OTLP_CONTAINER_NAME)
			r = otlp_add_text(o, name, f->texts[i], to);
	}
	for (uint32_t i = 0; r == 0 && i < f->count; i++)
		if (!f->taken[i])
			r = add_label(o, &f->labels[i], to);
	return r;
}

static int resource_index(struct otlp_out *o, struct str container, struct str service, uint32_t *out)
{
	struct str text = otlp_out_clean(o, container);
	uint32_t id = 0;
	int r;

	buf_clear(&o->row);
	wire_add_fixed64(&o->row, text.len);
	buf_adds(&o->row, text);
	buf_adds(&o->row, otlp_out_clean(o, service));
	r = o->clean.error ? o->clean.error
	    : o->row.error ? o->row.error
			   : intern_add(&o->resource_keys, buf_str(&o->row), &id);
	if (r == 0 && id > o->resources_count) {
		r = array_grow(&o->resources, &o->resources_cap, o->resources_count, UINT32_MAX);
		if (r < 0)
			return r;
		o->resources[o->resources_count++] = (struct resource){ .container = container, .service = service };
	}
	*out = id - 1;
	return r;
}

static struct str service_of(const struct otlp_out *o, const struct facts *f, uint32_t process)
{
	struct str workload = model_string(o->m, o->m->processes[process].workload);

	return workload.len && f->has_process ? workload : window_label(o->w, STR("service"));
}

/* @resource: known already */
static int make_combo(struct otlp_out *o, const struct model_sample *s, uint32_t resource, struct combo *out)
{
	struct facts facts;
	int r;

	collect_facts(o->m, s, &facts);
	r = link_index(o, &facts, &out->link);
	out->resource = resource;
	out->attributes = o->combo_bytes.len;
	r = r ? r : add_sample_attributes(o, &facts, &o->combo_bytes);
	out->attributes_size = o->combo_bytes.len - out->attributes;
	return r;
}

/* A combo that is equal to an earlier one is that one. @out: index in o->combos + 1 */
static int add_combo(struct otlp_out *o, const struct model_sample *s, uint32_t resource, uint32_t *out)
{
	struct combo combo = { 0 };
	uint32_t id = 0;
	int r = make_combo(o, s, resource, &combo);

	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_fixed64(&o->row, (uint64_t)combo.resource << 32 | combo.link);
	if (combo.attributes_size)
		buf_add(&o->row, o->combo_bytes.ptr + combo.attributes, combo.attributes_size);
	r = o->row.error ? o->row.error : intern_add(&o->combo_contents, buf_str(&o->row), &id);
	if (r == 0 && id > o->combos_count) {
		r = array_grow(&o->combos, &o->combos_cap, o->combos_count, UINT32_MAX);
		if (r == 0)
			o->combos[o->combos_count++] = combo;
	}
	*out = id;
	return r;
}

/* @out: index in o->keys */
static int find_key(struct otlp_out *o, const struct model_sample *s, uint32_t *out)
{
	const uint32_t key[] = { s->process, s->thread, s->label_set, s->end };
	struct facts facts;
	uint32_t id = 0;
	int r = intern_add(&o->combo_keys, str_n((const char *)key, sizeof(key)), &id);

	if (r == 0 && id > o->keys_count) {
		struct combo_key row = { 0 };

		collect_facts(o->m, s, &facts);
		r = resource_index(o, facts.texts[OTLP_CONTAINER_NAME], service_of(o, &facts, s->process),
				   &row.resource);
		r = r ? r : array_grow(&o->keys, &o->keys_cap, o->keys_count, UINT32_MAX);
		if (r == 0)
			o->keys[o->keys_count++] = row;
	}
	*out = id - 1;
	return r;
}

static int find_combo(struct otlp_out *o, const struct model_sample *s, uint32_t *out)
{
	uint32_t key = 0;
	int r = find_key(o, s, &key);

	if (r == 0 && !o->keys[key].combo)
		r = add_combo(o, s, o->keys[key].resource, &o->keys[key].combo);
	if (r == 0)
		*out = o->keys[key].combo - 1;
	return r;
}

/* Groups */

static int new_group(struct otlp_out *o, uint32_t sample, uint32_t combo)
{
	struct resource *resource = &o->resources[o->combos[combo].resource];
	uint32_t number = (uint32_t)o->groups_count + 1;
	int r = array_grow(&o->groups, &o->groups_cap, o->groups_count, UINT32_MAX - 1);

	if (r < 0)
		return r;
	o->groups[o->groups_count++] = (struct group){ o->m->samples[sample].stack, combo, sample, sample, 0 };
	if (resource->last)
		o->groups[resource->last - 1].next = number;
	else
		resource->first = number;
	resource->last = number;
	return 0;
}

static int add_to_group(struct otlp_out *o, uint32_t sample, uint32_t combo)
{
	const uint32_t key[] = { o->m->samples[sample].stack, combo };
	struct group *group;
	uint32_t id;
	size_t known;
	int r;

	if (o->m->samples[sample].time_offset_ns == MODEL_NO_TIME)
		return new_group(o, sample, combo);
	known = intern_count(&o->group_keys);
	r = intern_add(&o->group_keys, str_n((const char *)key, sizeof(key)), &id);
	if (r == 0 && id >= known) {
		r = array_grow(&o->group_of_key, &o->group_of_key_cap, known - 1, UINT32_MAX);
		r = r ? r : new_group(o, sample, combo);
		if (r == 0)
			o->group_of_key[id - 1] = (uint32_t)o->groups_count - 1;
		return r;
	}
	if (r < 0)
		return r;
	group = &o->groups[o->group_of_key[id - 1]];
	o->next_sample[group->last] = sample + 1;
	group->last = sample;
	return 0;
}

/* Samples by resource, in their order. */
static int sort_samples(struct otlp_out *o)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < o->m->samples_count; i++) {
		struct resource *resource;
		uint32_t key = 0;

		r = find_key(o, &o->m->samples[i], &key);
		if (r < 0)
			break;
		resource = &o->resources[o->keys[key].resource];
		if (resource->last_sample)
			o->next_of_resource[resource->last_sample - 1] = i + 1;
		else
			resource->first_sample = i + 1;
		resource->last_sample = i + 1;
	}
	return r;
}

/* Rows of the dictionary are numbered in the order in which the file uses them: resource by resource. */
int otlp_group_samples(struct otlp_out *o)
{
	uint32_t resource;
	int r = sort_samples(o);

	if (r == 0 && !o->resources_count)
		r = resource_index(o, STR(""), window_label(o->w, STR("service")), &resource);
	for (size_t k = 0; r == 0 && k < o->resources_count; k++)
		for (uint32_t i = o->resources[k].first_sample; r == 0 && i; i = o->next_of_resource[i - 1]) {
			uint32_t combo = 0;

			r = find_combo(o, &o->m->samples[i - 1], &combo);
			r = r ? r : add_to_group(o, i - 1, combo);
		}
	return r;
}
