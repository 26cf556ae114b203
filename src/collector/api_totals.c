/* SPDX-License-Identifier: Apache-2.0 */
/* What the viewer shows without stacks: services and their cost, labels, types, timelines (docs/api.yaml). All of it
 * comes from the totals that are stored with each profile. */
#include <inttypes.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/opt.h"
#include "collector/collector_int.h"
#include "model/split.h"
#include "proc/workload.h"

#define ROWS_MAX ((size_t)1 << 20)
#define TEXT_MAX MIB(64) /* of all services or label values of an answer */
#define POINTS_SPARK 60
#define POINTS_SPARK_MAX 300
#define POINTS_LINE 300
#define POINTS_LINE_MAX 5000
#define GROUPS_MAX 20
#define SERVICES_SHOWN 1000
#define SMALL_PART 200 /* of the total: what costs less, and is a program's name, is folded */
#define SERVICES_MAX 10000
#define VALUES_SHOWN 50
#define VALUES_MAX 10000

/* One line of an answer: a service, a value of a label, a type. */
struct row {
	struct str name; /* set once all are there */
	uint32_t id;     /* of the name */
	uint64_t total, before, profiles, first_ns, last_ns, hosts;
	uint64_t *points;
	size_t kind; /* of a service: index into kinds */
};

/* What services are named after, the most telling first. The sender gave the name where it says nothing of it. */
#define X(id, name) [WORKLOAD_##id] = STR(name),
static const struct str kinds[WORKLOAD_KIND_COUNT + 1] = { WORKLOAD_KINDS(X)[WORKLOAD_KIND_COUNT] = STR("") };
#undef X

struct table {
	struct intern names;
	struct row *rows; /* by id */
	size_t count, cap;
};

/* One reading of totals. */
struct totals {
	struct call *call;
	struct query_range range;
	struct store_selector sel;
	struct str sample;
	struct table table, seen; /* seen: pairs that count once */
	struct buf key;
	struct buf sample_name, unit; /* of what was added */
	uint64_t from_ms, step_ms, points;
	uint64_t total, total_before, profiles;
	struct str only; /* this label */
	bool is_before, mixed;
};

static void table_release(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->rows[i].points);
	free(t->rows);
	intern_release(&t->names);
}

static void totals_release(struct totals *t)
{
	query_range_release(&t->range);
	table_release(&t->table);
	table_release(&t->seen);
	buf_release(&t->key);
	buf_release(&t->sample_name);
	buf_release(&t->unit);
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static int row_of(struct table *t, struct str name, struct row **out)
{
	uint32_t id;
	int r = intern_add(&t->names, name, &id);

	while (r == 0 && t->count <= id) {
		r = array_grow(&t->rows, &t->cap, t->count, ROWS_MAX);
		if (r == 0) {
			t->rows[t->count] = (struct row){ .id = (uint32_t)t->count,
							  .first_ns = UINT64_MAX,
							  .kind = WORKLOAD_KIND_COUNT };
			t->count++;
		}
	}
	if (r == 0)
		*out = &t->rows[id];
	return r;
}

/* Largest first, then by name. */
static int row_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return str_cmp(x->name, y->name);
}

static int name_order(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

static void sort_rows(struct table *t, int (*order)(const void *, const void *))
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (!t->rows[i].profiles && !t->rows[i].before) {
			free(t->rows[i].points);
			continue;
		}
		t->rows[kept] = t->rows[i];
		t->rows[kept].name = intern_get(&t->names, t->rows[kept].id);
		kept++;
	}
	t->count = kept;
	if (kept)
		qsort(t->rows, kept, sizeof(*t->rows), order);
}

/* Reading */

static bool number_param(struct call *call, const char *name, uint64_t usual, uint64_t max, uint64_t *out)
{
	struct str raw = http_query_get(&call->query, str_of(name));

	*out = usual;
	if (!raw.len || str_to_u64(raw, 1, max, out) == 0)
		return true;
	answer_error(call->rs, 400, "bad request: bad \"%s\" \"" STR_FMT "\": 1 to %" PRIu64, name,
		     STR_ARG(str_first(raw, 64)), max);
	return false;
}

