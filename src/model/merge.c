/* SPDX-License-Identifier: Apache-2.0 */
/* Adding samples up: inside one model (coalesce) and across models (merge). */
#include "base/array.h"
#include "model/model_int.h"

/* Without its time. */
static uint64_t sample_hash_untimed(const struct model *m, uint32_t row)
{
	const struct model_sample *s = &m->samples[row];
	uint64_t hash = hash_step(m->index->seed, (uint64_t)s->stack << 32 | s->process);

	return hash_step(hash_step(hash, (uint64_t)s->thread << 32 | s->label_set), s->end);
}

static uint64_t sample_hash(const struct model *m, uint32_t row)
{
	return hash_done(hash_step(sample_hash_untimed(m, row), m->samples[row].time_offset_ns));
}

bool model_sample_same(const struct model_sample *a, const struct model_sample *b)
{
	return a->stack == b->stack && a->process == b->process && a->thread == b->thread &&
	       a->label_set == b->label_set && a->end == b->end;
}

/* For merging: what differs in time is two samples. */
static uint32_t *sample_slot(const struct model *m, const struct row_index *ix, uint32_t row)
{
	const struct model_sample *s = &m->samples[row];
	size_t at = sample_hash(m, row) & (ix->cap - 1);

	while (ix->slots[at] && (!model_sample_same(&m->samples[ix->slots[at] - 1], s) ||
				 m->samples[ix->slots[at] - 1].time_offset_ns != s->time_offset_ns))
		at = (at + 1) & (ix->cap - 1);
	return &ix->slots[at];
}

static uint32_t *sample_slot_untimed(const struct model *m, const struct row_index *ix, uint32_t row)
{
	size_t at = hash_done(sample_hash_untimed(m, row)) & (ix->cap - 1);

	while (ix->slots[at] && !model_sample_same(&m->samples[ix->slots[at] - 1], &m->samples[row]))
		at = (at + 1) & (ix->cap - 1);
	return &ix->slots[at];
}

static void add_values(struct model *m, struct model_sample *to, const struct model_sample *from)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		m->values[to->first_value + i] =
			saturating_add(m->values[to->first_value + i], m->values[from->first_value + i]);
	if (to->time_offset_ns != from->time_offset_ns)
		to->time_offset_ns = MODEL_NO_TIME;
}

/* Moves sample @from down to row @to, values too. to <= from, and values are stored in sample order. */
static void move_sample(struct model *m, size_t to, size_t from)
{
	size_t width = m->value_type_count, old = m->samples[from].first_value;

	m->samples[to] = m->samples[from];
	m->samples[to].first_value = (uint32_t)(to * width);
	if (width)
		memmove(m->values + to * width, m->values + old, width * sizeof(*m->values));
}

static void forget_sample_index(struct model *m)
{
	free(m->index->samples.slots);
	m->index->samples = (struct row_index){ 0 };
	m->index->samples_indexed = 0;
}

int model_coalesce(struct model *m)
{
	struct row_index ix = { 0 };
	scoped(freep) uint32_t *slots = NULL;
	size_t kept = 0, cap = 16;

	while (cap / 4 * 3 <= m->samples_count)
		cap *= 2;
	slots = calloc(cap, sizeof(*slots)); /* for all at once: nothing can fail half way */
	if (!slots)
		return -ENOMEM;
	ix = (struct row_index){ .slots = slots, .cap = cap };
	forget_sample_index(m);
	for (size_t i = 0; i < m->samples_count; i++) {
		uint32_t *slot = sample_slot_untimed(m, &ix, (uint32_t)i);

		if (*slot) {
			add_values(m, &m->samples[*slot - 1], &m->samples[i]);
			continue;
		}
		move_sample(m, kept, i);
		*slot = (uint32_t)++kept;
	}
	m->samples_count = kept;
	m->values_count = kept * m->value_type_count;
	return 0;
}

