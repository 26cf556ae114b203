/* SPDX-License-Identifier: Apache-2.0 */
/* Reading pprof. One pass over the top level finds the tables (messages may come in any order, so nothing can be
 * resolved before its end), then tables, then a second pass for the samples. Nothing is allocated from a number that
 * the file only claims. */
#include "base/array.h"
#include "base/u64map.h"
#include "codec/gzip.h"
#include "codec/pprof_int.h"
#include "codec/pprof_legacy.h"
#include "codec/wire.h"

#define ROWS_MAX ((size_t)UINT32_MAX - 1)
#define COMMENTS_MAX 65536
#define SAMPLES_BATCH 64   /* whose stacks are added together */
#define FRAMES_BATCH 65536 /* fewer samples when stacks are deep */
#define LINES_MAX 65536    /* inlined functions of one location */

struct span {
	uint32_t at, size; /* in the expanded bytes, which are below 4 GiB */
};

struct span_list {
	struct span *items;
	size_t count, cap;
};

struct function_in {
	uint64_t id, name, system_name, filename; /* string indexes, checked */
	int64_t start_line;
	uint64_t kind;   /* 0: what the mapping says; else enum model_kind + 1 */
	uint32_t native; /* row in the model when used as a native function, or 0 */
};

/* Ids of a table to rows of it: an array for ids up to the number of rows, a hash for the rest. Values are row + 1. */
struct id_table {
	uint32_t *dense;
	size_t dense_count;
	struct u64map sparse;
};

struct pprof_in {
	struct str bytes;
	struct window *window;
	struct model *m;
	struct codec_error *error;
	struct span_list strings, mappings, locations, functions, types;
	uint32_t *string_ids; /* model ids + 1, 0: not looked up yet */
	uint64_t *comments;
	size_t comments_count, comments_cap;
	struct span period_type;
	uint64_t drop_frames, keep_frames, default_type, doc_url;
	struct function_in *function_rows;
	size_t function_rows_count, function_rows_cap;
	struct id_table mapping_ids, location_ids, function_ids;
	uint32_t label_keys[PPROF_LABEL_COUNT];
	/* Scratch of the row being read */
	struct model_line *lines;
	size_t lines_count, lines_cap;
	uint32_t *frames, *nodes; /* of the batch's samples: location rows, leaf first; stack rows, root first */
	size_t frames_count, frames_cap, nodes_cap;
	size_t batch_ends[SAMPLES_BATCH], batch_count; /* the batch's samples are the model's last ones */
	struct model_label *labels;                    /* MODEL_LABELS_MAX */
	size_t label_count;
};

static void id_table_release(struct id_table *t)
{
	free(t->dense);
	u64map_release(&t->sparse);
}

static void pprof_in_release(struct pprof_in *in)
{
	free(in->strings.items);
	free(in->mappings.items);
	free(in->locations.items);
	free(in->functions.items);
	free(in->types.items);
	free(in->string_ids);
	free(in->comments);
	free(in->function_rows);
	id_table_release(&in->mapping_ids);
	id_table_release(&in->location_ids);
	id_table_release(&in->function_ids);
	free(in->lines);
	free(in->frames);
	free(in->nodes);
	free(in->labels);
}

static uint64_t position(const struct pprof_in *in, const struct cur *c)
{
	return (uint64_t)((const char *)c->pos - in->bytes.ptr);
}

static int bad(const struct pprof_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -EBADMSG;
}

static int too_big(const struct pprof_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -E2BIG;
}

