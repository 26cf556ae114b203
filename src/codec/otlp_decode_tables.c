/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of an OTLP file: strings and attributes as they are asked for, the other tables as rows of the model.
 */
#include "codec/otlp_in.h"

#define LINES_MAX 65536 /* inlined functions of one location */

/* Strings */

int otlp_text(struct otlp_in *in, struct str text, uint64_t at, uint32_t *out)
{
	struct str clean = otlp_clean(text, &in->clean);

	if (clean.ptr != text.ptr && text.len)
		in->cleaned++;
	return failed(in, at, in->clean.error ? in->clean.error : model_add_string(in->m, clean, out));
}

static int string_check(const struct otlp_in *in, uint64_t si, uint64_t at)
{
	return si < in->tables[TABLE_STRING].count || !si ? 0 : bad(in, at, "string index outside the string table");
}

static struct str string_bytes(const struct otlp_in *in, uint64_t si)
{
	struct span span = in->tables[TABLE_STRING].items[si];

	return str_n(in->bytes.ptr + span.at, span.size);
}

int otlp_string(struct otlp_in *in, uint64_t si, uint64_t at, uint32_t *out)
{
	int r = string_check(in, si, at);

	if (r < 0)
		return r;
	if (!si) { /* also where there is no table */
		*out = 0;
		return 0;
	}
	if (!in->strings[si]) {
		uint32_t id;

		r = otlp_text(in, string_bytes(in, si), at, &id);
		if (r < 0)
			return r;
		in->strings[si] = id + 1;
	}
	*out = in->strings[si] - 1;
	return 0;
}

/* The same for a name that limits->text_max may cut. */
static int symbol(struct otlp_in *in, uint64_t si, uint64_t at, uint32_t *out)
{
	int r = string_check(in, si, at);

	if (r < 0 || !si || !in->limits->text_max || string_bytes(in, si).len <= in->limits->text_max)
		return r ? r : otlp_string(in, si, at, out);
	return otlp_text(in, codec_text(in->limits, string_bytes(in, si)), at, out);
}

/* Attributes */

int otlp_indices(struct otlp_in *in, struct wire_field *f, uint64_t at, otlp_index_fn *each, void *ctx)
{
	int r = 0;

	if (f->type == WIRE_VARINT)
		return each(in, f->value, at, ctx);
	if (f->type != WIRE_BYTES)
		return bad(in, at, "known field of a wrong wire type");
	while (r == 0 && cur_left(&f->bytes)) {
		uint64_t index = wire_varint(&f->bytes);

		r = f->bytes.bad ? bad(in, at, "malformed number") : otlp_step(in);
		r = r ? r : each(in, index, at, ctx);
	}
	return r;
}

static void add_hex(struct buf *out, struct str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		buf_addf(out, "%02x", (unsigned int)(unsigned char)bytes.ptr[i]);
}

static int any_field(struct otlp_in *in, const struct wire_field *f, uint64_t at, struct attribute *out)
{
	double number;

	buf_clear(&in->text);
	switch (f->number) {
	case ANY_STRING:
		out->form = FORM_TEXT;
		return otlp_text(in, wire_str(f), at, &out->text);
	case ANY_BOOL:
		out->form = FORM_TEXT;
		out->number = f->value != 0;
		return otlp_text(in, f->value ? STR("true") : STR("false"), at, &out->text);
	case ANY_INT:
		out->form = FORM_NUMBER;
		out->number = (int64_t)f->value;
		return 0;
	case ANY_DOUBLE:
		out->form = FORM_TEXT;
		memcpy(&number, &f->value, sizeof(number));
		buf_addf(&in->text, "%.17g", number);
		break;
	case ANY_BYTES:
		out->form = FORM_TEXT;
		add_hex(&in->text, wire_str(f));
		break;
	case ANY_STRING_INDEX:
		out->form = FORM_TEXT;
		return otlp_string(in, f->value, at, &out->text);
	default:
		out->form = f->number == ANY_ARRAY ? FORM_LIST : FORM_MAP;
		out->list = span_of(in, f);
		return 0;
	}
	return in->text.error ? failed(in, at, in->text.error) : otlp_text(in, buf_str(&in->text), at, &out->text);
}