static bool open_totals(struct call *call, struct totals *t)
{
	*t = (struct totals){ .call = call,
			      .key = BUF_INIT(KIB(8)),
			      .sample_name = BUF_INIT(KIB(64)),
			      .unit = BUF_INIT(KIB(64)),
			      .sample = http_query_get(&call->query, STR("sample")) };
	intern_init(&t->table.names, TEXT_MAX);
	intern_init(&t->seen.names, TEXT_MAX);
	if (!call_range(call, &query_range_view, &t->range))
		return false;
	t->range.limit = 0; /* it means rows here */
	t->sel = call_select(call, &t->range);
	return true;
}

static void set_step(struct totals *t)
{
	uint64_t span_ms;

	t->from_ms = t->range.from_ns / NSEC_PER_MSEC;
	span_ms = t->range.to_ns / NSEC_PER_MSEC - t->from_ms;
	t->step_ms = span_ms / t->points + 1;
	t->points = span_ms / t->step_ms + 1;
}

/* The value that is asked for. Return: whether the profile has it. */
static bool value_of(struct totals *t, const struct store_point *p, uint64_t *out)
{
	size_t at = p->default_column;

	for (size_t i = 0; t->sample.len && i < p->value_count; i++)
		if (str_eq(p->columns[i].key, t->sample)) {
			at = i;
			break;
		} else {
			at = p->value_count;
		}
	if (at >= p->value_count)
		return false;
	if (!t->sample_name.len && !t->unit.len) {
		buf_adds(&t->sample_name, p->columns[at].key);
		buf_adds(&t->unit, p->columns[at].value);
	} else if (!str_eq(buf_str(&t->unit), p->columns[at].value)) {
		t->mixed = true; /* bytes and nanoseconds do not add up */
		return false;
	}
	*out = p->values[at] > 0 ? (uint64_t)p->values[at] : 0;
	return true;
}

static int add_point_to(struct totals *t, struct row *row, const struct store_point *p, uint64_t value)
{
	uint64_t at = p->created_ns / NSEC_PER_MSEC;

	if (!t->points)
		return 0;
	if (!row->points)
		row->points = calloc(t->points, sizeof(*row->points));
	if (!row->points)
		return -ENOMEM;
	at = at < t->from_ms ? 0 : (at - t->from_ms) / t->step_ms;
	at = MIN(at, t->points - 1);
	row->points[at] = plus(row->points[at], value);
	return 0;
}

static int add_to(struct totals *t, struct row *row, const struct store_point *p, uint64_t value)
{
	if (t->is_before) {
		row->before = plus(row->before, value);
		return 0;
	}
	row->total = plus(row->total, value);
	row->profiles++;
	row->first_ns = MIN(row->first_ns, p->created_ns);
	row->last_ns = MAX(row->last_ns, p->created_ns);
	return add_point_to(t, row, p, value);
}

static struct str label_of(const struct store_series *series, struct str key)
{
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].key, key))
			return series->labels[i].value;
	return STR("");
}

static int read_totals(struct totals *t, store_point_fn *visit)
{
	const struct collector_config *config = &t->call->collector->config;

	return config->store->totals(config->state, &t->sel, visit, t);
}

static bool totals_read(struct totals *t, store_point_fn *visit)
{
	int r = read_totals(t, visit);

	if (r < 0)
		answer_store(t->call, r, "failed to add totals up");
	return r >= 0;
}

/* Writing */

static void write_points(struct json_out *json, const uint64_t *points, uint64_t count)
{
	json_out_key(json, STR("points"));
	json_out_begin(json, '[');
	for (uint64_t i = 0; i < count; i++)
		json_out_u64(json, points ? points[i] : 0);
	json_out_end(json, ']');
}

