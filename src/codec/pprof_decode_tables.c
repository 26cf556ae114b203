/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof file's tables: its strings, mappings, functions and locations become rows of the model. */
#include "codec/pprof_in.h"

#define LINES_MAX 65536 /* inlined functions of one location */

/* Ids */

void pprof_id_release(struct id_table *t)
{
	free(t->dense);
	u64map_release(&t->sparse);
}

static int id_table_init(struct id_table *t, size_t count)
{
	t->dense_count = count + 1;
	t->dense = calloc(t->dense_count, sizeof(*t->dense));
	u64map_init(&t->sparse, count);
	return t->dense ? 0 : -ENOMEM;
}

uint32_t pprof_id_find_sparse(const struct id_table *t, uint64_t id)
{
	uint32_t row = 0;

	ignore(u64map_get(&t->sparse, id, &row)); /* not found leaves 0 */
	return row;
}

/* Return: 0, -EEXIST or -ENOMEM. */
static int id_add(struct id_table *t, uint64_t id, uint32_t row)
{
	if (pprof_id_find(t, id))
		return -EEXIST;
	if (id >= t->dense_count)
		return u64map_put(&t->sparse, id, row);
	t->dense[id] = row;
	return 0;
}

static int table_id(struct pprof_in *in, struct id_table *t, uint64_t id, uint32_t row, uint64_t at, const char *what)
{
	int r;

	if (id && id < t->dense_count && !t->dense[id]) {
		t->dense[id] = row;
		return 0;
	}
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

int pprof_string(struct pprof_in *in, uint64_t si, uint64_t at, uint32_t *out)
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
int pprof_symbol(struct pprof_in *in, uint64_t si, uint64_t at, uint32_t *out)
{
	size_t max = in->limits->text_max;
	struct span span;
	struct str text;
	int r = string_check(in, si, at);

	if (r < 0)
		return r;
	span = in->strings.items[si];
	if (!max || span.size <= max)
		return pprof_string(in, si, at, out);
	text = codec_text(in->limits, str_n(in->bytes.ptr + span.at, span.size));
	return failed(in, at, model_add_string(in->m, text, out));
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
	r = pprof_string(in, type, span.at, &out->type);
	return r ? r : pprof_string(in, unit, span.at, &out->unit);
}

int pprof_read_header(struct pprof_in *in)
{
	struct model *m = in->m;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->types.count; i++) {
		r = read_type(in, in->types.items[i], &m->value_types[i]);
		m->value_type_count = i + 1;
	}
	r = r ? r : read_type(in, in->period_type, &m->period_type);
	r = r ? r : pprof_string(in, in->drop_frames, 0, &m->drop_frames);
	r = r ? r : pprof_string(in, in->keep_frames, 0, &m->keep_frames);
	r = r ? r : pprof_string(in, in->default_type, 0, &m->default_type);
	r = r ? r : pprof_string(in, in->doc_url, 0, &m->doc_url);
	for (size_t i = 0; r == 0 && i < in->comments_count; i++) {
		uint32_t id;

		r = pprof_string(in, in->comments[i], 0, &id);
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
	r = pprof_string(in, filename, span.at, &row.filename);
	r = r ? r : pprof_string(in, build_id, span.at, &row.build_id);
	r = r ? r : failed(in, span.at, model_add_mapping(in->m, &row, &added));
	return r ? r : table_id(in, &in->mapping_ids, id, added, span.at, "mapping");
}

static int read_function(struct pprof_in *in, struct span span)
{
	uint64_t field[FUNCTION_START_LINE + 1] = { 0 }, kind = 0;
	struct cur c = span_cur(in, span);
	struct function_in row;
	struct wire_field f;
	int r;

	for (wire_numbers(&c, field, FUNCTION_START_LINE); wire_next(&c, &f);
	     wire_numbers(&c, field, FUNCTION_START_LINE)) {
		bool known = f.number >= FUNCTION_ID && f.number <= FUNCTION_START_LINE;

		if ((known || f.number == FUNCTION_KIND) && wire_fits(&c, &f, WIRE_VARINT))
			*(known ? &field[f.number] : &kind) = f.value;
	}
	if (c.bad)
		return bad(in, span.at, "malformed function");
	row = (struct function_in){ .id = field[FUNCTION_ID],
				    .name = field[FUNCTION_NAME],
				    .system_name = field[FUNCTION_SYSTEM_NAME],
				    .filename = field[FUNCTION_FILENAME],
				    .start_line = (int64_t)field[FUNCTION_START_LINE],
				    .kind = kind <= MODEL_KIND_COUNT ? kind
								     : 0 }; /* kinds of later versions: not known */
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

/* Function @found of function_rows (row + 1) as a row of the model; the mapping decides its kind unless the file says
 * it. */
static int use_function(struct pprof_in *in, uint32_t found, enum model_kind kind, uint64_t at, uint32_t *out)
{
	struct function_in *from = &in->function_rows[found - 1];
	struct model_function row = { 0 };
	int r;

	row.kind = from->kind ? (enum model_kind)(from->kind - 1) : kind;
	if (row.kind == MODEL_KIND_NATIVE && from->native) {
		*out = from->native;
		return 0;
	}
	row.start_line = from->start_line;
	r = pprof_symbol(in, from->name, at, &row.name);
	r = r ? r : pprof_symbol(in, from->system_name, at, &row.system_name);
	r = r ? r : pprof_symbol(in, from->filename, at, &row.filename);
	r = r ? r : failed(in, at, model_add_function(in->m, &row, out));
	if (r == 0 && row.kind == MODEL_KIND_NATIVE)
		from->native = *out;
	return r;
}

/* A line's function id is kept in `function` as the row of function_rows + 1 until the location's mapping is known. */
static int read_line(struct pprof_in *in, struct cur c, uint64_t at)
{
	uint64_t field[LINE_COLUMN + 1] = { 0 };
	struct model_line row;
	struct wire_field f;
	int r;

	for (wire_numbers(&c, field, LINE_COLUMN); wire_next(&c, &f); wire_numbers(&c, field, LINE_COLUMN))
		if (f.number >= LINE_FUNCTION_ID && f.number <= LINE_COLUMN && wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	if (c.bad)
		return bad(in, at, "malformed line");
	row = (struct model_line){ .function = pprof_id_find(&in->function_ids, field[LINE_FUNCTION_ID]),
				   .line = (int64_t)field[LINE_LINE],
				   .column = (int64_t)field[LINE_COLUMN] };
	if (!row.function) {
		codec_fail(in->error, at, false, "a line's function %llu is missing",
			   (unsigned long long)field[LINE_FUNCTION_ID]);
		return -EBADMSG;
	}
	r = failed(in, at, array_grow(&in->lines, &in->lines_cap, in->lines_count, LINES_MAX));
	r = r ? r : pprof_step(in);
	if (r == 0)
		in->lines[in->lines_count++] = row;
	return r;
}

/* Most locations have the mapping of the one before. */
static enum model_kind kind_of_mapping(struct pprof_in *in, uint32_t mapping)
{
	const struct model *m = in->m;

	if (mapping != in->kind_of) {
		in->kind_of = mapping;
		in->kind = model_kind_of_mapping(model_string(m, m->mappings[mapping].filename));
	}
	return in->kind;
}

/* Functions of the lines read, and the mapping that stands for a kind where the file gives none. */
static int finish_location(struct pprof_in *in, struct model_location *row, uint64_t at)
{
	struct model *m = in->m;
	enum model_kind kind = kind_of_mapping(in, row->mapping);
	struct model_mapping stand_in = { .flags = MODEL_HAS_FUNCTIONS };
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->lines_count; i++) {
		r = use_function(in, in->lines[i].function, kind, at, &in->lines[i].function);
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
	uint64_t field[LOCATION_IS_FOLDED + 1] = { 0 };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	uint32_t added;
	int r = 0;

	in->lines_count = 0;
	for (wire_numbers(&c, field, LOCATION_ADDRESS); r == 0 && wire_next(&c, &f);
	     wire_numbers(&c, field, LOCATION_ADDRESS)) {
		if (f.number == LOCATION_LINE && wire_fits(&c, &f, WIRE_BYTES))
			r = read_line(in, f.bytes, span.at);
		else if (f.number != LOCATION_LINE && f.number >= LOCATION_ID && f.number <= LOCATION_IS_FOLDED &&
			 wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	}
	if (r == 0 && c.bad)
		r = bad(in, span.at, "malformed location");
	row.mapping = pprof_id_find(&in->mapping_ids, field[LOCATION_MAPPING_ID]); /* a missing one counts as none */
	row.address = field[LOCATION_ADDRESS];
	row.is_folded = field[LOCATION_IS_FOLDED] != 0;
	r = r ? r : finish_location(in, &row, span.at);
	r = r ? r : failed(in, span.at, model_add_location(in->m, &row, in->lines, &added));
	return r ? r : table_id(in, &in->location_ids, field[LOCATION_ID], added, span.at, "location");
}

int pprof_read_tables(struct pprof_in *in)
{
	int r = id_table_init(&in->mapping_ids, in->mappings.count);

	r = r ? r : id_table_init(&in->location_ids, in->locations.count);
	r = failed(in, 0, r ? r : id_table_init(&in->function_ids, in->functions.count));
	for (size_t i = 0; r == 0 && i < in->mappings.count; i++) {
		r = pprof_step(in);
		r = r ? r : read_mapping(in, in->mappings.items[i]);
		in->done += in->mappings.items[i].size;
	}
	for (size_t i = 0; r == 0 && i < in->functions.count; i++) {
		r = pprof_step(in);
		r = r ? r : read_function(in, in->functions.items[i]);
		in->done += in->functions.items[i].size;
	}
	for (size_t i = 0; r == 0 && i < in->locations.count; i++) {
		r = pprof_step(in);
		r = r ? r : read_location(in, in->locations.items[i]);
		in->done += in->locations.items[i].size;
	}
	return r;
}
