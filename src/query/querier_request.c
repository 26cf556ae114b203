/* SPDX-License-Identifier: Apache-2.0 */
/* Requests. Numbers and names are those of api/querier/v1/querier.proto and api/types/v1/types.proto of
 * github.com/grafana/pyroscope. */
#include "query/querier_request.h"

#include "base/array.h"

enum slot {
	SLOT_NONE,
	SLOT_TYPE_ID,
	SLOT_SELECTOR,
	SLOT_NAME,
	SLOT_QUERY,
	SLOT_ASYNC_ID,
	SLOT_START,
	SLOT_END,
	SLOT_MAX_NODES,
	SLOT_LIMIT,
	SLOT_FORMAT,
	SLOT_AGGREGATION,
	SLOT_ASYNC_TYPE,
	SLOT_EXEMPLARS,
	SLOT_STEP,
	SLOT_MATCHERS,
	SLOT_NAMES,
	SLOT_CALL_SITE,
	SLOT_SPANS,
	SLOT_TRACES,
	SLOT_PROFILES,
	SLOT_GO_PGO,
	SLOT_LEFT,
	SLOT_RIGHT,
};

static const char *const formats[] = { "PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH", "PROFILE_FORMAT_TREE",
				       "PROFILE_FORMAT_DOT",         "PROFILE_FORMAT_PPROF",      NULL };
static const char *const aggregations[] = { "TIME_SERIES_AGGREGATION_TYPE_SUM", "TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
					    NULL };
static const char *const exemplars[] = { "EXEMPLAR_TYPE_UNSPECIFIED", "EXEMPLAR_TYPE_NONE", "EXEMPLAR_TYPE_INDIVIDUAL",
					 "EXEMPLAR_TYPE_SPAN", NULL };
static const char *const async_types[] = { "ASYNC_QUERY_TYPE_DISABLED", "ASYNC_QUERY_TYPE_FORCE", NULL };

static const struct proto_field location_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "name", .slot = SLOT_CALL_SITE },
};

static const struct proto_message location = PROTO_TABLE(location_fields);

static const struct proto_field go_pgo_fields[] = {
	{ .number = 1, .kind = PROTO_UINT, .name = "keep_locations", .json = "keepLocations" },
	{ .number = 2, .kind = PROTO_BOOL, .name = "aggregate_callees", .json = "aggregateCallees" },
};

static const struct proto_message go_pgo = PROTO_TABLE(go_pgo_fields);

static const struct proto_field stack_selector_fields[] = {
	{ .number = 1,
	  .kind = PROTO_MESSAGE,
	  .name = "call_site",
	  .json = "callSite",
	  .repeated = true,
	  .message = &location },
	{ .number = 2,
	  .kind = PROTO_MESSAGE,
	  .name = "go_pgo",
	  .json = "goPgo",
	  .slot = SLOT_GO_PGO,
	  .message = &go_pgo },
};

static const struct proto_message stack_selector = PROTO_TABLE(stack_selector_fields);

static const struct proto_field async_query_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "request_id", .json = "requestId", .slot = SLOT_ASYNC_ID },
	{ .number = 2, .kind = PROTO_ENUM, .name = "type", .slot = SLOT_ASYNC_TYPE, .values = async_types },
};

static const struct proto_message async_query = PROTO_TABLE(async_query_fields);

static const struct proto_field profile_types_fields[] = {
	{ .number = 1, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 2, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
};

static const struct proto_message profile_types = PROTO_TABLE(profile_types_fields);

static const struct proto_field label_names_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "matchers", .repeated = true, .slot = SLOT_MATCHERS },
	{ .number = 2, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 3, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
};

static const struct proto_message label_names = PROTO_TABLE(label_names_fields);

static const struct proto_field label_values_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "name", .slot = SLOT_NAME },
	{ .number = 2, .kind = PROTO_TEXT, .name = "matchers", .repeated = true, .slot = SLOT_MATCHERS },
	{ .number = 3, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 4, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
};

static const struct proto_message label_values = PROTO_TABLE(label_values_fields);

