/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/perf_events.h"

void perf_events_release(struct perf_events *e)
{
	for (size_t i = 0; i < e->count; i++)
		free((char *)(uintptr_t)e->names[i].ptr);
	e->count = 0;
}

int perf_events_add(struct perf_events *e, struct str name, bool has_period, size_t *out)
{
	size_t i = 0;

	while (i < e->count && !str_eq(e->names[i], name))
		i++;
	if (i == e->count && i < PERF_EVENTS_MAX) {
		char *copy = str_dup(name);

		if (!copy)
			return -ENOMEM;
		e->names[i] = str_n(copy, name.len);
		e->count++;
		e->has_period[i] = false;
	}
	if (i < PERF_EVENTS_MAX)
		e->has_period[i] |= has_period;
	*out = i;
	return 0;
}

/* The periods of the two software clocks are nanoseconds (linux 6.1, kernel/events/core.c,
 * perf_swevent_start_hrtimer()); all others count what they are called. */
static bool is_clock(struct str name)
{
	ptrdiff_t colon = str_find(name, ':');
	struct str base = colon < 0 ? name : str_first(name, (size_t)colon);

	return str_eq(base, STR("cpu-clock")) || str_eq(base, STR("task-clock"));
}

int perf_events_columns(const struct perf_events *e, struct model *m)
{
	int r = model_add_value_type(m, STR("samples"), STR("count"));

	for (size_t i = 0; r == 0 && i < e->count; i++) {
		struct str name = e->names[i];

		r = model_add_value_type(m, name.len ? name : STR("period"),
					 is_clock(name) && e->has_period[i] ? STR("nanoseconds") : STR("count"));
	}
	if (r == 0 && e->count)
		m->default_type = m->value_types[1].type;
	return r;
}

void perf_events_values(struct perf_events *e, size_t event, uint64_t period, int64_t *values)
{
	memset(values, 0, (e->count + 1) * sizeof(*values));
	values[0] = 1;
	if (event < e->count)
		values[event + 1] = period > INT64_MAX ? INT64_MAX : (int64_t)period;
	else if (event == PERF_EVENTS_MAX)
		e->without_column++;
}

int perf_events_close(const struct perf_events *e, struct window *w, struct codec_error *error)
{
	if (!e->without_column)
		return 0;
	codec_lose(error ? &error->lost : NULL, "%llu samples of further events have no column",
		   (unsigned long long)e->without_column);
	return window_set_counter(w, STR("samples_without_column"), e->without_column);
}
