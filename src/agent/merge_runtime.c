// SPDX-License-Identifier: Apache-2.0
#include "agent/merge_runtime.h"

#include "base/u64map.h"

#define PIDS_MAX (1U << 20)

struct totals { /* of one pid */
	uint64_t perf, runtime;
	uint32_t rows;      /* of runtime */
	uint32_t error_row; /* index + 1 of its only runtime row, when that is an error */
	uint64_t missing;   /* counts that rounding down has left over */
};

struct rest { /* of one runtime row that was rounded down */
	uint64_t remainder;
	uint32_t row, totals;
};

/* ---- rows ---- */

struct tables {
	struct u64map index; /* pid -> totals */
	struct totals *totals;
	size_t count;
	struct rest *rests;
};

static void tables_release(struct tables *t)
{
	u64map_release(&t->index);
	free(t->totals);
	free(t->rests);
}

static struct totals *totals_of(const struct tables *t, uint32_t pid)
{
	uint32_t at;

	return u64map_get(&t->index, pid, &at) == 0 ? &t->totals[at] : NULL;
}

static int add_totals(struct tables *t, const struct merge_row *runtime, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct totals *of = totals_of(t, runtime[i].pid);

		if (!of) {
			int r = u64map_put(&t->index, runtime[i].pid, (uint32_t)t->count);

			if (r < 0)
				return r;
			of = &t->totals[t->count++];
		}
		of->error_row = !of->rows++ && runtime[i].is_error ? (uint32_t)i + 1 : 0;
		of->runtime += runtime[i].count;
	}
	return 0;
}

static void judge_perf(const struct tables *t, struct merge_row *row)
{
	const struct totals *of = totals_of(t, row->pid);

	row->error_row = of && of->runtime ? of->error_row : 0;
	row->merged = !of || !of->runtime || of->error_row ? row->count : 0;
}

/* Rounds down; what is left over is given out by give_rests(). */
static void judge_runtime(struct tables *t, struct merge_row *row, uint32_t index, size_t *rest_count)
{
	struct totals *of = totals_of(t, row->pid);
	unsigned __int128 scaled;

	row->error_row = 0;
	row->merged = of->error_row ? 0 : row->count;
	if (of->error_row || !of->perf || !of->runtime || of->perf == of->runtime)
		return;
	scaled = (unsigned __int128)row->count * of->perf;
	row->merged = (uint64_t)(scaled / of->runtime);
	of->missing -= row->merged;
	t->rests[(*rest_count)++] = (struct rest){ .remainder = (uint64_t)(scaled % of->runtime),
						   .row = index,
						   .totals = (uint32_t)(of - t->totals) };
}