/* Gives a failed model or array operation its reason. */
static int failed(const struct pprof_in *in, uint64_t at, int r)
{
	if (r < 0)
		codec_fail(in->error, at, false, "%s", r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

static struct cur span_cur(const struct pprof_in *in, struct span span)
{
	return cur_of(in->bytes.ptr + span.at, span.size);
}

static int span_add(struct pprof_in *in, struct span_list *list, const struct wire_field *f)
{
	int r = array_grow(&list->items, &list->cap, list->count, ROWS_MAX);

	if (r < 0)
		return failed(in, position(in, &f->bytes), r);
	list->items[list->count++] = (struct span){ (uint32_t)position(in, &f->bytes), (uint32_t)cur_left(&f->bytes) };
	return 0;
}

/* Ids */

static int id_table_init(struct id_table *t, size_t count)
{
	t->dense_count = count + 1;
	t->dense = calloc(t->dense_count, sizeof(*t->dense));
	u64map_init(&t->sparse, count);
	return t->dense ? 0 : -ENOMEM;
}

static uint32_t id_find(const struct id_table *t, uint64_t id)
{
	uint32_t row = 0;

	if (id < t->dense_count)
		return t->dense[id];
	ignore(u64map_get(&t->sparse, id, &row)); /* not found leaves 0 */
	return row;
}

/* Return: 0, -EEXIST or -ENOMEM. */
static int id_add(struct id_table *t, uint64_t id, uint32_t row)
{
	if (id_find(t, id))
		return -EEXIST;
	if (id >= t->dense_count)
		return u64map_put(&t->sparse, id, row);
	t->dense[id] = row;
	return 0;
}

static int table_id(struct pprof_in *in, struct id_table *t, uint64_t id, uint32_t row, uint64_t at, const char *what)
{
	int r;

	if (!id) {
		codec_fail(in->error, at, false, "%s with id 0", what);
		return -EBADMSG;
	}
	r = id_add(t, id, row);
	if (r == -EEXIST) {
		codec_fail(in->error, at, false, "two %ss have the id %llu", what, (unsigned long long)id);
		return -EBADMSG;
	}
	return failed(in, at, r);
}

/* Strings */

static int string_check(const struct pprof_in *in, uint64_t si, uint64_t at)
{
	return si < in->strings.count ? 0 : bad(in, at, "string index outside the string table");
}

static int string_id(struct pprof_in *in, uint64_t si, uint64_t at, uint32_t *out)
{
	struct span span;
	uint32_t id;
	int r = string_check(in, si, at);

	if (r < 0)
		return r;
	if (in->string_ids[si]) {
		*out = in->string_ids[si] - 1;
		return 0;
	}
	span = in->strings.items[si];
	r = model_add_string(in->m, str_n(in->bytes.ptr + span.at, span.size), &id);
	if (r < 0)
		return failed(in, at, r);
	in->string_ids[si] = id + 1;
	*out = id;
	return 0;
}

/* First pass */

static int scan_time(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	if (f->value && in->m->time_ns)
		return bad(in, at, "concatenated profiles detected");
	if (f->value)
		in->m->time_ns = (int64_t)f->value;
	return 0;
}

static int add_comment(struct pprof_in *in, uint64_t si, uint64_t at)
{
	int r = array_grow(&in->comments, &in->comments_cap, in->comments_count, COMMENTS_MAX);

	if (r < 0)
		return failed(in, at, r);
	in->comments[in->comments_count++] = si;
	return 0;
}

static int scan_comments(struct pprof_in *in, struct wire_field *f, uint64_t at)
{
	int r = 0;

	if (f->type == WIRE_VARINT)
		return add_comment(in, f->value, at);
	if (f->type != WIRE_BYTES)
		return bad(in, at, "comment of a wrong wire type");
	while (r == 0 && cur_left(&f->bytes)) {
		uint64_t si = wire_varint(&f->bytes);

		r = f->bytes.bad ? bad(in, at, "malformed number") : add_comment(in, si, at);
	}
	return r;
}

static int scan_message(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		if (in->types.count == MODEL_VALUE_TYPES_MAX)
			return too_big(in, at, "too many sample types");
		return span_add(in, &in->types, f);
	case PROFILE_MAPPING:
		return span_add(in, &in->mappings, f);
	case PROFILE_LOCATION:
		return span_add(in, &in->locations, f);
	case PROFILE_FUNCTION:
		return span_add(in, &in->functions, f);
	case PROFILE_STRING_TABLE:
		if (!in->strings.count && cur_left(&f->bytes))
			return bad(in, at, "the first string is not empty");
		return span_add(in, &in->strings, f);
	case PROFILE_PERIOD_TYPE:
		in->period_type = (struct span){ (uint32_t)position(in, &f->bytes), (uint32_t)cur_left(&f->bytes) };
		break;
	default: /* samples come in the second pass */
		break;
	}
	return 0;
}

static int scan_number(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	switch (f->number) {
	case PROFILE_DROP_FRAMES:
		in->drop_frames = f->value;
		break;
	case PROFILE_KEEP_FRAMES:
		in->keep_frames = f->value;
		break;
	case PROFILE_TIME_NANOS:
		return scan_time(in, f, at);
	case PROFILE_DURATION_NANOS:
		in->m->duration_ns = (int64_t)f->value;
		break;
	case PROFILE_PERIOD:
		in->m->period = (int64_t)f->value;
		break;
	case PROFILE_DEFAULT_SAMPLE_TYPE:
		in->default_type = f->value;
		break;
	default:
		in->doc_url = f->value;
		break;
	}
	return 0;
}

static int scan_field(struct pprof_in *in, struct wire_field *f, uint64_t at)
{
	bool is_message = f->number <= PROFILE_STRING_TABLE || f->number == PROFILE_PERIOD_TYPE;

	if (!f->number || f->number > PROFILE_DOC_URL)
		return 0;
	if (f->number == PROFILE_COMMENT)
		return scan_comments(in, f, at);
	if (f->type != (is_message ? WIRE_BYTES : WIRE_VARINT))
		return bad(in, at, "known field of a wrong wire type");
	return is_message ? scan_message(in, f, at) : scan_number(in, f, at);
}

static int scan(struct pprof_in *in)
{
	struct cur c = cur_of(in->bytes.ptr, in->bytes.len);
	uint64_t at = 0;
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		r = scan_field(in, &f, at);
		at = position(in, &c);
	}
	if (r == 0 && c.bad)
		return bad(in, at, "malformed or cut off protobuf field");
	if (r == 0 && !in->strings.count)
		return bad(in, in->bytes.len, "no string table");
	return r;
}