static bool all_zero(const struct model *m, const struct model_sample *s)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		if (m->values[s->first_value + i])
			return false;
	return true;
}

/* Merging */

/* Row numbers of the source to row numbers of the target, filled at first use; 0 is "not yet" and, for row 0, right. */
struct merge {
	struct model *into;
	const struct model *from;
	uint32_t *strings, *mappings, *functions, *locations, *stacks, *processes, *threads, *label_sets, *app_metadata;
	struct model_line *lines; /* room for the longest location */
	struct model_label *labels;
	bool with_times;
};

static void merge_release(struct merge *mg)
{
	free(mg->strings);
	free(mg->mappings);
	free(mg->functions);
	free(mg->locations);
	free(mg->stacks);
	free(mg->processes);
	free(mg->threads);
	free(mg->label_sets);
	free(mg->app_metadata);
	free(mg->lines);
	free(mg->labels);
}

static int merge_start(struct merge *mg)
{
	const struct model *from = mg->from;
	size_t line_max = 1, label_max = 1;

	for (size_t i = 0; i < from->locations_count; i++)
		line_max = MAX(line_max, (size_t)from->locations[i].line_count);
	for (size_t i = 0; i < from->label_sets_count; i++)
		label_max = MAX(label_max, (size_t)from->label_sets[i].count);
	mg->strings = calloc(intern_count(&from->strings), sizeof(uint32_t));
	mg->mappings = calloc(from->mappings_count, sizeof(uint32_t));
	mg->functions = calloc(from->functions_count, sizeof(uint32_t));
	mg->locations = calloc(from->locations_count, sizeof(uint32_t));
	mg->stacks = calloc(from->stacks_count, sizeof(uint32_t));
	mg->processes = calloc(from->processes_count, sizeof(uint32_t));
	mg->threads = calloc(from->threads_count, sizeof(uint32_t));
	mg->label_sets = calloc(from->label_sets_count, sizeof(uint32_t));
	mg->app_metadata = calloc(from->app_metadata_count, sizeof(uint32_t));
	mg->lines = calloc(line_max, sizeof(*mg->lines));
	mg->labels = calloc(label_max, sizeof(*mg->labels));
	if (!mg->strings || !mg->mappings || !mg->functions || !mg->locations || !mg->stacks || !mg->processes ||
	    !mg->threads || !mg->label_sets || !mg->app_metadata || !mg->lines || !mg->labels)
		return -ENOMEM;
	return 0;
}

static int map_string(struct merge *mg, uint32_t id, uint32_t *out)
{
	int r = 0;

	if (id && !mg->strings[id])
		r = model_add_string(mg->into, model_string(mg->from, id), &mg->strings[id]);
	if (r == 0)
		*out = mg->strings[id];
	return r;
}

/* Size rounded up to a page, without wrapping. */
static uint64_t mapping_size(const struct model_mapping *row)
{
	uint64_t size = row->limit - row->start;

	return size > UINT64_MAX - 4095 ? size : (size + 4095) & ~UINT64_C(4095);
}

/* Two mappings are one file's when size, offset and build id agree, or the file name where there is no build id. */
static bool mapping_matches(const struct model_mapping *a, const struct model_mapping *b)
{
	if (mapping_size(a) != mapping_size(b) || a->file_offset != b->file_offset || a->build_id != b->build_id)
		return false;
	return a->build_id || a->filename == b->filename;
}

/* Linear in the target's mappings, once per mapping of the source: there are hundreds, and MAPPINGS_LINEAR_MAX bounds
 * it. */
#define MAPPINGS_LINEAR_MAX 4096