static void write_range(struct json_out *json, const struct totals *t)
{
	call_key_u64(json, STR("from_ms"), t->range.from_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("to_ms"), t->range.to_ns / NSEC_PER_MSEC);
	call_key(json, STR("type"), t->range.type);
}

static void write_sample(struct json_out *json, const struct totals *t)
{
	call_key(json, STR("sample"), t->sample_name.len ? buf_str(&t->sample_name) : t->sample);
	call_key(json, STR("unit"), buf_str(&t->unit));
	json_out_key(json, STR("mixed"));
	json_out_raw(json, t->mixed ? STR("true") : STR("false"));
}

/* Services */

static int note_host(struct totals *t, struct row *row, const struct store_series *series)
{
	struct row *pair = NULL;
	int r;

	buf_clear(&t->key);
	buf_addf(&t->key, "%u=", row->id);
	buf_adds(&t->key, label_of(series, STR("host")));
	r = t->key.error ? t->key.error : row_of(&t->seen, buf_str(&t->key), &pair);
	if (r == 0 && !pair->profiles++)
		row->hosts++;
	return r;
}

static size_t kind_of(const struct store_series *series)
{
	struct str text = label_of(series, STR(MODEL_SERVICE_KIND));
	size_t kind = 0;

	while (kind < WORKLOAD_KIND_COUNT && !str_eq(kinds[kind], text))
		kind++;
	return kind;
}

static int add_service(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct row *row = NULL;
	uint64_t value;
	int r;

	if (!value_of(t, p, &value))
		return 0;
	r = row_of(&t->table, p->series->service, &row);
	if (r == 0)
		row->kind = row->profiles || row->before ? MIN(row->kind, kind_of(p->series)) : kind_of(p->series);
	if (r == 0 && !t->is_before)
		r = note_host(t, row, p->series);
	if (t->is_before)
		t->total_before = plus(t->total_before, value);
	else
		t->total = plus(t->total, value);
	return r ? r : add_to(t, row, p, value);
}

/* The same range, this much earlier. */
static bool read_before(struct totals *t)
{
	struct str raw = http_query_get(&t->call->query, STR("before"));
	uint64_t back;

	if (!raw.len)
		return true;
	if (opt_parse_duration(raw, &back) < 0) {
		answer_error(t->call->rs, 400, "bad request: bad \"before\" \"" STR_FMT "\": no duration",
			     STR_ARG(str_first(raw, 64)));
		return false;
	}
	t->is_before = true;
	t->sel.from_ns -= MIN(t->sel.from_ns, back);
	if (t->sel.to_ns < back)
		return true; /* before 1970 there was nothing */
	t->sel.to_ns -= back;
	return totals_read(t, add_service);
}

/* A name that somebody gave, in whatever way, is looked for, and shown however little it costs. */
static bool is_small(const struct totals *t, const struct row *row)
{
	if (row->kind < WORKLOAD_EXECUTABLE || (row->kind == WORKLOAD_KIND_COUNT && row->profiles))
		return false;
	return row->total < t->total / SMALL_PART && row->before <= t->total_before / SMALL_PART;
}

static void write_service(struct json_out *json, const struct totals *t, const struct row *row, bool has_before)
{
	json_out_begin(json, '{');
	call_key(json, STR("service"), row->name);
	if (kinds[row->kind].len)
		call_key(json, STR("kind"), kinds[row->kind]);
	if (is_small(t, row)) {
		json_out_key(json, STR("small"));
		json_out_raw(json, STR("true"));
	}
	call_key_u64(json, STR("total"), row->total);
	if (has_before)
		call_key_u64(json, STR("before"), row->before);
	call_key_u64(json, STR("profiles"), row->profiles);
	if (row->profiles) {
		call_key_u64(json, STR("first_ms"), row->first_ns / NSEC_PER_MSEC);
		call_key_u64(json, STR("last_ms"), row->last_ns / NSEC_PER_MSEC);
	}
	call_key_u64(json, STR("hosts"), row->hosts);
	write_points(json, row->points, t->points);
	json_out_end(json, '}');
}