/* Tables */

static int read_type(struct pprof_in *in, struct span span, struct model_value_type *out)
{
	struct cur c = span_cur(in, span);
	uint64_t type = 0, unit = 0;
	struct wire_field f;
	int r;

	while (wire_next(&c, &f)) {
		if ((f.number == 1 || f.number == 2) && wire_fits(&c, &f, WIRE_VARINT))
			*(f.number == 1 ? &type : &unit) = f.value;
	}
	if (c.bad)
		return bad(in, span.at, "malformed value type");
	r = string_id(in, type, span.at, &out->type);
	return r ? r : string_id(in, unit, span.at, &out->unit);
}

static int read_header(struct pprof_in *in)
{
	struct model *m = in->m;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->types.count; i++) {
		r = read_type(in, in->types.items[i], &m->value_types[i]);
		m->value_type_count = i + 1;
	}
	r = r ? r : read_type(in, in->period_type, &m->period_type);
	r = r ? r : string_id(in, in->drop_frames, 0, &m->drop_frames);
	r = r ? r : string_id(in, in->keep_frames, 0, &m->keep_frames);
	r = r ? r : string_id(in, in->default_type, 0, &m->default_type);
	r = r ? r : string_id(in, in->doc_url, 0, &m->doc_url);
	for (size_t i = 0; r == 0 && i < in->comments_count; i++) {
		uint32_t id;

		r = string_id(in, in->comments[i], 0, &id);
		if (r == 0)
			r = failed(in, 0, model_add_comment(m, model_string(m, id)));
	}
	return r;
}