static int map_mapping(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model *into = mg->into;
	struct model_mapping mapping;
	int r;

	if (!row || mg->mappings[row]) {
		*out = mg->mappings[row];
		return 0;
	}
	mapping = mg->from->mappings[row];
	r = map_string(mg, mapping.filename, &mapping.filename);
	if (r == 0)
		r = map_string(mg, mapping.build_id, &mapping.build_id);
	if (r < 0)
		return r;
	for (size_t i = 1; i < MIN(into->mappings_count, (size_t)MAPPINGS_LINEAR_MAX); i++) {
		if (!mapping_matches(&into->mappings[i], &mapping))
			continue;
		into->mappings[i].flags |= mapping.flags;
		*out = mg->mappings[row] = (uint32_t)i;
		return 0;
	}
	r = model_add_mapping(into, &mapping, &mg->mappings[row]);
	if (r == 0)
		*out = mg->mappings[row];
	return r;
}

static int map_function(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model_function function = mg->from->functions[row];
	int r = 0;

	if (row && !mg->functions[row]) {
		r = map_string(mg, function.name, &function.name);
		r = r ? r : map_string(mg, function.system_name, &function.system_name);
		r = r ? r : map_string(mg, function.filename, &function.filename);
		r = r ? r : model_add_function(mg->into, &function, &mg->functions[row]);
	}
	if (r == 0)
		*out = mg->functions[row];
	return r;
}

static int map_location(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model_location location = mg->from->locations[row];
	uint32_t mapping = 0;
	int r = 0;

	if (!row || mg->locations[row]) {
		*out = mg->locations[row];
		return 0;
	}
	r = map_mapping(mg, location.mapping, &mapping);
	/* The mapping may lie elsewhere in the target: the address moves with it, so that ASLR splits no location. */
	if (mapping)
		location.address += mg->into->mappings[mapping].start - mg->from->mappings[location.mapping].start;
	location.mapping = mapping;
	for (uint32_t i = 0; r == 0 && i < location.line_count; i++) {
		mg->lines[i] = mg->from->lines[location.first_line + i];
		r = map_function(mg, mg->lines[i].function, &mg->lines[i].function);
	}
	if (r == 0)
		r = model_add_location(mg->into, &location, mg->lines, &mg->locations[row]);
	if (r == 0)
		*out = mg->locations[row];
	return r;
}

/* Maps every stack that a sample uses. A parent has a smaller number than its children: one pass down marks the used
 * nodes, one pass up maps them. */
#define STACK_USED UINT32_MAX

static int map_stacks(struct merge *mg)
{
	const struct model *from = mg->from;
	int r = 0;

	for (size_t i = 0; i < from->samples_count; i++)
		if (from->samples[i].stack && !all_zero(from, &from->samples[i]))
			mg->stacks[from->samples[i].stack] = STACK_USED;
	for (size_t i = from->stacks_count - 1; i > 0; i--)
		if (mg->stacks[i] && from->stacks[i].parent)
			mg->stacks[from->stacks[i].parent] = STACK_USED;
	for (size_t i = 1; r == 0 && i < from->stacks_count; i++) {
		uint32_t location = 0;

		if (!mg->stacks[i])
			continue;
		r = map_location(mg, from->stacks[i].location, &location);
		if (r == 0)
			r = model_add_stack(mg->into, mg->stacks[from->stacks[i].parent], location, &mg->stacks[i]);
	}
	return r;
}

static int map_process(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model_process process = mg->from->processes[row];
	int r = 0;

	if (row && !mg->processes[row]) {
		struct str json = model_string(mg->from, mg->from->app_metadata[process.app_metadata]);

		r = map_string(mg, process.comm, &process.comm);
		r = r ? r : map_string(mg, process.container, &process.container);
		r = r ? r : map_string(mg, process.app_id, &process.app_id);
		r = r ? r : map_string(mg, process.workload, &process.workload);
		r = r ? r : map_string(mg, process.service_kind, &process.service_kind);
		r = r ? r : model_add_app_metadata(mg->into, json, &process.app_metadata);
		r = r ? r : model_add_process(mg->into, &process, &mg->processes[row]);
	}
	if (r == 0)
		*out = mg->processes[row];
	return r;
}