/* The largest first; of equal ones the first in the list. */
static int compare_rests(const void *a, const void *b)
{
	const struct rest *x = a, *y = b;

	if (x->remainder != y->remainder)
		return x->remainder > y->remainder ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void give_rests(struct tables *t, struct merge_row *runtime, size_t rest_count)
{
	qsort(t->rests, rest_count, sizeof(*t->rests), compare_rests);
	for (size_t i = 0; i < rest_count; i++) {
		struct totals *of = &t->totals[t->rests[i].totals];

		if (!of->missing)
			continue;
		of->missing--;
		runtime[t->rests[i].row].merged++;
	}
}

int merge_runtime_rows(struct merge_row *perf, size_t perf_count, struct merge_row *runtime, size_t runtime_count)
{
	scoped(tables_release) struct tables t = { 0 };
	size_t rest_count = 0;
	int r;

	u64map_init(&t.index, PIDS_MAX);
	t.totals = calloc(runtime_count + 1, sizeof(*t.totals));
	t.rests = calloc(runtime_count + 1, sizeof(*t.rests));
	if (!t.totals || !t.rests)
		return -ENOMEM;
	r = add_totals(&t, runtime, runtime_count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < perf_count; i++) {
		struct totals *of = totals_of(&t, perf[i].pid);

		if (of)
			of->perf += perf[i].count;
		judge_perf(&t, &perf[i]);
	}
	for (size_t i = 0; i < t.count; i++)
		t.totals[i].missing = t.totals[i].perf;
	for (size_t i = 0; i < runtime_count; i++)
		judge_runtime(&t, &runtime[i], (uint32_t)i, &rest_count);
	give_rests(&t, runtime, rest_count);
	return 0;
}

/* ---- models ---- */

bool merge_runtime_is_error(struct str name)
{
	ptrdiff_t colon = str_search(name, STR(": "));

	return str_starts(name, STR("[Profiling ")) && str_ends(name, STR("]")) && colon > 11 &&
	       (size_t)colon + 3 < name.len;
}

static bool is_error_stack(const struct model *m, uint32_t stack)
{
	const struct model_location *l;

	if (!stack)
		return false;
	l = &m->locations[m->stacks[stack].location];
	return l->line_count &&
	       merge_runtime_is_error(model_string(m, m->functions[m->lines[l->first_line].function].name));
}

/* One row a sample; those that do not count (waits) get no part in it. */
static int rows_of(const struct model *m, bool errors, struct merge_row **out)
{
	size_t column = model_count_value(m);
	struct merge_row *rows = calloc(m->samples_count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		int64_t count = model_values(m, s)[column];

		rows[i] = (struct merge_row){ .pid = m->processes[s->process].pid,
					      .count = count > 0 ? (uint64_t)count : 0,
					      .is_error = errors && is_error_stack(m, s->stack) };
	}
	*out = rows;
	return 0;
}

static int64_t scaled(int64_t value, uint64_t from, uint64_t to)
{
	__int128 product = (__int128)value * (__int128)to;

	return (int64_t)(product / (__int128)from);
}

/* A sample that counted and does not any more is left with nothing: merging drops it. */
static void apply_counts(struct model *m, const struct merge_row *rows)
{
	for (size_t i = 0; i < m->samples_count; i++) {
		int64_t *values = m->values + m->samples[i].first_value;

		if (!rows[i].count || rows[i].merged == rows[i].count)
			continue;
		for (size_t v = 0; v < m->value_type_count; v++)
			values[v] = scaled(values[v], rows[i].count, rows[i].merged);
	}
}

/* The same path with @location in front of its root. */
static int put_in_front(struct model *m, uint32_t location, uint32_t stack, uint32_t *out)
{
	scoped(freep) uint32_t *path = NULL;
	size_t depth = 0;
	uint32_t at;
	int r = model_add_stack(m, 0, location, out);

	for (at = stack; at; at = m->stacks[at].parent)
		depth++;
	path = calloc(depth + 1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	for (at = stack; at; at = m->stacks[at].parent)
		path[--depth] = m->stacks[at].location;
	for (at = stack; at && r == 0; at = m->stacks[at].parent)
		depth++;
	for (size_t i = 0; i < depth && r == 0; i++)
		r = model_add_stack(m, *out, path[i], out);
	return r;
}

static int add_error_location(struct model *m, struct str name, uint32_t *out)
{
	struct model_function function = { .kind = MODEL_KIND_NATIVE };
	struct model_location location = { .line_count = 1 };
	struct model_line line = { 0 };
	int r = model_add_string(m, name, &function.name);

	function.system_name = function.name;
	if (r == 0)
		r = model_add_function(m, &function, &line.function);
	return r < 0 ? r : model_add_location(m, &location, &line, out);
}

/* What the runtime's side knows of a process goes to the rows that stay, perf's. */
static int take_facts(struct model *perf, uint32_t perf_process, const struct model *runtime, uint32_t runtime_process)
{
	const struct model_process *from = &runtime->processes[runtime_process];
	struct model_process *to = &perf->processes[perf_process];
	int r = model_add_string(perf, model_string(runtime, from->app_id), &to->app_id);

	if (r == 0 && from->container)
		r = model_add_string(perf, model_string(runtime, from->container), &to->container);
	return r < 0 ? r
		     : model_add_app_metadata(perf, model_string(runtime, runtime->app_metadata[from->app_metadata]),
					      &to->app_metadata);
}

static int put_errors(struct model *perf, const struct merge_row *rows, const struct model *runtime)
{
	for (size_t i = 0; i < perf->samples_count; i++) {
		const struct model_sample *error;
		const struct model_location *l;
		uint32_t location;
		int r;

		if (!rows[i].error_row)
			continue;
		error = &runtime->samples[rows[i].error_row - 1];
		l = &runtime->locations[runtime->stacks[error->stack].location];
		r = add_error_location(
			perf, model_string(runtime, runtime->functions[runtime->lines[l->first_line].function].name),
			&location);
		if (r == 0)
			r = put_in_front(perf, location, perf->samples[i].stack, &perf->samples[i].stack);
		if (r == 0)
			r = take_facts(perf, perf->samples[i].process, runtime, error->process);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct model_process *process_of(const struct model *m, uint32_t pid)
{
	const struct model_process *found = NULL;

	for (size_t i = 1; i < m->processes_count; i++)
		if (m->processes[i].pid == pid && (!found || m->processes[i].container))
			found = &m->processes[i];
	return found;
}

static int fill_containers(struct model *runtime, const struct model *perf)
{
	for (size_t i = 1; i < runtime->processes_count; i++) {
		struct model_process *p = &runtime->processes[i];
		const struct model_process *other = p->container ? NULL : process_of(perf, p->pid);
		int r = other ? model_add_string(runtime, model_string(perf, other->container), &p->container) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static void count_errors_once(struct model *m, const struct merge_row *rows)
{
	for (size_t i = 0; i < m->samples_count; i++)
		if (rows[i].is_error && rows[i].count)
			for (size_t v = 0; v < m->value_type_count; v++)
				m->values[m->samples[i].first_value + v] =
					scaled(m->values[m->samples[i].first_value + v], rows[i].count, 1);
}

static int merge_two(struct model *perf, struct model *runtime, struct merge_row *runtime_rows)
{
	scoped(freep) struct merge_row *rows = NULL;
	int r = rows_of(perf, false, &rows);

	if (r == 0)
		r = merge_runtime_rows(rows, perf->samples_count, runtime_rows, runtime->samples_count);
	if (r == 0)
		r = put_errors(perf, rows, runtime);
	if (r == 0)
		r = fill_containers(runtime, perf);
	if (r < 0)
		return r;
	apply_counts(perf, rows);
	apply_counts(runtime, runtime_rows);
	return 0;
}

int merge_runtime_models(struct model *perf, struct model *runtime, struct model *out)
{
	scoped(freep) struct merge_row *rows = NULL;
	int r = rows_of(runtime, true, &rows);

	if (r < 0)
		return r;
	if (!perf) {
		count_errors_once(runtime, rows);
		return model_merge(out, runtime);
	}
	r = merge_two(perf, runtime, rows);
	if (r == 0)
		r = model_merge(out, perf);
	return r < 0 ? r : model_merge(out, runtime);
}
