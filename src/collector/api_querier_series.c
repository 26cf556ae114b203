/* SPDX-License-Identifier: Apache-2.0 */
/* querier.v1: SelectSeries, totals by time and labels; what is stored, and what a query would read. */
#include <math.h>

#include "base/array.h"
#include "base/intern.h"
#include "collector/querier.h"
#include "query/render_query.h"

#define STEPS_MAX 11000             /* points of a series, as in Prometheus */
#define CELLS_MAX ((size_t)1 << 22) /* points of all */
#define GROUPS_MAX ((size_t)1 << 16)

struct cell {
	double sum;
	uint64_t count;
};

struct group {
	uint32_t id; /* of its labels, as the messages that they become */
	double total;
	struct cell *cells;
};

struct points {
	struct querier *q;
	struct intern labels;
	struct buf scratch;
	struct group *groups; /* by id */
	size_t groups_count, groups_cap;
	uint64_t start_ms, end_ms, last; /* the last step's number */
	double step_ms;
	bool averages;
};

static void points_release(struct points *p)
{
	for (size_t i = 0; i < p->groups_count; i++)
		free(p->groups[i].cells);
	free(p->groups);
	intern_release(&p->labels);
	buf_release(&p->scratch);
}

enum {
	PAIR_NAME = 1,
	PAIR_VALUE = 2,
	SERIES_LABELS = 1,
	SERIES_POINTS = 2,
	POINT_VALUE = 1,
	POINT_TIME = 2,
	SET_SERIES = 1
};

static int add_label(struct buf *out, struct str name, struct str value)
{
	scoped(buf_release) struct buf pair = BUF_INIT(KIB(64));

	if (!value.len)
		return 0;
	proto_add_text(&pair, PAIR_NAME, name);
	proto_add_text(&pair, PAIR_VALUE, value);
	wire_add_bytes(out, SERIES_LABELS, buf_str(&pair));
	return pair.error ? pair.error : out->error;
}

/* The label as the column says it, or the series. */
static struct str value_of(const struct points *p, const struct store_series *series, struct str name)
{
	const struct query_column *column = &p->q->column;

	if (str_eq(name, STR("__profile_type__")))
		return p->q->rq.type_id;
	if (str_eq(name, STR("__type__")))
		return column->sample;
	if (str_eq(name, STR("__unit__")))
		return column->unit;
	if (str_eq(name, STR("__period_type__")))
		return column->period_type;
	if (str_eq(name, STR("__period_unit__")))
		return column->period_unit;
	return query_series_label(series, name);
}

static int find_group(struct points *p, const struct store_series *series, struct group **out)
{
	const struct querier_texts *by = &p->q->rq.names;
	uint32_t id;
	int r = 0;

	buf_clear(&p->scratch);
	for (size_t i = 0; r == 0 && i < by->count; i++)
		r = add_label(&p->scratch, by->items[i], value_of(p, series, by->items[i]));
	r = r ? r : intern_add(&p->labels, buf_str(&p->scratch), &id);
	while (r == 0 && p->groups_count <= id) {
		r = array_grow(&p->groups, &p->groups_cap, p->groups_count, GROUPS_MAX);
		if (r == 0) {
			p->groups[p->groups_count] = (struct group){ .id = (uint32_t)p->groups_count };
			p->groups_count++;
		}
	}
	if (r == 0 && p->groups_count * (p->last + 1) > CELLS_MAX)
		r = -E2BIG;
	if (r < 0)
		return r;
	*out = &p->groups[id];
	if (!(*out)->cells)
		(*out)->cells = calloc(p->last + 1, sizeof(*(*out)->cells));
	return (*out)->cells ? 0 : -ENOMEM;
}

/* A step ends at its time, which it includes. */
static int add_point(void *ctx, const struct store_point *point)
{
	struct points *p = ctx;
	uint64_t ms = point->created_ns / NSEC_PER_MSEC, at;
	struct group *group = NULL;
	int64_t value;
	int r;

	if (!selection_value(&p->q->selection, point, &value))
		return 0;
	r = find_group(p, point->series, &group);
	if (r < 0)
		return r;
	at = ms <= p->start_ms ? 0 : (uint64_t)ceil((double)(ms - p->start_ms) / p->step_ms);
	at = MIN(at, p->last);
	group->cells[at].sum += (double)value;
	group->cells[at].count++;
	group->total += (double)value;
	return 0;
}

