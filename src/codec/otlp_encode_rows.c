/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an OTLP file's dictionary. Each is made as bytes and interned: equal rows are one, row 0 is the empty
 * message, and a table is what its intern holds. */
#include "codec/otlp_out.h"

/* Text as protobuf's strings must be, valid until the next call. */
struct str otlp_out_clean(struct otlp_out *o, struct str text)
{
	struct str out = otlp_clean(text, &o->clean);

	o->cleaned += out.ptr != text.ptr && out.len;
	return out;
}

int otlp_text_index(struct otlp_out *o, struct str text, uint32_t *out)
{
	text = otlp_out_clean(o, text);
	return o->clean.error ? o->clean.error : intern_add(&o->tables[TABLE_STRING], text, out);
}

int otlp_string_index(struct otlp_out *o, uint32_t id, uint32_t *out)
{
	int r = 0;

	if (!o->strings[id]) {
		r = otlp_text_index(o, model_string(o->m, id), out);
		if (r == 0)
			o->strings[id] = *out + 1;
	}
	*out = o->strings[id] - 1;
	return r;
}

/* The row in o->row, as one of @table. */
int otlp_row_index(struct otlp_out *o, enum otlp_table table, uint32_t *out)
{
	return o->row.error ? o->row.error : intern_add(&o->tables[table], buf_str(&o->row), out);
}

/* Attributes: the value is in o->any. A value of a oneof is written also when it is empty. */

void otlp_any_text(struct otlp_out *o, struct str text)
{
	buf_clear(&o->any);
	wire_add_bytes(&o->any, ANY_STRING, otlp_out_clean(o, text));
	if (o->clean.error)
		o->any.error = o->clean.error;
}

void otlp_any_number(struct otlp_out *o, uint32_t field, int64_t value)
{
	buf_clear(&o->any);
	wire_add_value(&o->any, field, (uint64_t)value);
}

int otlp_attribute_index(struct otlp_out *o, uint32_t key, uint32_t unit, uint32_t *out)
{
	buf_clear(&o->row);
	wire_add_number(&o->row, ATTRIBUTE_KEY, key);
	wire_add_bytes(&o->row, ATTRIBUTE_VALUE, buf_str(&o->any));
	wire_add_number(&o->row, ATTRIBUTE_UNIT, unit);
	return o->any.error ? o->any.error : otlp_row_index(o, TABLE_ATTRIBUTE, out);
}

/* An attribute of ours, appended to @to as one packed index. */
int otlp_add_named(struct otlp_out *o, struct str name, struct buf *to)
{
	uint32_t key, index;
	int r = otlp_text_index(o, name, &key);

	r = r ? r : otlp_attribute_index(o, key, 0, &index);
	if (r == 0)
		wire_add_varint(to, index);
	return r ? r : to->error;
}

int otlp_add_text(struct otlp_out *o, struct str name, struct str text, struct buf *to)
{
	otlp_any_text(o, text);
	return otlp_add_named(o, name, to);
}

int otlp_add_number(struct otlp_out *o, struct str name, uint32_t field, int64_t value, struct buf *to)
{
	otlp_any_number(o, field, value);
	return otlp_add_named(o, name, to);
}

/* Mappings, functions, locations, stacks */

static int mapping_index(struct otlp_out *o, uint32_t row, uint32_t *out)
{
	const struct model_mapping *from = &o->m->mappings[row];
	uint32_t filename;
	int r = 0;

	if (!row || o->mappings[row]) {
		*out = row ? o->mappings[row] - 1 : 0;
		return 0;
	}
	buf_clear(&o->parts);
	if (from->build_id)
		r = otlp_add_text(o, STR(OTLP_BUILD_ID), model_string(o->m, from->build_id), &o->parts);
	for (unsigned int bit = 0; r == 0 && bit < 4; bit++)
		if (from->flags >> bit & 1)
			r = otlp_add_number(o, otlp_flag_name(bit), ANY_BOOL, 1, &o->parts);
	r = r ? r : otlp_string_index(o, from->filename, &filename);
	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_number(&o->row, MAPPING_START, from->start);
	wire_add_number(&o->row, MAPPING_LIMIT, from->limit);
	wire_add_number(&o->row, MAPPING_OFFSET, from->file_offset);
	wire_add_number(&o->row, MAPPING_FILENAME, filename);
	if (o->parts.len)
		wire_add_bytes(&o->row, MAPPING_ATTRIBUTES, buf_str(&o->parts));
	r = otlp_row_index(o, TABLE_MAPPING, out);
	if (r == 0)
		o->mappings[row] = *out + 1;
	return r;
}

