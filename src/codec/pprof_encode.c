/* SPDX-License-Identifier: Apache-2.0 */
/* Writing pprof with the reference's conventions: fields in ascending number, zeros left out, numbers packed from three
 * on, the string table in order of first use. Lengths are computed before, so every message is written once. */
#include "base/array.h"
#include "base/wire.h"
#include "codec/gzip.h"
#include "codec/pprof_int.h"

#define PPROF_GZIP_LEVEL 6

#define X(id, name) STR(name),
static const struct str label_names[] = { PPROF_LABELS(X) };
#undef X

struct str pprof_label_name(enum pprof_label label)
{
	return label_names[label];
}

struct label_out {
	uint32_t key, text, unit; /* string indexes */
	int64_t number;
};

struct pprof_out {
	const struct window *w;
	const struct model *m;
	struct buf *out;
	/* Strings by order of first use. Those that the model does not have are in `extra`, complete before the first
	 * use. */
	struct str *order;
	size_t order_count;
	uint32_t *model_si, *extra_si; /* string index + 1 by id; 0: not used yet */
	struct intern extra;
	uint32_t *comments; /* ids in `extra` */
	size_t comments_count, comments_cap;
	uint32_t label_key[PPROF_LABEL_COUNT]; /* string index + 1; 0: not used yet */
	uint8_t *mapping_kinds;                /* by mapping row */
	uint32_t stand_ins[MODEL_KIND_COUNT];  /* id of the mapping that stands for a kind; 0: none needed */
	uint32_t *function_ids;                /* by row; 0: no location uses it */
	uint32_t *function_rows;               /* by id - 1 */
	size_t function_count;
	uint8_t *says_kind; /* by function row: a mapping does not tell its kind */
	struct model_label *sorted;
	struct label_out *labels;
	size_t label_count;
	uint32_t *location_ids;  /* by row, 0: not used yet */
	uint32_t *location_rows; /* by id - 1 */
	uint32_t location_count;
	uint32_t *frames; /* one stack's locations, leaf first */
	size_t frames_cap;
};

static void pprof_out_release(struct pprof_out *o)
{
	free(o->order);
	free(o->model_si);
	free(o->extra_si);
	intern_release(&o->extra);
	free(o->comments);
	free(o->mapping_kinds);
	free(o->location_ids);
	free(o->location_rows);
	free(o->function_ids);
	free(o->function_rows);
	free(o->says_kind);
	free(o->sorted);
	free(o->labels);
	free(o->frames);
}

/* Strings */

static uint32_t si_new(struct pprof_out *o, struct str text)
{
	o->order[o->order_count] = text;
	return (uint32_t)o->order_count++;
}

static uint32_t si_of(struct pprof_out *o, uint32_t id)
{
	if (!o->model_si[id])
		o->model_si[id] = si_new(o, model_string(o->m, id)) + 1;
	return o->model_si[id] - 1;
}

static uint32_t si_of_text(struct pprof_out *o, struct str text)
{
	uint32_t id;

	if (intern_find(&o->m->strings, text, &id) == 0)
		return si_of(o, id);
	must(intern_find(&o->extra, text, &id) == 0);
	if (!o->extra_si[id])
		o->extra_si[id] = si_new(o, text) + 1;
	return o->extra_si[id] - 1;
}

static int add_comment(void *ctx, struct str text)
{
	struct pprof_out *o = ctx;
	int r = array_grow(&o->comments, &o->comments_cap, o->comments_count, UINT32_MAX);

	if (r == 0)
		r = intern_add(&o->extra, text, &o->comments[o->comments_count]);
	if (r == 0)
		o->comments_count++;
	return r;
}

static int prepare_strings(struct pprof_out *o)
{
	uint32_t id;
	int r = 0;

	intern_init(&o->extra, GIB(1));
	for (size_t i = 0; r == 0 && i < PPROF_LABEL_COUNT; i++)
		r = intern_add(&o->extra, label_names[i], &id);
	for (int kind = 0; r == 0 && kind < MODEL_KIND_COUNT; kind++)
		r = intern_add(&o->extra, model_kind_mapping((enum model_kind)kind), &id);
	r = r ? r : pprof_comments_each(o->w, add_comment, o);
	if (r < 0)
		return r;
	o->order = calloc(intern_count(&o->m->strings) + intern_count(&o->extra), sizeof(*o->order));
	o->model_si = calloc(intern_count(&o->m->strings), sizeof(*o->model_si));
	o->extra_si = calloc(intern_count(&o->extra), sizeof(*o->extra_si));
	if (!o->order || !o->model_si || !o->extra_si)
		return -ENOMEM;
	must(si_of(o, 0) == 0);
	return 0;
}

