/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's render API: a merged flame graph and a timeline as JSON, two of them compared, values of a label
 * (docs/collector.md). */
#include "base/array.h"
#include "base/intern.h"
#include "collector/selection.h"
#include "query/flamebearer.h"
#include "query/render_query.h"
#include "render/cut.h"

#define NODES_DEFAULT 8192
#define NODES_MAX (1 << 20)
#define POINTS_MAX 500 /* of a timeline */
#define STEP_MIN 10    /* seconds */
#define GROUPS_MAX 2048
#define GROUPS_TEXT_MAX MIB(8)
#define GROUP_NONE "*" /* of what has no such label */

/* One selection, added up. */
struct side {
	struct query_render query;
	struct selection selection;
	struct window sum;
	struct store_sum info;
	struct tree tree;
	size_t column;
};

/* Values of one group, and how many there were, by step. */
struct line {
	struct {
		uint64_t sum, count;
	} points[POINTS_MAX + 1];
};

struct render {
	struct side sides[2]; /* the only one, or left and right */
	uint64_t nodes;
	uint64_t step_s;
	struct str group_by; /* a label; empty: all is one group */
	bool averages;       /* a timeline's points are means of the profiles' values, not their sums */
	struct intern groups;
	struct line **lines; /* by id of the group */
	size_t lines_count, lines_cap;
};

/* What the parameters of a side are called. */
struct side_names {
	const char *query, *from, *until;
};

static const struct side_names only = { "query", "from", "until" };
static const struct side_names compared[2] = { { "leftQuery", "leftFrom", "leftUntil" },
					       { "rightQuery", "rightFrom", "rightUntil" } };

static void side_release(struct side *s)
{
	query_render_release(&s->query);
	window_release(&s->sum);
	tree_release(&s->tree);
}

static void render_free(struct render *r)
{
	if (r) {
		side_release(&r->sides[0]);
		side_release(&r->sides[1]);
		for (size_t i = 0; i < r->lines_count; i++)
			free(r->lines[i]);
		free(r->lines);
		intern_release(&r->groups);
	}
	free(r);
}

static bool bad(struct call *call, const char *what)
{
	answer_error(call->rs, 400, "bad request: %s", what);
	return false;
}

/* Parameters */

static bool read_time(struct call *call, const char *name, const char *usual, uint64_t *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	struct str raw = http_query_get(&call->query, str_of(name));

	if (query_time(raw.len ? raw : str_of(usual), call->now_ns, out) == 0)
		return true;
	query_range_bad_time(name, raw, "timestamp ", &why);
	return call_bad(call, -EBADMSG, &why);
}

static bool read_side(struct call *call, const struct side_names *names, struct side *s)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	struct str query = http_query_get(&call->query, str_of(names->query));
	struct store_selector *sel = &s->selection.sel;
	int r;

	if (!query.len) {
		answer_error(call->rs, 400, "bad request: missing \"%s\"", names->query);
		return false;
	}
	if (!read_time(call, names->from, "now-1h", &sel->from_ns) ||
	    !read_time(call, names->until, "now", &sel->to_ns))
		return false;
	if (sel->from_ns > sel->to_ns)
		return bad(call, "the end is before the beginning");
	r = query_render_parse(query, &s->query, &why);
	if (r < 0)
		return call_bad(call, r, &why);
	sel->service = s->query.service;
	sel->type = s->query.type;
	s->selection.sample = s->query.sample;
	s->selection.sets = &s->query.matchers;
	s->selection.count = 1;
	selection_begin(&s->selection, call);
	return true;
}

static bool read_common(struct call *call, struct render *r)
{
	struct str format = http_query_get(&call->query, STR("format")), nodes;

	if (format.len && !str_eq(format, STR("json")))
		return bad(call, "format: only json is written");
	nodes = http_query_get(&call->query, STR("max-nodes"));
	if (!nodes.len)
		nodes = http_query_get(&call->query, STR("maxNodes"));
	r->nodes = NODES_DEFAULT;
	return !nodes.len || str_to_u64(nodes, 1, NODES_MAX, &r->nodes) == 0 || bad(call, "max-nodes");
}

