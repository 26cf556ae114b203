/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, single profiles, series. Each partition is read through a connection of its own; one that turns out to be
 * damaged is taken out of use, and the rest is served. */
#include "base/array.h"
#include "codec/window_codec.h"
#include "store/sqlite_int.h"

#define SERIES_MAX ((size_t)1 << 24)
#define PLAIN_MAX GIB(1)

void series_list_release(struct series_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].bytes);
	free(list->items);
	*list = (struct series_list){ 0 };
}

static int series_of(sqlite3_stmt *stmt, struct series_row *out)
{
	struct str parts[3] = { db_column(stmt, 1), db_column(stmt, 2), db_column(stmt, 3) };
	size_t at = 0;
	int r;

	*out = (struct series_row){ .id = sqlite3_column_int64(stmt, 0) };
	out->bytes = malloc(parts[0].len + parts[1].len + parts[2].len + 1);
	if (!out->bytes)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i].len)
			memcpy(out->bytes + at, parts[i].ptr, parts[i].len);
		parts[i].ptr = out->bytes + at;
		at += parts[i].len;
	}
	out->series.service = parts[0];
	out->series.type = parts[1];
	r = store_labels_unpack(parts[2], out->labels, &out->series.label_count);
	if (r < 0)
		free(out->bytes);
	return r == -EBADMSG ? -EUCLEAN : r;
}

/* The labels of a row lie in the row itself: pointers are set once the list no longer moves. */
static void settle(struct series_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->items[i].series.labels = list->items[i].labels;
}

int read_series(sqlite3 *db, const struct store_selector *sel, struct series_list *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(
		db,
		"SELECT series.id, service.name, type, labels FROM series JOIN service ON service.id = service"
		" WHERE ?1 IS NULL OR service.name = ?1 ORDER BY series.id",
		&stmt);

	if (r < 0)
		return r;
	db_bind_blob(stmt, 1, sel->service);
	while ((r = db_step(stmt)) == 1) {
		struct series_row *row;

		r = array_grow(&out->items, &out->cap, out->count, SERIES_MAX);
		if (r < 0)
			return r;
		row = &out->items[out->count];
		r = series_of(stmt, row);
		if (r < 0)
			return r;
		row->series.labels = row->labels;
		if (store_selects(sel, &row->series))
			out->count++;
		else
			free(row->bytes);
	}
	settle(out);
	return r;
}

void bind_series_range(sqlite3_stmt *stmt, int64_t series, const struct store_selector *sel)
{
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)MIN(sel->from_ns, (uint64_t)INT64_MAX));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)MIN(sel->to_ns, (uint64_t)INT64_MAX));
}

int partition_each(struct sqlite_state *s, const struct store_selector *sel, partition_fn *visit, void *ctx)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int r = state_partitions(s, false, (int64_t)(sel->from_ns / STORE_DAY_NS), (int64_t)(sel->to_ns / STORE_DAY_NS),
				 &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		struct reader *reader = NULL;

		r = partition_reader(list.items[i], &reader);
		if (r < 0) {
			r = state_unreadable(s, list.items[i], r);
			continue;
		}
		r = visit(list.items[i], reader, sel, ctx);
		partition_reader_done(list.items[i], reader);
		if (db_is_damage(r)) {
			state_damaged(s, list.items[i]);
			r = 0;
		}
		if (r == 0 && store_stopped(sel))
			r = -ECANCELED;
	}
	return r;
}

/* Lists: rows of all partitions are gathered without their content, sorted, cut, visited. */

struct listed {
	uint64_t created_ns, uploaded_ns;
	struct store_id id;
	size_t size;
	uint32_t series; /* in the listing's */
};

struct listing {
	struct listed *items;
	size_t count, cap;
	struct series_list series; /* of all partitions */
};

static void listing_release(struct listing *l)
{
	free(l->items);
	series_list_release(&l->series);
}

static int add_listed(struct listing *l, sqlite3_stmt *stmt, size_t series)
{
	struct str uid = db_column(stmt, 0);
	struct listed *row;
	int r = array_grow(&l->items, &l->cap, l->count, UINT32_MAX);

	if (r < 0)
		return r;
	if (uid.len != STORE_ID_SIZE)
		return -EUCLEAN;
	row = &l->items[l->count++];
	memcpy(row->id.bytes, uid.ptr, STORE_ID_SIZE);
	row->created_ns = (uint64_t)sqlite3_column_int64(stmt, 1);
	row->uploaded_ns = (uint64_t)sqlite3_column_int64(stmt, 2);
	row->size = (size_t)sqlite3_column_int64(stmt, 3);
	row->series = (uint32_t)series;
	return 0;
}

