/* SPDX-License-Identifier: Apache-2.0 */
/* querier.v1: types, labels, series, and what there is. Whatever a column says of itself (__profile_type__ ...) is in
 * the profiles' totals, all else in the list of series. */
#include "base/array.h"
#include "base/intern.h"
#include "collector/querier.h"

#define ROWS_MAX ((size_t)1 << 18)

/* Distinct texts of an answer. */
struct texts {
	struct querier *q;
	struct intern known;
	struct buf scratch;
	struct str name; /* of the label whose values are asked for */
	struct type_row {
		uint32_t period; /* the text of its period: of the newest profile that has one */
		uint64_t newest_ns;
	} * types; /* by id in known */
	size_t types_count, types_cap;
	struct intern periods;
};

static void texts_init(struct texts *t, struct querier *q)
{
	*t = (struct texts){ .q = q, .scratch = BUF_INIT(KIB(256)) };
	intern_init(&t->known, QUERIER_TEXT_MAX);
	intern_init(&t->periods, QUERIER_TEXT_MAX);
}

static void texts_release(struct texts *t)
{
	intern_release(&t->known);
	intern_release(&t->periods);
	buf_release(&t->scratch);
	free(t->types);
}

static bool with_texts(struct querier *q, bool (*run)(struct texts *t))
{
	struct texts t;
	bool ok;

	texts_init(&t, q);
	ok = querier_select(q, &q->rq) && run(&t);
	texts_release(&t);
	return ok;
}

static int add_text(struct texts *t, struct str text, uint32_t *id)
{
	if (intern_count(&t->known) > ROWS_MAX)
		return -E2BIG;
	return intern_add(&t->known, text, id);
}

static int text_order(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* All texts in order, each as field @number. */
static bool write_texts(struct texts *t, uint32_t number)
{
	size_t count = intern_count(&t->known) - 1;
	struct str *sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted) {
		answer_error(t->q->call->rs, 503, "out of memory");
		return false;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = intern_get(&t->known, (uint32_t)i + 1);
	qsort(sorted, count, sizeof(*sorted), text_order);
	for (size_t i = 0; i < count; i++)
		proto_add_text(&t->q->out, number, sorted[i]);
	free(sorted);
	return true;
}

static bool read_series(struct texts *t, store_series_fn *visit)
{
	const struct collector_config *config = &t->q->call->collector->config;
	struct selection *s = &t->q->selection;
	int r = s->is_nothing ? 0 : config->store->series(config->state, &s->sel, visit, t);

	return !selection_failed(t->q->call, s, r, "failed to list series");
}

static bool read_totals(struct texts *t, store_point_fn *visit)
{
	const struct collector_config *config = &t->q->call->collector->config;
	struct selection *s = &t->q->selection;
	int r = s->is_nothing ? 0 : config->store->totals(config->state, &s->sel, visit, t);

	return !selection_failed(t->q->call, s, r, "failed to read totals");
}

/* Whether one of the selectors means this column of this series. */
static bool column_fits(struct texts *t, const struct store_series *series, const struct query_column *column)
{
	struct selection *s = &t->q->selection;

	for (size_t i = 0; i < s->count; i++)
		if (matchers_fit(&s->sets[i], series) && matchers_fit_column(&s->sets[i], column))
			return true;
	return !s->count;
}

static bool says_columns(const struct texts *t)
{
	bool says = false;

	for (size_t i = 0; i < t->q->selection.count; i++)
		says |= matchers_have_columns(&t->q->selection.sets[i]);
	return says;
}

/* A column without a period is one of itself: readers want five parts. */
static struct query_column column_of(const struct store_point *p, size_t at)
{
	bool has_period = p->period.key.len;

	return (struct query_column){ query_type_metric(p->series->type), p->columns[at].key, p->columns[at].value,
				      has_period ? p->period.key : p->columns[at].key,
				      has_period ? p->period.value : p->columns[at].value };
}

/* A name with a colon cannot be told from two; very long ones are no names. */
static bool is_offered(const struct query_column *c)
{
	const struct str parts[] = { c->metric, c->sample, c->unit, c->period_type, c->period_unit };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (str_find(parts[i], ':') >= 0 || parts[i].len > STORE_NAME_MAX)
			return false;
	return c->metric.len && c->sample.len;
}

typedef int column_fn(struct texts *t, const struct store_point *p, const struct query_column *column);

static int each_column(struct texts *t, const struct store_point *p, column_fn *visit)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->value_count; i++) {
		struct query_column column = column_of(p, i);

		if (is_offered(&column) && column_fits(t, p->series, &column))
			r = visit(t, p, &column);
	}
	return r;
}

/* Types */

