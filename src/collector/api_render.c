/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's render API: a merged flame graph and a timeline as JSON (docs/collector.md). */
#include "collector/collector_int.h"
#include "query/flamebearer.h"

#define NODES_DEFAULT 8192
#define NODES_MAX (1 << 20)
#define POINTS_MAX 500 /* of a timeline */
#define STEP_MIN 10    /* seconds */

struct render {
	struct query_render query;
	struct store_selector sel;
	uint64_t nodes;
	uint64_t points[POINTS_MAX + 1];
	uint64_t step_s;
};

static bool bad(struct call *call, const char *what)
{
	answer_error(call->rs, 400, "bad request: %s", what);
	return false;
}

static bool read_params(struct call *call, struct render *r)
{
	struct str query = http_query_get(&call->query, STR("query")), nodes;
	struct query_range times;
	struct str format = http_query_get(&call->query, STR("format"));
	int code;

	if (!query.len)
		return bad(call, "missing \"query\"");
	if (format.len && !str_eq(format, STR("json")))
		return bad(call, "format: only json is written");
	if (!call_range(call, &query_range_pyroscope, &times))
		return false;
	r->sel = call_select(call, &times); /* no text in it */
	nodes = http_query_get(&call->query, STR("max-nodes"));
	if (!nodes.len)
		nodes = http_query_get(&call->query, STR("maxNodes"));
	r->nodes = NODES_DEFAULT;
	if (nodes.len && str_to_u64(nodes, 1, NODES_MAX, &r->nodes) < 0)
		return bad(call, "max-nodes");
	code = query_render_parse(query, &r->query);
	if (code == -ENOTSUP)
		return bad(call, "query: only = is understood between a label and its value");
	return code == 0 || bad(call, "query: neither type:sample:unit:period:unit{...} nor app.suffix{...}");
}

static void set_step(struct render *r)
{
	uint64_t span_s = (r->sel.to_ns - r->sel.from_ns) / NSEC_PER_SEC + 1;

	r->step_s = STEP_MIN;
	while (span_s / r->step_s >= POINTS_MAX)
		r->step_s *= 2;
}

static int add_point(void *ctx, const struct store_point *point)
{
	struct render *r = ctx;
	uint64_t at = (point->created_ns - r->sel.from_ns) / NSEC_PER_SEC / r->step_s;

	for (size_t i = 0; i < point->value_count; i++) {
		bool wanted = r->query.column.len ? str_eq(point->columns[i].key, r->query.column)
						  : i + 1 == point->value_count;

		if (wanted && point->values[i] > 0 && at < ARRAY_SIZE(r->points))
			r->points[at] += (uint64_t)point->values[i];
	}
	return 0;
}

static void write_timeline(struct json_out *json, const struct render *r)
{
	uint64_t count = (r->sel.to_ns - r->sel.from_ns) / NSEC_PER_SEC / r->step_s + 1;

	json_out_key(json, STR("timeline"));
	json_out_begin(json, '{');
	json_out_key(json, STR("startTime"));
	json_out_u64(json, r->sel.from_ns / NSEC_PER_SEC);
	json_out_key(json, STR("samples"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < MIN(count, (uint64_t)ARRAY_SIZE(r->points)); i++)
		json_out_u64(json, r->points[i]);
	json_out_end(json, ']');
	json_out_key(json, STR("durationDelta"));
	json_out_u64(json, r->step_s);
	json_out_key(json, STR("watermarks"));
	json_out_begin(json, '{');
	json_out_end(json, '}');
	json_out_end(json, '}');
}

static void write_metadata(struct json_out *json, const struct model *m, size_t column)
{
	struct str type = model_string(m, m->value_types[column].type),
		   unit = model_string(m, m->value_types[column].unit);

	json_out_key(json, STR("metadata"));
	json_out_begin(json, '{');
	json_out_key(json, STR("format"));
	json_out_string(json, STR("single"));
	json_out_key(json, STR("spyName"));
	json_out_string(json, STR(""));
	json_out_key(json,
		     STR("sampleRate")); /* values are in their own unit: nanoseconds are counted by a rate of 1e9 */
	json_out_u64(json, str_eq(unit, STR("nanoseconds")) ? NSEC_PER_SEC : 100);
	json_out_key(json, STR("units"));
	json_out_string(json, str_eq(unit, STR("nanoseconds")) ? STR("samples")
			      : str_eq(unit, STR("count"))     ? STR("objects")
							       : unit);
	json_out_key(json, STR("name"));
	json_out_string(json, type);
	json_out_end(json, '}');
}

static int write_answer(struct call *call, const struct render *r, const struct model *m)
{
	scoped(tree_release) struct tree tree = { 0 };
	struct json_out json = { .out = &call->rs->body };
	int named = r->query.column.len ? model_value_index(m, r->query.column) : -1, code;
	size_t column = named < 0 ? model_default_value(m) : (size_t)named;

	code = tree_from_model(m, column, 1, &(struct frame_style){ 0 }, &tree);
	if (code < 0)
		return code;
	answer_empty(call->rs, 200);
	call->rs->content_type = "application/json";
	json_out_begin(&json, '{');
	json_out_key(&json, STR("version"));
	json_out_u64(&json, 1);
	json_out_key(&json, STR("flamebearer"));
	code = flamebearer_write(&json, &tree, (uint32_t)r->nodes);
	write_metadata(&json, m, column);
	write_timeline(&json, r);
	json_out_key(&json, STR("groups"));
	json_out_raw(&json, STR("null"));
	json_out_key(&json, STR("heatmap"));
	json_out_raw(&json, STR("null"));
	json_out_end(&json, '}');
	buf_addc(&call->rs->body, '\n');
	return code ? code : call->rs->body.error;
}

static void render(struct call *call, struct render *r)
{
	const struct collector_config *config = &call->collector->config;
	scoped(window_release) struct window w = { 0 };
	struct store_sum info = { 0 };
	int code;

	r->sel.service = r->query.service;
	r->sel.type = r->query.type;
	r->sel.labels = r->query.labels.items;
	r->sel.label_count = r->query.labels.count;
	set_step(r);
	code = config->store->sum(config->state, &r->sel, &w, &info);
	code = code ? code : config->store->totals(config->state, &r->sel, add_point, r);
	if (code == 0 && !info.profiles) {
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	code = code ? code : write_answer(call, r, w.model);
	if (code == -EINVAL)
		answer_error(call->rs, 409, "can't merge profiles of different sample types");
	else if (code < 0)
		answer_store(call, code, "failed to render profiles");
	answer_count(call->rs, "X-Profiles-Merged", info.profiles);
}

void pyroscope_render(struct call *call)
{
	struct render *r = calloc(1, sizeof(*r));

	if (!r)
		answer_error(call->rs, 503, "out of memory");
	else if (read_params(call, r))
		render(call, r);
	if (r)
		query_labels_release(&r->query.labels);
	free(r);
}