static int list_series(sqlite3 *db, const struct store_selector *sel, struct listing *l, size_t at)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db,
			   "SELECT uid, t, uploaded, coalesce(length(header), 0) + coalesce(length(data), 0) +"
			   " coalesce(length(facts), 0) FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3"
			   " ORDER BY t DESC, uid DESC LIMIT ?4",
			   &stmt);

	if (r < 0)
		return r;
	bind_series_range(stmt, l->series.items[at].id, sel);
	(void)sqlite3_bind_int64(stmt, 4, sel->limit ? (int64_t)sel->limit : -1);
	while ((r = db_step(stmt)) == 1) {
		r = add_listed(l, stmt, at);
		if (r < 0)
			return r;
	}
	return r;
}

static int list_partition(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx)
{
	struct listing *l = ctx;
	size_t before = l->series.count;
	int r = read_series(reader->db, sel, &l->series);

	(void)p;
	for (size_t i = before; r == 0 && i < l->series.count; i++)
		r = list_series(reader->db, sel, l, i);
	return r;
}

static int listed_order(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->created_ns != y->created_ns)
		return x->created_ns < y->created_ns ? -1 : 1;
	return memcmp(x->id.bytes, y->id.bytes, STORE_ID_SIZE);
}

int sqlite_list(struct store_state *state, const struct store_selector *sel, store_profile_fn *visit, void *ctx)
{
	scoped(listing_release) struct listing l = { 0 };
	int r = partition_each((struct sqlite_state *)state, sel, list_partition, &l);
	size_t first;

	if (l.count)
		qsort(l.items, l.count, sizeof(*l.items), listed_order);
	first = sel->limit && l.count > sel->limit ? l.count - sel->limit : 0;
	for (size_t i = first; r == 0 && i < l.count; i++) {
		const struct listed *row = &l.items[i];
		const struct store_series *series = &l.series.items[row->series].series;
		struct store_profile profile = { .id = row->id,
						 .service = series->service,
						 .type = series->type,
						 .labels = series->labels,
						 .label_count = series->label_count,
						 .created_ns = row->created_ns,
						 .uploaded_ns = row->uploaded_ns,
						 .size = row->size };

		r = visit(ctx, &profile);
	}
	return r;
}

/* One profile */

struct found {
	enum profile_form form;
	struct buf service, header, data, facts;
};

static void found_release(struct found *f)
{
	buf_release(&f->service);
	buf_release(&f->header);
	buf_release(&f->data);
	buf_release(&f->facts);
}

/* Return: 1, 0 when it is not here, -errno. */
static int find_profile(sqlite3 *db, const struct store_id *id, struct found *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(
		db,
		"SELECT form, service.name, header, data, facts FROM profile JOIN series ON series.id = series"
		" JOIN service ON service.id = service WHERE uid = ?1",
		&stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_blob(stmt, 1, id->bytes, STORE_ID_SIZE, SQLITE_STATIC);
	r = db_step(stmt);
	if (r != 1)
		return r;
	out->form = (enum profile_form)sqlite3_column_int(stmt, 0);
	buf_adds(&out->service, db_column(stmt, 1));
	buf_adds(&out->header, db_column(stmt, 2));
	r = pack_expand(db_column(stmt, 3), &out->data);
	if (r == 0 && sqlite3_column_type(stmt, 4) != SQLITE_NULL)
		r = pack_expand(db_column(stmt, 4), &out->facts);
	r = r ? r : out->header.error;
	r = r ? r : out->service.error;
	return r ? r : 1;
}

static int unpack_found(const struct dictionary *d, const struct found *f, struct window *out)
{
	scoped(header_release) struct header header = { 0 };
	scoped(columns_release) struct columns columns = { 0 };
	int r = header_decode(buf_str(&f->header), intern_count(&d->m.strings), d->m.mappings_count, &header);

	r = r ? r : columns_decode(buf_str(&f->data), d->keys_count, header.value_type_count, &columns);
	return r ? r : unpack_window(d, &header, &columns, buf_str(&f->facts), out);
}

static int read_found(struct partition *p, struct found *f, struct store_document *out)
{
	struct service *service = NULL;
	int r;

	if (f->form == FORM_RAW) {
		out->is_raw = true;
		out->raw = f->data;
		f->data = (struct buf)BUF_INIT(PLAIN_MAX); /* moved out */
		return 0;
	}
	if (f->form == FORM_WINDOW)
		return codec_window.decode(buf_str(&f->data), &out->window, NULL);
	if (f->form != FORM_PACKED)
		return -EBADMSG;
	r = service_get(p, buf_str(&f->service), &service);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&service->lock);
	r = unpack_found(&service->dictionary, f, &out->window);
	(void)pthread_mutex_unlock(&service->lock);
	service_put(p, service);
	return r;
}

static int read_from(struct partition *p, const struct store_id *id, struct store_document *out)
{
	scoped(found_release) struct found found = { .service = BUF_INIT(MIB(1)),
						     .header = BUF_INIT(PLAIN_MAX),
						     .data = BUF_INIT(PLAIN_MAX),
						     .facts = BUF_INIT(PLAIN_MAX) };
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : find_profile(reader->db, id, &found);
	partition_reader_done(p, reader);
	if (r != 1)
		return r;
	r = read_found(p, &found, out);
	return r ? r : 1;
}

