/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wire.h"
#include "codec/window_int.h"

/* A table is one field of numbers end to end; it is put together here, since its length comes first. */
struct table {
	struct buf rows;
	struct buf *out;
};

static void table_release(struct table *t)
{
	buf_release(&t->rows);
}

static void put(struct table *t, uint64_t value)
{
	wire_add_varint(&t->rows, value);
}

static void finish(struct table *t, uint32_t field)
{
	if (t->rows.error && !t->out->error)
		t->out->error = t->rows.error;
	if (t->rows.len)
		wire_add_bytes(t->out, field, buf_str(&t->rows));
	if (!t->rows.error)
		buf_clear(&t->rows);
}

static void add_scalars(const struct window *w, struct buf *out)
{
	const uint64_t numbers[WINDOW_NUMBERS] = { w->start_ns,  w->end_ns,    w->frequency_hz, w->cpu_count,
						   w->run_id[0], w->run_id[1], w->cycle_id,     w->busy_ns };

	wire_add_bytes(out, WINDOW_FIELD_MAGIC, STR(WINDOW_MAGIC));
	wire_add_number(out, WINDOW_FIELD_VERSION, WINDOW_VERSION);
	for (uint32_t i = 0; i < WINDOW_NUMBERS; i++)
		wire_add_number(out, WINDOW_FIELD_NUMBERS + i, numbers[i]);
	for (uint32_t i = 0; i < WINDOW_TEXTS; i++) {
		const char *text = *window_text_at((struct window *)w, i); /* read only */

		if (text)
			wire_add_bytes(out, WINDOW_FIELD_TEXTS + i, str_of(text));
	}
}

static void add_average(struct buf *out, uint32_t field, double value)
{
	uint64_t bits;
	uint8_t bytes[8];

	memcpy(&bits, &value, sizeof(bits));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(bits >> (8 * i));
	wire_add_tag(out, field, WIRE_FIXED64);
	buf_add(out, bytes, sizeof(bytes));
}

static void add_labels(const struct window *w, struct table *t)
{
	for (size_t i = 0; i < w->label_count; i++) {
		wire_add_bytes(&t->rows, 1, str_of(w->labels[i].key));
		wire_add_bytes(&t->rows, 2, str_of(w->labels[i].value));
		finish(t, WINDOW_FIELD_LABEL);
	}
	for (size_t i = 0; i < w->counter_count; i++) {
		wire_add_bytes(&t->rows, 1, str_of(w->counters[i].name));
		wire_add_number(&t->rows, 2, w->counters[i].value);
		finish(t, WINDOW_FIELD_COUNTER);
	}
}

static void add_symbols(const struct model *m, struct table *t)
{
	for (size_t i = 1; i < m->mappings_count; i++) {
		const struct model_mapping *row = &m->mappings[i];

		put(t, row->start);
		put(t, row->limit - row->start); /* wraps back when read */
		put(t, row->file_offset);
		put(t, row->filename);
		put(t, row->build_id);
		put(t, row->flags);
	}
	finish(t, WINDOW_FIELD_MAPPINGS);
	for (size_t i = 1; i < m->functions_count; i++) {
		const struct model_function *row = &m->functions[i];

		put(t, row->name);
		put(t, row->system_name);
		put(t, row->filename);
		put(t, (uint64_t)row->kind);
		put(t, zigzag(row->start_line));
	}
	finish(t, WINDOW_FIELD_FUNCTIONS);
}

static void add_stacks(const struct model *m, struct table *t)
{
	for (size_t i = 1; i < m->locations_count; i++) {
		const struct model_location *row = &m->locations[i];

		put(t, row->mapping);
		put(t, row->address - m->mappings[row->mapping].start);
		put(t, (uint64_t)row->line_count << 1 | row->is_folded);
		for (uint32_t line = 0; line < row->line_count; line++) {
			put(t, m->lines[row->first_line + line].function);
			put(t, zigzag(m->lines[row->first_line + line].line));
			put(t, zigzag(m->lines[row->first_line + line].column));
		}
	}
	finish(t, WINDOW_FIELD_LOCATIONS);
	for (size_t i = 1; i < m->stacks_count; i++) {
		put(t, i - m->stacks[i].parent);
		put(t, m->stacks[i].location);
	}
	finish(t, WINDOW_FIELD_STACKS);
}