static int read_mapping(struct pprof_in *in, struct span span)
{
	struct model_mapping row = { 0 };
	uint64_t id = 0, filename = 0, build_id = 0, flag;
	struct cur c = span_cur(in, span);
	struct wire_field f;
	uint32_t added;
	int r;

	while (wire_next(&c, &f)) {
		if (f.number < MAPPING_ID || f.number > MAPPING_HAS_INLINE_FRAMES || !wire_fits(&c, &f, WIRE_VARINT))
			continue;
		if (f.number == MAPPING_ID)
			id = f.value;
		else if (f.number == MAPPING_START)
			row.start = f.value;
		else if (f.number == MAPPING_LIMIT)
			row.limit = f.value;
		else if (f.number == MAPPING_OFFSET)
			row.file_offset = f.value;
		else if (f.number == MAPPING_FILENAME)
			filename = f.value;
		else if (f.number == MAPPING_BUILD_ID)
			build_id = f.value;
		else {
			flag = UINT64_C(1) << (f.number - MAPPING_HAS_FUNCTIONS);
			row.flags = (uint32_t)(f.value ? row.flags | flag : row.flags & ~flag);
		}
	}
	if (c.bad)
		return bad(in, span.at, "malformed mapping");
	r = string_id(in, filename, span.at, &row.filename);
	r = r ? r : string_id(in, build_id, span.at, &row.build_id);
	r = r ? r : failed(in, span.at, model_add_mapping(in->m, &row, &added));
	return r ? r : table_id(in, &in->mapping_ids, id, added, span.at, "mapping");
}

static int read_function(struct pprof_in *in, struct span span)
{
	struct function_in row = { 0 };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r;

	while (wire_next(&c, &f)) {
		bool known = (f.number >= FUNCTION_ID && f.number <= FUNCTION_START_LINE) || f.number == FUNCTION_KIND;

		if (!known || !wire_fits(&c, &f, WIRE_VARINT))
			continue;
		if (f.number == FUNCTION_ID)
			row.id = f.value;
		else if (f.number == FUNCTION_NAME)
			row.name = f.value;
		else if (f.number == FUNCTION_SYSTEM_NAME)
			row.system_name = f.value;
		else if (f.number == FUNCTION_FILENAME)
			row.filename = f.value;
		else if (f.number == FUNCTION_START_LINE)
			row.start_line = (int64_t)f.value;
		else
			row.kind = f.value <= MODEL_KIND_COUNT ? f.value : 0; /* kinds of later versions: not known */
	}
	if (c.bad)
		return bad(in, span.at, "malformed function");
	r = string_check(in, row.name, span.at);
	r = r ? r : string_check(in, row.system_name, span.at);
	r = r ? r : string_check(in, row.filename, span.at);
	if (r == 0)
		r = failed(in, span.at,
			   array_grow(&in->function_rows, &in->function_rows_cap, in->function_rows_count, ROWS_MAX));
	if (r < 0)
		return r;
	in->function_rows[in->function_rows_count++] = row;
	return table_id(in, &in->function_ids, row.id, (uint32_t)in->function_rows_count, span.at, "function");
}

/* The function as a row of the model; the mapping decides its kind unless the file says it. */
static int use_function(struct pprof_in *in, uint64_t id, enum model_kind kind, uint64_t at, uint32_t *out)
{
	uint32_t found = id_find(&in->function_ids, id);
	struct model_function row = { 0 };
	struct function_in *from;
	int r;

	if (!found) {
		codec_fail(in->error, at, false, "a line's function %llu is missing", (unsigned long long)id);
		return -EBADMSG;
	}
	from = &in->function_rows[found - 1];
	row.kind = from->kind ? (enum model_kind)(from->kind - 1) : kind;
	if (row.kind == MODEL_KIND_NATIVE && from->native) {
		*out = from->native;
		return 0;
	}
	row.start_line = from->start_line;
	r = string_id(in, from->name, at, &row.name);
	r = r ? r : string_id(in, from->system_name, at, &row.system_name);
	r = r ? r : string_id(in, from->filename, at, &row.filename);
	r = r ? r : failed(in, at, model_add_function(in->m, &row, out));
	if (r == 0 && row.kind == MODEL_KIND_NATIVE)
		from->native = *out;
	return r;
}

