/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/totals.h"

#include <inttypes.h>

#include "base/array.h"
#include "proc/workload.h"

#define ROWS_MAX ((size_t)1 << 20)
#define TEXT_MAX MIB(64)              /* of all names of an answer */
#define CELLS_MAX ((uint64_t)1 << 20) /* points of all rows of an answer */

void totals_table_init(struct totals_table *t, size_t text_max)
{
	*t = (struct totals_table){ 0 };
	intern_init(&t->names, text_max);
}

void totals_table_release(struct totals_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->rows[i].points);
	free(t->rows);
	intern_release(&t->names);
}

static void totals_release(struct totals *t)
{
	query_range_release(&t->range);
	totals_table_release(&t->table);
	totals_table_release(&t->seen);
	buf_release(&t->key);
	buf_release(&t->find);
	buf_release(&t->lowered);
	buf_release(&t->sample_name);
	buf_release(&t->unit);
}

uint64_t totals_plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

int totals_row_of(struct totals_table *t, struct str name, struct totals_row **out)
{
	uint32_t id;
	int r = intern_add(&t->names, name, &id);

	while (r == 0 && t->count <= id) {
		r = array_grow(&t->rows, &t->cap, t->count, ROWS_MAX);
		if (r == 0) {
			t->rows[t->count] = (struct totals_row){ .id = (uint32_t)t->count,
								 .first_ns = UINT64_MAX,
								 .kind = WORKLOAD_KIND_COUNT };
			t->count++;
		}
	}
	if (r == 0)
		*out = &t->rows[id];
	return r;
}

int totals_row_for(struct totals *t, struct str name, struct totals_row **out)
{
	int r = totals_row_of(&t->table, name, out);

	if (r == -E2BIG)
		*out = &t->others;
	return r == -E2BIG ? 0 : r;
}

/* Largest first, then by name. */
int totals_row_order(const void *a, const void *b)
{
	const struct totals_row *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return str_cmp(x->name, y->name);
}

int totals_name_order(const void *a, const void *b)
{
	const struct totals_row *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

void totals_sort(struct totals_table *t, int (*order)(const void *, const void *))
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

bool totals_number(struct call *call, const char *name, uint64_t usual, uint64_t max, uint64_t *out)
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
	size_t names_max = call->collector->config.names_max, text_max = names_max ? names_max : TEXT_MAX;

	*t = (struct totals){ .call = call,
			      .key = BUF_INIT(KIB(8)),
			      .find = BUF_INIT(KIB(8)),
			      .lowered = BUF_INIT(KIB(8)),
			      .sample_name = BUF_INIT(KIB(64)),
			      .unit = BUF_INIT(KIB(64)),
			      .sample = http_query_get(&call->query, STR("sample")) };
	totals_table_init(&t->table, text_max);
	totals_table_init(&t->seen, text_max);
	t->others = (struct totals_row){ .id = UINT32_MAX, .first_ns = UINT64_MAX, .kind = WORKLOAD_KIND_COUNT };
	if (!call_whose(call, &t->whose) || !call_range(call, &query_range_view, &t->range))
		return false;
	t->range.limit = 0; /* it means rows here */
	t->sel = call_select(call, &t->range);
	return true;
}

void totals_set_step(struct totals *t)
{
	uint64_t span_ms;

	t->from_ms = t->range.from_ns / NSEC_PER_MSEC;
	span_ms = t->range.to_ns / NSEC_PER_MSEC - t->from_ms;
	t->step_ms = span_ms / t->points + 1;
	t->points = span_ms / t->step_ms + 1;
}

/* In seconds. */
static const uint64_t round_steps[TOTALS_STEPS] = { 1,     2,     5,     10,    15,    20,     30,     60,
						    120,   300,   600,   900,   1200,  1800,   3600,   7200,
						    10800, 14400, 21600, 43200, 86400, 604800, 2592000 };

#define AS_LONG(seconds) ((seconds)*NSEC_PER_SEC * 21 / 20) /* a window that ends a little late is no longer one */

int totals_note_duration(void *totals, const struct store_point *p)
{
	struct totals *t = totals;
	size_t i = 0;

	while (i + 1 < TOTALS_STEPS && p->duration_ns > AS_LONG(round_steps[i]))
		i++;
	t->lasting[i]++;
	return 0;
}

