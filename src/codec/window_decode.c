/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the window format: one pass, since fields come in ascending order and a table refers to earlier ones only. */
#include "base/array.h"
#include "base/wire.h"
#include "codec/window_int.h"

struct window_in {
	struct window *w;
	struct model *m;
	struct codec_error *error;
	const char *reason; /* of the first failure */
	struct model_line *lines;
	size_t lines_cap;
	size_t workloads, service_kinds; /* processes that were told theirs */
};

static void window_in_release(struct window_in *in)
{
	free(in->lines);
}

static int bad(struct window_in *in, const char *reason)
{
	in->reason = reason;
	return -EBADMSG;
}

/* A number that must be below @count; the cursor goes bad otherwise. */
static uint32_t row_of(struct cur *c, uint64_t count)
{
	uint64_t value = wire_varint(c);

	if (value >= count || value > UINT32_MAX) {
		c->bad = true;
		return 0;
	}
	return (uint32_t)value;
}

static uint32_t string_of(struct window_in *in, struct cur *c)
{
	return row_of(c, intern_count(&in->m->strings));
}

/* Tables carry every row once and in order: an equal earlier row means rubbish. */
static int expect(struct window_in *in, int r, const uint32_t *got, size_t want)
{
	return r < 0 ? r : *got == want ? 0 : bad(in, "a table has the same row twice");
}

static int read_text(struct window_in *in, struct str text, char **field)
{
	if (text.len && memchr(text.ptr, 0, text.len))
		return bad(in, "a text with a NUL byte");
	return window_set_text(field, text);
}