/* How the timeline is made; the flame graph is the same (grafana/pyroscope v2, Render() of pkg/querier/http.go). */
static bool read_groups(struct call *call, struct render *r)
{
	struct str aggregation = http_query_get(&call->query, STR("aggregation"));
	size_t labels = 0;

	r->averages = str_eq(aggregation, STR("avg"));
	if (aggregation.len && !r->averages && !str_eq(aggregation, STR("sum")))
		return bad(call, "aggregation: sum or avg");
	r->group_by = http_query_get(&call->query, STR("groupBy"));
	for (size_t i = 0; i < call->query.count; i++)
		labels += str_eq(call->query.items[i].name, STR("groupBy")) && call->query.items[i].value.len;
	return labels <= 1 || bad(call, "groupBy: one label, the answer has no place for more");
}

/* Timelines */

static void set_step(struct render *r)
{
	const struct store_selector *sel = &r->sides[0].selection.sel;
	uint64_t span_s = (sel->to_ns - sel->from_ns) / NSEC_PER_SEC + 1;

	r->step_s = STEP_MIN;
	while (span_s / r->step_s >= POINTS_MAX)
		r->step_s *= 2;
}

static int find_line(struct render *r, const struct store_series *series, struct line **out)
{
	struct str name = r->group_by.len ? query_series_label(series, r->group_by) : STR(GROUP_NONE);
	uint32_t id;
	int e = intern_add(&r->groups, name.len ? name : STR(GROUP_NONE), &id);

	while (e == 0 && r->lines_count <= id) {
		e = array_grow(&r->lines, &r->lines_cap, r->lines_count, GROUPS_MAX);
		if (e == 0)
			r->lines[r->lines_count++] = NULL;
	}
	if (e < 0)
		return e;
	if (!r->lines[id])
		r->lines[id] = calloc(1, sizeof(*r->lines[id]));
	*out = r->lines[id];
	return *out ? 0 : -ENOMEM;
}

static int add_point(void *ctx, const struct store_point *point)
{
	struct render *r = ctx;
	uint64_t at = (point->created_ns - r->sides[0].selection.sel.from_ns) / NSEC_PER_SEC / r->step_s;
	struct line *line;
	int64_t value;
	int e;

	if (!selection_value(&r->sides[0].selection, point, &value) || value <= 0 || at > POINTS_MAX)
		return 0;
	e = find_line(r, point->series, &line);
	if (e == 0) {
		line->points[at].sum += (uint64_t)value;
		line->points[at].count++;
	}
	return e;
}