static int map_thread(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model_thread thread = mg->from->threads[row];
	int r = 0;

	if (row && !mg->threads[row]) {
		r = map_process(mg, thread.process, &thread.process);
		r = r ? r : map_string(mg, thread.name, &thread.name);
		r = r ? r : model_add_thread(mg->into, &thread, &mg->threads[row]);
	}
	if (r == 0)
		*out = mg->threads[row];
	return r;
}

static int map_label_set(struct merge *mg, uint32_t row, uint32_t *out)
{
	struct model_label_set set = mg->from->label_sets[row];
	int r = 0;

	if (!row || mg->label_sets[row]) {
		*out = mg->label_sets[row];
		return 0;
	}
	for (uint32_t i = 0; r == 0 && i < set.count; i++) {
		struct model_label *label = &mg->labels[i];

		*label = mg->from->labels[set.first + i];
		r = map_string(mg, label->key, &label->key);
		r = r ? r
		      : map_string(mg, label->is_number ? label->unit : label->text,
				   label->is_number ? &label->unit : &label->text);
	}
	if (r == 0) {
		model_sort_labels(mg->into, mg->labels, set.count);
		r = model_add_label_set(mg->into, mg->labels, set.count, &mg->label_sets[row]);
	}
	if (r == 0)
		*out = mg->label_sets[row];
	return r;
}

/* Adds the target's last sample to an equal earlier one and removes it, or indexes it. */
static int fold_last_sample(struct model *m)
{
	uint32_t last = (uint32_t)m->samples_count - 1;
	uint32_t *slot;
	int r = row_index_room(m, &m->index->samples, m->samples_count, 0, sample_hash);

	if (r < 0)
		return r;
	slot = sample_slot(m, &m->index->samples, last);
	if (!*slot) {
		*slot = last + 1;
		return 0;
	}
	add_values(m, &m->samples[*slot - 1], &m->samples[last]);
	m->samples_count--;
	m->values_count -= m->value_type_count;
	return 0;
}

static int merge_sample(struct merge *mg, const struct model_sample *from)
{
	struct model_sample row = { .stack = mg->stacks[from->stack],
				    .time_offset_ns = mg->with_times ? from->time_offset_ns : MODEL_NO_TIME };
	int r = map_process(mg, from->process, &row.process);

	r = r ? r : map_thread(mg, from->thread, &row.thread);
	r = r ? r : map_label_set(mg, from->label_set, &row.label_set);
	r = r ? r : map_string(mg, from->end, &row.end);
	r = r ? r : model_add_sample(mg->into, &row, model_values(mg->from, from));
	if (r < 0)
		return r;
	r = fold_last_sample(mg->into);
	if (r < 0) {
		mg->into->samples_count--;
		mg->into->values_count -= mg->into->value_type_count;
	}
	return r;
}

/* Of its samples that are not in the index. */
static bool has_times(const struct model *m)
{
	for (size_t i = m->index->samples_indexed; i < m->samples_count; i++)
		if (m->samples[i].time_offset_ns != MODEL_NO_TIME)
			return true;
	return false;
}

/* The target's own samples enter the index at the first merge, or again after a change of theirs. Without their times
 * those that differ in nothing else are one. */
static int index_target(struct model *m)
{
	if (has_times(m)) {
		int r = model_coalesce(m);

		if (r < 0)
			return r;
	}
	while (m->index->samples_indexed < m->samples_count) {
		uint32_t row = (uint32_t)m->index->samples_indexed;
		int r = row_index_room(m, &m->index->samples, row, 0, sample_hash);
		uint32_t *slot;

		if (r < 0)
			return r;
		m->samples[row].time_offset_ns = MODEL_NO_TIME;
		slot = sample_slot(m, &m->index->samples, row);
		if (!*slot)
			*slot = row + 1; /* of several equal rows the first takes what is added */
		m->index->samples_indexed++;
	}
	return 0;
}

static bool is_empty(const struct model *m)
{
	return !m->value_type_count && !m->samples_count && !m->period_type.type && !m->period_type.unit;
}