static int function_index(struct otlp_out *o, uint32_t row, uint32_t *out)
{
	const struct model_function *from = &o->m->functions[row];
	uint32_t name, system_name, filename;
	int r;

	if (o->functions[row]) {
		*out = o->functions[row] - 1;
		return 0;
	}
	r = otlp_string_index(o, from->name, &name);
	r = r ? r : otlp_string_index(o, from->system_name, &system_name);
	r = r ? r : otlp_string_index(o, from->filename, &filename);
	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_number(&o->row, FUNCTION_NAME, name);
	wire_add_number(&o->row, FUNCTION_SYSTEM_NAME, system_name);
	wire_add_number(&o->row, FUNCTION_FILENAME, filename);
	wire_add_number(&o->row, FUNCTION_START_LINE, (uint64_t)from->start_line);
	r = otlp_row_index(o, TABLE_FUNCTION, out);
	if (r == 0)
		o->functions[row] = *out + 1;
	return r;
}

/* What the type alone does not say: the kinds of all lines, innermost first. */
static int add_kinds(struct otlp_out *o, const struct model_location *row, struct str type, struct buf *to)
{
	const struct model_line *lines = o->m->lines + row->first_line;
	scoped(buf_release) struct buf text = BUF_INIT(TABLE_MAX);
	enum model_kind told = MODEL_KIND_NATIVE;
	bool all_told = true;

	ignore(otlp_frame_kind(type, &told)); /* ours are all known */
	for (uint32_t i = 0; i < row->line_count; i++) {
		enum model_kind kind = o->m->functions[lines[i].function].kind;

		all_told &= kind == told;
		if (i)
			buf_addc(&text, ',');
		buf_adds(&text, otlp_kind_name(kind));
	}
	if (text.error || all_told)
		return text.error;
	return otlp_add_text(o, STR(OTLP_FRAME_KINDS), buf_str(&text), to);
}

static int add_location_attributes(struct otlp_out *o, uint32_t row, struct buf *to)
{
	const struct model_location *from = &o->m->locations[row];
	struct str type = otlp_frame_type(model_location_kind(o->m, row));
	int r = 0;

	if (from->mapping || from->line_count || from->address)
		r = otlp_add_text(o, STR(OTLP_FRAME_TYPE), type, to);
	r = r ? r : add_kinds(o, from, type, to);
	if (r == 0 && from->is_folded)
		r = otlp_add_number(o, STR(OTLP_IS_FOLDED), ANY_BOOL, 1, to);
	return r;
}

static size_t line_size(uint32_t function, const struct model_line *line)
{
	return wire_number_size(LINE_FUNCTION, function) + wire_number_size(LINE_LINE, (uint64_t)line->line) +
	       wire_number_size(LINE_COLUMN, (uint64_t)line->column);
}

static int add_lines(struct otlp_out *o, const struct model_location *row, struct buf *to)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < row->line_count; i++) {
		const struct model_line *line = &o->m->lines[row->first_line + i];
		uint32_t function;

		r = function_index(o, line->function, &function);
		if (r < 0)
			break;
		wire_add_tag(to, LOCATION_LINES, WIRE_BYTES);
		wire_add_varint(to, line_size(function, line));
		wire_add_number(to, LINE_FUNCTION, function);
		wire_add_number(to, LINE_LINE, (uint64_t)line->line);
		wire_add_number(to, LINE_COLUMN, (uint64_t)line->column);
	}
	return r ? r : to->error;
}

static int location_index(struct otlp_out *o, uint32_t row, uint32_t *out)
{
	const struct model_location *from = &o->m->locations[row];
	scoped(buf_release) struct buf lines = BUF_INIT(TABLE_MAX), attributes = BUF_INIT(TABLE_MAX);
	uint32_t mapping;
	int r;

	if (o->locations[row]) {
		*out = o->locations[row] - 1;
		return 0;
	}
	r = mapping_index(o, from->mapping, &mapping);
	r = r ? r : add_lines(o, from, &lines);
	r = r ? r : add_location_attributes(o, row, &attributes);
	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_number(&o->row, LOCATION_MAPPING, mapping);
	wire_add_number(&o->row, LOCATION_ADDRESS, from->address);
	buf_adds(&o->row, buf_str(&lines));
	if (attributes.len)
		wire_add_bytes(&o->row, LOCATION_ATTRIBUTES, buf_str(&attributes));
	r = otlp_row_index(o, TABLE_LOCATION, out);
	if (r == 0)
		o->locations[row] = *out + 1;
	return r;
}

int otlp_stack_index(struct otlp_out *o, uint32_t stack, uint32_t *out)
{
	scoped(buf_release) struct buf frames = BUF_INIT(TABLE_MAX);
	int r = 0;

	if (!stack || o->stacks[stack]) {
		*out = stack ? o->stacks[stack] - 1 : 0;
		return 0;
	}
	for (uint32_t node = stack; r == 0 && node; node = o->m->stacks[node].parent) {
		uint32_t location;

		r = location_index(o, o->m->stacks[node].location, &location);
		if (r == 0)
			wire_add_varint(&frames, location);
	}
	r = r ? r : frames.error;
	if (r < 0)
		return r;
	buf_clear(&o->row);
	wire_add_bytes(&o->row, STACK_LOCATIONS, buf_str(&frames));
	r = otlp_row_index(o, TABLE_STACK, out);
	if (r == 0)
		o->stacks[stack] = *out + 1;
	return r;
}