int sqlite_read(struct store_state *state, const struct store_id *id, struct store_document *out)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(partition_list_release) struct partition_list list = { 0 };
	struct store_document document = { 0 };
	uint64_t seconds = (uint64_t)id->bytes[0] << 24 | (uint64_t)id->bytes[1] << 16 | (uint64_t)id->bytes[2] << 8 |
			   id->bytes[3];
	int64_t day = (int64_t)(seconds / 86400);
	int r = state_partitions(s, false, day, day, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = read_from(list.items[i], id, &document);
		if (db_is_damage(r)) {
			state_damaged(s, list.items[i]);
			r = 0;
		}
	}
	if (r == 1)
		*out = document;
	return r == 1 ? 0 : r == 0 ? -ENOENT : r;
}

/* Series */

static int series_order(const void *a, const void *b)
{
	const struct series_row *x = a, *y = b;

	return store_series_order(&x->series, &y->series);
}

/* Adds those that no partition before had: days mostly have the same, and a row is a KiB. @ctx is in order. */
static int series_partition(struct partition *p, struct reader *reader, const struct store_selector *sel, void *ctx)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	scoped(series_list_release) struct series_list list = { 0 };
	struct series_list *all = ctx;
	size_t known = all->count;
	int r = read_series(reader->db, sel, &list);

	(void)p;
	r = r ? r
	      : db_prepare(reader->db, "SELECT 1 FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3 LIMIT 1",
			   &stmt);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		if (known && bsearch(&list.items[i], all->items, known, sizeof(*all->items), series_order))
			continue;
		bind_series_range(stmt, list.items[i].id, sel);
		r = db_step(stmt);
		(void)sqlite3_reset(stmt);
		if (r != 1)
			continue;
		r = array_grow(&all->items, &all->cap, all->count, SERIES_MAX);
		if (r == 0) {
			all->items[all->count++] = list.items[i];
			list.items[i].bytes = NULL; /* moved out */
		}
	}
	if (all->count > known)
		qsort(all->items, all->count, sizeof(*all->items), series_order);
	settle(all);
	return r;
}

int sqlite_series(struct store_state *state, const struct store_selector *sel, store_series_fn *visit, void *ctx)
{
	scoped(series_list_release) struct series_list all = { 0 };
	int r = partition_each((struct sqlite_state *)state, sel, series_partition, &all);

	for (size_t i = 0; r == 0 && i < all.count; i++)
		r = visit(ctx, &all.items[i].series);
	return r;
}

/* Ready: the dictionaries that the next puts need are there */

#define WARM_SLACK_NS (UINT64_C(5) * 60 * NSEC_PER_SEC) /* rows are in the order of commits, not quite of uploads */

/* The first row of those uploaded since @from_ns, looking from the end: a day may have a million. */
static int first_since(sqlite3 *db, uint64_t from_ns, int64_t *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int64_t from = from_ns > WARM_SLACK_NS ? (int64_t)(from_ns - WARM_SLACK_NS) : 0;
	int r = db_prepare(db, "SELECT id, uploaded FROM profile ORDER BY id DESC", &stmt);

	*out = INT64_MAX;
	while (r == 0 && (r = db_step(stmt)) == 1 && sqlite3_column_int64(stmt, 1) >= from) {
		*out = sqlite3_column_int64(stmt, 0);
		r = 0;
	}
	return MIN(r, 0);
}

static int warm_partition(struct partition *p, uint64_t from_ns)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct reader *reader = NULL;
	int64_t first = 0;
	int r = partition_reader(p, &reader);

	r = r ? r : first_since(reader->db, from_ns, &first);
	r = r ? r
	      : db_prepare(reader->db,
			   "SELECT DISTINCT service.name FROM profile JOIN series ON series.id = series"
			   " JOIN service ON service.id = service WHERE profile.id >= ?1",
			   &stmt);
	if (r == 0)
		(void)sqlite3_bind_int64(stmt, 1, first);
	while (r == 0 && (r = db_step(stmt)) == 1) {
		struct service *service;

		r = service_get(p, db_column(stmt, 0), &service);
		if (r < 0)
			break;
		(void)pthread_mutex_lock(&service->lock);
		r = model_index_stacks(&service->dictionary.m);
		(void)pthread_mutex_unlock(&service->lock);
		service_put(p, service);
	}
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	return r;
}

int sqlite_warm(struct store_state *state)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(partition_list_release) struct partition_list list = { 0 };
	uint64_t now = state_now(s), from_ns = now > STORE_HOUR_NS ? now - STORE_HOUR_NS : 0;
	int r = state_partitions(s, false, INT64_MIN, INT64_MAX, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		if (!list.items[i]->closed && list.items[i]->newest_upload >= from_ns)
			r = state_unreadable(s, list.items[i], warm_partition(list.items[i], from_ns));
		if (db_is_damage(r)) {
			state_damaged(s, list.items[i]);
			r = 0;
		}
	}
	return r;
}
