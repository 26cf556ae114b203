/* SPDX-License-Identifier: Apache-2.0 */
/* The window format keeps every field of struct window and struct model. Who adds a field changes a size below, and is
 * reminded to compare it here. */
#include "support.h"

#include "codec/window_codec.h"
#include "codec_samples.h"

static_assert(sizeof(struct window) == 224,
	      "compare the new field in assert_windows_same() and fill(); files have no codes and bases");
static_assert(sizeof(struct model_mapping) == 40 && sizeof(struct model_function) == 24 &&
		      sizeof(struct model_line) == 24 && sizeof(struct model_location) == 24 &&
		      sizeof(struct model_stack) == 8 && sizeof(struct model_process) == 40 &&
		      sizeof(struct model_thread) == 12 && sizeof(struct model_label) == 32 &&
		      sizeof(struct model_label_set) == 8 && sizeof(struct model_sample) == 32 &&
		      sizeof(struct model_value_type) == 8,
	      "compare the new field in assert_models_same()");
static_assert(sizeof(struct model) - sizeof(struct intern) == 648, /* memory_max and may_repeat are no content */
	      "compare the new field in assert_models_same() and fill()");

#define OUT_MAX MIB(64)

#define same_text(a, b, x, y)                                                                                \
	do {                                                                                                 \
		if (!str_eq(model_string((a), (x)), model_string((b), (y))))                                 \
			fail_msg("%s: '" STR_FMT "' and '" STR_FMT "'", #x, STR_ARG(model_string((a), (x))), \
				 STR_ARG(model_string((b), (y))));                                           \
	} while (0)