static void write_services(struct totals *t, uint64_t limit, bool fold_small)
{
	bool has_before = t->is_before;
	uint64_t folded = 0;
	struct json_out json;
	size_t shown = 0;

	sort_rows(&t->table, row_order);
	call_begin(t->call, &json);
	write_range(&json, t);
	write_sample(&json, t);
	call_key_u64(&json, STR("step_ms"), t->step_ms);
	call_key_u64(&json, STR("points"), t->points);
	call_key_u64(&json, STR("total"), t->total);
	json_out_key(&json, STR("services"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < t->table.count; i++) {
		if (shown < limit && !(fold_small && is_small(t, &t->table.rows[i]))) {
			write_service(&json, t, &t->table.rows[i], has_before);
			shown++;
		} else {
			folded = plus(folded, t->table.rows[i].total);
		}
	}
	json_out_end(&json, ']');
	json_out_key(&json, STR("folded"));
	json_out_begin(&json, '{');
	call_key_u64(&json, STR("services"), t->table.count - shown);
	call_key_u64(&json, STR("total"), folded);
	json_out_end(&json, '}');
	call_end(t->call, &json);
}

static void services(struct totals *t)
{
	struct str small = http_query_get(&t->call->query, STR("small"));
	uint64_t limit;

	if (!number_param(t->call, "points", POINTS_SPARK, POINTS_SPARK_MAX, &t->points) ||
	    !number_param(t->call, "limit", SERVICES_SHOWN, SERVICES_MAX, &limit))
		return;
	if (small.len && !str_eq(small, STR("fold")) && !str_eq(small, STR("list"))) {
		answer_error(t->call->rs, 400, "bad request: bad \"small\" \"" STR_FMT "\": fold or list",
			     STR_ARG(str_first(small, 64)));
		return;
	}
	set_step(t);
	if (totals_read(t, add_service) && read_before(t))
		write_services(t, limit, !str_eq(small, STR("list")));
}

/* Types */

static int add_type(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct row *row = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->value_count; i++) {
		buf_clear(&t->key);
		buf_adds(&t->key, p->series->type);
		buf_addc(&t->key, 0);
		buf_adds(&t->key, p->columns[i].key);
		buf_addc(&t->key, 0);
		buf_adds(&t->key, p->columns[i].value);
		r = t->key.error == -E2BIG ? 0 : t->key.error; /* a name of 8 KiB is not offered */
		if (t->key.error)
			continue;
		r = row_of(&t->table, buf_str(&t->key), &row);
		if (r == 0) {
			row->profiles++;
			row->hosts += i == p->default_column;
			row->total = plus(row->total, p->values[i] > 0 ? (uint64_t)p->values[i] : 0);
		}
	}
	return r;
}

static struct str part(struct str name, int which)
{
	struct str piece = STR("");

	for (int i = 0; i <= which; i++)
		if (!str_next(&name, 0, &piece))
			return STR("");
	return piece;
}

static size_t same_type(const struct table *t, size_t from)
{
	size_t end = from;

	while (end < t->count && str_eq(part(t->rows[end].name, 0), part(t->rows[from].name, 0)))
		end++;
	return end;
}