/* A line's function id is kept in `function` as the row of function_rows + 1 until the location's mapping is known. */
static int read_line(struct pprof_in *in, struct cur c, uint64_t at)
{
	struct model_line row = { 0 };
	uint64_t function = 0;
	struct wire_field f;
	int r;

	while (wire_next(&c, &f)) {
		if (f.number < LINE_FUNCTION_ID || f.number > LINE_COLUMN || !wire_fits(&c, &f, WIRE_VARINT))
			continue;
		if (f.number == LINE_FUNCTION_ID)
			function = f.value;
		else if (f.number == LINE_LINE)
			row.line = (int64_t)f.value;
		else
			row.column = (int64_t)f.value;
	}
	if (c.bad)
		return bad(in, at, "malformed line");
	row.function = id_find(&in->function_ids, function);
	if (!row.function) {
		codec_fail(in->error, at, false, "a line's function %llu is missing", (unsigned long long)function);
		return -EBADMSG;
	}
	r = failed(in, at, array_grow(&in->lines, &in->lines_cap, in->lines_count, LINES_MAX));
	if (r == 0)
		in->lines[in->lines_count++] = row;
	return r;
}

/* Functions of the lines read, and the mapping that stands for a kind where the file gives none. */
static int finish_location(struct pprof_in *in, struct model_location *row, uint64_t at)
{
	struct model *m = in->m;
	enum model_kind kind = model_kind_of_mapping(model_string(m, m->mappings[row->mapping].filename));
	struct model_mapping stand_in = { .flags = MODEL_HAS_FUNCTIONS };
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->lines_count; i++) {
		uint64_t id = in->function_rows[in->lines[i].function - 1].id;

		r = use_function(in, id, kind, at, &in->lines[i].function);
	}
	row->line_count = (uint32_t)in->lines_count;
	if (r < 0 || row->mapping || !row->line_count)
		return r;
	kind = m->functions[in->lines[row->line_count - 1].function].kind;
	if (kind == MODEL_KIND_NATIVE)
		return 0;
	r = model_add_string(m, model_kind_mapping(kind), &stand_in.filename);
	return failed(in, at, r ? r : model_add_mapping(m, &stand_in, &row->mapping));
}

static int read_location(struct pprof_in *in, struct span span)
{
	struct model_location row = { 0 };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	uint64_t id = 0;
	uint32_t added;
	int r = 0;

	in->lines_count = 0;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == LOCATION_LINE && wire_fits(&c, &f, WIRE_BYTES))
			r = read_line(in, f.bytes, span.at);
		if (f.number == LOCATION_LINE || f.number < LOCATION_ID || f.number > LOCATION_IS_FOLDED ||
		    !wire_fits(&c, &f, WIRE_VARINT))
			continue;
		if (f.number == LOCATION_ID)
			id = f.value;
		else if (f.number == LOCATION_MAPPING_ID)
			row.mapping = id_find(&in->mapping_ids, f.value); /* a missing one counts as none */
		else if (f.number == LOCATION_ADDRESS)
			row.address = f.value;
		else
			row.is_folded = f.value != 0;
	}
	if (r == 0 && c.bad)
		r = bad(in, span.at, "malformed location");
	r = r ? r : finish_location(in, &row, span.at);
	r = r ? r : failed(in, span.at, model_add_location(in->m, &row, in->lines, &added));
	return r ? r : table_id(in, &in->location_ids, id, added, span.at, "location");
}

static int read_tables(struct pprof_in *in)
{
	int r = id_table_init(&in->mapping_ids, in->mappings.count);

	r = r ? r : id_table_init(&in->location_ids, in->locations.count);
	r = failed(in, 0, r ? r : id_table_init(&in->function_ids, in->functions.count));
	for (size_t i = 0; r == 0 && i < in->mappings.count; i++)
		r = read_mapping(in, in->mappings.items[i]);
	for (size_t i = 0; r == 0 && i < in->functions.count; i++)
		r = read_function(in, in->functions.items[i]);
	for (size_t i = 0; r == 0 && i < in->locations.count; i++)
		r = read_location(in, in->locations.items[i]);
	return r;
}