static void add_processes(const struct model *m, struct table *t)
{
	for (size_t i = 1; i < m->app_metadata_count; i++)
		put(t, m->app_metadata[i]);
	finish(t, WINDOW_FIELD_APP_METADATA);
	for (size_t i = 1; i < m->processes_count; i++) {
		const struct model_process *row = &m->processes[i];

		put(t, row->pid);
		put(t, row->start_ns);
		put(t, row->comm);
		put(t, row->container);
		put(t, row->app_id);
		put(t, row->app_metadata);
	}
	finish(t, WINDOW_FIELD_PROCESSES);
	for (size_t i = 1; i < m->threads_count; i++) {
		put(t, m->threads[i].process);
		put(t, m->threads[i].tid);
		put(t, m->threads[i].name);
	}
	finish(t, WINDOW_FIELD_THREADS);
}

static void add_label_sets(const struct model *m, struct table *t)
{
	for (size_t i = 1; i < m->label_sets_count; i++) {
		const struct model_label_set *set = &m->label_sets[i];

		put(t, set->count);
		for (uint32_t at = 0; at < set->count; at++) {
			const struct model_label *label = &m->labels[set->first + at];

			put(t, (uint64_t)label->key << 1 | label->is_number);
			put(t, label->is_number ? zigzag(label->number) : label->text);
			if (label->is_number)
				put(t, label->unit);
		}
	}
	finish(t, WINDOW_FIELD_LABEL_SETS);
}

static void add_header(const struct model *m, struct table *t)
{
	const uint64_t numbers[] = { m->period_type.type, m->period_type.unit,    zigzag(m->period),
				     zigzag(m->time_ns),  zigzag(m->duration_ns), m->drop_frames,
				     m->keep_frames,      m->default_type,        m->doc_url };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		put(t, numbers[i]);
	for (size_t i = 0; i < m->value_type_count; i++) {
		put(t, m->value_types[i].type);
		put(t, m->value_types[i].unit);
	}
	finish(t, WINDOW_FIELD_HEADER);
	for (size_t i = 0; i < m->comments_count; i++)
		put(t, m->comments[i]);
	finish(t, WINDOW_FIELD_COMMENTS);
}

static void add_samples(const struct model *m, struct table *t)
{
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *row = &m->samples[i];
		const int64_t *values = model_values(m, row);

		put(t, row->stack);
		put(t, row->process);
		put(t, row->thread);
		put(t, row->label_set);
		put(t, row->end);
		put(t, row->time_offset_ns + 1); /* MODEL_NO_TIME becomes 0 */
		for (size_t at = 0; at < m->value_type_count; at++)
			put(t, zigzag(values[at]));
	}
	finish(t, WINDOW_FIELD_SAMPLES);
}

static void add_workloads(const struct model *m, struct table *t)
{
	bool known = false;

	for (size_t i = 1; i < m->processes_count; i++)
		known |= m->processes[i].workload != 0;
	for (size_t i = 1; i < m->processes_count && known; i++)
		put(t, m->processes[i].workload);
	finish(t, WINDOW_FIELD_WORKLOADS);
}

static void add_service_kinds(const struct model *m, struct table *t)
{
	bool known = false;

	for (size_t i = 1; i < m->processes_count; i++)
		known |= m->processes[i].service_kind != 0;
	for (size_t i = 1; i < m->processes_count && known; i++)
		put(t, m->processes[i].service_kind);
	finish(t, WINDOW_FIELD_SERVICE_KINDS);
}

int window_encode(const struct window *w, struct buf *out)
{
	scoped(table_release) struct table t = { .rows = BUF_INIT(WINDOW_ENCODED_MAX), .out = out };
	const struct model *m = w->model;

	must(!m->may_repeat); /* who reads it expects every row once */
	add_scalars(w, out);
	add_average(out, WINDOW_FIELD_CPU_AVERAGE, w->cpu_average);
	add_average(out, WINDOW_FIELD_MEMORY_AVERAGE, w->memory_average);
	add_labels(w, &t);
	for (uint32_t i = 1; i < intern_count(&m->strings); i++)
		wire_add_bytes(out, WINDOW_FIELD_STRING, model_string(m, i));
	add_symbols(m, &t);
	add_stacks(m, &t);
	add_processes(m, &t);
	add_label_sets(m, &t);
	add_header(m, &t);
	add_samples(m, &t);
	add_workloads(m, &t);
	add_service_kinds(m, &t);
	return out->error;
}
