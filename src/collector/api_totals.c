/* SPDX-License-Identifier: Apache-2.0 */
/* What the viewer shows without stacks: services and their cost, labels, types (docs/api.yaml). All of it comes from
 * the totals that are stored with each profile. */
#include "base/opt.h"
#include "collector/totals.h"
#include "model/split.h"
#include "proc/workload.h"

#define POINTS_SPARK 60
#define POINTS_SPARK_MAX 300
#define SERVICES_SHOWN 1000
#define SMALL_PART 200 /* of the total: what costs less, and is a program's name, is folded */
#define SERVICES_MAX 10000
#define ROWS_WITH_POINTS 4096 /* in a first reading: memory does not follow how many names somebody sends */
#define VALUES_SHOWN 50
#define VALUES_MAX 10000
#define LABELS_MAX 1000 /* names of an answer */
#define FIND_MAX 256    /* bytes */

/* What services are named after, the most telling first. The sender gave the name where it says nothing of it. */
#define X(id, name) [WORKLOAD_##id] = STR(name),
static const struct str kinds[WORKLOAD_KIND_COUNT + 1] = { WORKLOAD_KINDS(X)[WORKLOAD_KIND_COUNT] = STR("") };
#undef X

/* Services */

static int note_host(struct totals *t, struct totals_row *row, const struct store_series *series)
{
	struct totals_row *pair = NULL;
	int r;

	if (row == &t->others)
		return 0;
	buf_clear(&t->key);
	buf_addf(&t->key, "%u=", row->id);
	buf_adds(&t->key, totals_label(series, STR("host")));
	r = t->key.error ? t->key.error : totals_row_of(&t->seen, buf_str(&t->key), &pair);
	if (r == 0 && !pair->profiles++)
		row->hosts++;
	return r == -E2BIG ? 0 : r; /* then it is at least so many */
}

static size_t kind_of(const struct store_series *series)
{
	struct str text = totals_label(series, STR(MODEL_SERVICE_KIND));
	size_t kind = 0;

	while (kind < WORKLOAD_KIND_COUNT && !str_eq(kinds[kind], text))
		kind++;
	return kind;
}

static int add_service(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct totals_row *row = NULL;
	uint64_t value;
	int r;

	if (!totals_value(t, p, &value))
		return 0;
	r = totals_row_for(t, p->series->service, &row);
	if (r == 0)
		row->kind = row->profiles || row->before ? MIN(row->kind, kind_of(p->series)) : kind_of(p->series);
	if (r == 0 && !t->is_before)
		r = note_host(t, row, p->series);
	if (t->is_before)
		t->total_before = totals_plus(t->total_before, value);
	else
		t->total = totals_plus(t->total, value);
	return r ? r : totals_add(t, row, p, value);
}

/* With what is covered. Return: whether it went well, otherwise the call is answered. */
static bool read_all_services(struct totals *t)
{
	int r = totals_note_covered(t);

	if (r == 0)
		return totals_read(t, add_service);
	totals_failed(t, r);
	return false;
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
	return read_all_services(t);
}

/* A name that somebody gave, in whatever way, is looked for, and shown however little it costs. */
static bool is_small(const struct totals *t, const struct totals_row *row)
{
	if (row->kind < WORKLOAD_EXECUTABLE || (row->kind == WORKLOAD_KIND_COUNT && row->profiles))
		return false;
	return row->total < t->total / SMALL_PART && row->before <= t->total_before / SMALL_PART;
}

static void write_service(struct json_out *json, const struct totals *t, const struct totals_row *row, bool has_before)
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
	totals_write_points(json, row->points, t->points);
	json_out_end(json, '}');
}

/* Which of the sorted rows an answer lists. */
struct listing {
	struct totals *t;
	uint64_t limit;
	bool fold_small;
	uint32_t *place; /* by id of the name: the row + 1; 0: not listed */
	size_t places;
};

static bool is_listed(const struct listing *l, const struct totals_row *row, size_t shown)
{
	return shown < l->limit && !(l->fold_small && is_small(l->t, row));
}

static int add_listed_point(void *ctx, const struct store_point *p)
{
	const struct listing *l = ctx;
	uint64_t value;
	uint32_t id;

	if (!totals_value(l->t, p, &value) || intern_find(&l->t->table.names, p->series->service, &id) ||
	    id >= l->places || !l->place[id])
		return 0;
	return totals_add_point(l->t, &l->t->table.rows[l->place[id] - 1], p, value);
}

/* More names than get points in one reading: the points of those that are listed, by another one. Return: whether it
 * went well, otherwise the call is answered. */