static bool same_type(const struct model *a, struct model_value_type x, const struct model *b,
		      struct model_value_type y)
{
	return str_eq(model_string(a, x.type), model_string(b, y.type)) &&
	       str_eq(model_string(a, x.unit), model_string(b, y.unit));
}

static bool compatible(const struct model *a, const struct model *b)
{
	if (a->value_type_count != b->value_type_count || !same_type(a, a->period_type, b, b->period_type))
		return false;
	for (size_t i = 0; i < a->value_type_count; i++)
		if (!same_type(a, a->value_types[i], b, b->value_types[i]))
			return false;
	return true;
}

static int take_types(struct merge *mg)
{
	struct model *into = mg->into;
	const struct model *from = mg->from;
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->value_type_count; i++)
		r = model_add_value_type(into, model_string(from, from->value_types[i].type),
					 model_string(from, from->value_types[i].unit));
	r = r ? r : map_string(mg, from->period_type.type, &into->period_type.type);
	r = r ? r : map_string(mg, from->period_type.unit, &into->period_type.unit);
	r = r ? r : map_string(mg, from->drop_frames, &into->drop_frames);
	r = r ? r : map_string(mg, from->keep_frames, &into->keep_frames);
	for (uint32_t i = 1, out; r == 0 && i < MIN(from->mappings_count, (size_t)2); i++)
		r = map_mapping(mg, i, &out); /* the first mapping stays the main binary, used or not */
	return r;
}

static int merge_comments(struct merge *mg)
{
	struct model *into = mg->into;
	scoped(freep) uint8_t *known = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < mg->from->comments_count; i++) {
		uint32_t id;

		r = map_string(mg, mg->from->comments[i], &id);
	}
	known = calloc(intern_count(&into->strings), 1);
	if (r == 0 && !known)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < into->comments_count; i++)
		known[into->comments[i]] = 1;
	for (size_t i = 0; r == 0 && i < mg->from->comments_count; i++) {
		uint32_t id = mg->strings[mg->from->comments[i]];

		if (!known[id])
			r = model_add_comment(into, model_string(mg->from, mg->from->comments[i]));
		known[id] = 1;
	}
	return r;
}

static int merge_header(struct merge *mg)
{
	struct model *into = mg->into;
	const struct model *from = mg->from;
	int r = merge_comments(mg);

	if (r == 0 && !into->default_type)
		r = map_string(mg, from->default_type, &into->default_type);
	if (r == 0 && !into->doc_url)
		r = map_string(mg, from->doc_url, &into->doc_url);
	if (r < 0)
		return r;
	if (from->time_ns && (!into->time_ns || from->time_ns < into->time_ns))
		into->time_ns = from->time_ns;
	into->duration_ns = saturating_add(into->duration_ns, from->duration_ns);
	into->period = MAX(into->period, from->period);
	return 0;
}

static int merge(struct model *into, const struct model *from, bool with_times)
{
	scoped(merge_release) struct merge mg = { .into = into, .from = from, .with_times = with_times };
	bool first = is_empty(into);
	int r;

	must(into != from);
	if (!first && !compatible(into, from))
		return -EINVAL;
	r = merge_start(&mg);
	r = r ? r : index_target(into);
	if (r == 0 && first)
		r = take_types(&mg);
	r = r ? r : map_stacks(&mg);
	for (size_t i = 0; r == 0 && i < from->samples_count; i++)
		if (!all_zero(from, &from->samples[i]))
			r = merge_sample(&mg, &from->samples[i]);
	into->index->samples_indexed = into->samples_count;
	return r ? r : merge_header(&mg);
}

int model_merge(struct model *into, const struct model *from)
{
	return merge(into, from, false);
}

int model_merge_timed(struct model *into, const struct model *from)
{
	int r;

	must(!into->samples_count);
	r = merge(into, from, true);
	forget_sample_index(into); /* a later merge drops the times first */
	return r;
}