/* Mappings and functions: who is used, and where a mapping must stand for a kind */

static uint32_t find_stand_in(const struct model *m, enum model_kind kind)
{
	struct str name = model_kind_mapping(kind);

	for (size_t i = 1; i < m->mappings_count; i++) {
		const struct model_mapping *row = &m->mappings[i];

		if (!row->start && !row->limit && !row->file_offset && !row->build_id &&
		    str_eq(model_string(m, row->filename), name))
			return (uint32_t)i;
	}
	return 0;
}

static uint32_t location_mapping(const struct pprof_out *o, const struct model_location *row)
{
	enum model_kind kind;

	if (row->mapping || !row->line_count)
		return row->mapping;
	kind = o->m->functions[o->m->lines[row->first_line + row->line_count - 1].function].kind;
	return o->stand_ins[kind];
}

static void note_location(struct pprof_out *o, const struct model_location *row, uint32_t *next_mapping)
{
	const struct model *m = o->m;
	enum model_kind told = (enum model_kind)o->mapping_kinds[row->mapping];

	if (!row->mapping && row->line_count) {
		told = m->functions[m->lines[row->first_line + row->line_count - 1].function].kind;
		if (told != MODEL_KIND_NATIVE && !o->stand_ins[told]) {
			o->stand_ins[told] = find_stand_in(m, told);
			if (!o->stand_ins[told])
				o->stand_ins[told] = (*next_mapping)++;
		}
	}
	for (uint32_t i = 0; i < row->line_count; i++) {
		uint32_t function = m->lines[row->first_line + i].function;

		if (!o->function_ids[function]) {
			o->function_rows[o->function_count] = function;
			o->function_ids[function] = (uint32_t)++o->function_count;
		}
		if (m->functions[function].kind != told)
			o->says_kind[function] = 1;
	}
}

static int prepare_tables(struct pprof_out *o)
{
	const struct model *m = o->m;

	o->mapping_kinds = calloc(m->mappings_count, 1);
	o->function_ids = calloc(m->functions_count, sizeof(*o->function_ids));
	o->function_rows = calloc(m->functions_count, sizeof(*o->function_rows));
	o->says_kind = calloc(m->functions_count, 1);
	o->sorted = calloc(MODEL_LABELS_MAX, sizeof(*o->sorted));
	o->labels = calloc(MODEL_LABELS_MAX + PPROF_LABEL_COUNT, sizeof(*o->labels));
	o->location_ids = calloc(m->locations_count, sizeof(*o->location_ids));
	o->location_rows = calloc(m->locations_count, sizeof(*o->location_rows));
	if (!o->mapping_kinds || !o->function_ids || !o->function_rows || !o->says_kind || !o->sorted || !o->labels ||
	    !o->location_ids || !o->location_rows)
		return -ENOMEM;
	for (size_t i = 1; i < m->mappings_count; i++)
		o->mapping_kinds[i] = (uint8_t)model_kind_of_mapping(model_string(m, m->mappings[i].filename));
	return 0;
}

/* Messages */

static void add_value_type(struct pprof_out *o, uint32_t field, struct model_value_type row)
{
	uint32_t type = si_of(o, row.type), unit = si_of(o, row.unit);
	size_t size = wire_number_size(1, type) + wire_number_size(2, unit);

	wire_add_tag(o->out, field, WIRE_BYTES);
	wire_add_varint(o->out, size);
	wire_add_number(o->out, 1, type);
	wire_add_number(o->out, 2, unit);
}

static uint32_t location_id(struct pprof_out *o, uint32_t row)
{
	if (row && !o->location_ids[row]) {
		o->location_rows[o->location_count++] = row;
		o->location_ids[row] = o->location_count;
	}
	return o->location_ids[row];
}

/* Behind the samples, whose order locations have; those that no sample uses come last. */
static void note_locations(struct pprof_out *o)
{
	uint32_t next_mapping = (uint32_t)o->m->mappings_count;

	for (uint32_t i = 1; i < o->m->locations_count; i++)
		ignore(location_id(o, i));
	for (uint32_t i = 0; i < o->location_count; i++)
		note_location(o, &o->m->locations[o->location_rows[i]], &next_mapping);
}

