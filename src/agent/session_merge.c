/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session_merge.h"

#include "agent/merge_runtime.h"

#define STRING_BYTES_MAX MIB(256) /* of a window's model */

static int rows_of(const struct aggregate *a, struct merge_row **out)
{
	struct merge_row *rows = calloc(a->sample_count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < a->sample_count; i++)
		rows[i] = (struct merge_row){ .pid = a->processes[a->samples[i].process].pid,
					      .count = a->samples[i].is_wait ? 0 : a->samples[i].count };
	*out = rows;
	return 0;
}

static void apply(struct aggregate *a, const struct merge_row *rows)
{
	a->total = 0;
	for (size_t i = 0; i < a->sample_count; i++) {
		if (a->samples[i].is_wait)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as many rows as samples */
		a->samples[i].count = (uint32_t)MIN(rows[i].merged, (uint64_t)UINT32_MAX);
		a->total += a->samples[i].count;
	}
}

int session_merge_counts(struct job *job)
{
	scoped(freep) struct merge_row *perf = NULL, *runtime = NULL;
	int r = rows_of(job->aggregate, &perf);

	if (r == 0)
		r = rows_of(job->beside, &runtime);
	if (r == 0)
		r = merge_runtime_rows(perf, job->aggregate->sample_count, runtime, job->beside->sample_count);
	if (r < 0)
		return r;
	apply(job->aggregate, perf);
	apply(job->beside, runtime);
	return 0;
}

int session_merge_windows(struct window *w, const struct window *beside)
{
	struct model *both = calloc(1, sizeof(*both));
	int r = both ? model_init(both, STRING_BYTES_MAX) : -ENOMEM;

	if (r < 0) {
		free(both);
		return r;
	}
	r = model_merge(both, w->model);
	if (r == 0)
		r = model_merge(both, beside->model);
	for (size_t i = 0; i < beside->counter_count && r == 0; i++) {
		struct str name = str_of(beside->counters[i].name);

		r = window_set_counter(w, name, window_counter(w, name) + beside->counters[i].value);
	}
	if (r < 0) {
		model_release(both);
		free(both);
		return r;
	}
	model_release(w->model);
	free(w->model);
	w->model = both;
	free(w->codes); /* its rows were those of the other model */
	w->codes = NULL;
	w->code_count = 0;
	free(w->bases);
	w->bases = NULL;
	w->base_count = 0;
	return 0;
}
