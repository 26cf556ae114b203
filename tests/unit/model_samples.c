/* SPDX-License-Identifier: Apache-2.0 */
#include "model_samples.h"

#include "support.h"

#include "base/array.h"

#define FUNCTIONS 9
#define MAPPINGS 4
#define LOCATIONS 24
#define SAMPLES 120

struct maker {
	struct model *m;
	uint64_t state;
	uint32_t functions[FUNCTIONS], mappings[MAPPINGS], locations[LOCATIONS];
	uint64_t base; /* where mappings start */
};

static uint64_t pick(struct maker *k, uint64_t below) /* xorshift64, G. Marsaglia 2003 */
{
	k->state ^= k->state << 13;
	k->state ^= k->state >> 7;
	k->state ^= k->state << 17;
	return (k->state >> 20) % below;
}

static int text(struct maker *k, const char *prefix, uint64_t number, uint32_t *out)
{
	char name[64];
	int size = snprintf(name, sizeof(name), "%s%llu", prefix, (unsigned long long)number);

	return model_add_string(k->m, str_n(name, (size_t)size), out);
}

static int make_tables(struct maker *k)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < FUNCTIONS; i++) {
		struct model_function row = { .start_line = (int64_t)i % 3 };

		r = text(k, "function", i / 2, &row.name);
		r = r ? r : text(k, "mangled", i, &row.system_name);
		r = r ? r : text(k, "file", i % 2, &row.filename);
		r = r ? r : model_add_function(k->m, &row, &k->functions[i]);
	}
	for (uint64_t i = 0; r == 0 && i < MAPPINGS; i++) {
		struct model_mapping row = { .start = k->base + i * 0x100000,
					     .file_offset = i % 2 * 0x1000,
					     .flags = i ? 1 : 0 };

		row.limit = row.start + 0x8000 + 0x1000 * i;
		r = text(k, "/bin/binary", i, &row.filename);
		if (i % 2)
			r = r ? r : text(k, "abcd", i, &row.build_id);
		r = r ? r : model_add_mapping(k->m, &row, &k->mappings[i]);
	}
	return r;
}

static int make_locations(struct maker *k)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < LOCATIONS; i++) {
		uint64_t mapping = pick(k, MAPPINGS + 1);
		struct model_location row = { .line_count = (uint32_t)pick(k, 3),
					      .is_folded = pick(k, 9) == 0,
					      .address = k->base + mapping * 0x100000 + pick(k, 5) * 16 };
		struct model_line lines[2] = { { k->functions[pick(k, FUNCTIONS)], (int64_t)pick(k, 3), 0 },
					       { k->functions[pick(k, FUNCTIONS)], (int64_t)pick(k, 3), 0 } };

		if (mapping < MAPPINGS)
			row.mapping = k->mappings[mapping];
		else
			row.address = 0x77000 + pick(k, 5); /* nothing there: stays where it is */
		r = model_add_location(k->m, &row, lines, &k->locations[i]);
	}
	return r;
}

static int make_sample(struct maker *k)
{
	struct model_sample row = { .time_offset_ns = MODEL_NO_TIME };
	struct model_process process = { .pid = 1 + (uint32_t)pick(k, 2) };
	struct model_thread thread = { .tid = 1 + (uint32_t)pick(k, 2) };
	struct model_label labels[2] = { { .is_number = true, .number = 1 + (int64_t)pick(k, 2) }, { .number = 0 } };
	int64_t values[2] = { (int64_t)pick(k, 4), (int64_t)pick(k, 3) * 1000 };
	int r = text(k, "comm", pick(k, 2), &process.comm);

	for (uint64_t depth = pick(k, 5); r == 0 && depth; depth--)
		r = model_add_stack(k->m, row.stack, k->locations[pick(k, LOCATIONS)], &row.stack);
	r = r ? r : text(k, "z", 1, &labels[0].key);
	r = r ? r : text(k, "unit", 1, &labels[0].unit);
	r = r ? r : text(k, "a", 1, &labels[1].key);
	r = r ? r : text(k, "value", pick(k, 2), &labels[1].text);
	if (pick(k, 2))
		r = r ? r : model_add_process(k->m, &process, &row.process);
	thread.process = row.process;
	if (row.process && pick(k, 2))
		r = r ? r : model_add_thread(k->m, &thread, &row.thread);
	r = r ? r : model_add_label_set(k->m, labels, pick(k, 3), &row.label_set);
	if (pick(k, 4) == 0)
		r = r ? r : model_add_string(k->m, STR("complete"), &row.end);
	r = r ? r : model_add_sample(k->m, &row, values);
	return r || pick(k, 3) ? r : model_add_sample(k->m, &row, values); /* some twice */
}

