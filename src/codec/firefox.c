/* SPDX-License-Identifier: Apache-2.0 */
/* The Firefox Profiler's processed profile, version 70: one thread for each thread or process, one table of stacks,
 * frames and functions for all of them.
 * Source: firefox-devtools/profiler, src/types/profile.ts and src/app-logic/constants.ts (August 2026). */
#include "codec/firefox.h"

#include "base/array.h"
#include "codec/firefox_int.h"

#define TEXT_MAX GIB(4)
#define NONE FIREFOX_NONE

static const struct firefox_weight weights[] = {
	{ { "nanoseconds", 11 }, "tracing-ms", 6, 1 },
	{ { "microseconds", 12 }, "tracing-ms", 3, 1000 },
	{ { "milliseconds", 12 }, "tracing-ms", 0, 1000000 },
	{ { "seconds", 7 }, "tracing-ms", -3, 1000000000 },
	{ { "bytes", 5 }, "bytes", 0, 0 },
	{ { "", 0 }, "samples", 0, 0 }, /* all others */
};

static void writer_release(struct firefox_writer *o)
{
	call_tree_release(&o->tree);
	free(o->threads);
	free(o->rows);
	u64map_release(&o->thread_of);
	free(o->process_weight);
	intern_release(&o->strings);
	free(o->text_string);
	free(o->resource_of);
	free(o->source_of);
	free(o->func_of);
	free(o->resources.items);
	free(o->sources.items);
	free(o->funcs.items);
}

/* Collecting */

static int find_thread(struct firefox_writer *o, const struct model_sample *s, uint32_t *out)
{
	uint64_t key = (uint64_t)s->process << 32 | s->thread;
	int r;

	if (u64map_get(&o->thread_of, key, out) == 0)
		return 0;
	r = array_grow(&o->threads, &o->threads_cap, o->threads_count, UINT32_MAX - 1);
	r = r ? r : u64map_put(&o->thread_of, key, (uint32_t)o->threads_count);
	if (r < 0)
		return r;
	*out = (uint32_t)o->threads_count;
	o->threads[o->threads_count++] = (struct firefox_thread){ .process = s->process, .thread = s->thread };
	return 0;
}

static int add_row(struct firefox_writer *o, size_t sample, int64_t value)
{
	const struct model_sample *s = &o->m->samples[sample];
	struct firefox_row row = { .time_ns = s->time_offset_ns, .sample = (uint32_t)sample, .value = value };
	int r = find_thread(o, s, &row.thread);

	r = r ? r : call_tree_add(&o->tree, s, &row.node);
	r = r ? r : array_grow(&o->rows, &o->rows_cap, o->rows_count, UINT32_MAX);
	if (r < 0)
		return r;
	o->rows[o->rows_count++] = row;
	o->threads[row.thread].weight = saturating_add(o->threads[row.thread].weight, saturating_abs(value));
	o->process_weight[s->process] = saturating_add(o->process_weight[s->process], saturating_abs(value));
	return 0;
}

static int collect(struct firefox_writer *o)
{
	const struct model *m = o->m;
	int r = 0;

	o->process_weight = calloc(m->processes_count, sizeof(*o->process_weight));
	if (!o->process_weight)
		return -ENOMEM;
	o->has_times = true; /* where all that have a value in this column have one */
	for (size_t i = 0; r == 0 && m->value_type_count && i < m->samples_count; i++) {
		int64_t value = model_values(m, &m->samples[i])[o->column];

		if (!value)
			continue;
		o->has_times &= m->samples[i].time_offset_ns != MODEL_NO_TIME;
		o->with_time += m->samples[i].time_offset_ns != MODEL_NO_TIME;
		r = add_row(o, i, value);
	}
	return r;
}

/* Sorting */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static bool is_first_thread(const struct model *m, const struct firefox_thread *t)
{
	const struct model_process *p = &m->processes[t->process];

	return t->thread && p->pid && m->threads[t->thread].tid == p->pid;
}

