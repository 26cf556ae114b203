/* SPDX-License-Identifier: Apache-2.0 */
/* Reading chunks of a dictionary. A row that refers to a missing one, or that is there already, means damage. Only
 * stacks are not looked up: most of them are never looked for again, since only writers do. */
#include "store/dictionary.h"

#include "base/array.h"
#include "base/wire.h"
#include "store/zigzag.h"

struct chunk_in {
	struct dictionary *d;
	struct cur columns[6];
	struct model_line *lines;
	size_t lines_cap;
	struct model_label *labels; /* MODEL_LABELS_MAX */
	/* Of the row before */
	struct model_function function;
	uint64_t address;
	uint32_t line_function, location, stack;
};

static void chunk_release(struct chunk_in *in)
{
	free(in->lines);
	free(in->labels);
}

static uint64_t take(struct chunk_in *in, size_t column)
{
	return wire_varint(&in->columns[column]);
}

/* A number below @count. */
static uint32_t below(struct chunk_in *in, size_t column, uint64_t value, size_t count)
{
	if (value >= count || value > UINT32_MAX) {
		in->columns[column].bad = true;
		return 0;
	}
	return (uint32_t)value;
}

static uint32_t row_at(struct chunk_in *in, size_t column, size_t count)
{
	return below(in, column, take(in, column), count);
}

/* A row told by its distance from the one before. */
static uint32_t row_near(struct chunk_in *in, size_t column, uint32_t last, size_t count)
{
	return below(in, column, (uint64_t)last + (uint64_t)unzigzag(take(in, column)), count);
}

static size_t string_count(const struct chunk_in *in)
{
	return intern_count(&in->d->m.strings);
}

static bool is_bad(const struct chunk_in *in)
{
	bool bad = false;

	for (size_t i = 0; i < ARRAY_SIZE(in->columns); i++)
		bad |= in->columns[i].bad;
	return bad;
}

/* The outcome of adding a row that must have become row @want. */
static int expect(int r, const uint32_t *got, size_t want)
{
	return r < 0 ? r : *got == want ? 0 : -EBADMSG;
}

static int read_string(struct chunk_in *in)
{
	size_t want = string_count(in);
	struct cur text = cur_sub(&in->columns[1], take(in, 0));
	uint32_t got = 0;

	return is_bad(in) ? -EBADMSG : expect(model_add_string(&in->d->m, cur_rest(&text), &got), &got, want);
}

static int read_mapping(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->mappings_count;
	struct model_mapping row = { .start = take(in, 0) };
	uint32_t got = 0;

	row.limit = row.start + take(in, 1);
	row.file_offset = take(in, 2);
	row.filename = row_at(in, 3, string_count(in));
	row.build_id = row_at(in, 4, string_count(in));
	return is_bad(in) ? -EBADMSG : expect(model_add_mapping(m, &row, &got), &got, want);
}

static int read_function(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->functions_count, strings = string_count(in);
	struct model_function row = { .name = row_near(in, 0, in->function.name, strings) };
	uint32_t got = 0;

	row.system_name = row_near(in, 1, row.name, strings);
	row.filename = row_near(in, 2, in->function.filename, strings);
	row.kind = (enum model_kind)row_at(in, 3, MODEL_KIND_COUNT);
	row.start_line = unzigzag(take(in, 4));
	in->function = row;
	return is_bad(in) ? -EBADMSG : expect(model_add_function(m, &row, &got), &got, want);
}

static int read_location(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->locations_count;
	struct model_location row = { .mapping = row_at(in, 0, m->mappings_count) };
	uint32_t got = 0;
	uint64_t count;
	int r = 0;

	row.address = in->address += (uint64_t)unzigzag(take(in, 1));
	count = take(in, 2);
	row.is_folded = count & 1;
	if (is_bad(in) || count >> 1 > cur_left(&in->columns[3])) /* a line takes at least a byte */
		return -EBADMSG;
	row.line_count = (uint32_t)(count >> 1);
	for (size_t i = 0; i < row.line_count; i++) {
		r = array_grow(&in->lines, &in->lines_cap, i, UINT32_MAX);
		if (r < 0)
			return r;
		in->lines[i].function = in->line_function = row_near(in, 3, in->line_function, m->functions_count);
		in->lines[i].line = unzigzag(take(in, 4));
		in->lines[i].column = unzigzag(take(in, 5));
	}
	return is_bad(in) ? -EBADMSG : expect(model_add_location(m, &row, in->lines, &got), &got, want);
}