static int add_type(struct texts *t, const struct store_point *p, const struct query_column *column)
{
	struct query_column only = { column->metric, column->sample, column->unit, STR(""), STR("") };
	struct type_row *row;
	uint32_t id;
	int r;

	buf_clear(&t->scratch);
	query_column_text(&only, &t->scratch);
	r = t->scratch.error == -E2BIG ? 0 : t->scratch.error; /* a name of 256 KiB is not offered */
	if (t->scratch.error)
		return r;
	r = add_text(t, buf_str(&t->scratch), &id);
	while (r == 0 && t->types_count <= id) {
		r = array_grow(&t->types, &t->types_cap, t->types_count, ROWS_MAX + 2);
		if (r == 0)
			t->types[t->types_count++] = (struct type_row){ 0 };
	}
	if (r < 0)
		return r;
	row = &t->types[id];
	if (row->period && (p->created_ns < row->newest_ns || !p->period.key.len))
		return 0;
	buf_clear(&t->scratch);
	buf_adds(&t->scratch, column->period_type);
	buf_addc(&t->scratch, ':');
	buf_adds(&t->scratch, column->period_unit);
	row->newest_ns = p->period.key.len ? p->created_ns : 0;
	return t->scratch.error ? t->scratch.error : intern_add(&t->periods, buf_str(&t->scratch), &row->period);
}

static int note_types(void *ctx, const struct store_point *p)
{
	return each_column(ctx, p, add_type);
}

enum {
	TYPES_TYPE = 1,
	TYPE_ID = 1,
	TYPE_NAME = 2,
	TYPE_SAMPLE = 4,
	TYPE_UNIT = 5,
	TYPE_PERIOD = 6,
	TYPE_PERIOD_UNIT = 7
};

static void write_type(struct texts *t, uint32_t id)
{
	scoped(buf_release) struct buf text = BUF_INIT(QUERIER_TEXT_MAX), message = BUF_INIT(QUERIER_TEXT_MAX);
	struct query_column column;

	buf_adds(&text, intern_get(&t->known, id)); /* ends with the two colons of an empty period */
	text.len -= text.len ? 1 : 0;
	buf_adds(&text, intern_get(&t->periods, t->types[id].period));
	if (query_column_parse(buf_str(&text), &column) < 0)
		return;
	proto_add_text(&message, TYPE_ID, buf_str(&text));
	proto_add_text(&message, TYPE_NAME, column.metric);
	proto_add_text(&message, TYPE_SAMPLE, column.sample);
	proto_add_text(&message, TYPE_UNIT, column.unit);
	proto_add_text(&message, TYPE_PERIOD, column.period_type);
	proto_add_text(&message, TYPE_PERIOD_UNIT, column.period_unit);
	wire_add_bytes(&t->q->out, TYPES_TYPE, buf_str(&message));
	if (message.error)
		t->q->out.error = message.error;
}

struct named {
	struct str name;
	uint32_t id;
};

static int named_order(const void *a, const void *b)
{
	return str_cmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static bool types(struct texts *t)
{
	struct named *sorted;

	if (!read_totals(t, note_types))
		return false;
	sorted = calloc(t->types_count + 1, sizeof(*sorted));
	if (!sorted) {
		answer_error(t->q->call->rs, 503, "out of memory");
		return false;
	}
	for (uint32_t i = 1; i < t->types_count; i++)
		sorted[i - 1] = (struct named){ intern_get(&t->known, i), i };
	if (t->types_count)
		qsort(sorted, t->types_count - 1, sizeof(*sorted), named_order);
	for (size_t i = 0; i + 1 < t->types_count; i++)
		write_type(t, sorted[i].id);
	free(sorted);
	return true;
}

bool querier_types(struct querier *q)
{
	return with_texts(q, types);
}

/* Names and values of labels */

static const char *const own_names[] = { "__name__", "__period_type__", "__period_unit__", "__profile_type__",
					 "__type__", "__unit__",        "service_name" };

static int add_names(struct texts *t, const struct store_series *series)
{
	uint32_t id;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_names); i++)
		r = add_text(t, str_of(own_names[i]), &id);
	for (size_t i = 0; r == 0 && i < series->label_count; i++) {
		buf_clear(&t->scratch);
		query_label_shown(series->labels[i].key, &t->scratch);
		r = t->scratch.error ? t->scratch.error : add_text(t, buf_str(&t->scratch), &id);
	}
	return r;
}

static int note_names(void *ctx, const struct store_series *series)
{
	return add_names(ctx, series);
}

static int column_names(struct texts *t, const struct store_point *p, const struct query_column *column)
{
	(void)column;
	return add_names(t, p->series);
}

static int note_column_names(void *ctx, const struct store_point *p)
{
	return each_column(ctx, p, column_names);
}

static bool names(struct texts *t)
{
	bool ok = says_columns(t) ? read_totals(t, note_column_names) : read_series(t, note_names);

	return ok && write_texts(t, 1);
}

bool querier_names(struct querier *q)
{
	return with_texts(q, names);
}