/* Samples */

static int read_label(struct pprof_in *in, struct cur c, uint64_t at)
{
	uint64_t field[LABEL_NUM_UNIT + 1] = { 0 };
	struct model_label row = { 0 };
	struct wire_field f;
	int r;

	while (wire_next(&c, &f))
		if (f.number >= LABEL_KEY && f.number <= LABEL_NUM_UNIT && wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	if (c.bad)
		return bad(in, at, "malformed label");
	row.is_number = !field[LABEL_STR];
	row.number = (int64_t)field[LABEL_NUM];
	r = string_id(in, field[LABEL_KEY], at, &row.key);
	r = r ? r : string_id(in, field[LABEL_STR], at, &row.text);
	r = r ? r : string_id(in, field[LABEL_NUM_UNIT], at, &row.unit);
	if (r < 0)
		return r;
	if (!row.is_number && !row.text)
		row.is_number = true; /* an empty text under another index */
	if (row.is_number && !row.number && !row.unit)
		return 0; /* says nothing: dropped, as the reference does */
	if (!row.is_number)
		row = (struct model_label){ .key = row.key, .text = row.text };
	if (in->label_count == MODEL_LABELS_MAX)
		return too_big(in, at, "too many labels in one sample");
	in->labels[in->label_count++] = row;
	return 0;
}

/* Takes the first label of @which out of the sample when it has the form that we write. */
static bool take_label(struct pprof_in *in, enum pprof_label which, uint64_t max, uint64_t *out)
{
	bool is_number = which >= PPROF_LABEL_FIRST_NUMBER;

	for (size_t i = 0; i < in->label_count; i++) {
		const struct model_label *label = &in->labels[i];
		uint64_t value = is_number ? (uint64_t)label->number : label->text;

		if (label->key != in->label_keys[which] || label->is_number != is_number)
			continue;
		if (label->unit || value > max || !value)
			return false;
		*out = value;
		memmove(&in->labels[i], &in->labels[i + 1], (in->label_count - i - 1) * sizeof(*label));
		in->label_count--;
		return true;
	}
	return false;
}

static int lift_labels(struct pprof_in *in, struct model_sample *sample)
{
	uint64_t got[PPROF_LABEL_COUNT] = { 0 };
	struct model_process process;
	struct model_thread thread;
	bool has_process = false;
	int r = 0;

	for (int i = 0; i < PPROF_LABEL_COUNT && in->label_count; i++)
		has_process |= take_label(in, (enum pprof_label)i, UINT32_MAX, &got[i]) && i != PPROF_LABEL_THREAD &&
			       i != PPROF_LABEL_TID && i != PPROF_LABEL_STACK_END;
	sample->end = (uint32_t)got[PPROF_LABEL_STACK_END];
	process = (struct model_process){ .pid = (uint32_t)got[PPROF_LABEL_PID],
					  .comm = (uint32_t)got[PPROF_LABEL_COMM],
					  .container = (uint32_t)got[PPROF_LABEL_CONTAINER],
					  .app_id = (uint32_t)got[PPROF_LABEL_APP_ID] };
	if (has_process)
		r = model_add_process(in->m, &process, &sample->process);
	thread = (struct model_thread){ .process = sample->process,
					.tid = (uint32_t)got[PPROF_LABEL_TID],
					.name = (uint32_t)got[PPROF_LABEL_THREAD] };
	if (r == 0 && (thread.tid || thread.name))
		r = model_add_thread(in->m, &thread, &sample->thread);
	return r;
}

static int room_for_frames(struct pprof_in *in, size_t extra)
{
	int r = 0;

	while (r == 0 && in->frames_cap - in->frames_count < extra)
		r = array_grow(&in->frames, &in->frames_cap, in->frames_cap, ROWS_MAX);
	return r;
}

/* There is room. */
static int add_frame(struct pprof_in *in, uint64_t id, uint64_t at)
{
	uint32_t row = id_find(&in->location_ids, id);

	if (!row) {
		codec_fail(in->error, at, false, "a sample's location %llu is missing", (unsigned long long)id);
		return -EBADMSG;
	}
	in->frames[in->frames_count++] = row;
	return 0;
}

static int add_packed_frames(struct pprof_in *in, struct cur c, uint64_t at)
{
	int r = failed(in, at, room_for_frames(in, cur_left(&c))); /* each takes at least a byte */

	while (r == 0 && cur_left(&c)) {
		uint64_t id = wire_varint(&c);

		r = c.bad ? bad(in, at, "malformed number") : add_frame(in, id, at);
	}
	return r;
}

/* The stacks of the samples that wait for theirs. */
static int flush_batch(struct pprof_in *in)
{
	struct model_path paths[SAMPLES_BATCH];
	struct model_sample *samples;
	int r = room_for_frames(in, 1); /* so that neither array is NULL */

	while (r == 0 && in->nodes_cap < in->frames_cap)
		r = array_grow(&in->nodes, &in->nodes_cap, in->nodes_cap, ROWS_MAX);
	for (size_t i = 0, at = 0; r == 0 && i < in->batch_count; at = in->batch_ends[i++])
		paths[i] = (struct model_path){ in->frames + at, in->nodes + at, in->batch_ends[i] - at };
	r = r ? r : model_add_paths(in->m, paths, in->batch_count);
	if (r < 0)
		return r;
	samples = in->batch_count ? &in->m->samples[in->m->samples_count - in->batch_count] : NULL;
	for (size_t i = 0; i < in->batch_count; i++)
		samples[i].stack = paths[i].count ? paths[i].nodes[paths[i].count - 1] : 0;
	in->batch_count = in->frames_count = 0;
	return 0;
}

static int end_sample(struct pprof_in *in)
{
	in->batch_ends[in->batch_count++] = in->frames_count;
	return in->batch_count < SAMPLES_BATCH && in->frames_count < FRAMES_BATCH ? 0 : flush_batch(in);
}

struct sample_in {
	int64_t values[MODEL_VALUE_TYPES_MAX];
	size_t count; /* may exceed the array: then only counted */
};

static void add_value(struct sample_in *s, uint64_t value)
{
	if (s->count < MODEL_VALUE_TYPES_MAX)
		s->values[s->count] = (int64_t)value;
	s->count++;
}

/* Packed or not, also mixed. */
static int read_location_ids(struct pprof_in *in, const struct wire_field *f, uint64_t at)
{
	int r;

	if (f->type == WIRE_BYTES)
		return add_packed_frames(in, f->bytes, at);
	if (f->type != WIRE_VARINT)
		return bad(in, at, "known field of a wrong wire type");
	r = failed(in, at, room_for_frames(in, 1));
	return r ? r : add_frame(in, f->value, at);
}

static int read_values(struct pprof_in *in, struct sample_in *s, struct wire_field *f, uint64_t at)
{
	if (f->type == WIRE_VARINT)
		add_value(s, f->value);
	else if (f->type != WIRE_BYTES)
		return bad(in, at, "known field of a wrong wire type");
	while (f->type == WIRE_BYTES && cur_left(&f->bytes)) {
		uint64_t value = wire_varint(&f->bytes);

		if (f->bytes.bad)
			return bad(in, at, "malformed number");
		add_value(s, value);
	}
	return 0;
}

static int read_sample(struct pprof_in *in, struct cur c, uint64_t at)
{
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	struct sample_in s = { .count = 0 };
	struct wire_field f;
	int r = 0;

	in->label_count = 0;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == SAMPLE_LOCATION_ID)
			r = read_location_ids(in, &f, at);
		else if (f.number == SAMPLE_VALUE)
			r = read_values(in, &s, &f, at);
		else if (f.number == SAMPLE_LABEL && wire_fits(&c, &f, WIRE_BYTES))
			r = read_label(in, f.bytes, at);
	}
	if (r < 0)
		return r;
	if (c.bad)
		return bad(in, at, "malformed sample");
	if (!in->m->value_type_count)
		return bad(in, at, "samples but no sample types");
	if (s.count != in->m->value_type_count)
		return bad(in, at, "a sample's values do not match the sample types");
	r = lift_labels(in, &row);
	r = r ? r : model_add_label_set(in->m, in->labels, in->label_count, &row.label_set);
	r = r ? r : model_add_sample(in->m, &row, s.values);
	return failed(in, at, r ? r : end_sample(in));
}