static int read_stack(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->stacks_count;
	uint64_t up = take(in, 0);
	uint32_t got = 0;

	in->location = row_near(in, 1, in->location, m->locations_count);
	if (is_bad(in) || !up || up > want)
		return -EBADMSG;
	return expect(model_append_stack(m, (uint32_t)(want - up), in->location, &got), &got, want);
}

static int read_app_metadata(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->app_metadata_count;
	uint32_t id = row_at(in, 0, string_count(in)), got = 0;

	return is_bad(in) ? -EBADMSG : expect(model_add_app_metadata(m, model_string(m, id), &got), &got, want);
}

static int read_process(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->processes_count;
	struct model_process row = { .pid = row_at(in, 0, (size_t)UINT32_MAX + 1), .start_ns = take(in, 1) };
	uint32_t got = 0;

	row.comm = row_at(in, 2, string_count(in));
	row.container = row_at(in, 3, string_count(in));
	row.app_id = row_at(in, 4, string_count(in));
	row.app_metadata = row_at(in, 5, m->app_metadata_count);
	return is_bad(in) ? -EBADMSG : expect(model_add_process(m, &row, &got), &got, want);
}

static int read_thread(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->threads_count;
	struct model_thread row = { .process = row_at(in, 0, m->processes_count) };
	uint32_t got = 0;

	row.tid = row_at(in, 1, (size_t)UINT32_MAX + 1);
	row.name = row_at(in, 2, string_count(in));
	return is_bad(in) ? -EBADMSG : expect(model_add_thread(m, &row, &got), &got, want);
}

static int read_label_set(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = m->label_sets_count, strings = string_count(in);
	uint32_t count = row_at(in, 0, MODEL_LABELS_MAX + 1), got = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t key = take(in, 1), value = take(in, 2);
		struct model_label row = { .is_number = key & 1, .key = below(in, 1, key >> 1, strings) };

		if (row.is_number) {
			row.number = unzigzag(value);
			row.unit = row_at(in, 3, strings);
		} else {
			row.text = below(in, 2, value, strings);
		}
		in->labels[i] = row;
	}
	return is_bad(in) ? -EBADMSG : expect(model_add_label_set(m, in->labels, count, &got), &got, want);
}

static int read_key(struct chunk_in *in)
{
	struct model *m = &in->d->m;
	size_t want = in->d->keys_count;
	struct dictionary_key row = { .stack = row_near(in, 0, in->stack, m->stacks_count) };
	uint32_t got = 0;

	in->stack = row.stack;
	row.process = row_at(in, 1, m->processes_count);
	row.thread = row_at(in, 2, m->threads_count);
	row.label_set = row_at(in, 3, m->label_sets_count);
	row.end = row_at(in, 4, string_count(in));
	return is_bad(in) ? -EBADMSG : expect(dictionary_key(in->d, &row, &got), &got, want);
}

static const struct section {
	int (*read)(struct chunk_in *in);
	size_t columns;
} sections[] = {
	{ read_string, 2 },       { read_mapping, 5 }, { read_function, 5 }, { read_location, 6 },  { read_stack, 2 },
	{ read_app_metadata, 1 }, { read_process, 6 }, { read_thread, 3 },   { read_label_set, 4 }, { read_key, 5 },
};