#define same_number(x, y)                                                                  \
	do {                                                                               \
		if ((x) != (y))                                                            \
			fail_msg("%s: %lld and %lld", #x, (long long)(x), (long long)(y)); \
	} while (0)

static void assert_code_same(const struct model *a, const struct model *b)
{
	same_number(a->mappings_count, b->mappings_count);
	for (size_t i = 0; i < a->mappings_count; i++) {
		const struct model_mapping *x = &a->mappings[i], *y = &b->mappings[i];

		same_number(x->start, y->start);
		same_number(x->limit, y->limit);
		same_number(x->file_offset, y->file_offset);
		same_text(a, b, x->filename, y->filename);
		same_text(a, b, x->build_id, y->build_id);
		same_number(x->flags, y->flags);
	}
	same_number(a->functions_count, b->functions_count);
	for (size_t i = 0; i < a->functions_count; i++) {
		const struct model_function *x = &a->functions[i], *y = &b->functions[i];

		same_text(a, b, x->name, y->name);
		same_text(a, b, x->system_name, y->system_name);
		same_text(a, b, x->filename, y->filename);
		same_number(x->kind, y->kind);
		same_number(x->start_line, y->start_line);
	}
	same_number(a->locations_count, b->locations_count);
	for (size_t i = 0; i < a->locations_count; i++) {
		const struct model_location *x = &a->locations[i], *y = &b->locations[i];

		same_number(x->mapping, y->mapping);
		same_number(x->address, y->address);
		same_number(x->is_folded, y->is_folded);
		same_number(x->line_count, y->line_count);
		for (uint32_t line = 0; line < x->line_count; line++) {
			const struct model_line *p = &a->lines[x->first_line + line],
						*q = &b->lines[y->first_line + line];

			same_number(p->function, q->function);
			same_number(p->line, q->line);
			same_number(p->column, q->column);
		}
	}
}

static void assert_processes_same(const struct model *a, const struct model *b)
{
	same_number(a->processes_count, b->processes_count);
	for (size_t i = 0; i < a->processes_count; i++) {
		const struct model_process *x = &a->processes[i], *y = &b->processes[i];

		same_number(x->pid, y->pid);
		same_number(x->start_ns, y->start_ns);
		same_text(a, b, x->comm, y->comm);
		same_text(a, b, x->container, y->container);
		same_text(a, b, x->app_id, y->app_id);
		same_text(a, b, x->workload, y->workload);
		same_text(a, b, x->service_kind, y->service_kind);
		same_text(a, b, a->app_metadata[x->app_metadata], b->app_metadata[y->app_metadata]);
	}
	same_number(a->threads_count, b->threads_count);
	for (size_t i = 0; i < a->threads_count; i++) {
		same_number(a->threads[i].process, b->threads[i].process);
		same_number(a->threads[i].tid, b->threads[i].tid);
		same_text(a, b, a->threads[i].name, b->threads[i].name);
	}
	same_number(a->app_metadata_count, b->app_metadata_count);
}

static void assert_labels_same(const struct model *a, const struct model *b, uint32_t set_a, uint32_t set_b)
{
	const struct model_label_set *x = &a->label_sets[set_a], *y = &b->label_sets[set_b];

	same_number(x->count, y->count);
	for (uint32_t i = 0; i < x->count; i++) {
		const struct model_label *p = &a->labels[x->first + i], *q = &b->labels[y->first + i];

		same_text(a, b, p->key, q->key);
		same_number(p->is_number, q->is_number);
		if (p->is_number) {
			same_number(p->number, q->number);
			same_text(a, b, p->unit, q->unit);
		} else {
			same_text(a, b, p->text, q->text);
		}
	}
}

static void assert_samples_same(const struct model *a, const struct model *b)
{
	same_number(a->stacks_count, b->stacks_count);
	for (size_t i = 0; i < a->stacks_count; i++) {
		same_number(a->stacks[i].parent, b->stacks[i].parent);
		same_number(a->stacks[i].location, b->stacks[i].location);
	}
	same_number(a->samples_count, b->samples_count);
	for (size_t i = 0; i < a->samples_count; i++) {
		const struct model_sample *x = &a->samples[i], *y = &b->samples[i];

		same_number(x->stack, y->stack);
		same_number(x->process, y->process);
		same_number(x->thread, y->thread);
		assert_labels_same(a, b, x->label_set, y->label_set);
		same_text(a, b, x->end, y->end);
		same_number(x->time_offset_ns, y->time_offset_ns);
		assert_memory_equal(model_values(a, x), model_values(b, y), a->value_type_count * sizeof(int64_t));
	}
}

static void assert_models_same(const struct model *a, const struct model *b)
{
	same_number(a->value_type_count, b->value_type_count);
	for (size_t i = 0; i < a->value_type_count; i++) {
		same_text(a, b, a->value_types[i].type, b->value_types[i].type);
		same_text(a, b, a->value_types[i].unit, b->value_types[i].unit);
	}
	same_text(a, b, a->period_type.type, b->period_type.type);
	same_text(a, b, a->period_type.unit, b->period_type.unit);
	same_number(a->period, b->period);
	same_number(a->time_ns, b->time_ns);
	same_number(a->duration_ns, b->duration_ns);
	same_text(a, b, a->drop_frames, b->drop_frames);
	same_text(a, b, a->keep_frames, b->keep_frames);
	same_text(a, b, a->default_type, b->default_type);
	same_text(a, b, a->doc_url, b->doc_url);
	same_number(a->comments_count, b->comments_count);
	for (size_t i = 0; i < a->comments_count; i++)
		same_text(a, b, a->comments[i], b->comments[i]);
	assert_code_same(a, b);
	assert_processes_same(a, b);
	assert_samples_same(a, b);
}

static void assert_windows_same(const struct window *a, const struct window *b)
{
	char *const texts_a[] = { a->host,           a->agent_version, a->sampler, a->unwinder,
				  a->kernel_release, a->os_name,       a->command, a->metadata_json };
	char *const texts_b[] = { b->host,           b->agent_version, b->sampler, b->unwinder,
				  b->kernel_release, b->os_name,       b->command, b->metadata_json };

	for (size_t i = 0; i < ARRAY_SIZE(texts_a); i++) {
		assert_non_null(texts_a[i]);
		assert_non_null(texts_b[i]);
		assert_string_equal(texts_a[i], texts_b[i]);
	}
	same_number(a->start_ns, b->start_ns);
	same_number(a->end_ns, b->end_ns);
	same_number(a->frequency_hz, b->frequency_hz);
	same_number(a->cpu_count, b->cpu_count);
	same_number(a->run_id[0], b->run_id[0]);
	same_number(a->run_id[1], b->run_id[1]);
	same_number(a->cycle_id, b->cycle_id);
	same_number(a->busy_ns, b->busy_ns);
	assert_true(a->cpu_average >= b->cpu_average && a->cpu_average <= b->cpu_average);
	assert_true(a->memory_average >= b->memory_average && a->memory_average <= b->memory_average);
	same_number(a->label_count, b->label_count);
	for (size_t i = 0; i < a->label_count; i++) {
		assert_string_equal(a->labels[i].key, b->labels[i].key);
		assert_string_equal(a->labels[i].value, b->labels[i].value);
	}
	same_number(a->counter_count, b->counter_count);
	for (size_t i = 0; i < a->counter_count; i++) {
		assert_string_equal(a->counters[i].name, b->counters[i].name);
		same_number(a->counters[i].value, b->counters[i].value);
	}
	assert_models_same(a->model, b->model);
}

/* What hostile_window() leaves empty. */
static void fill(struct window *w)
{
	struct model *m = w->model;

	w->cycle_id = 77;
	w->memory_average = 1.0 / 3;
	assert_int_equal(window_set_text(&w->sampler, STR("bpf")), 0);
	assert_int_equal(window_set_text(&w->unwinder, STR("tables")), 0);
	assert_int_equal(window_set_text(&w->kernel_release, STR("6.1.0")), 0);
	assert_int_equal(window_set_text(&w->os_name, STR("Debian")), 0);
	m->time_ns = INT64_MIN;
	m->duration_ns = INT64_MAX;
	m->period = -5;
	assert_int_equal(model_add_string(m, STR("drop.*"), &m->drop_frames), 0);
	assert_int_equal(model_add_string(m, STR("keep.*"), &m->keep_frames), 0);
	assert_int_equal(model_add_string(m, STR("cpu"), &m->default_type), 0);
	assert_int_equal(model_add_string(m, STR("https://example.com/"), &m->doc_url), 0);
}

static void keeps_every_field(void **state)
{
	scoped(window_release) struct window w = { 0 }, back = { 0 };
	scoped(buf_release) struct buf bytes = BUF_INIT(OUT_MAX);
	struct codec_error error = { 0 };

	(void)state;
	assert_int_equal(hostile_window(&w, true), 0);
	fill(&w);
	assert_int_equal(codec_window.encode(&w, &bytes), 0);
	assert_int_equal(codec_window.decode(buf_str(&bytes), &back, &error), 0);
	assert_windows_same(&w, &back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