static int collect_frames(struct pprof_out *o, uint32_t stack, size_t *count, size_t *packed_size)
{
	const struct model_stack *nodes = o->m->stacks;
	size_t n = 0, size = 0;

	for (; stack; stack = nodes[stack].parent) {
		int r = array_grow(&o->frames, &o->frames_cap, n, UINT32_MAX);

		if (r < 0)
			return r;
		o->frames[n] = location_id(o, nodes[stack].location);
		size += wire_varint_size(o->frames[n++]);
	}
	*count = n;
	*packed_size = size;
	return 0;
}

static void add_own_text(struct pprof_out *o, enum pprof_label which, uint32_t id)
{
	uint32_t key = si_of_text(o, label_names[which]);

	o->labels[o->label_count++] = (struct label_out){ .key = key, .text = si_of(o, id) };
}

static void add_set_label(struct pprof_out *o, const struct model_label *label)
{
	struct label_out *to = &o->labels[o->label_count];

	if (label->is_number ? !label->number && !label->unit : !label->text)
		return; /* readers drop it */
	*to = (struct label_out){ .key = si_of(o, label->key) };
	if (label->is_number) {
		to->number = label->number;
		to->unit = si_of(o, label->unit);
	} else {
		to->text = si_of(o, label->text);
	}
	o->label_count++;
}

/* The sample's labels: process, thread and end between those of its label set, texts before numbers, by key. */
static void collect_labels(struct pprof_out *o, const struct model_sample *s)
{
	const struct model *m = o->m;
	const struct model_process *process = &m->processes[s->process];
	const struct model_thread *thread = &m->threads[s->thread];
	const struct model_label_set *set = &m->label_sets[s->label_set];
	const uint32_t own[PPROF_LABEL_COUNT] = { process->app_id, process->comm, process->container, s->end,
						  thread->name,    process->pid,  thread->tid };
	uint32_t next = 0;

	o->label_count = 0;
	if (set->count)
		memcpy(o->sorted, m->labels + set->first, set->count * sizeof(*o->sorted));
	model_sort_labels(m, o->sorted, set->count);
	for (size_t i = 0; i < PPROF_LABEL_COUNT; i++) {
		bool is_number = i >= PPROF_LABEL_FIRST_NUMBER;

		if (!own[i])
			continue;
		while (next < set->count && (o->sorted[next].is_number < is_number ||
					     (o->sorted[next].is_number == is_number &&
					      str_cmp(model_string(m, o->sorted[next].key), label_names[i]) < 0)))
			add_set_label(o, &o->sorted[next++]);
		if (is_number)
			o->labels[o->label_count++] =
				(struct label_out){ .key = si_of_text(o, label_names[i]), .number = own[i] };
		else
			add_own_text(o, (enum pprof_label)i, own[i]);
	}
	while (next < set->count)
		add_set_label(o, &o->sorted[next++]);
}

static size_t label_size(const struct label_out *label)
{
	return wire_number_size(LABEL_KEY, label->key) + wire_number_size(LABEL_STR, label->text) +
	       wire_number_size(LABEL_NUM, (uint64_t)label->number) + wire_number_size(LABEL_NUM_UNIT, label->unit);
}

/* Up to two numbers stand alone (tags of one byte), more are packed. */
static size_t numbers_size(size_t count, size_t packed_size)
{
	return count > 2 ? 1 + wire_varint_size(packed_size) + packed_size : count + packed_size;
}

static uint8_t *put_label(uint8_t *at, const struct label_out *label)
{
	at = wire_put_tag(at, SAMPLE_LABEL, WIRE_BYTES);
	at = wire_put_varint(at, label_size(label));
	at = wire_put_number(at, LABEL_KEY, label->key);
	at = wire_put_number(at, LABEL_STR, label->text);
	at = wire_put_number(at, LABEL_NUM, (uint64_t)label->number);
	return wire_put_number(at, LABEL_NUM_UNIT, label->unit);
}

static uint8_t *put_frames(const struct pprof_out *o, uint8_t *at, size_t count, size_t packed_size)
{
	if (count > 2)
		at = wire_put_varint(wire_put_tag(at, SAMPLE_LOCATION_ID, WIRE_BYTES), packed_size);
	for (size_t i = 0; i < count; i++) {
		if (count <= 2)
			at = wire_put_tag(at, SAMPLE_LOCATION_ID, WIRE_VARINT);
		at = wire_put_varint(at, o->frames[i]);
	}
	return at;
}