int random_model(uint64_t seed, struct model *out)
{
	scoped(model_release) struct model m = { 0 };
	struct maker k = { .m = &m,
			   .state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
			   .base = 0x10000000 + seed % 7 * 0x1000000 };
	int r = model_init(&m, MIB(1));

	r = r ? r : model_add_value_type(&m, STR("samples"), STR("count"));
	r = r ? r : model_add_value_type(&m, STR("cpu"), STR("nanoseconds"));
	if (r == 0)
		m.period_type = m.value_types[1];
	m.period = 1000;
	m.time_ns = 1700000000000000000 + (int64_t)seed;
	m.duration_ns = 5;
	r = r ? r : make_tables(&k);
	r = r ? r : make_locations(&k);
	for (int i = 0; r == 0 && i < SAMPLES; i++)
		r = make_sample(&k);
	if (r < 0)
		return r;
	*out = m;
	m = (struct model){ 0 }; /* moved out */
	return 0;
}

/* Content */

void content_release(struct content *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->rows[i].key);
	free(c->rows);
	*c = (struct content){ 0 };
}

#define TEXT(id) STR_ARG(model_string(m, (id)))

static void add_frame(const struct model *m, uint32_t location, struct buf *key)
{
	const struct model_location *row = &m->locations[location];
	const struct model_mapping *mapping = &m->mappings[row->mapping];

	buf_addf(key, " <%llu %llx " STR_FMT " %llx %d",
		 (unsigned long long)align_up((size_t)(mapping->limit - mapping->start), 4096),
		 (unsigned long long)mapping->file_offset,
		 TEXT(mapping->build_id ? mapping->build_id : mapping->filename),
		 (unsigned long long)(row->address - mapping->start), row->is_folded);
	for (uint32_t i = 0; i < row->line_count; i++) {
		const struct model_line *line = &m->lines[row->first_line + i];
		const struct model_function *f = &m->functions[line->function];

		buf_addf(key, " (" STR_FMT " " STR_FMT " " STR_FMT " %lld %lld %lld %d)", TEXT(f->name),
			 TEXT(f->system_name), TEXT(f->filename), (long long)f->start_line, (long long)line->line,
			 (long long)line->column, (int)f->kind);
	}
	buf_addc(key, '>');
}

static void add_key(const struct model *m, const struct model_sample *s, struct buf *key)
{
	const struct model_process *process = &m->processes[s->process];
	const struct model_label_set *set = &m->label_sets[s->label_set];
	struct model_label labels[4]; /* random_model() gives two */

	buf_addf(key, "%u " STR_FMT " %u " STR_FMT " " STR_FMT, process->pid, TEXT(process->comm),
		 m->threads[s->thread].tid, TEXT(m->threads[s->thread].name), TEXT(s->end));
	must(set->count <= ARRAY_SIZE(labels));
	memcpy(labels, m->labels ? m->labels + set->first : labels, set->count * sizeof(*labels));
	model_sort_labels(m, labels, set->count);
	for (uint32_t i = 0; i < set->count; i++)
		buf_addf(key, " [" STR_FMT " " STR_FMT " %lld " STR_FMT "]", TEXT(labels[i].key), TEXT(labels[i].text),
			 (long long)labels[i].number, TEXT(labels[i].unit));
	for (uint32_t node = s->stack; node; node = m->stacks[node].parent)
		add_frame(m, m->stacks[node].location, key);
}