static const struct proto_field series_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "matchers", .repeated = true, .slot = SLOT_MATCHERS },
	{ .number = 2,
	  .kind = PROTO_TEXT,
	  .name = "label_names",
	  .json = "labelNames",
	  .repeated = true,
	  .slot = SLOT_NAMES },
	{ .number = 3, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 4, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
};

static const struct proto_message series = PROTO_TABLE(series_fields);

static const struct proto_field merge_stacktraces_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "profile_typeID", .json = "profileTypeID", .slot = SLOT_TYPE_ID },
	{ .number = 2, .kind = PROTO_TEXT, .name = "label_selector", .json = "labelSelector", .slot = SLOT_SELECTOR },
	{ .number = 3, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 4, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
	{ .number = 5, .kind = PROTO_INT, .name = "max_nodes", .json = "maxNodes", .slot = SLOT_MAX_NODES },
	{ .number = 6, .kind = PROTO_ENUM, .name = "format", .slot = SLOT_FORMAT, .values = formats },
	{ .number = 7,
	  .kind = PROTO_MESSAGE,
	  .name = "stack_trace_selector",
	  .json = "stackTraceSelector",
	  .message = &stack_selector },
	{ .number = 8,
	  .kind = PROTO_TEXT,
	  .name = "profile_id_selector",
	  .json = "profileIdSelector",
	  .repeated = true,
	  .slot = SLOT_PROFILES },
	{ .number = 9, .kind = PROTO_MESSAGE, .name = "async", .message = &async_query },
	{ .number = 10,
	  .kind = PROTO_TEXT,
	  .name = "trace_id_selector",
	  .json = "traceIdSelector",
	  .repeated = true,
	  .slot = SLOT_TRACES },
	{ .number = 11,
	  .kind = PROTO_TEXT,
	  .name = "span_selector",
	  .json = "spanSelector",
	  .repeated = true,
	  .slot = SLOT_SPANS },
};

static const struct proto_message merge_stacktraces = PROTO_TABLE(merge_stacktraces_fields);

static const struct proto_field merge_span_profile_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "profile_typeID", .json = "profileTypeID", .slot = SLOT_TYPE_ID },
	{ .number = 2, .kind = PROTO_TEXT, .name = "label_selector", .json = "labelSelector", .slot = SLOT_SELECTOR },
	{ .number = 3,
	  .kind = PROTO_TEXT,
	  .name = "span_selector",
	  .json = "spanSelector",
	  .repeated = true,
	  .slot = SLOT_SPANS },
	{ .number = 4, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 5, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
	{ .number = 6, .kind = PROTO_INT, .name = "max_nodes", .json = "maxNodes", .slot = SLOT_MAX_NODES },
	{ .number = 7, .kind = PROTO_ENUM, .name = "format", .slot = SLOT_FORMAT, .values = formats },
};

static const struct proto_message merge_span_profile = PROTO_TABLE(merge_span_profile_fields);

static const struct proto_field merge_profile_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "profile_typeID", .json = "profileTypeID", .slot = SLOT_TYPE_ID },
	{ .number = 2, .kind = PROTO_TEXT, .name = "label_selector", .json = "labelSelector", .slot = SLOT_SELECTOR },
	{ .number = 3, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 4, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
	{ .number = 5, .kind = PROTO_INT, .name = "max_nodes", .json = "maxNodes", .slot = SLOT_MAX_NODES },
	{ .number = 6,
	  .kind = PROTO_MESSAGE,
	  .name = "stack_trace_selector",
	  .json = "stackTraceSelector",
	  .message = &stack_selector },
	{ .number = 7,
	  .kind = PROTO_TEXT,
	  .name = "profile_id_selector",
	  .json = "profileIdSelector",
	  .repeated = true,
	  .slot = SLOT_PROFILES },
	{ .number = 8,
	  .kind = PROTO_TEXT,
	  .name = "trace_id_selector",
	  .json = "traceIdSelector",
	  .repeated = true,
	  .slot = SLOT_TRACES },
};