static bool read_step(struct points *p)
{
	const struct querier_request *rq = &p->q->rq;

	if (!rq->start_ms || !rq->end_ms)
		return querier_bad(p->q->call, "start and end are needed");
	if (!(rq->step_s >= 0.001) || rq->step_s > 1e9)
		return querier_bad(p->q->call, "step is not a number of seconds");
	p->start_ms = (uint64_t)rq->start_ms;
	p->end_ms = (uint64_t)rq->end_ms;
	p->step_ms = rq->step_s * 1000;
	if ((double)(p->end_ms - p->start_ms) / p->step_ms > STEPS_MAX)
		return querier_bad(p->q->call, "step is too small: more than 11000 points");
	p->last = (uint64_t)ceil((double)(p->end_ms - p->start_ms) / p->step_ms);
	p->averages = rq->aggregation == 1;
	return true;
}

/* Writing */

static void write_group(struct points *p, const struct group *g)
{
	scoped(buf_release) struct buf message = BUF_INIT(MIB(16)), point = BUF_INIT(64);

	buf_adds(&message, intern_get(&p->labels, g->id));
	for (uint64_t i = 0; i <= p->last; i++) {
		const struct cell *cell = &g->cells[i];
		uint64_t ms = MIN(p->start_ms + (uint64_t)((double)i * p->step_ms), p->end_ms);

		if (!cell->count)
			continue;
		buf_clear(&point);
		proto_add_double(&point, POINT_VALUE, p->averages ? cell->sum / (double)cell->count : cell->sum);
		wire_add_number(&point, POINT_TIME, ms);
		wire_add_bytes(&message, SERIES_POINTS, buf_str(&point));
	}
	wire_add_bytes(&p->q->out, SET_SERIES, buf_str(&message));
	if (message.error)
		p->q->out.error = message.error;
}

static int total_order(const void *a, const void *b)
{
	double x = ((const struct group *)a)->total, y = ((const struct group *)b)->total;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void write_groups(struct points *p)
{
	size_t shown = 0, limit = p->q->rq.limit > 0 ? (size_t)p->q->rq.limit : SIZE_MAX;

	if (p->groups_count)
		qsort(p->groups, p->groups_count, sizeof(*p->groups), total_order);
	for (size_t i = 0; i < p->groups_count && shown < limit; i++)
		if (p->groups[i].cells) {
			write_group(p, &p->groups[i]);
			shown++;
		}
}

/* What is asked for that we cannot tell. */
static bool check(struct querier *q)
{
	const char *what = NULL;

	if (q->rq.call_site.count || q->rq.has_go_pgo)
		what = "stack_trace_selector of a series";
	else if (q->rq.exemplars && q->rq.exemplars != QUERIER_EXEMPLARS_NONE)
		what = "exemplars";
	if (what)
		answer_error(q->call->rs, 501, "%s: not served, see docs/grafana.md", what);
	return !what;
}

static bool read_points(struct points *p)
{
	const struct collector_config *config = &p->q->call->collector->config;
	struct selection *s = &p->q->selection;
	int r;

	if (!check(p->q) || !querier_select(p->q, &p->q->rq) || !read_step(p))
		return false;
	r = s->is_nothing ? 0 : config->store->totals(config->state, &s->sel, add_point, p);
	return !selection_failed(p->q->call, s, r, "failed to read totals");
}

bool querier_points(struct querier *q)
{
	scoped(points_release) struct points p = { .q = q, .scratch = BUF_INIT(KIB(512)) };

	intern_init(&p.labels, QUERIER_TEXT_MAX);
	if (!read_points(&p))
		return false;
	write_groups(&p);
	return true;
}

/* What there is */

static int note_time(void *ctx, const struct store_profile *profile)
{
	*(uint64_t *)ctx = profile->created_ns;
	return 0;
}

/* The newest profile of a time. Return: 1, 0 when there is none, -errno. */
static int newest_of(struct call *call, uint64_t from_ns, uint64_t to_ns, uint64_t *out)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = {
		.from_ns = from_ns, .to_ns = to_ns, .limit = 1, .stop = call_stop, .stop_ctx = call
	};
	uint64_t at = UINT64_MAX;
	int r = config->store->list(config->state, &sel, note_time, &at);

	if (r < 0 || at == UINT64_MAX)
		return r;
	*out = at;
	return 1;
}