static void write_type(struct json_out *json, const struct row *rows, size_t count)
{
	const struct row *usual = rows;
	uint64_t profiles = 0;

	for (size_t i = 0; i < count; i++) {
		profiles = MAX(profiles, rows[i].profiles);
		usual = rows[i].hosts > usual->hosts ? &rows[i] : usual;
	}
	json_out_begin(json, '{');
	call_key(json, STR("type"), part(rows->name, 0));
	call_key_u64(json, STR("profiles"), profiles);
	call_key(json, STR("default"), part(usual->name, 1));
	json_out_key(json, STR("samples"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_out_begin(json, '{');
		call_key(json, STR("sample"), part(rows[i].name, 1));
		call_key(json, STR("unit"), part(rows[i].name, 2));
		call_key_u64(json, STR("total"), rows[i].total);
		json_out_end(json, '}');
	}
	json_out_end(json, ']');
	json_out_end(json, '}');
}

static void types(struct totals *t)
{
	struct json_out json;

	t->sel.type = STR("");
	if (!totals_read(t, add_type))
		return;
	sort_rows(&t->table, name_order);
	call_begin(t->call, &json);
	call_key_u64(&json, STR("from_ms"), t->range.from_ns / NSEC_PER_MSEC);
	call_key_u64(&json, STR("to_ms"), t->range.to_ns / NSEC_PER_MSEC);
	json_out_key(&json, STR("types"));
	json_out_begin(&json, '[');
	for (size_t i = 0, next; i < t->table.count; i = next) {
		next = same_type(&t->table, i);
		write_type(&json, &t->table.rows[i], next - i);
	}
	json_out_end(&json, ']');
	call_end(t->call, &json);
}

/* Labels */

static int add_labels(void *ctx, const struct store_point *p)
{
	const struct store_series *series = p->series;
	struct totals *t = ctx;
	struct row *row = NULL;
	uint64_t value;
	int r = 0;

	if (!value_of(t, p, &value))
		return 0;
	for (size_t i = 0; r == 0 && i < series->label_count; i++) {
		if ((t->only.len && !str_eq(series->labels[i].key, t->only)) ||
		    str_find(series->labels[i].key, 0) >= 0) /* what the parts of a row are told apart by */
			continue;
		buf_clear(&t->key);
		buf_adds(&t->key, series->labels[i].key);
		buf_addc(&t->key, 0);
		buf_adds(&t->key, series->labels[i].value);
		r = t->key.error ? t->key.error : row_of(&t->table, buf_str(&t->key), &row);
		r = r ? r : add_to(t, row, p, value);
	}
	return r;
}

static struct str part_after(struct str name)
{
	return str_skip(name, part(name, 0).len + 1);
}

static void write_label(struct json_out *json, struct row *rows, size_t count, uint64_t limit)
{
	qsort(rows, count, sizeof(*rows), row_order);
	json_out_begin(json, '{');
	call_key(json, STR("name"), part(rows->name, 0));
	call_key_u64(json, STR("count"), count);
	json_out_key(json, STR("values"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < MIN(count, (size_t)limit); i++) {
		json_out_begin(json, '{');
		call_key(json, STR("value"), part_after(rows[i].name));
		call_key_u64(json, STR("profiles"), rows[i].profiles);
		call_key_u64(json, STR("total"), rows[i].total);
		json_out_end(json, '}');
	}
	json_out_end(json, ']');
	json_out_end(json, '}');
}

static void labels(struct totals *t)
{
	struct json_out json;
	uint64_t limit;

	t->only = http_query_get(&t->call->query, STR("name"));
	if (!number_param(t->call, "limit", VALUES_SHOWN, VALUES_MAX, &limit) || !totals_read(t, add_labels))
		return;
	sort_rows(&t->table, name_order);
	call_begin(t->call, &json);
	write_range(&json, t);
	write_sample(&json, t);
	json_out_key(&json, STR("labels"));
	json_out_begin(&json, '[');
	for (size_t i = 0, next; i < t->table.count; i = next) {
		next = same_type(&t->table, i);
		write_label(&json, &t->table.rows[i], next - i, limit);
	}
	json_out_end(&json, ']');
	call_end(t->call, &json);
}

/* Timelines: which groups are the largest first, then their points, so that memory does not follow the labels. */

static struct str group_of(const struct totals *t, const struct store_series *series)
{
	if (!t->only.len)
		return STR("");
	return str_eq(t->only, STR("service")) ? series->service : label_of(series, t->only);
}

static int add_group(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct row *row = NULL;
	uint64_t value;
	int r;

	if (!value_of(t, p, &value))
		return 0;
	t->total = plus(t->total, value);
	t->profiles++;
	r = row_of(&t->table, group_of(t, p->series), &row);
	if (r == 0) {
		row->total = plus(row->total, value);
		row->profiles++;
	}
	return r;
}

struct line {
	struct totals *t;
	struct row rows[GROUPS_MAX + 1]; /* the last one: all others */
	size_t count;
};

static int add_line_point(void *ctx, const struct store_point *p)
{
	struct line *l = ctx;
	struct str group = group_of(l->t, p->series);
	uint64_t value;
	size_t at = 0;

	if (!value_of(l->t, p, &value))
		return 0;
	while (at < l->count && !str_eq(l->rows[at].name, group))
		at++;
	at = at < l->count ? at : GROUPS_MAX;
	l->rows[at].total = plus(l->rows[at].total, value);
	l->rows[at].profiles++;
	return add_point_to(l->t, &l->rows[at], p, value);
}

static void write_series(struct json_out *json, const struct totals *t, const struct row *row, bool is_other)
{
	json_out_begin(json, '{');
	call_key(json, STR("value"), row->name);
	json_out_key(json, STR("other"));
	json_out_raw(json, is_other ? STR("true") : STR("false"));
	call_key_u64(json, STR("total"), row->total);
	write_points(json, row->points, t->points);
	json_out_end(json, '}');
}

static void write_timeline(struct totals *t, const struct line *l)
{
	struct json_out json;
	uint64_t total = 0, profiles = 0;

	for (size_t i = 0; i < ARRAY_SIZE(l->rows); i++) {
		total = plus(total, l->rows[i].total);
		profiles += l->rows[i].profiles;
	}
	call_begin(t->call, &json);
	write_range(&json, t);
	write_sample(&json, t);
	call_key_u64(&json, STR("step_ms"), t->step_ms);
	call_key_u64(&json, STR("total"), total);
	call_key_u64(&json, STR("profiles"), profiles);
	json_out_key(&json, STR("series"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < l->count; i++)
		write_series(&json, t, &l->rows[i], false);
	if (l->rows[GROUPS_MAX].profiles)
		write_series(&json, t, &l->rows[GROUPS_MAX], true);
	json_out_end(&json, ']');
	call_end(t->call, &json);
}

static bool find_groups(struct totals *t, struct line *l)
{
	if (!t->only.len) {
		l->rows[l->count++].name = STR("");
		return true;
	}
	if (!totals_read(t, add_group))
		return false;
	sort_rows(&t->table, row_order);
	for (size_t i = 0; i < MIN(t->table.count, (size_t)GROUPS_MAX); i++)
		l->rows[l->count++].name = t->table.rows[i].name;
	return true;
}

static void timeline(struct totals *t)
{
	struct line *l = calloc(1, sizeof(*l));

	t->only = http_query_get(&t->call->query, STR("group"));
	if (!l) {
		answer_error(t->call->rs, 503, "out of memory");
	} else if (number_param(t->call, "points", POINTS_LINE, POINTS_LINE_MAX, &t->points)) {
		int r;

		l->t = t;
		l->rows[GROUPS_MAX].name = STR("");
		set_step(t);
		r = find_groups(t, l) ? t->call->collector->config.store->totals(t->call->collector->config.state,
										 &t->sel, add_line_point, l)
				      : 1;
		if (r == 0)
			write_timeline(t, l);
		else if (r < 0)
			answer_store(t->call, r, "failed to add totals up");
	}
	for (size_t i = 0; l && i < ARRAY_SIZE(l->rows); i++)
		free(l->rows[i].points);
	free(l);
}

/* Routes */

static void run(struct call *call, void (*what)(struct totals *t))
{
	struct totals *t = calloc(1, sizeof(*t));

	if (!t) {
		answer_error(call->rs, 503, "out of memory");
		return;
	}
	if (open_totals(call, t))
		what(t);
	totals_release(t);
	free(t);
}

void view_services(struct call *call)
{
	run(call, services);
}

void view_types(struct call *call)
{
	run(call, types);
}

void view_labels(struct call *call)
{
	run(call, labels);
}

void view_timeline(struct call *call)
{
	run(call, timeline);
}
