/* SPDX-License-Identifier: Apache-2.0 */
/* querier.v1.QuerierService: what Grafana's data source for Pyroscope asks (docs/grafana.md). Source of names and
 * numbers: grafana/pyroscope, api/querier/v1/querier.proto. */
#include "collector/querier.h"

#define ANSWER_MAX GIB(1)
#define MS_MAX (INT64_MAX / (int64_t)NSEC_PER_MSEC - 1)

static querier_fn *const methods[] = {
	[QUERIER_PROFILE_TYPES] = querier_types,
	[QUERIER_LABEL_NAMES] = querier_names,
	[QUERIER_LABEL_VALUES] = querier_values,
	[QUERIER_SERIES] = querier_series,
	[QUERIER_MERGE_STACKTRACES] = querier_stacktraces,
	[QUERIER_MERGE_SPAN_PROFILE] = querier_stacktraces,
	[QUERIER_MERGE_PROFILE] = querier_merged_profile,
	[QUERIER_SELECT_SERIES] = querier_points,
	[QUERIER_DIFF] = querier_diff,
	[QUERIER_STATS] = querier_stats,
	[QUERIER_ANALYZE] = querier_analyze,
};

static_assert(ARRAY_SIZE(methods) == QUERIER_METHODS, "one for each");

bool querier_bad(struct call *call, const char *what)
{
	answer_error(call->rs, 400, "bad request: %s", what);
	return false;
}

/* What is meant */

void selection_end(struct selection *s)
{
	for (size_t i = 0; s->sets && i < s->count; i++)
		matchers_release(&s->sets[i]);
	free(s->sets);
	*s = (struct selection){ 0 };
}

/* 0 is what older clients send for all times. */
static bool read_times(struct querier *q, const struct querier_request *rq)
{
	struct store_selector *sel = &q->selection.sel;

	if (rq->start_ms < 0 || rq->end_ms < 0 || rq->start_ms > MS_MAX || rq->end_ms > MS_MAX)
		return querier_bad(q->call, "start and end are milliseconds since 1970");
	sel->from_ns = (uint64_t)rq->start_ms * NSEC_PER_MSEC;
	sel->to_ns = rq->end_ms ? (uint64_t)rq->end_ms * NSEC_PER_MSEC + NSEC_PER_MSEC - 1 : (uint64_t)INT64_MAX;
	return sel->from_ns <= sel->to_ns || querier_bad(q->call, "start is after end");
}

static bool read_matchers(struct querier *q, const struct str *texts, size_t count)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	struct selection *s = &q->selection;
	int r = 0;

	s->sets = calloc(count + 1, sizeof(*s->sets));
	if (!s->sets) {
		answer_error(q->call->rs, 503, "out of memory");
		return false;
	}
	for (size_t i = 0; r == 0 && i < count; i++)
		r = matchers_parse(texts[i], &s->sets[s->count++], &why);
	return r == 0 || call_bad(q->call, r, &why);
}

static bool read_column(struct querier *q, struct str type_id)
{
	struct selection *s = &q->selection;

	if (query_column_parse(type_id, &q->column) < 0)
		return querier_bad(q->call,
				   "profile_typeID is not NAME:SAMPLE_TYPE:SAMPLE_UNIT:PERIOD_TYPE:PERIOD_UNIT");
	s->sample = q->column.sample;
	s->unit = q->column.unit;
	s->sel.type = query_metric_type(q->column.metric);
	s->is_nothing = !s->sel.type.len;
	return true;
}

/* What is said of columns has to hold for the one that is asked for. */
static void judge_column(struct querier *q)
{
	struct selection *s = &q->selection;

	for (size_t i = 0; i < s->count; i++)
		s->is_nothing |= !matchers_fit_column(&s->sets[i], &q->column);
}

bool querier_select(struct querier *q, const struct querier_request *rq)
{
	bool is_list = q->method <= QUERIER_SERIES;
	bool has_column = !is_list && (q->method != QUERIER_ANALYZE || rq->type_id.len);

	if (!read_times(q, rq) || (has_column && !read_column(q, rq->type_id)) ||
	    !read_matchers(q, is_list ? rq->matchers.items : &rq->selector, is_list ? rq->matchers.count : 1))
		return false;
	if (has_column)
		judge_column(q);
	selection_begin(&q->selection, q->call);
	return true;
}

/* Requests */

static void querier_release(struct querier *q)
{
	querier_request_release(&q->rq);
	querier_request_release(&q->sides[0]);
	querier_request_release(&q->sides[1]);
	selection_end(&q->selection);
	buf_release(&q->out);
}

static bool find_method(struct querier *q)
{
	struct str path = q->call->rq->path, name = str_skip(path, (size_t)(str_rfind(path, '/') + 1));

	if (querier_method_find(name, &q->method) == 0)
		return true;
	answer_error(q->call->rs, 501, "\"" STR_FMT "\" is not served: see docs/grafana.md",
		     STR_ARG(str_first(name, 64)));
	return false;
}

static bool read_failed(struct call *call, int r)
{
	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r == -E2BIG)
		answer_error(call->rs, 413, "the request has too many selectors, labels or ids (%d, %d, %d)",
			     QUERIER_MATCHERS_MAX, QUERIER_NAMES_MAX, QUERIER_IDS_MAX);
	else
		answer_error(call->rs, 400, "bad request: the body is no request of this method");
	return false;
}

static bool read_sides(struct querier *q)
{
	const struct str bodies[] = { q->rq.left, q->rq.right };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bodies); i++)
		r = querier_request_read(QUERIER_MERGE_STACKTRACES, bodies[i], &q->sides[i]);
	return r == 0 || read_failed(q->call, r);
}

static void run(struct querier *q, struct str body, bool is_json)
{
	scoped(buf_release) struct buf message = BUF_INIT(MIB(16));
	int r = is_json ? querier_request_json(q->method, body, &message) : 0;

	r = r ? r : querier_request_read(q->method, is_json ? buf_str(&message) : body, &q->rq);
	if (r < 0) {
		read_failed(q->call, r);
		return;
	}
	if (q->method == QUERIER_DIFF && !read_sides(q))
		return;
	if (methods[q->method](q))
		connect_answer(q->call, is_json, querier_answer(q->method), &q->out);
}

void querier_call(struct call *call)
{
	scoped(buf_release) struct buf unwrapped = { 0 };
	struct querier *q = calloc(1, sizeof(*q));
	struct str body;
	bool is_json;

	if (!q) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	q->call = call;
	q->out = (struct buf)BUF_INIT(ANSWER_MAX);
	if (find_method(q) && connect_form(call, &is_json) && connect_body(call, &unwrapped, &body))
		run(q, body, is_json);
	querier_release(q);
	free(q);
}