/* Heavy processes first; in one, its first thread, then heavy ones. */
static int thread_order(const void *a, const void *b, void *ctx)
{
	const struct firefox_writer *o = ctx;
	const struct firefox_thread *x = a, *y = b;
	int r = compare((uint64_t)o->process_weight[y->process], (uint64_t)o->process_weight[x->process]);

	r = r ? r : compare(x->process, y->process);
	r = r ? r : compare(is_first_thread(o->m, y), is_first_thread(o->m, x));
	r = r ? r : compare((uint64_t)y->weight, (uint64_t)x->weight);
	return r ? r : compare(x->thread, y->thread);
}

static int row_order(const void *a, const void *b, void *ctx)
{
	const struct firefox_writer *o = ctx;
	const struct firefox_row *x = a, *y = b;
	int r = compare(x->thread, y->thread);

	r = r ? r : o->has_times ? compare(x->time_ns, y->time_ns) : compare(x->node, y->node);
	return r ? r : compare(x->sample, y->sample);
}

/* Without times the rows of one stack are one. */
static void add_up(struct firefox_writer *o)
{
	size_t count = 0;

	for (size_t i = 0; i < o->rows_count; i++) {
		struct firefox_row *last = count ? &o->rows[count - 1] : NULL;

		if (last && !o->has_times && last->thread == o->rows[i].thread && last->node == o->rows[i].node)
			last->value = saturating_add(last->value, o->rows[i].value);
		else
			o->rows[count++] = o->rows[i];
	}
	o->rows_count = count;
	for (size_t i = 0; i < count; i++) {
		struct firefox_thread *t = &o->threads[o->rows[i].thread];

		if (!t->count++)
			t->first = i;
	}
}

static int sort_threads(struct firefox_writer *o)
{
	scoped(freep) uint32_t *moved = calloc(o->threads_count + 1, sizeof(*moved));
	uint32_t number;

	if (!moved)
		return -ENOMEM;
	if (o->threads_count)
		qsort_r(o->threads, o->threads_count, sizeof(*o->threads), thread_order, o);
	for (uint32_t i = 0; i < o->threads_count; i++) {
		struct firefox_thread *t = &o->threads[i];

		t->is_main = !i || t->process != o->threads[i - 1].process;
		if (u64map_get(&o->thread_of, (uint64_t)t->process << 32 | t->thread, &number) == 0)
			moved[number] = i;
	}
	for (size_t i = 0; i < o->rows_count; i++)
		o->rows[i].thread = moved[o->rows[i].thread];
	return 0;
}

static int sort(struct firefox_writer *o)
{
	scoped(freep) uint32_t *moved = calloc(o->tree.nodes_count, sizeof(*moved));
	int r = moved ? call_tree_sort(&o->tree, moved) : -ENOMEM;

	r = r ? r : sort_threads(o);
	if (r < 0)
		return r;
	for (size_t i = 0; i < o->rows_count; i++)
		o->rows[i].node = moved[o->rows[i].node];
	if (o->rows_count)
		qsort_r(o->rows, o->rows_count, sizeof(*o->rows), row_order, o);
	add_up(o);
	return 0;
}

/* The tables */

static int push(struct firefox_list *list, uint32_t value)
{
	int r = array_grow(&list->items, &list->cap, list->count, UINT32_MAX - 1);

	if (r == 0)
		list->items[list->count++] = value;
	return r;
}

/* Adds a text of the tree to the strings of the file, whose number 0 is the empty one, too. */
static int add_text(struct firefox_writer *o, uint32_t text)
{
	if (o->text_string[text] != NONE)
		return 0;
	return intern_add(&o->strings, call_tree_text(&o->tree, text), &o->text_string[text]);
}

/* A library is called by its name alone. */
static int add_module(struct firefox_writer *o, uint32_t text)
{
	uint32_t string;
	int r;

	if (!text || o->resource_of[text] != NONE)
		return 0;
	r = intern_add(&o->strings, str_base(call_tree_text(&o->tree, text)), &string);
	o->resource_of[text] = (uint32_t)o->resources.count;
	return r ? r : push(&o->resources, string);
}

