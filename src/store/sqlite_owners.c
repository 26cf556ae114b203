/* SPDX-License-Identifier: Apache-2.0 */
/* Who of a profile cost what, and when: packed columns beside the dictionary's keys, which name process and thread.
 * Whole hours come from their sums where that will do. */
#include "base/array.h"
#include "store/owners.h"
#include "store/sqlite_int.h"

#define PLAIN_MAX GIB(1)
#define STOP_EVERY 64

struct owners {
	bool by_hour;
	store_owners_fn *visit; /* or */
	store_moments_fn *moments;
	uint64_t since_ns;
	void *ctx;
	const struct store_selector *sel;
	/* Of the service that is read */
	struct service *service;
	struct owner_table table;
	uint32_t *owner_of; /* by key */
	size_t keys, mappings, strings;
	/* Of the row */
	struct header header;
	struct columns columns;
	struct point_names names;
	struct buf plain;
	uint32_t *rows; /* by row: its owner */
	size_t rows_cap;
	uint64_t count;
};

static void owners_release(struct owners *o)
{
	owner_table_release(&o->table);
	free(o->owner_of);
	header_release(&o->header);
	columns_release(&o->columns);
	point_names_release(&o->names);
	buf_release(&o->plain);
	free(o->rows);
}

/* The service's lock is held. */
static int take_keys(struct owners *o, const struct dictionary *d)
{
	int r = 0;

	o->keys = d->keys_count;
	o->mappings = d->m.mappings_count;
	o->strings = intern_count(&d->m.strings);
	o->owner_of = calloc(o->keys + 1, sizeof(*o->owner_of));
	if (!o->owner_of)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < o->keys; i++)
		r = owner_table_add(&o->table, &d->m, d->keys[i].process, d->keys[i].thread, &o->owner_of[i]);
	return r;
}

static int take_service(struct owners *o, struct service *service)
{
	int r;

	owner_table_release(&o->table);
	free(o->owner_of);
	o->owner_of = NULL;
	o->service = service;
	buf_clear(&o->names.texts); /* rows of another dictionary mean something else */
	r = owner_table_init(&o->table);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&service->lock);
	r = take_keys(o, &service->dictionary);
	(void)pthread_mutex_unlock(&service->lock);
	return r ? r : owner_table_settle(&o->table);
}

static int take_names(struct owners *o)
{
	int r;

	(void)pthread_mutex_lock(&o->service->lock);
	r = point_names_take(&o->names, &(struct header_texts){ .dictionary = &o->service->dictionary }, &o->header);
	(void)pthread_mutex_unlock(&o->service->lock);
	return r;
}

static int read_row(struct owners *o, struct str data)
{
	const struct columns *c = &o->columns;
	int r;

	buf_clear(&o->plain);
	r = pack_expand(data, &o->plain);
	r = r ? r : columns_decode(buf_str(&o->plain), o->keys, o->header.value_type_count, &o->columns);
	r = r ? r : array_reserve(&o->rows, &o->rows_cap, c->count + 1);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->count; i++)
		o->rows[i] = o->owner_of[c->keys[i]];
	return o->moments ? 0 : owner_table_point(&o->table, o->rows, c->count, c->width, c->values);
}

static int visit_point(struct owners *o, const struct store_point *point)
{
	const struct columns *c = &o->columns;

	if (!o->moments)
		return o->visit(o->ctx, point, o->table.shown, o->table.shown_count);
	return o->moments(o->ctx, point,
			  &(struct store_moments){ .start_ns = o->header.start_ns,
						   .count = c->count,
						   .offsets = c->has_times ? c->times : NULL,
						   .values = c->values,
						   .owners = o->table.items,
						   .owner_of = o->rows });
}

/* @created_ns: of the point. A damaged row has none. */
static int visit_row(struct owners *o, const struct store_series *series, uint64_t created_ns, struct str header,
		     struct str data)
{
	struct store_point point;
	int r = header_decode(header, o->strings, o->mappings, &o->header);

	r = r ? r : take_names(o);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	point = point_of(&o->names, &o->header, series, created_ns);
	if (store_ended_before(&point, o->since_ns))
		return 0;
	r = read_row(o, data);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	r = visit_point(o, &point);
	if (r == 0 && ++o->count % STOP_EVERY == 0 && store_stopped(o->sel))
		r = -ECANCELED;
	return r;
}