void content_add(struct content *c, const struct model *m)
{
	for (size_t i = 0; i < m->samples_count; i++) {
		scoped(buf_release) struct buf key = BUF_INIT(MIB(1));
		struct content_row row = { 0 };
		bool any = false;

		for (size_t column = 0; column < m->value_type_count; column++) {
			row.values[column] = model_values(m, &m->samples[i])[column];
			any |= row.values[column] != 0;
		}
		if (!any)
			continue;
		add_key(m, &m->samples[i], &key);
		row.key = str_dup(str_of(buf_cstr(&key)));
		must(row.key && array_grow(&c->rows, &c->cap, c->count, 1 << 20) == 0);
		c->rows[c->count++] = row;
	}
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct content_row *)a)->key, ((const struct content_row *)b)->key);
}

static void sort(struct content *c)
{
	if (c->count)
		qsort(c->rows, c->count, sizeof(*c->rows), by_key);
}

/* Two lines of one function and one of another; both are added anew for each location. */
static int repeated_location(struct model *m, uint64_t number, uint32_t mapping, uint32_t *out)
{
	struct model_location row = { .mapping = mapping, .address = 0x1000 + number % 7, .line_count = 3 };
	struct model_line lines[3] = { 0 };
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < 3; i++) {
		struct model_function function = { .start_line = (int64_t)(number % 3) };
		char name[32];

		(void)snprintf(name, sizeof(name), "f%llu", (unsigned long long)(number + i / 2) % 5);
		r = model_add_string(m, str_of(name), &function.name);
		r = r ? r : model_add_function(m, &function, &lines[i].function);
		lines[i].line = (int64_t)i;
	}
	return r ? r : model_add_location(m, &row, lines, out);
}

int repeated_model(bool may_repeat, size_t mappings, struct model *m)
{
	int r = model_init(m, MIB(16));

	m->may_repeat = may_repeat;
	r = r ? r : model_add_value_type(m, STR("samples"), STR("count"));
	for (size_t i = 0; r == 0 && i < mappings + 1; i++) {
		struct model_mapping row = { .start = 0x1000 * i, .limit = 0x1000 * i + 0x1000, .file_offset = i };
		uint32_t ignored;

		r = model_add_mapping(m, &row, &ignored);
	}
	for (uint64_t i = 0; r == 0 && i < 100; i++) {
		struct model_sample sample = { .time_offset_ns = MODEL_NO_TIME };
		const int64_t value = (int64_t)i;

		for (uint64_t depth = 0; r == 0 && depth < 1 + i % 4; depth++) {
			uint32_t location;

			r = repeated_location(m, i * 3 + depth, 1, &location);
			r = r ? r : model_add_stack(m, sample.stack, location, &sample.stack);
		}
		r = r ? r : model_add_sample(m, &sample, &value);
	}
	return r;
}

void content_sum(struct content *c)
{
	size_t kept = 0;

	sort(c);
	for (size_t i = 0; i < c->count; i++) {
		if (!kept || by_key(&c->rows[kept - 1], &c->rows[i]) != 0) {
			c->rows[kept++] = c->rows[i];
			continue;
		}
		for (size_t column = 0; column < MODEL_VALUE_TYPES_MAX; column++)
			c->rows[kept - 1].values[column] += c->rows[i].values[column];
		free(c->rows[i].key);
	}
	c->count = kept;
}

void content_assert_same(struct content *a, struct content *b)
{
	sort(a);
	sort(b);
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_string_equal(a->rows[i].key, b->rows[i].key);
		assert_memory_equal(a->rows[i].values, b->rows[i].values, sizeof(a->rows[i].values));
	}
}