int otlp_any(struct otlp_in *in, struct cur c, uint64_t at, struct attribute *out)
{
	static const enum wire_type types[] = {
		[ANY_STRING] = WIRE_BYTES,   [ANY_BOOL] = WIRE_VARINT,        [ANY_INT] = WIRE_VARINT,
		[ANY_DOUBLE] = WIRE_FIXED64, [ANY_ARRAY] = WIRE_BYTES,        [ANY_KVLIST] = WIRE_BYTES,
		[ANY_BYTES] = WIRE_BYTES,    [ANY_STRING_INDEX] = WIRE_VARINT
	};
	struct wire_field f;
	int r = 0;

	out->form = FORM_NONE;
	out->text = 0;
	out->number = 0;
	while (r == 0 && wire_next(&c, &f))
		if (f.number >= ANY_STRING && f.number <= ANY_STRING_INDEX && wire_fits(&c, &f, types[f.number]))
			r = any_field(in, &f, at, out);
	return r == 0 && c.bad ? bad(in, at, "malformed attribute value") : r;
}

static int read_attribute(struct otlp_in *in, struct span span, struct attribute *out)
{
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == ATTRIBUTE_KEY && f.type == WIRE_BYTES)
			return otlp_other(in, span.at, "1.7.0 and older");
		if (f.number == ATTRIBUTE_KEY && wire_fits(&c, &f, WIRE_VARINT))
			r = otlp_string(in, f.value, span.at, &out->key);
		else if (f.number == ATTRIBUTE_VALUE && wire_fits(&c, &f, WIRE_BYTES))
			r = otlp_any(in, f.bytes, span.at, out);
		else if (f.number == ATTRIBUTE_UNIT && wire_fits(&c, &f, WIRE_VARINT))
			r = otlp_string(in, f.value, span.at, &out->unit);
	}
	return r == 0 && c.bad ? bad(in, span.at, "malformed attribute") : r;
}

int otlp_attribute(const struct otlp_in *in, uint64_t index, uint64_t at, const struct attribute **out)
{
	static const struct attribute none;

	if (index && index >= in->tables[TABLE_ATTRIBUTE].count)
		return bad(in, at, "attribute index outside the attribute table");
	*out = index ? &in->attributes[index] : &none;
	return 0;
}

int otlp_read_attributes(struct otlp_in *in)
{
	const struct span_list *strings = &in->tables[TABLE_STRING], *attributes = &in->tables[TABLE_ATTRIBUTE];
	int r = 0;

	if (strings->count && strings->items[0].size)
		return bad(in, strings->items[0].at, "the first string is not empty");
	in->strings = calloc(strings->count + 1, sizeof(*in->strings));
	in->attributes = calloc(attributes->count + 1, sizeof(*in->attributes));
	in->comments_read = calloc(attributes->count + 1, 1);
	if (!in->strings || !in->attributes || !in->comments_read)
		return failed(in, 0, -ENOMEM);
	for (size_t i = 1; r == 0 && i < attributes->count; i++) {
		r = otlp_step(in);
		r = r ? r : read_attribute(in, attributes->items[i], &in->attributes[i]);
	}
	return r;
}

/* Mappings */

struct mapping_ctx {
	struct model_mapping row;
	bool has_build_id;
};

static int mapping_attribute(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx)
{
	struct mapping_ctx *mapping = ctx;
	const struct attribute *a;
	int r = otlp_attribute(in, index, at, &a);
	struct str key;

	if (r < 0 || !index)
		return r;
	key = model_string(in->m, a->key);
	for (unsigned int bit = 0; bit < 4; bit++)
		if (str_eq(key, otlp_flag_name(bit))) {
			mapping->row.flags |= (uint32_t)(a->number != 0) << bit;
			return 0;
		}
	if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_BUILD_ID))) {
		mapping->row.build_id = a->text;
		mapping->has_build_id = true;
	} else if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_BUILD_ID_GO)) && !mapping->has_build_id) {
		mapping->row.build_id = a->text;
	} else {
		in->lost_attributes++;
	}
	return 0;
}