static int read_samples(struct pprof_in *in)
{
	struct cur c = cur_of(in->bytes.ptr, in->bytes.len);
	struct wire_field f;
	int r = 0;

	in->labels = calloc(MODEL_LABELS_MAX, sizeof(*in->labels));
	if (!in->labels)
		return failed(in, 0, -ENOMEM);
	for (int i = 0; r == 0 && i < PPROF_LABEL_COUNT; i++)
		r = failed(in, 0, model_add_string(in->m, pprof_label_name((enum pprof_label)i), &in->label_keys[i]));
	while (r == 0 && wire_next(&c, &f))
		if (f.number == PROFILE_SAMPLE)
			r = read_sample(in, f.bytes, position(in, &f.bytes));
	return r ? r : failed(in, 0, flush_batch(in));
}

static int read_profile(struct pprof_in *in)
{
	int r = scan(in);

	if (r < 0)
		return r;
	in->string_ids = calloc(in->strings.count, sizeof(*in->string_ids));
	if (!in->string_ids)
		return failed(in, 0, -ENOMEM);
	r = read_header(in);
	r = r ? r : read_tables(in);
	r = r ? r : read_samples(in);
	return r ? r : failed(in, 0, pprof_comments_lift(in->window));
}

/* Times of the window from the profile's, where they make sense. */
static void set_times(struct window *w)
{
	const struct model *m = w->model;

	if (m->time_ns <= 0)
		return;
	w->start_ns = (uint64_t)m->time_ns;
	w->end_ns = w->start_ns + (m->duration_ns > 0 ? (uint64_t)m->duration_ns : 0); /* two of 63 bits: fits */
}