static bool read_listed_points(struct listing *l)
{
	struct totals *t = l->t;
	bool notes_covered = t->notes_covered;
	size_t shown = 0;
	int r;

	l->places = intern_count(&t->table.names);
	l->place = calloc(l->places + 1, sizeof(*l->place));
	for (size_t i = 0; i < t->table.count; i++) {
		free(t->table.rows[i].points);
		t->table.rows[i].points = NULL;
		if (l->place && is_listed(l, &t->table.rows[i], shown)) {
			l->place[t->table.rows[i].id] = (uint32_t)i + 1;
			shown++;
		}
	}
	t->rows_with_points = 0;
	t->notes_covered = false; /* the first reading has noted all of it */
	r = l->place ? totals_visit(t, add_listed_point, l) : -ENOMEM;
	t->notes_covered = notes_covered;
	free(l->place);
	if (r < 0)
		totals_failed(t, r);
	return r >= 0;
}

static void write_services(const struct listing *l, bool has_before)
{
	struct totals *t = l->t;
	uint64_t folded = t->others.total;
	bool has_others = t->others.profiles || t->others.before;
	struct json_out json;
	size_t shown = 0;

	call_begin(t->call, &json);
	totals_write_range(&json, t);
	totals_write_covered(&json, t);
	totals_write_sample(&json, t);
	call_key_u64(&json, STR("start_ms"), t->from_ms);
	call_key_u64(&json, STR("step_ms"), t->step_ms);
	call_key_u64(&json, STR("points"), t->points);
	call_key_u64(&json, STR("total"), t->total);
	json_out_key(&json, STR("services"));
	json_out_begin(&json, '[');
	for (size_t i = 0; i < t->table.count; i++) {
		if (is_listed(l, &t->table.rows[i], shown)) {
			write_service(&json, t, &t->table.rows[i], has_before);
			shown++;
		} else {
			folded = totals_plus(folded, t->table.rows[i].total);
		}
	}
	json_out_end(&json, ']');
	json_out_key(&json, STR("folded"));
	json_out_begin(&json, '{');
	call_key_u64(&json, STR("services"), t->table.count - shown + has_others);
	call_key_u64(&json, STR("total"), folded);
	json_out_end(&json, '}');
	call_end(t->call, &json);
}

static void services(struct totals *t)
{
	struct str small = http_query_get(&t->call->query, STR("small"));
	struct listing l = { .t = t, .fold_small = !str_eq(small, STR("list")) };
	struct store_selector sel;
	bool is_round, has_before;

	if (!totals_number(t->call, "points", POINTS_SPARK, POINTS_SPARK_MAX, &t->points) ||
	    !totals_number(t->call, "limit", SERVICES_SHOWN, SERVICES_MAX, &l.limit) ||
	    !totals_steps(t->call, &is_round) || !totals_fits(t, l.limit))
		return;
	if (small.len && !str_eq(small, STR("fold")) && !str_eq(small, STR("list"))) {
		answer_error(t->call->rs, 400, "bad request: bad \"small\" \"" STR_FMT "\": fold or list",
			     STR_ARG(str_first(small, 64)));
		return;
	}
	if (is_round && !totals_read(t, totals_note_duration))
		return;
	if (is_round)
		totals_set_round_step(t, 0);
	else
		totals_set_step(t);
	t->rows_with_points = ROWS_WITH_POINTS;
	sel = t->sel;
	if (!read_all_services(t) || !read_before(t))
		return;
	has_before = t->is_before;
	totals_sort(&t->table, totals_row_order);
	t->sel = sel;
	t->is_before = false;
	if (!t->is_lean || read_listed_points(&l))
		write_services(&l, has_before);
}

/* Types */

/* Of two with one name and unit the first one counts. */
static bool is_again(const struct store_point *p, size_t column)
{
	for (size_t i = 0; i < column; i++)
		if (str_eq(p->columns[i].key, p->columns[column].key) &&
		    str_eq(p->columns[i].value, p->columns[column].value))
			return true;
	return false;
}