static int add_source(struct firefox_writer *o, uint32_t text)
{
	int r;

	if (!text || o->source_of[text] != NONE)
		return 0;
	r = add_text(o, text);
	o->source_of[text] = (uint32_t)o->sources.count;
	return r ? r : push(&o->sources, o->text_string[text]);
}

static bool is_same_function(const struct call_frame *a, const struct call_frame *b)
{
	return a->name == b->name && a->kind == b->kind && a->file == b->file && a->module == b->module &&
	       a->first_line == b->first_line;
}

static uint32_t *no_numbers(size_t count)
{
	uint32_t *list = malloc((count + 1) * sizeof(*list));

	for (size_t i = 0; list && i <= count; i++)
		list[i] = NONE;
	return list;
}

/* Frames are sorted: those of one function stand together. */
static int make_tables(struct firefox_writer *o)
{
	size_t texts = intern_count(&o->tree.texts);
	int r = 0;

	o->text_string = no_numbers(texts);
	o->resource_of = no_numbers(texts);
	o->source_of = no_numbers(texts);
	o->func_of = no_numbers(o->tree.frames_count);
	if (!o->text_string || !o->resource_of || !o->source_of || !o->func_of)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < o->tree.frames_count; i++) {
		const struct call_frame *frame = &o->tree.frames[i];

		if (!i || !is_same_function(frame, frame - 1))
			r = push(&o->funcs, i);
		o->func_of[i] = (uint32_t)o->funcs.count - 1;
		r = r ? r : add_text(o, frame->name);
		r = r ? r : add_module(o, frame->module);
		r = r ? r : add_source(o, frame->file);
	}
	return r;
}

static void set_column(struct firefox_writer *o, const struct codec_options *options)
{
	struct str unit = STR("");

	if (o->m->value_type_count) {
		o->column = codec_value(o->m, options, model_default_value(o->m));
		unit = model_string(o->m, o->m->value_types[o->column].unit);
	}
	o->unit = weights;
	while (o->unit->unit.len && !str_eq(o->unit->unit, unit))
		o->unit++;
	o->interval_ns = o->w->frequency_hz ? NSEC_PER_SEC / o->w->frequency_hz : NSEC_PER_MSEC;
}

static int encode_as(const struct window *w, const struct codec_options *options, struct buf *out)
{
	const struct call_tree_config cfg = { .style = options->frames, .lines = CALL_LINES_BOTH, .name_empty = true };
	scoped(writer_release) struct firefox_writer o = { .w = w, .m = w->model, .j = { .out = out } };
	int r = call_tree_init(&o.tree, w->model, &cfg);

	u64map_init(&o.thread_of, UINT32_MAX);
	intern_init(&o.strings, TEXT_MAX);
	set_column(&o, options);
	r = r ? r : collect(&o);
	r = r ? r : sort(&o);
	r = r ? r : make_tables(&o);
	if (r < 0)
		return r;
	r = firefox_write(&o);
	if (w->model->value_type_count > 1)
		codec_lose(options->lost,
			   "the Firefox Profiler shows one value: '" STR_FMT
			   "' is written (--value chooses), %zu left out",
			   STR_ARG(model_string(w->model, w->model->value_types[o.column].type)),
			   w->model->value_type_count - 1);
	if (!o.has_times && o.with_time)
		codec_lose(options->lost, "the times of %zu samples are left out, because others have none",
			   o.with_time);
	return r ? r : out->error;
}

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return encode_as(w, &usual, out);
}

/* Known, so that it can be said that it is only written. */
static int sniff(struct str bytes)
{
	struct str head = str_trim(str_first(bytes, KIB(4)));

	return str_starts(head, STR("{")) && str_search(head, STR("\"preprocessedProfileVersion\"")) >= 0;
}

static const char *const suffixes[] = { ".profile.json", NULL };

const struct codec codec_firefox = {
	.name = "firefox",
	.suffixes = suffixes,
	.help = "JSON for profiler.firefox.com, written only",
	.encode = encode,
	.encode_as = encode_as,
	.sniff = sniff,
};