static const struct proto_message merge_profile = PROTO_TABLE(merge_profile_fields);

static const struct proto_field select_series_fields[] = {
	{ .number = 1, .kind = PROTO_TEXT, .name = "profile_typeID", .json = "profileTypeID", .slot = SLOT_TYPE_ID },
	{ .number = 2, .kind = PROTO_TEXT, .name = "label_selector", .json = "labelSelector", .slot = SLOT_SELECTOR },
	{ .number = 3, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 4, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
	{ .number = 5,
	  .kind = PROTO_TEXT,
	  .name = "group_by",
	  .json = "groupBy",
	  .repeated = true,
	  .slot = SLOT_NAMES },
	{ .number = 6, .kind = PROTO_DOUBLE, .name = "step", .slot = SLOT_STEP },
	{ .number = 7, .kind = PROTO_ENUM, .name = "aggregation", .slot = SLOT_AGGREGATION, .values = aggregations },
	{ .number = 8,
	  .kind = PROTO_MESSAGE,
	  .name = "stack_trace_selector",
	  .json = "stackTraceSelector",
	  .message = &stack_selector },
	{ .number = 9, .kind = PROTO_INT, .name = "limit", .slot = SLOT_LIMIT },
	{ .number = 10,
	  .kind = PROTO_ENUM,
	  .name = "exemplar_type",
	  .json = "exemplarType",
	  .slot = SLOT_EXEMPLARS,
	  .values = exemplars },
};

static const struct proto_message select_series = PROTO_TABLE(select_series_fields);

static const struct proto_field diff_fields[] = {
	{ .number = 1, .kind = PROTO_MESSAGE, .name = "left", .slot = SLOT_LEFT, .message = &merge_stacktraces },
	{ .number = 2, .kind = PROTO_MESSAGE, .name = "right", .slot = SLOT_RIGHT, .message = &merge_stacktraces },
};

static const struct proto_message diff = PROTO_TABLE(diff_fields);

static const struct proto_field analyze_query_fields[] = {
	{ .number = 2, .kind = PROTO_INT, .name = "start", .slot = SLOT_START },
	{ .number = 3, .kind = PROTO_INT, .name = "end", .slot = SLOT_END },
	{ .number = 4, .kind = PROTO_TEXT, .name = "query", .slot = SLOT_QUERY },
};

static const struct proto_message analyze_query = PROTO_TABLE(analyze_query_fields);

static const struct proto_message nothing;

static const struct {
	const char *name;
	const struct proto_message *request;
} methods[] = {
	[QUERIER_PROFILE_TYPES] = { "ProfileTypes", &profile_types },
	[QUERIER_LABEL_NAMES] = { "LabelNames", &label_names },
	[QUERIER_LABEL_VALUES] = { "LabelValues", &label_values },
	[QUERIER_SERIES] = { "Series", &series },
	[QUERIER_MERGE_STACKTRACES] = { "SelectMergeStacktraces", &merge_stacktraces },
	[QUERIER_MERGE_SPAN_PROFILE] = { "SelectMergeSpanProfile", &merge_span_profile },
	[QUERIER_MERGE_PROFILE] = { "SelectMergeProfile", &merge_profile },
	[QUERIER_SELECT_SERIES] = { "SelectSeries", &select_series },
	[QUERIER_DIFF] = { "Diff", &diff },
	[QUERIER_STATS] = { "GetProfileStats", &nothing },
	[QUERIER_ANALYZE] = { "AnalyzeQuery", &analyze_query },
};

static_assert(ARRAY_SIZE(methods) == QUERIER_METHODS, "one for each");

void querier_request_release(struct querier_request *rq)
{
	free(rq->matchers.items);
	free(rq->names.items);
	free(rq->call_site.items);
	free(rq->spans.items);
	free(rq->traces.items);
	*rq = (struct querier_request){ 0 };
}

int querier_method_find(struct str name, enum querier_method *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_eq(name, str_of(methods[i].name))) {
			*out = (enum querier_method)i;
			return 0;
		}
	return -ENOENT;
}