/* @line: NULL: nothing was there. */
static void write_line(struct json_out *json, const struct render *r, const struct line *line)
{
	const struct store_selector *sel = &r->sides[0].selection.sel;
	uint64_t count = (sel->to_ns - sel->from_ns) / NSEC_PER_SEC / r->step_s + 1;

	json_out_begin(json, '{');
	json_out_key(json, STR("startTime"));
	json_out_u64(json, sel->from_ns / NSEC_PER_SEC);
	json_out_key(json, STR("samples"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < MIN(count, (uint64_t)POINTS_MAX + 1); i++) {
		uint64_t sum = line ? line->points[i].sum : 0, values = line ? line->points[i].count : 0;

		json_out_u64(json, r->averages && values ? sum / values : sum);
	}
	json_out_end(json, ']');
	json_out_key(json, STR("durationDelta"));
	json_out_u64(json, r->step_s);
	json_out_key(json, STR("watermarks"));
	json_out_begin(json, '{');
	json_out_end(json, '}');
	json_out_end(json, '}');
}

/* The timeline of all is there while there is one group, as Pyroscope has it. */
static void write_timelines(struct json_out *json, const struct render *r)
{
	const struct line *one = NULL;
	size_t lines = 0;

	for (size_t i = 0; i < r->lines_count; i++)
		if (r->lines[i]) {
			one = r->lines[i];
			lines++;
		}
	json_out_key(json, STR("timeline"));
	write_line(json, r, lines == 1 ? one : NULL);
	json_out_key(json, STR("groups"));
	if (!r->group_by.len) {
		json_out_raw(json, STR("null"));
		return;
	}
	json_out_begin(json, '{');
	for (uint32_t i = 0; i < r->lines_count; i++)
		if (r->lines[i]) {
			json_out_key(json, intern_get(&r->groups, i));
			write_line(json, r, r->lines[i]);
		}
	json_out_end(json, '}');
}

/* Answers */

static void write_metadata(struct json_out *json, const struct side *s, const char *format)
{
	const struct model *m = s->sum.model;
	struct str type = model_string(m, m->value_types[s->column].type),
		   unit = model_string(m, m->value_types[s->column].unit);

	json_out_key(json, STR("metadata"));
	json_out_begin(json, '{');
	json_out_key(json, STR("format"));
	json_out_string(json, str_of(format));
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

static void begin_answer(struct call *call, struct json_out *json)
{
	call_begin(call, json);
	json_out_key(json, STR("version"));
	json_out_u64(json, 1);
	json_out_key(json, STR("flamebearer"));
}

static int write_answer(struct call *call, const struct render *r)
{
	scoped(flamebearer_release) struct flamebearer b = { 0 };
	struct json_out json;
	int code = flamebearer_make(&r->sides[0].tree, NULL, (uint32_t)r->nodes, &b);

	if (code < 0)
		return code;
	begin_answer(call, &json);
	code = flamebearer_json(&b, &json);
	write_metadata(&json, &r->sides[0], "single");
	write_timelines(&json, r);
	json_out_key(&json, STR("heatmap"));
	json_out_raw(&json, STR("null"));
	call_end(call, &json);
	return code;
}

/* A side without profiles is a tree of nothing. Return: whether it went well; otherwise the call is answered. */
static bool add_up(struct call *call, struct side *s)
{
	uint64_t line;
	int r;

	if (!selection_sum(call, &s->selection, &s->sum, &s->info, &s->column))
		return false;
	if (s->info.profiles)
		r = tree_from_model(s->sum.model, s->column, 1, &(struct frame_style){ 0 }, &s->tree);
	else
		r = tree_from_folded(STR(""), NULL, &s->tree, &line);
	if (r < 0)
		answer_store(call, r, "failed to make a tree");
	return r == 0;
}

static void render(struct call *call, struct render *r)
{
	const struct collector_config *config = &call->collector->config;
	struct side *s = &r->sides[0];
	int code;

	intern_init(&r->groups, GROUPS_TEXT_MAX);
	if (!read_common(call, r) || !read_groups(call, r) || !read_side(call, &only, s) || !add_up(call, s))
		return;
	if (!s->info.profiles) {
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	set_step(r);
	code = config->store->totals(config->state, &s->selection.sel, add_point, r);
	if (selection_failed(call, &s->selection, code, "failed to add totals up"))
		return;
	code = write_answer(call, r);
	if (code < 0)
		answer_store(call, code, "failed to render profiles");
	answer_count(call->rs, "X-Profiles-Merged", s->info.profiles);
}

void pyroscope_render(struct call *call)
{
	struct render *r = calloc(1, sizeof(*r));

	if (!r)
		answer_error(call->rs, 503, "out of memory");
	else
		render(call, r);
	render_free(r);
}

/* Comparisons */

static int write_comparison(struct call *call, const struct render *r)
{
	scoped(tree_release) struct tree both = { 0 };
	scoped(flamebearer_release) struct flamebearer b = { 0 };
	scoped(freep) uint64_t *left = NULL;
	const struct side *named = &r->sides[r->sides[0].info.profiles ? 0 : 1];
	struct json_out json;
	int code = tree_pair(&r->sides[0].tree, &r->sides[1].tree, &both, &left);

	code = code ? code : flamebearer_make(&both, left, (uint32_t)r->nodes, &b);
	if (code < 0)
		return code;
	begin_answer(call, &json);
	code = flamebearer_json(&b, &json);
	write_metadata(&json, named, "double");
	call_key_u64(&json, STR("leftTicks"), b.total[0]);
	call_key_u64(&json, STR("rightTicks"), b.total[1]);
	call_end(call, &json);
	return code;
}

static void compare(struct call *call, struct render *r)
{
	int code;

	if (!read_common(call, r))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(compared); i++)
		if (!read_side(call, &compared[i], &r->sides[i]) || !add_up(call, &r->sides[i]))
			return;
	if (!r->sides[0].info.profiles && !r->sides[1].info.profiles) {
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	code = write_comparison(call, r);
	if (code < 0)
		answer_store(call, code, "failed to render profiles");
	answer_count(call->rs, "X-Profiles-Merged", r->sides[0].info.profiles + r->sides[1].info.profiles);
}

void pyroscope_compare(struct call *call)
{
	struct render *r = calloc(1, sizeof(*r));

	if (!r)
		answer_error(call->rs, 503, "out of memory");
	else
		compare(call, r);
	render_free(r);
}