/* The step that nine of ten profiles fit in. */
static size_t usual_length(const struct totals *t)
{
	uint64_t all = 0, longer = 0;
	size_t i = TOTALS_STEPS - 1;

	for (size_t k = 0; k < TOTALS_STEPS; k++)
		all += t->lasting[k];
	while (i && longer + t->lasting[i] <= all / 10)
		longer += t->lasting[i--];
	return i;
}

void totals_set_round_step(struct totals *t, uint64_t least_ms)
{
	uint64_t from_ms = t->range.from_ns / NSEC_PER_MSEC, to_ms = t->range.to_ns / NSEC_PER_MSEC;
	uint64_t need_ms = MAX((to_ms - from_ms + t->points - 1) / t->points, MAX(least_ms, (uint64_t)1));
	size_t usual = usual_length(t), i = usual;

	while (i + 1 < TOTALS_STEPS &&
	       (round_steps[i] * 1000 < need_ms || round_steps[i] % round_steps[usual])) /* no stripes */
		i++;
	t->step_ms = round_steps[i] * 1000;
	must(t->step_ms > 0);
	if (t->step_ms < need_ms)
		t->step_ms *= need_ms / t->step_ms + 1;
	t->from_ms = from_ms - from_ms % t->step_ms;
	t->points = (to_ms - t->from_ms) / t->step_ms + 1;
}

bool totals_fits(struct totals *t, uint64_t rows)
{
	if (rows * t->points <= CELLS_MAX) /* totals_number() has bounded both */
		return true;
	answer_error(t->call->rs, 400, "bad request: \"limit\" times \"points\" is more than %" PRIu64, CELLS_MAX);
	return false;
}

bool totals_steps(struct call *call, bool *is_round)
{
	struct str steps = http_query_get(&call->query, STR("steps"));

	*is_round = str_eq(steps, STR("round"));
	if (!steps.len || *is_round || str_eq(steps, STR("equal")))
		return true;
	answer_error(call->rs, 400, "bad request: bad \"steps\" \"" STR_FMT "\": equal or round",
		     STR_ARG(str_first(steps, 64)));
	return false;
}

/* As model_value_index(). Return: the column, or their count. */
static size_t column_called(const struct store_point *p, struct str sample)
{
	for (size_t i = 0; i < p->value_count; i++)
		if (str_eq(p->columns[i].key, sample))
			return i;
	for (size_t i = 0; i < p->value_count; i++)
		if (model_value_named(sample, p->columns[i].key, p->columns[i].value))
			return i;
	return p->value_count;
}

bool totals_column(struct totals *t, const struct store_point *p, size_t *out)
{
	size_t at = t->sample.len ? column_called(p, t->sample) : p->default_column;

	if (at >= p->value_count)
		return false;
	if (!t->sample_name.len && !t->unit.len) {
		buf_adds(&t->sample_name, p->columns[at].key);
		buf_adds(&t->unit, p->columns[at].value);
	} else if (!str_eq(buf_str(&t->unit), p->columns[at].value)) {
		t->mixed = true; /* bytes and nanoseconds do not add up */
		return false;
	}
	*out = at;
	return true;
}

bool totals_value(struct totals *t, const struct store_point *p, uint64_t *out)
{
	size_t at;

	if (!totals_column(t, p, &at))
		return false;
	*out = p->values[at] > 0 ? (uint64_t)p->values[at] : 0;
	return true;
}

int totals_add_point(struct totals *t, struct totals_row *row, const struct store_point *p, uint64_t value)
{
	uint64_t at = p->created_ns / NSEC_PER_MSEC;

	if (!t->points)
		return 0;
	if (t->rows_with_points && row->id >= t->rows_with_points) {
		t->is_lean = true;
		return 0;
	}
	if (!row->points)
		row->points = calloc(t->points, sizeof(*row->points));
	if (!row->points)
		return -ENOMEM;
	at = at < t->from_ms ? 0 : (at - t->from_ms) / t->step_ms;
	at = MIN(at, t->points - 1);
	row->points[at] = totals_plus(row->points[at], value);
	return 0;
}

int totals_add(struct totals *t, struct totals_row *row, const struct store_point *p, uint64_t value)
{
	if (t->is_before) {
		row->before = totals_plus(row->before, value);
		return 0;
	}
	row->total = totals_plus(row->total, value);
	row->profiles++;
	row->first_ns = MIN(row->first_ns, p->created_ns);
	row->last_ns = MAX(row->last_ns, p->created_ns);
	return totals_add_point(t, row, p, value);
}