int querier_request_json(enum querier_method method, struct str body, struct buf *out)
{
	return proto_from_json(methods[method].request, body, out);
}

/* Reading */

static int add_text(struct querier_texts *list, size_t max, struct str text)
{
	int r = array_grow(&list->items, &list->cap, list->count, max);

	if (r == 0)
		list->items[list->count++] = text;
	return r;
}

static int take_text(struct querier_request *rq, enum slot slot, struct str text)
{
	struct str *one = slot == SLOT_TYPE_ID    ? &rq->type_id
			  : slot == SLOT_SELECTOR ? &rq->selector
			  : slot == SLOT_NAME     ? &rq->name
			  : slot == SLOT_QUERY    ? &rq->query
			  : slot == SLOT_ASYNC_ID ? &rq->async_id
			  : slot == SLOT_LEFT     ? &rq->left
			  : slot == SLOT_RIGHT    ? &rq->right
						  : NULL;

	if (one) {
		*one = text;
		return 0;
	}
	switch (slot) {
	case SLOT_MATCHERS:
		return add_text(&rq->matchers, QUERIER_MATCHERS_MAX, text);
	case SLOT_NAMES:
		return add_text(&rq->names, QUERIER_NAMES_MAX, text);
	case SLOT_CALL_SITE:
		return add_text(&rq->call_site, QUERIER_STEPS_MAX, text);
	case SLOT_SPANS:
		return add_text(&rq->spans, QUERIER_IDS_MAX, text);
	case SLOT_TRACES:
		return add_text(&rq->traces, QUERIER_IDS_MAX, text);
	case SLOT_PROFILES:
		rq->has_profiles = true;
		return 0;
	case SLOT_GO_PGO:
		rq->has_go_pgo = true;
		return 0;
	default:
		return 0;
	}
}

static void take_number(struct querier_request *rq, enum slot slot, uint64_t value)
{
	int64_t *one = slot == SLOT_START         ? &rq->start_ms
		       : slot == SLOT_END         ? &rq->end_ms
		       : slot == SLOT_MAX_NODES   ? &rq->max_nodes
		       : slot == SLOT_LIMIT       ? &rq->limit
		       : slot == SLOT_FORMAT      ? &rq->format
		       : slot == SLOT_AGGREGATION ? &rq->aggregation
		       : slot == SLOT_ASYNC_TYPE  ? &rq->async_type
		       : slot == SLOT_EXEMPLARS   ? &rq->exemplars
						  : NULL;

	if (one)
		*one = (int64_t)value;
	else if (slot == SLOT_STEP)
		memcpy(&rq->step_s, &value, sizeof(rq->step_s));
}

/* A message of this level; one that has no slot is gone into by the caller's table, two levels at most. */
static int read_message(struct querier_request *rq, const struct proto_message *m, struct cur c)
{
	struct wire_field w;
	int r = 0;

	while (r == 0 && wire_next(&c, &w)) {
		const struct proto_field *f = proto_field_of(m, w.number);
		bool is_bytes = f && (f->kind == PROTO_TEXT || f->kind == PROTO_MESSAGE);

		if (!f || !wire_fits(&c, &w,
				     is_bytes                  ? WIRE_BYTES
				     : f->kind == PROTO_DOUBLE ? WIRE_FIXED64
							       : WIRE_VARINT))
			continue;
		if (f->kind == PROTO_MESSAGE && f->slot == SLOT_NONE)
			r = read_message(rq, f->message, w.bytes);
		else if (is_bytes)
			r = take_text(rq, (enum slot)f->slot, wire_str(&w));
		else
			take_number(rq, (enum slot)f->slot, w.value);
	}
	return r ? r : c.bad ? -EBADMSG : 0;
}

int querier_request_read(enum querier_method method, struct str body, struct querier_request *out)
{
	struct querier_request rq = { 0 };
	int r = read_message(&rq, methods[method].request, cur_of(body.ptr, body.len));

	if (r < 0)
		querier_request_release(&rq);
	else
		*out = rq;
	return r;
}
