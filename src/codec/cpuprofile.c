/* SPDX-License-Identifier: Apache-2.0 */
/* V8's .cpuprofile, as Chrome's and Node's developer tools open it: a tree of nodes, and which one ran from when on.
 * Source: Chrome DevTools Protocol, domain Profiler, types Profile and ProfileNode. */
#include "codec/cpuprofile.h"

#include "base/array.h"
#include "codec/call_tree.h"
#include "codec/json.h"

/* A unit of a value as microseconds. */
static const struct unit {
	struct str name;
	int decimals; /* below zero: zeros behind it */
} units[] = {
	{ { "nanoseconds", 11 }, 3 },
	{ { "microseconds", 12 }, 0 },
	{ { "milliseconds", 12 }, -3 },
	{ { "seconds", 7 }, -6 },
};

/* Ids count from 1: that of a node of the tree is its number + 1, and the last one is for no time at all. */
struct writer {
	const struct window *w;
	const struct model *m;
	struct call_tree tree;
	int64_t *value, *hits; /* by node */
	size_t value_cap, hits_cap;
	uint32_t *child, *next; /* by node: its first child, its next sibling; 0: none */
	size_t column;
	int hits_column; /* the column that counts samples, or -1 */
	int decimals;
	int64_t scale; /* of a value, before the decimals */
	bool is_time;
	size_t negative; /* samples with a value below zero */
	struct json_out j;
};

static void writer_release(struct writer *o)
{
	call_tree_release(&o->tree);
	free(o->value);
	free(o->hits);
	free(o->child);
	free(o->next);
}

static int add(int64_t **list, size_t *cap, uint32_t node, int64_t value)
{
	size_t before = *cap;
	int r = node < before ? 0 : array_reserve(list, cap, (size_t)node + node / 2 + 16);

	if (r < 0)
		return r;
	memset(*list + before, 0, (*cap - before) * sizeof(**list));
	(*list)[node] = saturating_add((*list)[node], value);
	return 0;
}

static int collect(struct writer *o)
{
	const struct model *m = o->m;
	uint32_t node;
	int r = add(&o->value, &o->value_cap, 0, 0);

	r = r ? r : add(&o->hits, &o->hits_cap, 0, 0);
	for (size_t i = 0; r == 0 && m->value_type_count && i < m->samples_count; i++) {
		const int64_t *values = model_values(m, &m->samples[i]);

		o->negative += values[o->column] < 0;
		if (values[o->column] <= 0)
			continue;
		r = call_tree_add(&o->tree, &m->samples[i], &node);
		r = r ? r : add(&o->value, &o->value_cap, node, values[o->column]);
		if (r == 0 && o->hits_column >= 0)
			r = add(&o->hits, &o->hits_cap, node, MAX(values[o->hits_column], INT64_C(0)));
	}
	return r;
}

static int move(int64_t **list, size_t *cap, const uint32_t *moved, size_t count)
{
	int64_t *to = calloc(count, sizeof(*to));

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < count && i < *cap; i++)
		to[moved[i]] = (*list)[i];
	free(*list);
	*list = to;
	*cap = count;
	return 0;
}

static int sort(struct writer *o)
{
	size_t count = o->tree.nodes_count;
	scoped(freep) uint32_t *moved = calloc(count, sizeof(*moved));
	int r = moved ? call_tree_sort(&o->tree, moved) : -ENOMEM;

	r = r ? r : move(&o->value, &o->value_cap, moved, count);
	r = r ? r : move(&o->hits, &o->hits_cap, moved, count);
	o->child = calloc(count, sizeof(*o->child));
	o->next = calloc(count, sizeof(*o->next));
	if (r < 0 || !o->child || !o->next)
		return -ENOMEM;
	for (size_t i = count; i-- > 1;) { /* from behind, so that siblings stand in their order */
		uint32_t parent = o->tree.nodes[i].parent;

		o->next[i] = o->child[parent];
		o->child[parent] = (uint32_t)i;
	}
	return 0;
}

static void write_u64(struct writer *o, struct str name, uint64_t value)
{
	json_out_key(&o->j, name);
	json_out_u64(&o->j, value);
}

static void write_text(struct writer *o, struct str name, struct str value)
{
	json_out_key(&o->j, name);
	json_out_string(&o->j, value);
}

static void write_call(struct writer *o, struct str name, struct str url, int64_t line)
{
	json_out_key(&o->j, STR("callFrame"));
	json_out_begin(&o->j, '{');
	write_text(o, STR("functionName"), name);
	write_text(o, STR("scriptId"), STR("0"));
	write_text(o, STR("url"), url);
	json_out_key(&o->j, STR("lineNumber"));
	if (line > 0)
		json_out_u64(&o->j, (uint64_t)line - 1);
	else
		json_out_raw(&o->j, STR("-1"));
	json_out_key(&o->j, STR("columnNumber"));
	json_out_raw(&o->j, STR("-1"));
	json_out_end(&o->j, '}');
}

static void write_children(struct writer *o, size_t node)
{
	size_t idle = o->tree.nodes_count + 1;

	json_out_key(&o->j, STR("children"));
	json_out_begin(&o->j, '[');
	for (uint32_t child = o->child[node]; child; child = o->next[child])
		json_out_u64(&o->j, (uint64_t)child + 1);
	if (!node)
		json_out_u64(&o->j, idle);
	json_out_end(&o->j, ']');
}