static uint8_t *put_values(const int64_t *values, uint8_t *at, size_t count, size_t packed_size)
{
	if (count > 2)
		at = wire_put_varint(wire_put_tag(at, SAMPLE_VALUE, WIRE_BYTES), packed_size);
	for (size_t i = 0; i < count; i++) {
		if (count <= 2)
			at = wire_put_tag(at, SAMPLE_VALUE, WIRE_VARINT);
		at = wire_put_varint(at, (uint64_t)values[i]);
	}
	return at;
}

/* The values of @s and of the @more samples behind it. */
static const int64_t *add_up(const struct pprof_out *o, const struct model_sample *s, size_t more, int64_t *room)
{
	const int64_t *values = model_values(o->m, s);

	if (!more)
		return values;
	for (size_t i = 0; i < o->m->value_type_count; i++) {
		room[i] = values[i];
		for (size_t k = 1; k <= more; k++)
			room[i] = saturating_add(room[i], model_values(o->m, &s[k])[i]);
	}
	return room;
}

/* The format has no times: of a stack at several moments, which stand beside each other, there is one sample. */
static size_t count_moments(const struct pprof_out *o, size_t first)
{
	const struct model_sample *s = &o->m->samples[first];
	size_t more = 0, left = o->m->samples_count - first;

	while (more + 1 < left && s[more].time_offset_ns != s[more + 1].time_offset_ns &&
	       model_sample_same(s, &s[more + 1]))
		more++;
	return more;
}

static int add_sample(struct pprof_out *o, const struct model_sample *s, size_t more)
{
	int64_t room[MODEL_VALUE_TYPES_MAX];
	const int64_t *values = add_up(o, s, more, room);
	size_t frame_count, frames_size, values_size = 0, size;
	uint8_t *start, *at;
	int r = collect_frames(o, s->stack, &frame_count, &frames_size);

	if (r < 0)
		return r;
	collect_labels(o, s);
	for (size_t i = 0; i < o->m->value_type_count; i++)
		values_size += wire_varint_size((uint64_t)values[i]);
	size = numbers_size(frame_count, frames_size) + numbers_size(o->m->value_type_count, values_size);
	for (size_t i = 0; i < o->label_count; i++)
		size += 1 + wire_varint_size(label_size(&o->labels[i])) + label_size(&o->labels[i]);
	start = buf_reserve(o->out, 1 + WIRE_VARINT_MAX + size);
	if (!start)
		return o->out->error;
	at = wire_put_varint(wire_put_tag(start, PROFILE_SAMPLE, WIRE_BYTES), size);
	at = put_frames(o, at, frame_count, frames_size);
	at = put_values(values, at, o->m->value_type_count, values_size);
	for (size_t i = 0; i < o->label_count; i++)
		at = put_label(at, &o->labels[i]);
	buf_commit(o->out, (size_t)(at - start));
	return 0;
}

static void add_mapping(struct pprof_out *o, uint32_t id, const struct model_mapping *row, uint32_t filename)
{
	uint32_t build_id = si_of(o, row->build_id);
	size_t size = wire_number_size(MAPPING_ID, id) + wire_number_size(MAPPING_START, row->start) +
		      wire_number_size(MAPPING_LIMIT, row->limit) + wire_number_size(MAPPING_OFFSET, row->file_offset) +
		      wire_number_size(MAPPING_FILENAME, filename) + wire_number_size(MAPPING_BUILD_ID, build_id) +
		      2 * (size_t)__builtin_popcount(row->flags & 15);

	wire_add_tag(o->out, PROFILE_MAPPING, WIRE_BYTES);
	wire_add_varint(o->out, size);
	wire_add_number(o->out, MAPPING_ID, id);
	wire_add_number(o->out, MAPPING_START, row->start);
	wire_add_number(o->out, MAPPING_LIMIT, row->limit);
	wire_add_number(o->out, MAPPING_OFFSET, row->file_offset);
	wire_add_number(o->out, MAPPING_FILENAME, filename);
	wire_add_number(o->out, MAPPING_BUILD_ID, build_id);
	for (uint32_t i = 0; i < 4; i++)
		wire_add_number(o->out, MAPPING_HAS_FUNCTIONS + i, row->flags >> i & 1);
}

static void add_mappings(struct pprof_out *o)
{
	static const struct model_mapping stand_in = { .flags = MODEL_HAS_FUNCTIONS };
	uint32_t count = (uint32_t)o->m->mappings_count, last = count;

	for (uint32_t i = 1; i < count; i++)
		add_mapping(o, i, &o->m->mappings[i], si_of(o, o->m->mappings[i].filename));
	for (size_t kind = 0; kind < MODEL_KIND_COUNT; kind++)
		last = MAX(last, o->stand_ins[kind] + 1);
	for (uint32_t id = count; id < last; id++)
		for (int kind = 0; kind < MODEL_KIND_COUNT; kind++)
			if (o->stand_ins[kind] == id)
				add_mapping(o, id, &stand_in, si_of_text(o, model_kind_mapping((enum model_kind)kind)));
}