static int read_mapping(struct otlp_in *in, struct span span, uint32_t *out)
{
	struct mapping_ctx mapping = { .row = { 0 } };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == MAPPING_ATTRIBUTES)
			r = otlp_indices(in, &f, span.at, mapping_attribute, &mapping);
		else if (f.number < MAPPING_START || f.number > MAPPING_ATTRIBUTES || !wire_fits(&c, &f, WIRE_VARINT))
			continue;
		else if (f.number == MAPPING_START)
			mapping.row.start = f.value;
		else if (f.number == MAPPING_LIMIT)
			mapping.row.limit = f.value;
		else if (f.number == MAPPING_OFFSET)
			mapping.row.file_offset = f.value;
		else
			r = otlp_string(in, f.value, span.at, &mapping.row.filename);
	}
	if (r == 0 && c.bad)
		return bad(in, span.at, "malformed mapping");
	return r ? r : failed(in, span.at, model_add_mapping(in->m, &mapping.row, out));
}

/* Functions */

static int read_function(struct otlp_in *in, struct span span, struct function_in *out)
{
	uint64_t field[FUNCTION_START_LINE + 1] = { 0 };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r;

	for (wire_numbers(&c, field, FUNCTION_START_LINE); wire_next(&c, &f);
	     wire_numbers(&c, field, FUNCTION_START_LINE))
		if (f.number >= FUNCTION_NAME && f.number <= FUNCTION_START_LINE && wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	if (c.bad)
		return bad(in, span.at, "malformed function");
	out->start_line = (int64_t)field[FUNCTION_START_LINE];
	r = symbol(in, field[FUNCTION_NAME], span.at, &out->name);
	r = r ? r : symbol(in, field[FUNCTION_SYSTEM_NAME], span.at, &out->system_name);
	return r ? r : symbol(in, field[FUNCTION_FILENAME], span.at, &out->filename);
}

static int use_function(struct otlp_in *in, uint32_t index, enum model_kind kind, uint64_t at, uint32_t *out)
{
	struct function_in *from = &in->functions[index];
	struct model_function row = { .name = from->name,
				      .system_name = from->system_name,
				      .filename = from->filename,
				      .start_line = from->start_line,
				      .kind = kind };
	int r;

	if (kind == MODEL_KIND_NATIVE && from->native) {
		*out = from->native;
		return 0;
	}
	r = failed(in, at, model_add_function(in->m, &row, out));
	if (r == 0 && kind == MODEL_KIND_NATIVE)
		from->native = *out;
	return r;
}

/* Locations */

struct location_ctx {
	struct model_location row;
	uint32_t kinds; /* string: OTLP_FRAME_KINDS */
	enum model_kind kind;
	bool has_kind;
};

static int location_attribute(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx)
{
	struct location_ctx *location = ctx;
	const struct attribute *a;
	int r = otlp_attribute(in, index, at, &a);
	struct str key;

	if (r < 0 || !index)
		return r;
	key = model_string(in->m, a->key);
	if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_FRAME_TYPE))) {
		location->has_kind = otlp_frame_kind(model_string(in->m, a->text), &location->kind);
		in->unknown_types += !location->has_kind;
	} else if (a->form == FORM_TEXT && str_eq(key, STR(OTLP_FRAME_KINDS))) {
		location->kinds = a->text;
	} else if (str_eq(key, STR(OTLP_IS_FOLDED))) {
		location->row.is_folded = a->number != 0;
	} else {
		in->lost_attributes++;
	}
	return 0;
}

