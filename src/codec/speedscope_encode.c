/* SPDX-License-Identifier: Apache-2.0 */
/* One sampled profile for each column. Stacks are added up, in the order of a tree that is sorted by names; where every
 * sample has its time they stand one by one in the order of time. */
#include "base/array.h"
#include "codec/call_tree.h"
#include "codec/json.h"
#include "codec/speedscope.h"

struct timed {
	uint64_t time_ns;
	uint32_t sample, node;
};

struct writer {
	const struct window *w;
	const struct model *m;
	struct call_tree tree;
	int64_t *self; /* by node and column; not where samples have their times */
	size_t self_cap;
	struct timed *timed;
	size_t timed_count, timed_cap;
	uint32_t *path;   /* frames of a stack, root first */
	uint32_t *depth;  /* by node */
	size_t negative;  /* samples with a value below zero */
	size_t with_time; /* samples that have one */
	bool has_times;
	struct buf *out;
};

static void writer_release(struct writer *o)
{
	call_tree_release(&o->tree);
	free(o->self);
	free(o->timed);
	free(o->path);
	free(o->depth);
}

/* Collecting */

static int add_values(struct writer *o, uint32_t node, const int64_t *values)
{
	size_t columns = o->m->value_type_count, before = o->self_cap;
	size_t want = ((size_t)node + 1) * columns;
	int r = want > before ? array_reserve(&o->self, &o->self_cap, want + want / 2) : 0;

	if (r < 0)
		return r;
	memset(o->self + before, 0, (o->self_cap - before) * sizeof(*o->self));
	for (size_t i = 0; i < columns; i++)
		o->self[node * columns + i] = saturating_add(o->self[node * columns + i], MAX(values[i], INT64_C(0)));
	return 0;
}

static int add_timed(struct writer *o, uint32_t node, size_t sample)
{
	int r = array_grow(&o->timed, &o->timed_cap, o->timed_count, UINT32_MAX);

	if (r == 0)
		o->timed[o->timed_count++] =
			(struct timed){ o->m->samples[sample].time_offset_ns, (uint32_t)sample, node };
	return r;
}

static int collect(struct writer *o)
{
	const struct model *m = o->m;
	uint32_t node;
	int r = 0;

	for (size_t i = 0; i < m->samples_count; i++)
		o->with_time += m->samples[i].time_offset_ns != MODEL_NO_TIME;
	o->has_times = o->with_time && o->with_time == m->samples_count;
	for (size_t i = 0; r == 0 && m->value_type_count && i < m->samples_count; i++) {
		const int64_t *values = model_values(m, &m->samples[i]);
		bool any = o->has_times, negative = false;

		for (size_t column = 0; column < m->value_type_count; column++) {
			any |= values[column] > 0;
			negative |= values[column] < 0;
		}
		o->negative += negative;
		if (!any)
			continue;
		r = call_tree_add(&o->tree, &m->samples[i], &node);
		r = r ? r : o->has_times ? add_timed(o, node, i) : add_values(o, node, values);
	}
	return r;
}

