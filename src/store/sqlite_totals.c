/* SPDX-License-Identifier: Apache-2.0 */
/* Totals: of a profile only its header is read. */
#include "store/sqlite_int.h"

void point_names_release(struct point_names *n)
{
	header_release(&n->last);
	buf_release(&n->texts);
}

/* There is room in n->texts. */
static struct store_label name_type(struct point_names *n, const struct dictionary *d, struct model_value_type type)
{
	struct str names[2] = { model_string(&d->m, type.type), model_string(&d->m, type.unit) };

	for (size_t i = 0; i < 2; i++) {
		size_t at = n->texts.len;

		buf_adds(&n->texts, names[i]);
		names[i] = str_n(n->texts.ptr + at, names[i].len);
	}
	return (struct store_label){ names[0], names[1] };
}

static size_t type_size(const struct dictionary *d, struct model_value_type type)
{
	return model_string(&d->m, type.type).len + model_string(&d->m, type.unit).len;
}

int point_names_take(struct point_names *n, const struct dictionary *d, const struct header *h)
{
	size_t size = type_size(d, h->period_type) + 1;

	if (n->texts.len && header_same_types(h, &n->last))
		return 0;
	buf_clear(&n->texts);
	for (size_t i = 0; i < h->value_type_count; i++)
		size += type_size(d, h->value_types[i]);
	if (!buf_reserve(&n->texts, size))
		return n->texts.error;
	for (size_t i = 0; i < h->value_type_count; i++)
		n->columns[i] = name_type(n, d, h->value_types[i]);
	n->period = name_type(n, d, h->period_type);
	n->last.value_type_count = h->value_type_count;
	n->last.period_type = h->period_type;
	memcpy(n->last.value_types, h->value_types, sizeof(h->value_types));
	return n->texts.error;
}

/* As model_default_value() has it. */
static size_t default_column(const struct header *h)
{
	for (size_t i = 0; h->default_type && i < h->value_type_count; i++)
		if (h->value_types[i].type == h->default_type)
			return i;
	return h->value_type_count ? h->value_type_count - 1 : 0;
}

/* As window_duration_ns() has it. */
static uint64_t duration(const struct header *h)
{
	if (h->duration_ns > 0)
		return (uint64_t)h->duration_ns;
	return h->end_ns > h->start_ns ? h->end_ns - h->start_ns : 0;
}

struct store_point point_of(const struct point_names *n, const struct header *h, const struct store_series *series,
			    uint64_t created_ns)
{
	return (struct store_point){ .created_ns = created_ns,
				     .series = series,
				     .columns = n->columns,
				     .values = h->totals,
				     .value_count = h->value_type_count,
				     .default_column = default_column(h),
				     .period = n->period,
				     .profiles = h->profiles,
				     .duration_ns = duration(h) };
}

struct totals {
	store_point_fn *visit;
	void *ctx;
	struct header header;
	struct point_names names;
};

static void totals_release(struct totals *t)
{
	header_release(&t->header);
	point_names_release(&t->names);
}

static int visit_total(struct totals *t, struct service *service, const struct store_series *series, sqlite3_stmt *stmt)
{
	const struct dictionary *d = &service->dictionary;
	struct store_point point;
	int r;

	(void)pthread_mutex_lock(&service->lock);
	r = header_decode(db_column(stmt, 1), intern_count(&d->m.strings), d->m.mappings_count, &t->header);
	r = r ? r : point_names_take(&t->names, d, &t->header);
	(void)pthread_mutex_unlock(&service->lock);
	if (r < 0)
		return r == -EBADMSG ? 0 : r; /* a damaged row has no point */
	point = point_of(&t->names, &t->header, series, (uint64_t)sqlite3_column_int64(stmt, 0));
	return t->visit(t->ctx, &point);
}

static int total_series(struct partition *p, sqlite3 *db, const struct series_row *series,
			const struct store_selector *sel, struct totals *t)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct service *service = NULL;
	int r = db_prepare(db,
			   "SELECT t, header FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3 AND form = 0"
			   " ORDER BY t",
			   &stmt);

	r = r ? r : service_get(p, series->series.service, &service);
	if (r < 0)
		return r;
	bind_series_range(stmt, series->id, sel);
	buf_clear(&t->names.texts); /* rows of another dictionary mean something else */
	while (r == 0 && (r = db_step(stmt)) == 1)
		r = visit_total(t, service, &series->series, stmt);
	service_put(p, service);
	return r;
}

static int total_partition(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx)
{
	scoped(series_list_release) struct series_list list = { 0 };
	int r = read_series(reader->db, sel, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++)
		r = total_series(p, reader->db, &list.items[i], sel, ctx);
	return r;
}

int sqlite_totals(struct store_state *state, const struct store_selector *sel, store_point_fn *visit, void *ctx)
{
	scoped(totals_release) struct totals t = { .visit = visit,
						   .ctx = ctx,
						   .names.texts = BUF_INIT(DICTIONARY_BYTES_MAX) };

	return partition_each((struct sqlite_state *)state, sel, total_partition, &t);
}