/* What a column says of itself under @name. */
static struct str column_label(const struct query_column *c, struct str name, struct buf *scratch)
{
	if (str_eq(name, STR("__type__")))
		return c->sample;
	if (str_eq(name, STR("__unit__")))
		return c->unit;
	if (str_eq(name, STR("__period_type__")))
		return c->period_type;
	if (str_eq(name, STR("__period_unit__")))
		return c->period_unit;
	buf_clear(scratch);
	query_column_text(c, scratch);
	return buf_str(scratch);
}

static int add_value(struct texts *t, struct str value)
{
	uint32_t id;

	return value.len ? add_text(t, value, &id) : 0;
}

static int note_value(void *ctx, const struct store_series *series)
{
	struct texts *t = ctx;

	return add_value(t, query_series_label(series, t->name));
}

static int column_value(struct texts *t, const struct store_point *p, const struct query_column *column)
{
	return add_value(t, matcher_of_column(t->name) ? column_label(column, t->name, &t->scratch)
						       : query_series_label(p->series, t->name));
}

static int note_column_value(void *ctx, const struct store_point *p)
{
	return each_column(ctx, p, column_value);
}

static bool values(struct texts *t)
{
	bool ok;

	t->name = t->q->rq.name;
	if (!t->name.len)
		return querier_bad(t->q->call, "the label's name is missing");
	ok = matcher_of_column(t->name) || says_columns(t) ? read_totals(t, note_column_value)
							   : read_series(t, note_value);
	return ok && write_texts(t, 1);
}

bool querier_values(struct querier *q)
{
	return with_texts(q, values);
}

/* Series: distinct sets of labels, each as the protobuf message that it becomes. */

enum { SET_LABELS = 1, PAIR_NAME = 1, PAIR_VALUE = 2, SERIES_SETS = 2 };

static int add_pair(struct buf *out, struct str name, struct str value)
{
	scoped(buf_release) struct buf pair = BUF_INIT(KIB(64));

	if (!value.len)
		return 0;
	proto_add_text(&pair, PAIR_NAME, name);
	proto_add_text(&pair, PAIR_VALUE, value);
	wire_add_bytes(out, SET_LABELS, buf_str(&pair));
	return pair.error;
}

static int add_label(struct texts *t, struct buf *set, const struct store_series *series,
		     const struct query_column *column, struct str name)
{
	if (!matcher_of_column(name))
		return add_pair(set, name, query_series_label(series, name));
	return column ? add_pair(set, name, column_label(column, name, &t->scratch)) : 0;
}

static int add_all_labels(struct texts *t, struct buf *set, const struct store_series *series,
			  const struct query_column *column)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_names); i++)
		r = add_label(t, set, series, column, str_of(own_names[i]));
	for (size_t i = 0; r == 0 && i < series->label_count; i++) {
		buf_clear(&t->scratch);
		query_label_shown(series->labels[i].key, &t->scratch);
		r = t->scratch.error ? t->scratch.error : add_pair(set, buf_str(&t->scratch), series->labels[i].value);
	}
	return r;
}

static int add_set(struct texts *t, const struct store_series *series, const struct query_column *column)
{
	scoped(buf_release) struct buf set = BUF_INIT(KIB(512));
	const struct querier_texts *wanted = &t->q->rq.names;
	uint32_t id;
	int r = wanted->count ? 0 : add_all_labels(t, &set, series, column);

	for (size_t i = 0; r == 0 && i < wanted->count; i++)
		r = add_label(t, &set, series, column, wanted->items[i]);
	r = r ? r : set.error;
	return r || !set.len ? r : add_text(t, buf_str(&set), &id);
}

static int note_set(void *ctx, const struct store_series *series)
{
	return add_set(ctx, series, NULL);
}

static int column_set(struct texts *t, const struct store_point *p, const struct query_column *column)
{
	return add_set(t, p->series, column);
}

static int note_column_set(void *ctx, const struct store_point *p)
{
	return each_column(ctx, p, column_set);
}

static bool series(struct texts *t)
{
	bool columns = !t->q->rq.names.count || says_columns(t);
	size_t count;

	for (size_t i = 0; i < t->q->rq.names.count; i++)
		columns |= matcher_of_column(t->q->rq.names.items[i]);
	if (!(columns ? read_totals(t, note_column_set) : read_series(t, note_set)))
		return false;
	count = intern_count(&t->known);
	for (uint32_t i = 1; i < count; i++)
		wire_add_bytes(&t->q->out, SERIES_SETS, intern_get(&t->known, i));
	return true;
}

bool querier_series(struct querier *q)
{
	return with_texts(q, series);
}

bool querier_count_series(struct querier *q, uint64_t *out)
{
	struct texts t;
	bool ok;

	texts_init(&t, q);
	ok = read_totals(&t, note_column_set);
	*out = ok ? intern_count(&t.known) - 1 : 0;
	texts_release(&t);
	return ok;
}
