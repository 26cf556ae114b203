/* SPDX-License-Identifier: Apache-2.0 */
/* When in the second it cost what: one column a second, rows of 20 ms (docs/api.yaml). Read from the samples' times,
 * never from their stacks. */
#include "base/opt.h"
#include "collector/totals.h"
#include "query/within.h"

#define STEP_MS 20
#define ROWS (1000 / STEP_MS)
#define STEP_NS (STEP_MS * NSEC_PER_MSEC)

struct subseconds {
	struct totals *t;
	struct query_within within; /* whole seconds */
	size_t columns;
	uint64_t *cells; /* second after second: cells[column * ROWS + row] */
	uint64_t total, untimed, profiles, timed;
	bool is_last, is_partial; /* is_last: of a longer range its end */
};

static void subseconds_release(struct subseconds *s)
{
	free(s->cells);
}

/* Adding */

static void add_sample(struct subseconds *s, const struct query_moment *p, uint64_t offset_ns, uint64_t value,
		       bool *has_time)
{
	uint64_t at;
	size_t cell;

	if (!query_within_time(p, offset_ns, &at)) {
		s->untimed = totals_plus(s->untimed, query_within_meets(&s->within, p) ? value : 0);
		return;
	}
	*has_time = true;
	if (at < s->within.from_ns || at >= s->within.to_ns)
		return;
	cell = (size_t)((at - s->within.from_ns) / STEP_NS);
	s->cells[cell] = totals_plus(s->cells[cell], value);
	s->total = totals_plus(s->total, value);
}

static int add_moments(void *ctx, const struct store_point *p, const struct store_moments *m)
{
	struct subseconds *s = ctx;
	const struct query_moment moment = { p->created_ns, m->start_ns, p->duration_ns };
	bool has_time = false;
	size_t column;

	if (!totals_column(s->t, p, &column)) {
		s->is_partial = true;
		return 0;
	}
	for (size_t i = 0; i < m->count; i++) {
		int64_t value = m->values[column * m->count + i];

		if (value > 0 && query_whose_fits(&s->t->whose, &m->owners[m->owner_of[i]]))
			add_sample(s, &moment, m->offsets ? m->offsets[i] : MODEL_NO_TIME, (uint64_t)value, &has_time);
	}
	s->profiles += query_within_meets(&s->within, &moment);
	s->timed += has_time && query_within_meets(&s->within, &moment);
	s->is_partial |= p->duration_ns > WITHIN_BACK_NS; /* what it has later is not looked at, nor in ones before */
	return 0;
}

/* The range */

/* "last": of a longer range only so much at its end. */
static bool read_last(struct subseconds *s)
{
	struct str raw = http_query_get(&s->t->call->query, STR("last"));
	struct query_range *range = &s->t->range;
	uint64_t last_ns;

	if (!raw.len)
		return true;
	if (opt_parse_duration(raw, &last_ns) < 0 || last_ns < NSEC_PER_SEC || last_ns > WITHIN_SPAN_MAX_NS) {
		answer_error(s->t->call->rs, 400, "bad request: bad \"last\" \"" STR_FMT "\": 1s to 10m",
			     STR_ARG(str_first(raw, 64)));
		return false;
	}
	s->is_last = range->to_ns - range->from_ns > WITHIN_SPAN_MAX_NS;
	if (s->is_last)
		range->from_ns = range->to_ns - last_ns;
	return true;
}

static bool set_range(struct subseconds *s)
{
	const struct query_range *range = &s->t->range;

	if (!read_last(s))
		return false;
	if (range->to_ns - range->from_ns > WITHIN_SPAN_MAX_NS) {
		answer_error(
			s->t->call->rs, 400,
			"bad request: the range is longer than ten minutes: a later \"from\", or \"last\": 5m takes "
			"the end of it");
		return false;
	}
	s->within.from_ns = range->from_ns - range->from_ns % NSEC_PER_SEC;
	s->within.to_ns = range->to_ns - range->to_ns % NSEC_PER_SEC;
	if (s->within.to_ns < range->to_ns || s->within.to_ns == s->within.from_ns)
		s->within.to_ns += NSEC_PER_SEC;
	s->columns = (size_t)((s->within.to_ns - s->within.from_ns) / NSEC_PER_SEC);
	return true;
}

/* Answers */

static void write_flag(struct json_out *json, struct str key, bool value)
{
	json_out_key(json, key);
	json_out_raw(json, value ? STR("true") : STR("false"));
}

static void write_cells(struct json_out *json, const struct subseconds *s)
{
	json_out_key(json, STR("cells"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < s->columns * ROWS; i++)
		json_out_u64(json, s->cells[i]);
	json_out_end(json, ']');
}

static void write_subseconds(const struct subseconds *s)
{
	struct json_out json;

	call_begin(s->t->call, &json);
	totals_write_range(&json, s->t);
	totals_write_sample(&json, s->t);
	call_key_u64(&json, STR("start_ms"), s->within.from_ns / NSEC_PER_MSEC);
	call_key_u64(&json, STR("columns"), s->columns);
	call_key_u64(&json, STR("rows"), ROWS);
	call_key_u64(&json, STR("step_ms"), STEP_MS);
	call_key_u64(&json, STR("total"), s->total);
	call_key_u64(&json, STR("untimed"), s->untimed);
	call_key_u64(&json, STR("profiles"), s->profiles);
	call_key_u64(&json, STR("profiles_timed"), s->timed);
	write_flag(&json, STR("last"), s->is_last);
	write_flag(&json, STR("partial"), s->is_partial);
	write_cells(&json, s);
	call_end(s->t->call, &json);
}

static void subseconds(struct totals *t)
{
	const struct collector_config *config = &t->call->collector->config;
	scoped(subseconds_release) struct subseconds s = { .t = t };
	struct store_selector sel;
	int r = -ENOMEM;

	if (!set_range(&s))
		return;
	sel = query_within_select(&s.within, t->sel);
	s.cells = calloc(s.columns * ROWS, sizeof(*s.cells));
	if (s.cells)
		r = config->store->moments(config->state, &sel, query_within_since(&s.within), add_moments, &s);
	if (r == 0)
		write_subseconds(&s);
	else
		totals_failed(t, r);
}

void view_subseconds(struct call *call)
{
	totals_run(call, subseconds);
}