/* A line's function is kept as its index in the file until the location's kinds are known. */
static int read_line(struct otlp_in *in, struct cur c, uint64_t at)
{
	uint64_t field[LINE_COLUMN + 1] = { 0 };
	struct wire_field f;
	int r;

	for (wire_numbers(&c, field, LINE_COLUMN); wire_next(&c, &f); wire_numbers(&c, field, LINE_COLUMN))
		if (f.number >= LINE_FUNCTION && f.number <= LINE_COLUMN && wire_fits(&c, &f, WIRE_VARINT))
			field[f.number] = f.value;
	if (c.bad)
		return bad(in, at, "malformed line");
	if (field[LINE_FUNCTION] && field[LINE_FUNCTION] >= in->tables[TABLE_FUNCTION].count)
		return bad(in, at, "function index outside the function table");
	r = failed(in, at, array_grow(&in->lines, &in->lines_cap, in->lines_count, LINES_MAX));
	r = r ? r : otlp_step(in);
	if (r == 0)
		in->lines[in->lines_count++] = (struct model_line){ .function = (uint32_t)field[LINE_FUNCTION],
								    .line = (int64_t)field[LINE_LINE],
								    .column = (int64_t)field[LINE_COLUMN] };
	return r;
}

/* Whether @names has as many kinds as the location has lines, and no other words. */
static bool kinds_fit(const struct otlp_in *in, struct str names)
{
	size_t count = 0;
	enum model_kind kind;
	struct str name;

	while (names.len && str_next(&names, ',', &name)) {
		if (++count > in->lines_count || !otlp_kind_find(name, &kind))
			return false;
	}
	return count == in->lines_count;
}

static int use_lines(struct otlp_in *in, const struct location_ctx *location, uint64_t at)
{
	struct str names = model_string(in->m, location->kinds), name;
	bool has_names = location->kinds && kinds_fit(in, names);
	scoped(buf_release) struct buf copy = BUF_INIT(GIB(1)); /* adding strings would move the text */
	enum model_kind kind = location->kind;
	int r = 0;

	if (!location->has_kind && location->row.mapping)
		kind = model_kind_of_mapping(model_string(in->m, in->m->mappings[location->row.mapping].filename));
	if (has_names)
		buf_adds(&copy, names); /* short: as many words as lines. Others may be long, and all locations' */
	names = buf_str(&copy);
	for (size_t i = 0; r == 0 && i < in->lines_count; i++) {
		if (has_names && str_next(&names, ',', &name))
			ignore(otlp_kind_find(name, &kind)); /* kinds_fit() has seen that it is one */
		r = use_function(in, in->lines[i].function, kind, at, &in->lines[i].function);
	}
	return r ? r : failed(in, at, copy.error);
}

static int location_number(struct otlp_in *in, const struct wire_field *f, uint64_t at, struct model_location *row)
{
	if (f->number == LOCATION_ADDRESS)
		row->address = f->value;
	else if (f->value && f->value >= in->tables[TABLE_MAPPING].count)
		return bad(in, at, "mapping index outside the mapping table");
	else
		row->mapping = f->value ? in->mappings[f->value] : 0;
	return 0;
}

static int read_location(struct otlp_in *in, struct span span, uint32_t *out)
{
	struct location_ctx location = { .kind = MODEL_KIND_NATIVE };
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r = 0;

	in->lines_count = 0;
	while (r == 0 && wire_next(&c, &f)) {
		if (f.number == LOCATION_ATTRIBUTES)
			r = otlp_indices(in, &f, span.at, location_attribute, &location);
		else if (f.number == LOCATION_LINES && wire_fits(&c, &f, WIRE_BYTES))
			r = read_line(in, f.bytes, span.at);
		else if ((f.number == LOCATION_MAPPING || f.number == LOCATION_ADDRESS) &&
			 wire_fits(&c, &f, WIRE_VARINT))
			r = location_number(in, &f, span.at, &location.row);
	}
	if (r == 0 && c.bad)
		r = bad(in, span.at, "malformed location");
	r = r ? r : use_lines(in, &location, span.at);
	location.row.line_count = (uint32_t)in->lines_count;
	return r ? r : failed(in, span.at, model_add_location(in->m, &location.row, in->lines, out));
}

/* Stacks */