static int add_type(void *ctx, const struct store_point *p)
{
	struct totals *t = ctx;
	struct totals_row *row = NULL;
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
		r = totals_row_for(t, buf_str(&t->key), &row);
		if (r == 0)
			row->hosts += i == p->default_column;
		if (r == 0 && !is_again(p, i)) {
			row->profiles++;
			row->total = totals_plus(row->total, p->values[i] > 0 ? (uint64_t)p->values[i] : 0);
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

static size_t same_type(const struct totals_table *t, size_t from)
{
	size_t end = from;

	while (end < t->count && str_eq(part(t->rows[end].name, 0), part(t->rows[from].name, 0)))
		end++;
	return end;
}

static void write_type(struct json_out *json, const struct totals_row *rows, size_t count)
{
	const struct totals_row *usual = rows;
	uint64_t profiles = 0;
	size_t called = 0;

	for (size_t i = 0; i < count; i++) {
		profiles = MAX(profiles, rows[i].profiles);
		usual = rows[i].hosts > usual->hosts ? &rows[i] : usual;
	}
	for (size_t i = 0; i < count; i++)
		called += str_eq(part(rows[i].name, 1), part(usual->name, 1));
	json_out_begin(json, '{');
	call_key(json, STR("type"), part(rows->name, 0));
	call_key_u64(json, STR("profiles"), profiles);
	call_key_sample(json, STR("default"), part(usual->name, 1), part(usual->name, 2), called > 1);
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

/* Only where there were more names than an answer has room for. */
static void write_more(struct json_out *json, const struct totals *t)
{
	if (!t->others.profiles)
		return;
	json_out_key(json, STR("more"));
	json_out_raw(json, STR("true"));
}

static void types(struct totals *t)
{
	struct json_out json;

	t->sel.type = STR("");
	if (!totals_read(t, add_type))
		return;
	totals_sort(&t->table, totals_name_order);
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
	write_more(&json, t);
	call_end(t->call, &json);
}

/* Labels */

/* ASCII letters become small ones. */
static void lower(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++)
		buf_addc(out, (char)(text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? text.ptr[i] | 0x20 : text.ptr[i]));
}

static bool contains(struct totals *t, struct str text)
{
	buf_clear(&t->lowered);
	lower(text, &t->lowered);
	return !t->lowered.error && str_search(buf_str(&t->lowered), buf_str(&t->find)) >= 0;
}

static bool is_wanted(struct totals *t, const struct store_label *label)
{
	if ((t->only.len && !str_eq(label->key, t->only)) ||
	    str_find(label->key, 0) >= 0) /* what the parts of a row are told apart by */
		return false;
	return !t->find.len || contains(t, label->key) || contains(t, label->value);
}

static int add_labels(void *ctx, const struct store_point *p)
{
	const struct store_series *series = p->series;
	struct totals *t = ctx;
	struct totals_row *row = NULL;
	uint64_t value;
	int r = 0;

	if (!totals_value(t, p, &value))
		return 0;
	for (size_t i = 0; r == 0 && i < series->label_count; i++) {
		if (!is_wanted(t, &series->labels[i]))
			continue;
		buf_clear(&t->key);
		buf_adds(&t->key, series->labels[i].key);
		buf_addc(&t->key, 0);
		buf_adds(&t->key, series->labels[i].value);
		r = t->key.error ? t->key.error : totals_row_for(t, buf_str(&t->key), &row);
		r = r ? r : totals_add(t, row, p, value);
	}
	return r;
}

static struct str part_after(struct str name)
{
	return str_skip(name, part(name, 0).len + 1);
}

static void write_label(struct json_out *json, struct totals_row *rows, size_t count, uint64_t limit)
{
	qsort(rows, count, sizeof(*rows), totals_row_order);
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

static bool read_find(struct totals *t)
{
	struct str raw = http_query_get(&t->call->query, STR("find"));

	if (raw.len > FIND_MAX) {
		answer_error(t->call->rs, 400, "bad request: \"find\" is longer than %d bytes", FIND_MAX);
		return false;
	}
	lower(raw, &t->find);
	if (t->find.error)
		answer_error(t->call->rs, 503, "out of memory");
	return !t->find.error;
}

static void write_labels(struct totals *t, uint64_t limit)
{
	struct json_out json;
	uint64_t count = 0;

	call_begin(t->call, &json);
	totals_write_range(&json, t);
	totals_write_sample(&json, t);
	json_out_key(&json, STR("labels"));
	json_out_begin(&json, '[');
	for (size_t i = 0, next; i < t->table.count; i = next, count++) {
		next = same_type(&t->table, i);
		if (count < LABELS_MAX)
			write_label(&json, &t->table.rows[i], next - i, limit);
	}
	json_out_end(&json, ']');
	call_key_u64(&json, STR("count"), count);
	write_more(&json, t);
	call_end(t->call, &json);
}

static void labels(struct totals *t)
{
	uint64_t limit;

	t->only = http_query_get(&t->call->query, STR("name"));
	if (!read_find(t) || !totals_number(t->call, "limit", VALUES_SHOWN, VALUES_MAX, &limit) ||
	    !totals_read(t, add_labels))
		return;
	totals_sort(&t->table, totals_name_order);
	write_labels(t, limit);
}

void view_services(struct call *call)
{
	totals_run(call, services);
}

void view_types(struct call *call)
{
	totals_run(call, types);
}

void view_labels(struct call *call)
{
	totals_run(call, labels);
}