static int visit_profiles(struct owners *o, sqlite3 *db, const struct series_row *series, uint64_t from, uint64_t to)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r;

	if (from > to)
		return 0;
	r = db_prepare(db,
		       "SELECT t, header, data FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3 AND form = 0"
		       " ORDER BY t",
		       &stmt);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series->id);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)MIN(from, (uint64_t)INT64_MAX));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)MIN(to, (uint64_t)INT64_MAX));
	while (r == 0 && (r = db_step(stmt)) == 1)
		r = visit_row(o, &series->series, (uint64_t)sqlite3_column_int64(stmt, 0), db_column(stmt, 1),
			      db_column(stmt, 2));
	return r;
}

/* Whole hours of the range that have a sum, and the profiles in between. */
static int visit_hours(struct owners *o, sqlite3 *db, const struct series_row *series)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	uint64_t at = o->sel->from_ns, to = MIN(o->sel->to_ns, (uint64_t)INT64_MAX);
	int r = db_prepare(db,
			   "SELECT t, header, data FROM rollup WHERE series = ?1 AND span = 3600 AND t >= ?2"
			   " AND t <= ?3 ORDER BY t",
			   &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series->id);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)(at / NSEC_PER_SEC + (at % NSEC_PER_SEC != 0)));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)((to + 1) / NSEC_PER_SEC) - 3600);
	while (r == 0 && (r = db_step(stmt)) == 1) {
		uint64_t hour = (uint64_t)sqlite3_column_int64(stmt, 0) * NSEC_PER_SEC;

		if (hour < at)
			return -EUCLEAN;
		r = hour ? visit_profiles(o, db, series, at, hour - 1) : 0;
		r = r ? r : visit_row(o, &series->series, hour, db_column(stmt, 1), db_column(stmt, 2));
		at = hour + STORE_HOUR_NS;
	}
	return r ? r : visit_profiles(o, db, series, at, to);
}

/* All series of one service: those from @first on that have its name. */
static int visit_service(struct owners *o, struct partition *p, sqlite3 *db, struct series_list *list, size_t first)
{
	struct str name = list->items[first].series.service;
	struct service *service = NULL;
	int r = service_get(p, name, &service);

	if (r < 0)
		return r;
	r = take_service(o, service);
	for (size_t i = first; r == 0 && i < list->count; i++) {
		struct series_row *series = &list->items[i];

		if (!str_eq(series->series.service, name))
			continue;
		r = o->by_hour ? visit_hours(o, db, series)
			       : visit_profiles(o, db, series, o->sel->from_ns, o->sel->to_ns);
		series->id = -1; /* done */
	}
	service_put(p, service);
	return r;
}

static int visit_series(struct owners *o, struct partition *p, sqlite3 *db)
{
	scoped(series_list_release) struct series_list list = { 0 };
	int r = read_series(db, o->sel, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++)
		if (list.items[i].id >= 0)
			r = visit_service(o, p, db, &list, i);
	return r;
}

/* In one snapshot: whatever is seen then was in the dictionary before. */
static int visit_partition(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx)
{
	int r = db_exec(reader->db, "BEGIN");

	(void)sel;
	r = r ? r : visit_series(ctx, p, reader->db);
	if (!sqlite3_get_autocommit(reader->db))
		ignore(db_exec(reader->db, "COMMIT")); /* nothing was written */
	return r;
}

int sqlite_owners(struct store_state *state, const struct store_selector *sel, bool by_hour, store_owners_fn *visit,
		  void *ctx)
{
	scoped(owners_release) struct owners o = { .by_hour = by_hour,
						   .visit = visit,
						   .ctx = ctx,
						   .sel = sel,
						   .names.texts = BUF_INIT(DICTIONARY_BYTES_MAX),
						   .plain = BUF_INIT(PLAIN_MAX) };

	return partition_each((struct sqlite_state *)state, sel, visit_partition, &o);
}

int sqlite_moments(struct store_state *state, const struct store_selector *sel, uint64_t since_ns,
		   store_moments_fn *visit, void *ctx)
{
	scoped(owners_release) struct owners o = { .moments = visit,
						   .since_ns = since_ns,
						   .ctx = ctx,
						   .sel = sel,
						   .names.texts = BUF_INIT(DICTIONARY_BYTES_MAX),
						   .plain = BUF_INIT(PLAIN_MAX) };

	return partition_each((struct sqlite_state *)state, sel, visit_partition, &o);
}