static void write_node(struct writer *o, size_t node)
{
	const struct call_frame *frame = node ? &o->tree.frames[o->tree.nodes[node].frame] : NULL;

	json_out_begin(&o->j, '{');
	write_u64(o, STR("id"), node + 1);
	if (frame)
		write_call(o, call_tree_text(&o->tree, frame->name),
			   call_tree_text(&o->tree, frame->file ? frame->file : frame->module), frame->first_line);
	else
		write_call(o, STR("(root)"), STR(""), 0);
	if (o->hits_column >= 0)
		write_u64(o, STR("hitCount"), (uint64_t)o->hits[node]);
	write_children(o, node);
	json_out_end(&o->j, '}');
}

static void write_nodes(struct writer *o)
{
	json_out_key(&o->j, STR("nodes"));
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < o->tree.nodes_count && !o->j.out->error; i++)
		write_node(o, i);
	json_out_begin(&o->j, '{');
	write_u64(o, STR("id"), o->tree.nodes_count + 1);
	write_call(o, STR("(idle)"), STR(""), 0);
	json_out_end(&o->j, '}');
	json_out_end(&o->j, ']');
}

static int64_t length(const struct writer *o, int64_t value)
{
	int64_t scaled;

	return __builtin_mul_overflow(value, o->scale, &scaled) ? INT64_MAX : scaled;
}

static void write_time(struct writer *o, struct str name, int64_t value)
{
	json_out_key(&o->j, name);
	json_decimal(o->j.out, value, o->decimals);
	o->j.needs_comma = true;
}

/* A node runs from its time until the next one's. The last one, which has no next, is the one for no time. */
static void write_samples(struct writer *o)
{
	int64_t last = 0, sum = 0;

	json_out_key(&o->j, STR("samples"));
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < o->tree.nodes_count; i++) {
		if (o->value[i])
			json_out_u64(&o->j, i + 1);
		sum = saturating_add(sum, length(o, o->value[i]));
	}
	json_out_u64(&o->j, o->tree.nodes_count + 1);
	json_out_end(&o->j, ']');
	json_out_key(&o->j, STR("timeDeltas"));
	json_out_begin(&o->j, '[');
	for (size_t i = 0; i < o->tree.nodes_count; i++) {
		if (!o->value[i])
			continue;
		json_decimal(o->j.out, last, o->decimals);
		buf_addc(o->j.out, ',');
		last = length(o, o->value[i]);
	}
	json_decimal(o->j.out, last, o->decimals);
	json_out_end(&o->j, ']');
	write_u64(o, STR("startTime"), 0);
	write_time(o, STR("endTime"), sum);
}

static void set_column(struct writer *o, const struct codec_options *options)
{
	uint64_t interval_ns = o->w->frequency_hz ? NSEC_PER_SEC / o->w->frequency_hz : NSEC_PER_MSEC;
	struct str unit = STR("");
	size_t at = model_count_value(o->m);

	o->hits_column = -1;
	if (o->m->value_type_count) {
		o->column = codec_value(o->m, options, model_default_value(o->m));
		unit = model_string(o->m, o->m->value_types[o->column].unit);
		if (str_eq(model_string(o->m, o->m->value_types[at].unit), STR("count")))
			o->hits_column = (int)at;
	}
	o->scale = 1;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!str_eq(unit, units[i].name))
			continue;
		o->decimals = units[i].decimals;
		o->is_time = true;
	}
	if (o->hits_column == (int)o->column) { /* a sample is as long as the interval */
		o->scale = (int64_t)interval_ns;
		o->decimals = 3;
	}
}

static void say_lost(const struct writer *o, const struct codec_options *options)
{
	const struct model_value_type *type = &o->m->value_types[o->column];
	bool has_hits = o->hits_column >= 0, is_hits = o->hits_column == (int)o->column;
	size_t written = has_hits && !is_hits ? 2 : 1;

	if (o->negative)
		codec_lose(options->lost, ".cpuprofile has no values below zero: those of %zu samples are left out",
			   o->negative);
	if (o->m->value_type_count && !o->is_time && !is_hits)
		codec_lose(options->lost, ".cpuprofile has times only: a microsecond stands for each of '" STR_FMT "'",
			   STR_ARG(model_string(o->m, type->type)));
	if (o->m->value_type_count > written)
		codec_lose(options->lost,
			   ".cpuprofile has one value: '" STR_FMT "' is written (--value chooses), %zu left out",
			   STR_ARG(model_string(o->m, type->type)), o->m->value_type_count - written);
}

static int encode_as(const struct window *w, const struct codec_options *options, struct buf *out)
{
	const struct call_tree_config cfg = { .style = options->frames, .with_owners = true };
	scoped(writer_release) struct writer o = { .w = w, .m = w->model, .j = { .out = out } };
	int r = call_tree_init(&o.tree, w->model, &cfg);

	set_column(&o, options);
	r = r ? r : collect(&o);
	r = r ? r : sort(&o);
	if (r < 0)
		return r;
	json_out_begin(&o.j, '{');
	write_nodes(&o);
	write_samples(&o);
	json_out_end(&o.j, '}');
	buf_addc(out, '\n');
	say_lost(&o, options);
	return out->error;
}

static int encode(const struct window *w, struct buf *out)
{
	const struct codec_options usual = { 0 };

	return encode_as(w, &usual, out);
}

static const char *const suffixes[] = { ".cpuprofile", NULL };

const struct codec codec_cpuprofile = {
	.name = "cpuprofile",
	.suffixes = suffixes,
	.help = "JSON for the developer tools of Chrome, Node.js and editors, written only",
	.encode = encode,
	.encode_as = encode_as,
};