static size_t line_size(const struct pprof_out *o, const struct model_line *line)
{
	return wire_number_size(LINE_FUNCTION_ID, o->function_ids[line->function]) +
	       wire_number_size(LINE_LINE, (uint64_t)line->line) +
	       wire_number_size(LINE_COLUMN, (uint64_t)line->column);
}

static void add_location(struct pprof_out *o, uint32_t id)
{
	const struct model_location *row = &o->m->locations[o->location_rows[id - 1]];
	const struct model_line *lines = row->line_count ? &o->m->lines[row->first_line] : NULL;
	uint32_t mapping = location_mapping(o, row);
	size_t size = wire_number_size(LOCATION_ID, id) + wire_number_size(LOCATION_MAPPING_ID, mapping) +
		      wire_number_size(LOCATION_ADDRESS, row->address) +
		      wire_number_size(LOCATION_IS_FOLDED, row->is_folded);
	uint8_t *start, *at;

	for (uint32_t i = 0; i < row->line_count; i++)
		size += 1 + wire_varint_size(line_size(o, &lines[i])) + line_size(o, &lines[i]);
	start = buf_reserve(o->out, 1 + WIRE_VARINT_MAX + size);
	if (!start)
		return;
	at = wire_put_varint(wire_put_tag(start, PROFILE_LOCATION, WIRE_BYTES), size);
	at = wire_put_number(at, LOCATION_ID, id);
	at = wire_put_number(at, LOCATION_MAPPING_ID, mapping);
	at = wire_put_number(at, LOCATION_ADDRESS, row->address);
	for (uint32_t i = 0; i < row->line_count; i++) {
		at = wire_put_varint(wire_put_tag(at, LOCATION_LINE, WIRE_BYTES), line_size(o, &lines[i]));
		at = wire_put_number(at, LINE_FUNCTION_ID, o->function_ids[lines[i].function]);
		at = wire_put_number(at, LINE_LINE, (uint64_t)lines[i].line);
		at = wire_put_number(at, LINE_COLUMN, (uint64_t)lines[i].column);
	}
	at = wire_put_number(at, LOCATION_IS_FOLDED, row->is_folded);
	buf_commit(o->out, (size_t)(at - start));
}

static void add_function(struct pprof_out *o, uint32_t id, uint32_t index)
{
	const struct model_function *row = &o->m->functions[index];
	uint32_t name = si_of(o, row->name), system_name = si_of(o, row->system_name), file = si_of(o, row->filename);
	uint64_t kind = o->says_kind[index] ? (uint64_t)row->kind + 1 : 0;

	wire_add_tag(o->out, PROFILE_FUNCTION, WIRE_BYTES);
	wire_add_varint(o->out, wire_number_size(FUNCTION_ID, id) + wire_number_size(FUNCTION_NAME, name) +
					wire_number_size(FUNCTION_SYSTEM_NAME, system_name) +
					wire_number_size(FUNCTION_FILENAME, file) +
					wire_number_size(FUNCTION_START_LINE, (uint64_t)row->start_line) +
					wire_number_size(FUNCTION_KIND, kind));
	wire_add_number(o->out, FUNCTION_ID, id);
	wire_add_number(o->out, FUNCTION_NAME, name);
	wire_add_number(o->out, FUNCTION_SYSTEM_NAME, system_name);
	wire_add_number(o->out, FUNCTION_FILENAME, file);
	wire_add_number(o->out, FUNCTION_START_LINE, (uint64_t)row->start_line);
	wire_add_number(o->out, FUNCTION_KIND, kind);
}

/* String indexes of all comments, the window's first. */
static uint32_t comment_si(struct pprof_out *o, size_t i)
{
	if (i < o->comments_count)
		return si_of_text(o, intern_get(&o->extra, o->comments[i]));
	return si_of(o, o->m->comments[i - o->comments_count]);
}