/* By halves of the time before the newest: each has fewer days than the one before. */
static int oldest_of(struct call *call, uint64_t newest_ns, uint64_t *out)
{
	uint64_t first = 0, last = newest_ns;
	int r = 0;

	while (r >= 0 && last - first >= NSEC_PER_MSEC) {
		uint64_t middle = first + (last - first) / 2;

		r = newest_of(call, first, middle, &last);
		if (r == 0)
			first = middle + 1;
	}
	*out = last;
	return MIN(r, 0);
}

enum { STATS_INGESTED = 1, STATS_OLDEST = 2, STATS_NEWEST = 3 };

bool querier_stats(struct querier *q)
{
	uint64_t newest = 0, oldest = 0;
	int r = newest_of(q->call, 0, INT64_MAX, &newest);

	if (r > 0)
		r = oldest_of(q->call, newest, &oldest);
	if (r < 0) {
		answer_store(q->call, r, "failed to look for profiles");
		return false;
	}
	wire_add_number(&q->out, STATS_INGESTED, newest > 0);
	wire_add_number(&q->out, STATS_OLDEST, oldest / NSEC_PER_MSEC);
	wire_add_number(&q->out, STATS_NEWEST, newest / NSEC_PER_MSEC);
	return true;
}

/* What a query would read */

struct reach {
	uint64_t series, profiles, bytes;
};

static int count_series(void *ctx, const struct store_series *series)
{
	(void)series;
	((struct reach *)ctx)->series++;
	return 0;
}

static int count_profile(void *ctx, const struct store_profile *profile)
{
	struct reach *reach = ctx;

	reach->profiles++;
	reach->bytes += profile->size;
	return 0;
}

enum { ANALYSIS_SCOPES = 1, ANALYSIS_IMPACT = 2, IMPACT_BYTES = 2, IMPACT_SERIES = 3 };
enum { SCOPE_TYPE = 1, SCOPE_COUNT = 2, SCOPE_SERIES = 4, SCOPE_PROFILES = 5, SCOPE_BYTES = 8 };

static void write_analysis(struct querier *q, const struct reach *reach)
{
	scoped(buf_release) struct buf scope = BUF_INIT(KIB(1)), impact = BUF_INIT(KIB(1));

	wire_add_bytes(&scope, SCOPE_TYPE, STR("store"));
	wire_add_number(&scope, SCOPE_COUNT, 1);
	wire_add_number(&scope, SCOPE_SERIES, reach->series);
	wire_add_number(&scope, SCOPE_PROFILES, reach->profiles);
	wire_add_number(&scope, SCOPE_BYTES, reach->bytes);
	wire_add_number(&impact, IMPACT_BYTES, reach->bytes);
	wire_add_number(&impact, IMPACT_SERIES, reach->series);
	wire_add_bytes(&q->out, ANALYSIS_SCOPES, buf_str(&scope));
	wire_add_bytes(&q->out, ANALYSIS_IMPACT, buf_str(&impact));
	if (scope.error || impact.error)
		q->out.error = -ENOMEM;
}

/* The query is a type and a selector, either of which may be missing (grafana/pyroscope v2,
 * pkg/querier/analyze_query.go).
 */
bool querier_analyze(struct querier *q)
{
	const struct collector_config *config = &q->call->collector->config;
	struct querier_request rq = { .start_ms = q->rq.start_ms, .end_ms = q->rq.end_ms };
	ptrdiff_t open = str_find(q->rq.query, '{');
	struct selection *s = &q->selection;
	struct reach reach = { 0 };
	int r = 0;

	rq.type_id = open < 0 ? q->rq.query : str_first(q->rq.query, (size_t)open);
	rq.selector = open < 0 ? STR("") : str_skip(q->rq.query, (size_t)open);
	if (!querier_select(q, &rq))
		return false;
	if (!rq.type_id.len && !querier_count_series(q, &reach.series)) /* each column is a series of its own */
		return false;
	if (rq.type_id.len && !s->is_nothing)
		r = config->store->series(config->state, &s->sel, count_series, &reach);
	if (r == 0 && !s->is_nothing)
		r = config->store->list(config->state, &s->sel, count_profile, &reach);
	if (selection_failed(q->call, s, r, "failed to look for profiles"))
		return false;
	write_analysis(q, &reach);
	return true;
}