static int read_section(struct chunk_in *in, struct cur *c, const struct section *section, uint32_t have)
{
	uint64_t first = wire_varint(c), count = wire_varint(c);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(in->columns); i++)
		in->columns[i] = i < section->columns ? cur_sub(c, wire_varint(c)) : cur_of(NULL, 0);
	if (c->bad || first != have || count > cur_left(&in->columns[0]))
		return -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < count; i++)
		r = section->read(in);
	for (size_t i = 0; i < ARRAY_SIZE(in->columns); i++)
		if (r == 0 && cur_left(&in->columns[i]))
			return -EBADMSG;
	return r;
}

int dictionary_decode(struct str bytes, struct dictionary *d)
{
	scoped(chunk_release) struct chunk_in in = { .d = d };
	struct dictionary_mark mark = dictionary_end(d);
	const uint32_t have[] = { mark.strings,      mark.mappings,  mark.functions, mark.locations,  mark.stacks,
				  mark.app_metadata, mark.processes, mark.threads,   mark.label_sets, mark.keys };
	struct cur c = cur_of(bytes.ptr, bytes.len);
	int r = 0;

	in.labels = calloc(MODEL_LABELS_MAX, sizeof(*in.labels));
	if (!in.labels)
		return -ENOMEM;
	static_assert(ARRAY_SIZE(have) == ARRAY_SIZE(sections), "one section for each table");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sections); i++)
		r = read_section(&in, &c, &sections[i], have[i]);
	return r == 0 && (c.bad || cur_left(&c)) ? -EBADMSG : r;
}

/* Strings alone */

void dictionary_strings_init(struct dictionary_strings *s)
{
	*s = (struct dictionary_strings){ .texts = BUF_INIT(DICTIONARY_BYTES_MAX), .count = 1, .mappings = 1 };
}

void dictionary_strings_clear(struct dictionary_strings *s)
{
	buf_clear(&s->texts);
	s->count = s->mappings = 1;
}

void dictionary_strings_release(struct dictionary_strings *s)
{
	buf_release(&s->texts);
	free(s->ends);
	*s = (struct dictionary_strings){ 0 };
}

struct str dictionary_strings_get(const struct dictionary_strings *s, uint32_t row)
{
	if (!row || row >= s->count)
		return STR("");
	return str_n(s->texts.ptr + s->ends[row - 1], s->ends[row] - s->ends[row - 1]);
}

/* The head of a section: how many rows it adds to @have. */
static uint64_t new_rows(struct cur *c, size_t have)
{
	uint64_t first = wire_varint(c), count = wire_varint(c);

	c->bad |= first != have;
	return count;
}

static int add_texts(struct dictionary_strings *s, struct cur *lengths, struct cur *texts, size_t count)
{
	int r = array_reserve(&s->ends, &s->cap, s->count + count);

	if (r < 0)
		return r;
	s->ends[0] = 0;
	buf_adds(&s->texts, cur_rest(texts));
	if (s->texts.error)
		return s->texts.error;
	for (size_t end = s->count + count; s->count < end; s->count++) {
		uint64_t length = wire_varint(lengths);

		(void)cur_bytes(texts, length);
		s->ends[s->count] = s->ends[s->count - 1] + (texts->bad ? 0 : length);
	}
	return lengths->bad || texts->bad || cur_left(lengths) || cur_left(texts) ? -EBADMSG : 0;
}

int dictionary_strings_add(struct dictionary_strings *s, struct str bytes)
{
	struct cur c = cur_of(bytes.ptr, bytes.len), lengths, texts, mappings;
	uint64_t count = new_rows(&c, s->count);
	int r;

	lengths = cur_sub(&c, wire_varint(&c));
	texts = cur_sub(&c, wire_varint(&c));
	if (c.bad || count > cur_left(&lengths)) /* each takes at least a byte */
		return -EBADMSG;
	r = add_texts(s, &lengths, &texts, count);
	if (r < 0)
		return r;
	count = new_rows(&c, s->mappings);
	mappings = cur_sub(&c, wire_varint(&c));
	if (c.bad || count > cur_left(&mappings))
		return -EBADMSG;
	s->mappings += count;
	return 0;
}