static int decode_plain(struct str bytes, struct window *out, struct codec_error *error)
{
	scoped(window_release) struct window w = { 0 };
	scoped(pprof_in_release) struct pprof_in in = { .bytes = bytes, .error = error };
	int r;

	if (!bytes.len) {
		codec_fail(error, 0, false, "empty input file");
		return -EBADMSG;
	}
	r = window_init(&w, bytes.len + KIB(64));
	if (r < 0)
		return failed(&in, 0, r);
	in.window = &w;
	in.m = w.model;
	r = read_profile(&in);
	if (r < 0)
		return r;
	set_times(&w);
	*out = w;
	w = (struct window){ 0 }; /* moved out */
	return 0;
}

int pprof_decode_limited(struct str bytes, size_t expanded_max, struct window *out, struct codec_error *error)
{
	scoped(buf_release) struct buf expanded = BUF_INIT(MIN(expanded_max, PPROF_EXPANDED_MAX));
	int r;

	if (!gzip_is(bytes)) {
		if (bytes.len <= expanded.max)
			return decode_plain(bytes, out, error);
		codec_fail(error, expanded.max, false, "larger than %zu bytes", expanded.max);
		return -E2BIG;
	}
	r = gzip_unpack(bytes, expanded.max, 0, &expanded);
	if (r == 0) {
		r = decode_plain(buf_str(&expanded), out, error);
		if (r == -EBADMSG && codec_legacy.sniff(buf_str(&expanded))) /* packed too: only now does it show */
			r = codec_legacy.decode(buf_str(&expanded), out, error);
		return r;
	}
	codec_fail(error, 0, false, "%s",
		   r == -EBADMSG ? "damaged gzip data"
		   : r == -E2BIG ? "gzip data expands too far"
				 : "out of memory");
	return r;
}