static void add_comments(struct pprof_out *o)
{
	size_t count = o->comments_count + o->m->comments_count, size = 0;

	for (size_t i = 0; i < count; i++)
		size += wire_varint_size(comment_si(o, i));
	if (count > 2) {
		wire_add_tag(o->out, PROFILE_COMMENT, WIRE_BYTES);
		wire_add_varint(o->out, size);
	}
	for (size_t i = 0; i < count; i++) {
		if (count <= 2)
			wire_add_tag(o->out, PROFILE_COMMENT, WIRE_VARINT);
		wire_add_varint(o->out, comment_si(o, i));
	}
}

/* The model's own times win: a merge keeps those up to date. */
static uint64_t time_of(const struct window *w)
{
	return w->model->time_ns ? (uint64_t)w->model->time_ns : w->start_ns;
}

static void add_tail(struct pprof_out *o)
{
	const struct model *m = o->m;
	uint32_t drop = si_of(o, m->drop_frames), keep = si_of(o, m->keep_frames);
	uint32_t default_type, doc_url;

	ignore(si_of(o, m->period_type.type)); /* numbered here, written below */
	ignore(si_of(o, m->period_type.unit));
	for (size_t i = 0; i < o->comments_count + m->comments_count; i++)
		ignore(comment_si(o, i)); /* as above */
	default_type = si_of(o, m->default_type);
	doc_url = si_of(o, m->doc_url);
	for (size_t i = 0; i < o->order_count; i++)
		wire_add_bytes(o->out, PROFILE_STRING_TABLE, o->order[i]);
	wire_add_number(o->out, PROFILE_DROP_FRAMES, drop);
	wire_add_number(o->out, PROFILE_KEEP_FRAMES, keep);
	wire_add_number(o->out, PROFILE_TIME_NANOS, time_of(o->w));
	wire_add_number(o->out, PROFILE_DURATION_NANOS, window_duration_ns(o->w));
	if (m->period_type.type || m->period_type.unit)
		add_value_type(o, PROFILE_PERIOD_TYPE, m->period_type);
	wire_add_number(o->out, PROFILE_PERIOD, (uint64_t)m->period);
	add_comments(o);
	wire_add_tag(o->out, PROFILE_DEFAULT_SAMPLE_TYPE, WIRE_VARINT); /* always: so does the reference */
	wire_add_varint(o->out, default_type);
	wire_add_number(o->out, PROFILE_DOC_URL, doc_url);
}

int pprof_encode_plain(const struct window *w, struct buf *out)
{
	scoped(pprof_out_release) struct pprof_out o = { .w = w, .m = w->model, .out = out };
	int r = prepare_strings(&o);

	r = r ? r : prepare_tables(&o);
	for (size_t i = 0; r == 0 && i < o.m->value_type_count; i++)
		add_value_type(&o, PROFILE_SAMPLE_TYPE, o.m->value_types[i]);
	for (size_t i = 0, more; r == 0 && i < o.m->samples_count; i += more + 1) {
		more = count_moments(&o, i);
		r = add_sample(&o, &o.m->samples[i], more);
	}
	if (r < 0)
		return r;
	note_locations(&o);
	add_mappings(&o);
	for (uint32_t i = 1; i < o.m->locations_count; i++)
		add_location(&o, i);
	for (uint32_t i = 0; i < o.function_count; i++)
		add_function(&o, i + 1, o.function_rows[i]);
	add_tail(&o);
	return out->error;
}

int pprof_encode_level(const struct window *w, int level, struct buf *out)
{
	scoped(buf_release) struct buf plain =
		BUF_INIT(MIN(out->max > SIZE_MAX / 1032 ? SIZE_MAX : out->max * 1032, GIB(4)));
	int r = pprof_encode_plain(w, &plain);

	return r ? r : gzip_pack(buf_str(&plain), level, out);
}

static int encode(const struct window *w, struct buf *out)
{
	return pprof_encode_level(w, PPROF_GZIP_LEVEL, out);
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	return pprof_decode_limited(bytes, &(struct codec_limits){ 0 }, out, error);
}

/* Sample types come first in what everybody writes: field 1, a short message. */
static int sniff(struct str bytes)
{
	return gzip_is(bytes) || (bytes.len > 4 && bytes.ptr[0] == 0x0a && bytes.ptr[1] <= 22 && bytes.ptr[2] == 0x08);
}

static const char *const suffixes[] = { ".pb.gz", ".pprof", ".prof", ".pb", NULL };

const struct codec codec_pprof = {
	.name = "pprof",
	.suffixes = suffixes,
	.help = "profile.proto of google/pprof, gzip",
	.has_labels = true,
	.encode = encode,
	.sniff = sniff,
	.decode = decode,
	.decode_limited = pprof_decode_limited,
};