static int read_number(struct window_in *in, const struct wire_field *f)
{
	struct window *w = in->w;
	uint64_t *const large[WINDOW_NUMBERS] = { &w->start_ns,  &w->end_ns,    NULL,         NULL,
						  &w->run_id[0], &w->run_id[1], &w->cycle_id, &w->busy_ns };
	size_t i = (size_t)(f->number - WINDOW_FIELD_NUMBERS);

	if (large[i])
		*large[i] = f->value;
	else if (f->value > UINT32_MAX)
		return bad(in, "a number out of range");
	else
		*(i == 2 ? &w->frequency_hz : &w->cpu_count) = (uint32_t)f->value;
	return 0;
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static int read_pair(struct window_in *in, const struct wire_field *f)
{
	struct str key = STR(""), value = STR("");
	size_t before = f->number == WINDOW_FIELD_LABEL ? in->w->label_count : in->w->counter_count;
	struct cur c = f->bytes;
	struct wire_field part;
	uint64_t number = 0;
	uint32_t got;
	int r;

	while (wire_next(&c, &part)) {
		if (part.number == 1 && wire_fits(&c, &part, WIRE_BYTES))
			key = wire_str(&part);
		else if (part.number == 2 && f->number == WINDOW_FIELD_LABEL && wire_fits(&c, &part, WIRE_BYTES))
			value = wire_str(&part);
		else if (part.number == 2 && f->number == WINDOW_FIELD_COUNTER && wire_fits(&c, &part, WIRE_VARINT))
			number = part.value;
	}
	if (c.bad || (key.len && memchr(key.ptr, 0, key.len)) || (value.len && memchr(value.ptr, 0, value.len)))
		return bad(in, "malformed label or counter");
	if (f->number == WINDOW_FIELD_LABEL) {
		r = window_add_label(in->w, key, value);
		got = (uint32_t)in->w->label_count;
	} else {
		r = window_set_counter(in->w, key, number);
		got = (uint32_t)in->w->counter_count;
	}
	return expect(in, r, &got, before + 1);
}

static int read_string(struct window_in *in, const struct wire_field *f)
{
	size_t want = intern_count(&in->m->strings);
	uint32_t id = 0;
	int r = model_add_string(in->m, wire_str(f), &id);

	return expect(in, r, &id, want);
}

static int read_mapping(struct window_in *in, struct cur *c)
{
	size_t want = in->m->mappings_count;
	struct model_mapping row = { .start = wire_varint(c) };
	uint32_t got = 0;

	row.limit = row.start + wire_varint(c);
	row.file_offset = wire_varint(c);
	row.filename = string_of(in, c);
	row.build_id = string_of(in, c);
	row.flags = row_of(c, (uint64_t)UINT32_MAX + 1);
	return c->bad ? -EBADMSG : expect(in, model_add_mapping(in->m, &row, &got), &got, want);
}

static int read_function(struct window_in *in, struct cur *c)
{
	size_t want = in->m->functions_count;
	struct model_function row = { .name = string_of(in, c) };
	uint32_t got = 0;

	row.system_name = string_of(in, c);
	row.filename = string_of(in, c);
	row.kind = (enum model_kind)row_of(c, MODEL_KIND_COUNT);
	row.start_line = unzigzag(wire_varint(c));
	return c->bad ? -EBADMSG : expect(in, model_add_function(in->m, &row, &got), &got, want);
}

static int read_location(struct window_in *in, struct cur *c)
{
	size_t want = in->m->locations_count;
	struct model_location row = { .mapping = row_of(c, in->m->mappings_count) };
	uint64_t count;
	uint32_t got = 0;
	int r = 0;

	row.address = in->m->mappings[row.mapping].start + wire_varint(c);
	count = wire_varint(c);
	row.is_folded = count & 1;
	if (count >> 1 > cur_left(c) / 3) /* a line takes three bytes at least */
		return -EBADMSG;
	row.line_count = (uint32_t)(count >> 1);
	for (size_t i = 0; i < row.line_count; i++) {
		r = array_grow(&in->lines, &in->lines_cap, i, UINT32_MAX);
		if (r < 0)
			return r;
		in->lines[i].function = row_of(c, in->m->functions_count);
		in->lines[i].line = unzigzag(wire_varint(c));
		in->lines[i].column = unzigzag(wire_varint(c));
	}
	return c->bad ? -EBADMSG : expect(in, model_add_location(in->m, &row, in->lines, &got), &got, want);
}

static int read_stack(struct window_in *in, struct cur *c)
{
	size_t want = in->m->stacks_count;
	uint64_t up = wire_varint(c);
	uint32_t location = row_of(c, in->m->locations_count), got = 0;

	if (c->bad || !up || up > want)
		return -EBADMSG;
	return expect(in, model_add_stack(in->m, (uint32_t)(want - up), location, &got), &got, want);
}

static int read_app_metadata(struct window_in *in, struct cur *c)
{
	size_t want = in->m->app_metadata_count;
	uint32_t id = string_of(in, c), got = 0;

	return c->bad ? -EBADMSG : expect(in, model_add_app_metadata(in->m, model_string(in->m, id), &got), &got, want);
}

static int read_process(struct window_in *in, struct cur *c)
{
	size_t want = in->m->processes_count;
	struct model_process row = { .pid = row_of(c, (uint64_t)UINT32_MAX + 1) };
	uint32_t got = 0;

	row.start_ns = wire_varint(c);
	row.comm = string_of(in, c);
	row.container = string_of(in, c);
	row.app_id = string_of(in, c);
	row.app_metadata = row_of(c, in->m->app_metadata_count);
	return c->bad ? -EBADMSG : expect(in, model_add_process(in->m, &row, &got), &got, want);
}

static int read_thread(struct window_in *in, struct cur *c)
{
	size_t want = in->m->threads_count;
	struct model_thread row = { .process = row_of(c, in->m->processes_count) };
	uint32_t got = 0;

	row.tid = row_of(c, (uint64_t)UINT32_MAX + 1);
	row.name = string_of(in, c);
	return c->bad ? -EBADMSG : expect(in, model_add_thread(in->m, &row, &got), &got, want);
}

static int read_label_set(struct window_in *in, struct cur *c)
{
	size_t want = in->m->label_sets_count;
	uint64_t count = wire_varint(c);
	struct model_label labels[MODEL_LABELS_MAX / 2], *row;
	scoped(freep) struct model_label *many = NULL;
	uint32_t got = 0;

	if (count > MODEL_LABELS_MAX)
		return -E2BIG;
	if (count > ARRAY_SIZE(labels)) {
		many = calloc((size_t)count, sizeof(*many));
		if (!many)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t key = wire_varint(c);

		row = many ? &many[i] : &labels[i];
		*row = (struct model_label){ .is_number = key & 1 };
		if (key >> 1 >= intern_count(&in->m->strings))
			return -EBADMSG;
		row->key = (uint32_t)(key >> 1);
		if (row->is_number) {
			row->number = unzigzag(wire_varint(c));
			row->unit = string_of(in, c);
		} else {
			row->text = string_of(in, c);
		}
	}
	if (c->bad)
		return -EBADMSG;
	return expect(in, model_add_label_set(in->m, many ? many : labels, (size_t)count, &got), &got, want);
}

static int read_comment(struct window_in *in, struct cur *c)
{
	uint32_t id = string_of(in, c);

	return c->bad ? -EBADMSG : model_add_comment(in->m, model_string(in->m, id));
}

static int read_header(struct window_in *in, struct cur *c)
{
	struct model *m = in->m;

	m->period_type.type = string_of(in, c);
	m->period_type.unit = string_of(in, c);
	m->period = unzigzag(wire_varint(c));
	m->time_ns = unzigzag(wire_varint(c));
	m->duration_ns = unzigzag(wire_varint(c));
	m->drop_frames = string_of(in, c);
	m->keep_frames = string_of(in, c);
	m->default_type = string_of(in, c);
	m->doc_url = string_of(in, c);
	while (cur_left(c)) {
		struct model_value_type row = { .type = string_of(in, c) };

		row.unit = string_of(in, c);
		if (m->value_type_count == MODEL_VALUE_TYPES_MAX)
			return -E2BIG;
		m->value_types[m->value_type_count++] = row;
	}
	return c->bad ? -EBADMSG : 0;
}

static int read_sample(struct window_in *in, struct cur *c)
{
	struct model *m = in->m;
	struct model_sample row = { .stack = row_of(c, m->stacks_count) };
	int64_t values[MODEL_VALUE_TYPES_MAX];

	row.process = row_of(c, m->processes_count);
	row.thread = row_of(c, m->threads_count);
	row.label_set = row_of(c, m->label_sets_count);
	row.end = string_of(in, c);
	row.time_offset_ns = wire_varint(c) - 1; /* 0 becomes MODEL_NO_TIME */
	for (size_t i = 0; i < m->value_type_count; i++)
		values[i] = unzigzag(wire_varint(c));
	return c->bad ? -EBADMSG : model_add_sample(m, &row, values);
}

static int read_workload(struct window_in *in, struct cur *c)
{
	uint32_t id = string_of(in, c);

	if (c->bad || ++in->workloads >= in->m->processes_count)
		return -EBADMSG;
	in->m->processes[in->workloads].workload = id;
	return 0;
}

static int read_service_kind(struct window_in *in, struct cur *c)
{
	uint32_t id = string_of(in, c);

	if (c->bad || ++in->service_kinds >= in->m->processes_count)
		return -EBADMSG;
	in->m->processes[in->service_kinds].service_kind = id;
	return 0;
}

typedef int row_fn(struct window_in *in, struct cur *c);

static row_fn *const tables[] = {
	[WINDOW_FIELD_MAPPINGS] = read_mapping,
	[WINDOW_FIELD_FUNCTIONS] = read_function,
	[WINDOW_FIELD_LOCATIONS] = read_location,
	[WINDOW_FIELD_STACKS] = read_stack,
	[WINDOW_FIELD_APP_METADATA] = read_app_metadata,
	[WINDOW_FIELD_PROCESSES] = read_process,
	[WINDOW_FIELD_THREADS] = read_thread,
	[WINDOW_FIELD_LABEL_SETS] = read_label_set,
	[WINDOW_FIELD_HEADER] = read_header,
	[WINDOW_FIELD_COMMENTS] = read_comment,
	[WINDOW_FIELD_SAMPLES] = read_sample,
	[WINDOW_FIELD_WORKLOADS] = read_workload,
	[WINDOW_FIELD_SERVICE_KINDS] = read_service_kind,
};

static int read_table(struct window_in *in, const struct wire_field *f)
{
	struct cur c = f->bytes;
	int r = 0;

	while (r == 0 && cur_left(&c))
		r = tables[f->number](in, &c);
	if (r == -EBADMSG && !in->reason)
		return bad(in, "malformed table, or a row that refers to a missing one");
	return r;
}

/* The wire type that a known field must have; -1 for unknown ones. */
static int type_of(uint64_t number)
{
	if (number >= WINDOW_FIELD_VERSION && number < WINDOW_FIELD_TEXTS)
		return WIRE_VARINT;
	if (number == WINDOW_FIELD_CPU_AVERAGE || number == WINDOW_FIELD_MEMORY_AVERAGE)
		return WIRE_FIXED64;
	if (number == WINDOW_FIELD_MAGIC || (number >= WINDOW_FIELD_TEXTS && number <= WINDOW_FIELD_COUNTER) ||
	    (number >= WINDOW_FIELD_STRING && number <= WINDOW_FIELD_SERVICE_KINDS))
		return WIRE_BYTES;
	return -1;
}

static int read_field(struct window_in *in, const struct wire_field *f)
{
	if (f->number == WINDOW_FIELD_MAGIC)
		return str_eq(wire_str(f), STR(WINDOW_MAGIC)) ? 0 : bad(in, "no hearth window");
	if (f->number == WINDOW_FIELD_VERSION) {
		in->reason = f->value == WINDOW_VERSION ? NULL : "a later version of the format";
		return f->value == WINDOW_VERSION ? 0 : -ENOTSUP;
	}
	if (f->number < WINDOW_FIELD_TEXTS)
		return read_number(in, f);
	if (f->number < WINDOW_FIELD_TEXTS + WINDOW_TEXTS)
		return read_text(in, wire_str(f), window_text_at(in->w, (size_t)(f->number - WINDOW_FIELD_TEXTS)));
	if (f->number <= WINDOW_FIELD_MEMORY_AVERAGE) {
		*(f->number == WINDOW_FIELD_CPU_AVERAGE ? &in->w->cpu_average : &in->w->memory_average) =
			double_of(f->value);
		return 0;
	}
	if (f->number <= WINDOW_FIELD_COUNTER)
		return read_pair(in, f);
	return f->number == WINDOW_FIELD_STRING ? read_string(in, f) : read_table(in, f);
}

static bool repeats(uint64_t number)
{
	return number == WINDOW_FIELD_LABEL || number == WINDOW_FIELD_COUNTER || number == WINDOW_FIELD_STRING;
}

static int read_window(struct window_in *in, struct cur *c)
{
	uint64_t last = 0;
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(c, &f)) {
		int type = type_of(f.number);

		if (last < WINDOW_FIELD_VERSION && f.number != last + 1)
			return bad(in, "does not start like a hearth window");
		if (type < 0)
			continue; /* of a later minor version */
		if (f.type != (unsigned int)type)
			return bad(in, "known field of a wrong wire type");
		if (f.number < last || (f.number == last && !repeats(last)))
			return bad(in, "fields out of order");
		last = f.number;
		r = read_field(in, &f);
	}
	if (r == 0 && (c->bad || last < WINDOW_FIELD_VERSION))
		return bad(in, "malformed or cut off");
	return r;
}

static int decode(struct str bytes, struct window *out, struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(window_in_release) struct window_in in = { .error = error, .w = &w };
	struct cur c = cur_of(bytes.ptr, bytes.len);
	const uint8_t *start = c.pos;
	int r = bytes.len > WINDOW_ENCODED_MAX ? -E2BIG : window_init(&w, bytes.len);

	in.m = w.model;
	r = r ? r : read_window(&in, &c);
	if (r < 0) {
		codec_fail(error, (uint64_t)(c.pos - start), false, "%s",
			   in.reason      ? in.reason
			   : r == -ENOMEM ? "out of memory"
					  : "too many or too long entries");
		return r;
	}
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

static int sniff(struct str bytes)
{
	return str_starts(bytes, STR("\x0a\x0d" WINDOW_MAGIC));
}

static const char *const suffixes[] = { ".hwin", NULL };

const struct codec codec_window = {
	.name = "window",
	.suffixes = suffixes,
	.help = "everything hearth knows of one window, for its own use",
	.has_labels = true,
	.encode = window_encode,
	.sniff = sniff,
	.decode = decode,
};