static int time_order(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* The sums go with their nodes when these are numbered anew. */
static int move_values(struct writer *o, const uint32_t *moved)
{
	size_t columns = o->m->value_type_count, count = o->tree.nodes_count;
	int64_t *self = calloc(count * MAX(columns, (size_t)1), sizeof(*self));

	if (!self)
		return -ENOMEM;
	for (size_t node = 0; columns && node < count && (node + 1) * columns <= o->self_cap; node++)
		memcpy(self + moved[node] * columns, o->self + node * columns, columns * sizeof(*self));
	free(o->self);
	o->self = self;
	o->self_cap = count * columns;
	return 0;
}

static int sort(struct writer *o)
{
	size_t count = o->tree.nodes_count;
	scoped(freep) uint32_t *moved = calloc(count, sizeof(*moved));
	uint32_t deepest = 0;
	int r = moved ? call_tree_sort(&o->tree, moved) : -ENOMEM;

	if (r == 0 && !o->has_times)
		r = move_values(o, moved);
	if (r < 0)
		return r;
	for (size_t i = 0; i < o->timed_count; i++)
		o->timed[i].node = moved[o->timed[i].node];
	if (o->timed_count)
		qsort(o->timed, o->timed_count, sizeof(*o->timed), time_order);
	o->depth = calloc(count, sizeof(*o->depth));
	if (!o->depth)
		return -ENOMEM;
	for (size_t i = 1; i < count; i++) {
		o->depth[i] = o->depth[o->tree.nodes[i].parent] + 1;
		deepest = MAX(deepest, o->depth[i]);
	}
	o->path = calloc((size_t)deepest + 1, sizeof(*o->path));
	return o->path ? 0 : -ENOMEM;
}

/* Writing */

static void add_text(struct json_out *j, struct str key, struct str text)
{
	if (!text.len)
		return;
	json_out_key(j, key);
	json_out_string(j, text);
}

static void add_number(struct json_out *j, struct str key, int64_t number)
{
	if (number <= 0)
		return;
	json_out_key(j, key);
	json_out_u64(j, (uint64_t)number);
}

static void write_frame(const struct call_tree *t, const struct call_frame *frame, struct json_out *j)
{
	struct str module = call_tree_text(t, frame->module);

	json_out_begin(j, '{');
	json_out_key(j, STR("name"));
	json_out_string(j, call_tree_text(t, frame->name));
	add_text(j, STR("file"), frame->file ? call_tree_text(t, frame->file) : module);
	add_number(j, STR("line"), frame->line ? frame->line : frame->first_line);
	add_number(j, STR("col"), frame->column);
	if (frame->kind != MODEL_KIND_NATIVE)
		add_text(j, STR("kind"), call_kind_name(frame->kind));
	add_text(j, STR("module"), module);
	json_out_end(j, '}');
}

/* What is written for a column: each node of the tree, or each sample in the order of time. */
static size_t stack_count(const struct writer *o)
{
	return o->has_times ? o->timed_count : o->tree.nodes_count;
}

static int64_t value_at(const struct writer *o, size_t index, size_t column)
{
	if (!o->has_times)
		return o->self[index * o->m->value_type_count + column];
	return MAX(model_values(o->m, &o->m->samples[o->timed[index].sample])[column], INT64_C(0));
}

/* With times all columns have all samples, so that the numbers of one sample stand in the same place. */
static bool is_written(const struct writer *o, size_t index, size_t column)
{
	return o->has_times || value_at(o, index, column);
}

/* Return: the depth. Nodes come from the root down, so that the path of one begins with that of its parent. */
static size_t set_path(struct writer *o, size_t index)
{
	uint32_t node = o->has_times ? o->timed[index].node : (uint32_t)index;
	size_t depth = o->depth[node];

	if (!o->has_times && node)
		o->path[depth - 1] = o->tree.nodes[node].frame;
	for (uint32_t at = node; o->has_times && at; at = o->tree.nodes[at].parent)
		o->path[o->depth[at] - 1] = o->tree.nodes[at].frame;
	return depth;
}

static void write_samples(struct writer *o, size_t column)
{
	bool any = false;

	for (size_t i = 0; i < stack_count(o) && !o->out->error; i++) {
		size_t depth = set_path(o, i);

		if (!is_written(o, i, column))
			continue;
		buf_adds(o->out, any ? STR(",[") : STR("["));
		for (size_t at = 0; at < depth; at++) {
			if (at)
				buf_addc(o->out, ',');
			buf_addu64(o->out, o->path[at]);
		}
		buf_addc(o->out, ']');
		any = true;
	}
}

static void write_weights(struct writer *o, size_t column)
{
	bool any = false;

	for (size_t i = 0; i < stack_count(o); i++) {
		if (!is_written(o, i, column))
			continue;
		if (any)
			buf_addc(o->out, ',');
		buf_addu64(o->out, (uint64_t)value_at(o, i, column));
		any = true;
	}
}

static int64_t sum(const struct writer *o, size_t column)
{
	int64_t all = 0;

	for (size_t i = 0; i < stack_count(o); i++)
		all = saturating_add(all, value_at(o, i, column));
	return all;
}

static void write_times(struct writer *o)
{
	buf_adds(o->out, STR("], \"times\": ["));
	for (size_t i = 0; i < o->timed_count; i++) {
		if (i)
			buf_addc(o->out, ',');
		buf_addu64(o->out, o->timed[i].time_ns);
	}
}

/* Units that speedscope knows. */
static bool is_shown_unit(struct str unit)
{
	static const struct str known[] = {
		{ "nanoseconds", 11 }, { "microseconds", 12 }, { "milliseconds", 12 }, { "seconds", 7 }, { "bytes", 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(known[i], unit))
			return true;
	return false;
}

static void write_profile(struct writer *o, size_t column, struct json_out *j)
{
	struct str unit = model_string(o->m, o->m->value_types[column].unit);
	bool is_shown = is_shown_unit(unit);

	json_out_begin(j, '{');
	json_out_key(j, STR("type"));
	json_out_string(j, STR("sampled"));
	json_out_key(j, STR("name"));
	json_out_string(j, model_string(o->m, o->m->value_types[column].type));
	json_out_key(j, STR("unit"));
	json_out_string(j, is_shown ? unit : STR("none"));
	if (!is_shown && !str_eq(unit, STR("count"))) {
		json_out_key(j, STR("valueUnit"));
		json_out_string(j, unit);
	}
	json_out_key(j, STR("startValue"));
	json_out_u64(j, 0);
	json_out_key(j, STR("endValue"));
	json_out_u64(j, (uint64_t)sum(o, column));
	json_out_key(j, STR("samples"));
	buf_addc(o->out, '[');
	write_samples(o, column);
	buf_adds(o->out, STR("], \"weights\": ["));
	write_weights(o, column);
	if (o->has_times)
		write_times(o);
	buf_adds(o->out, STR("]}"));
	j->needs_comma = true;
}

/* The profile that is shown first. A column is known by its name alone: of equal ones it is the first. */
static size_t active_profile(const struct model *m, const struct codec_options *options)
{
	size_t chosen = codec_value(m, options, model_default_value(m)), i = 0;

	while (m->value_types[i].type != m->value_types[chosen].type)
		i++;
	return i;
}

static void write_file(struct writer *o, const struct codec_options *options)
{
	const char *own = o->w->command && *o->w->command ? o->w->command : o->w->host;
	struct str title = str_of(options->title ? options->title : own);
	struct json_out j = { .out = o->out };

	json_out_begin(&j, '{');
	json_out_key(&j, STR("$schema"));
	json_out_string(&j, STR("https://www.speedscope.app/file-format-schema.json"));
	json_out_key(&j, STR("exporter"));
	json_out_string(&j, STR("hearth@" HEARTH_VERSION));
	add_text(&j, STR("name"), title);
	if (o->m->value_type_count) {
		json_out_key(&j, STR("activeProfileIndex"));
		json_out_u64(&j, active_profile(o->m, options));
	}
	json_out_key(&j, STR("shared"));
	json_out_begin(&j, '{');
	json_out_key(&j, STR("frames"));
	json_out_begin(&j, '[');
	for (size_t i = 0; i < o->tree.frames_count && !o->out->error; i++)
		write_frame(&o->tree, &o->tree.frames[i], &j);
	json_out_end(&j, ']');
	json_out_end(&j, '}');
	json_out_key(&j, STR("profiles"));
	json_out_begin(&j, '[');
	for (size_t i = 0; i < o->m->value_type_count && !o->out->error; i++)
		write_profile(o, i, &j);
	json_out_end(&j, ']');
	json_out_end(&j, '}');
	buf_addc(o->out, '\n');
}

int speedscope_encode(const struct window *w, const struct codec_options *options, struct buf *out)
{
	const struct call_tree_config cfg = { .style = options->frames,
					      .lines = options->frames.lines == FRAME_LINES_EXECUTING
							       ? CALL_LINES_EXECUTING
							       : CALL_LINES_FIRST,
					      .with_owners = true };
	scoped(writer_release) struct writer o = { .w = w, .m = w->model, .out = out };
	int r = call_tree_init(&o.tree, w->model, &cfg);

	r = r ? r : collect(&o);
	r = r ? r : sort(&o);
	if (r < 0)
		return r;
	write_file(&o, options);
	if (o.negative)
		codec_lose(options->lost, "speedscope has no values below zero: those of %zu samples are left out",
			   o.negative);
	if (!o.has_times && o.with_time)
		codec_lose(options->lost, "the times of %zu samples are left out, because others have none",
			   o.with_time);
	return out->error;
}