/* Row 0 of a table means "none", but a stack that has location 0 has a frame of which nothing is known. */
static int stack_frame(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx)
{
	const struct model_location unknown = { 0 };
	struct stack_in *stack = ctx;
	int r = 0;

	if (index && index >= in->tables[TABLE_LOCATION].count)
		return bad(in, at, "location index outside the location table");
	if (in->limits->depth_max && in->frames_count == in->limits->depth_max) { /* leaf first: the root is cut */
		stack->is_cut = true;
		return 0;
	}
	if (!in->locations[index])
		r = failed(in, at, model_add_location(in->m, &unknown, NULL, &in->locations[0]));
	r = r ? r : failed(in, at, array_grow(&in->frames, &in->frames_cap, in->frames_count, ROWS_MAX));
	if (r == 0)
		in->frames[in->frames_count++] = in->locations[index];
	return r;
}

static int read_stack(struct otlp_in *in, struct span span, struct stack_in *out)
{
	struct model_path path;
	struct cur c = span_cur(in, span);
	struct wire_field f;
	int r = 0;

	in->frames_count = 0;
	while (r == 0 && wire_next(&c, &f))
		if (f.number == STACK_LOCATIONS)
			r = otlp_indices(in, &f, span.at, stack_frame, out);
	if (r == 0 && c.bad)
		return bad(in, span.at, "malformed stack");
	while (r == 0 && in->nodes_cap < in->frames_cap)
		r = failed(in, span.at, array_grow(&in->nodes, &in->nodes_cap, in->nodes_cap, ROWS_MAX));
	if (r < 0 || !in->frames_count)
		return r;
	path = (struct model_path){ in->frames, in->nodes, in->frames_count };
	r = failed(in, span.at, model_add_paths(in->m, &path, 1));
	if (r == 0)
		out->row = in->nodes[in->frames_count - 1];
	return r;
}

static int room_for_tables(struct otlp_in *in)
{
	in->mappings = calloc(in->tables[TABLE_MAPPING].count + 1, sizeof(*in->mappings));
	in->locations = calloc(in->tables[TABLE_LOCATION].count + 1, sizeof(*in->locations));
	in->functions = calloc(in->tables[TABLE_FUNCTION].count + 1, sizeof(*in->functions));
	in->stacks = calloc(in->tables[TABLE_STACK].count + 1, sizeof(*in->stacks));
	in->links = calloc(in->tables[TABLE_LINK].count + 1, sizeof(*in->links));
	return in->mappings && in->locations && in->functions && in->stacks && in->links ? 0 : failed(in, 0, -ENOMEM);
}

int otlp_read_tables(struct otlp_in *in)
{
	const struct span_list *t = in->tables;
	int r = room_for_tables(in);

	r = r ? r : failed(in, 0, model_add_string(in->m, STR(CODEC_STACK_CUT), &in->cut));
	for (size_t i = 1; r == 0 && i < t[TABLE_MAPPING].count; i++) {
		r = otlp_step(in);
		r = r ? r : read_mapping(in, t[TABLE_MAPPING].items[i], &in->mappings[i]);
	}
	for (size_t i = 1; r == 0 && i < t[TABLE_FUNCTION].count; i++) {
		r = otlp_step(in);
		r = r ? r : read_function(in, t[TABLE_FUNCTION].items[i], &in->functions[i]);
		in->done += t[TABLE_FUNCTION].items[i].size;
	}
	for (size_t i = 1; r == 0 && i < t[TABLE_LOCATION].count; i++) {
		r = otlp_step(in);
		r = r ? r : read_location(in, t[TABLE_LOCATION].items[i], &in->locations[i]);
		in->done += t[TABLE_LOCATION].items[i].size;
	}
	for (size_t i = 1; r == 0 && i < t[TABLE_STACK].count; i++) {
		r = otlp_step(in);
		r = r ? r : read_stack(in, t[TABLE_STACK].items[i], &in->stacks[i]);
		in->done += t[TABLE_STACK].items[i].size;
	}
	return r;
}