struct str totals_label(const struct store_series *series, struct str key)
{
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].key, key))
			return series->labels[i].value;
	return STR("");
}

/* The part of a point that is asked for. */
struct part {
	struct totals *t;
	store_point_fn *visit;
	void *ctx;
};

static struct covered *covered_now(struct totals *t)
{
	return t->is_before ? &t->covered_before : &t->covered;
}

static void note_covered(struct totals *t, const struct store_point *p)
{
	if (t->notes_covered)
		covered_note(covered_now(t), p->created_ns, p->duration_ns);
}

static int note_covered_point(void *ctx, const struct store_point *p)
{
	note_covered(ctx, p);
	return 0;
}

int totals_note_covered(struct totals *t)
{
	const struct collector_config *config = &t->call->collector->config;
	struct store_selector all = t->sel;
	int r;

	covered_init(covered_now(t), t->sel.from_ns, t->sel.to_ns);
	t->notes_covered = true;
	if (!all.service.len && !all.label_count && !all.fits)
		return 0;
	all.service = STR("");
	all.labels = NULL;
	all.label_count = 0;
	all.fits = NULL;
	all.fits_ctx = NULL;
	r = config->store->totals(config->state, &all, note_covered_point, t);
	t->notes_covered = false;
	return r;
}

static int visit_whole(void *ctx, const struct store_point *point)
{
	const struct part *part = ctx;

	note_covered(part->t, point);
	return part->visit(part->ctx, point);
}

static int visit_part(void *ctx, const struct store_point *point, const struct store_owner *owners, size_t count)
{
	const struct part *part = ctx;
	int64_t values[MODEL_VALUE_TYPES_MAX] = { 0 };
	struct store_point of = *point;
	bool any = false;

	note_covered(part->t, point);
	for (size_t i = 0; i < count; i++) {
		if (!query_whose_fits(&part->t->whose, &owners[i]))
			continue;
		for (size_t v = 0; v < point->value_count; v++)
			values[v] = saturating_add(values[v], owners[i].values[v]);
		any = true;
	}
	of.values = values;
	return any ? part->visit(part->ctx, &of) : 0;
}

int totals_visit(struct totals *t, store_point_fn *visit, void *ctx)
{
	const struct collector_config *config = &t->call->collector->config;
	struct part part = { t, visit, ctx };

	if (query_whose_all(&t->whose))
		return config->store->totals(config->state, &t->sel, visit_whole, &part);
	return config->store->owners(config->state, &t->sel, false, visit_part, &part);
}

void totals_failed(struct totals *t, int error)
{
	if (error == -E2BIG)
		answer_too_many(t->call->rs);
	else
		answer_store(t->call, error, "failed to add totals up");
}

bool totals_read(struct totals *t, store_point_fn *visit)
{
	int r = totals_visit(t, visit, t);

	if (r < 0)
		totals_failed(t, r);
	return r >= 0;
}

void totals_run(struct call *call, void (*what)(struct totals *t))
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

/* Writing */

void totals_write_points(struct json_out *json, const uint64_t *points, uint64_t count)
{
	json_out_key(json, STR("points"));
	json_out_begin(json, '[');
	for (uint64_t i = 0; i < count; i++)
		json_out_u64(json, points ? points[i] : 0);
	json_out_end(json, ']');
}

void totals_write_range(struct json_out *json, const struct totals *t)
{
	call_key_u64(json, STR("from_ms"), t->range.from_ns / NSEC_PER_MSEC);
	call_key_u64(json, STR("to_ms"), t->range.to_ns / NSEC_PER_MSEC);
	call_key(json, STR("type"), t->range.type);
}

static void write_covered(struct json_out *json, struct str name, const struct covered *c)
{
	uint64_t ms = covered_ms(c);

	if (ms)
		call_key_u64(json, name, ms);
}

void totals_write_covered(struct json_out *json, const struct totals *t)
{
	write_covered(json, STR("covered_ms"), &t->covered);
	write_covered(json, STR("before_covered_ms"), &t->covered_before);
}

void totals_write_sample(struct json_out *json, const struct totals *t)
{
	call_key(json, STR("sample"), t->sample_name.len ? buf_str(&t->sample_name) : t->sample);
	call_key(json, STR("unit"), buf_str(&t->unit));
	json_out_key(json, STR("mixed"));
	json_out_raw(json, t->mixed ? STR("true") : STR("false"));
}
