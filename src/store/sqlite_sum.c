/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up profiles: packed columns into one cell per key and column. Only the result is turned into stacks. Whole
 * hours come from their sums, whole days of long ranges from the year's. */
#include "codec/window_codec.h"
#include "store/merged.h"
#include "store/sqlite_int.h"

#define PLAIN_MAX GIB(1)
#define STOP_EVERY 64

/* One service's sum */

void sum_release(struct sum *sum)
{
	header_release(&sum->header);
	header_release(&sum->scratch);
	free(sum->mapping_at);
	free(sum->values);
	free(sum->seen);
	columns_release(&sum->columns);
	buf_release(&sum->plain);
}

int sum_init(struct sum *sum, struct service *service)
{
	*sum = (struct sum){ .plain = BUF_INIT(PLAIN_MAX) };
	(void)pthread_mutex_lock(&service->lock);
	sum->keys = service->dictionary.keys_count;
	sum->mappings = service->dictionary.m.mappings_count;
	sum->strings = intern_count(&service->dictionary.m.strings);
	(void)pthread_mutex_unlock(&service->lock);
	sum->mapping_at = calloc(sum->mappings, sizeof(*sum->mapping_at));
	sum->seen = calloc(MAX(sum->keys, (size_t)1), 1);
	return sum->mapping_at && sum->seen ? 0 : -ENOMEM;
}

static void add_columns(struct sum *sum)
{
	const struct columns *c = &sum->columns;

	for (size_t column = 0; column < c->width; column++) {
		int64_t *cells = sum->values + column * sum->keys;
		const int64_t *values = c->values + column * c->count;

		for (size_t i = 0; i < c->count; i++)
			cells[c->keys[i]] = saturating_add(cells[c->keys[i]], values[i]);
	}
	for (size_t i = 0; i < c->count; i++)
		sum->seen[c->keys[i]] = 1;
}

int sum_add(struct sum *sum, struct str header, struct str data)
{
	struct header *h = &sum->scratch;
	int r = header_decode(header, sum->strings, sum->mappings, h);

	buf_clear(&sum->plain);
	r = r ? r : pack_expand(data, &sum->plain);
	r = r ? r : columns_decode(buf_str(&sum->plain), sum->keys, h->value_type_count, &sum->columns);
	if (r < 0)
		return r;
	if (!sum->values) {
		sum->values = calloc(MAX(sum->keys * h->value_type_count, (size_t)1), sizeof(*sum->values));
		if (!sum->values)
			return -ENOMEM;
	}
	r = header_add(&sum->header, h, sum->mapping_at);
	if (r == 0)
		add_columns(sum);
	return r;
}

int sum_columns(struct sum *sum, struct columns *out)
{
	size_t count = 0, at = 0, width = sum->header.value_type_count;
	int r;

	for (size_t key = 0; key < sum->keys; key++) {
		bool any = false;

		for (size_t column = 0; sum->seen[key] && column < width; column++)
			any |= sum->values[column * sum->keys + key] != 0;
		sum->seen[key] = any;
		count += any;
	}
	r = columns_room(out, count, width);
	if (r < 0)
		return r;
	for (size_t key = 0; key < sum->keys; key++) {
		if (!sum->seen[key])
			continue;
		for (size_t column = 0; column < width; column++)
			out->values[column * count + at] = sum->values[column * sum->keys + key];
		out->keys[at++] = (uint32_t)key;
	}
	return 0;
}

/* The query */

struct query {
	struct sqlite_state *state;
	const struct store_selector *sel;
	struct window *out;
	struct store_sum *info;
	bool any;
	/* With a limit: the oldest moment that counts, and who of it */
	uint64_t from_ns;
	struct store_id *at_cut;
	size_t at_cut_count;
	/* Days whose sums stand in the year's file */
	int64_t first_day;
	uint8_t *rolled;
	uint32_t *owners; /* of these days: number of the year's file that has the sum; 0: any. NULL: one file a year */
	size_t rolled_count;
};

static bool is_rolled(const struct query *q, int64_t day)
{
	return day >= q->first_day && (uint64_t)(day - q->first_day) < q->rolled_count && q->rolled[day - q->first_day];
}

/* Adds @part, also when it is the first: keys are told apart by more than merging does (order of labels, path of a file
 * with a build id). */
static int take_part(struct query *q, const struct window *part)
{
	int r = model_distinct(q->out->model);

	r = r ? r : model_merge(q->out->model, part->model);
	if (r == 0)
		window_add_times(q->out, part, !q->any);
	q->any = true;
	return r;
}

/* What take_part() comes to for the first part when merging would only copy it. */
static int move_part(struct query *q, struct window *part)
{
	struct model *empty = q->out->model;

	q->out->model = part->model;
	window_add_times(q->out, part, true);
	q->any = true;
	part->model = empty;
	return 0;
}

static int add_window(struct query *q, struct str data)
{
	scoped(window_release) struct window part = { 0 };
	struct buf plain = BUF_INIT(PLAIN_MAX);
	int r = pack_expand(data, &plain);

	r = r ? r : codec_window.decode(buf_str(&plain), &part, NULL);
	buf_release(&plain);
	r = r ? r : take_part(q, &part);
	if (r == 0)
		q->info->profiles++;
	return r;
}

static bool is_cut(const struct query *q, sqlite3_stmt *stmt)
{
	struct str uid = db_column(stmt, 4);

	if (!q->at_cut_count || (uint64_t)sqlite3_column_int64(stmt, 0) != q->from_ns)
		return false;
	for (size_t i = 0; i < q->at_cut_count; i++)
		if (uid.len == STORE_ID_SIZE && !memcmp(uid.ptr, q->at_cut[i].bytes, STORE_ID_SIZE))
			return false;
	return true;
}

/* Columns: t, header, data, form, uid. Damage to one row costs that row. */
static int add_row(struct query *q, struct sum *sum, sqlite3_stmt *stmt)
{
	enum profile_form form = (enum profile_form)sqlite3_column_int(stmt, 3);
	int r = 0;

	if (is_cut(q, stmt))
		return 0;
	if (form == FORM_RAW)
		q->info->skipped++;
	else if (form == FORM_WINDOW)
		r = add_window(q, db_column(stmt, 2));
	else
		r = sum_add(sum, db_column(stmt, 1), db_column(stmt, 2));
	if (r == -EBADMSG) {
		q->info->parts_bad++;
		r = 0;
	}
	return r;
}

static int add_rows(struct query *q, struct sum *sum, sqlite3_stmt *stmt)
{
	size_t count = 0;
	int r;

	while ((r = db_step(stmt)) == 1) {
		r = add_row(q, sum, stmt);
		if (r == 0 && ++count % STOP_EVERY == 0 && store_stopped(q->sel))
			r = -ECANCELED;
		if (r < 0)
			return r;
	}
	return r;
}

static int add_profiles(struct query *q, struct sum *sum, sqlite3 *db, int64_t series, uint64_t from, uint64_t to)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r;

	if (from > to)
		return 0;
	r = db_prepare(db, "SELECT t, header, data, form, uid FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3",
		       &stmt);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)MIN(from, (uint64_t)INT64_MAX));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)MIN(to, (uint64_t)INT64_MAX));
	return add_rows(q, sum, stmt);
}

/* Whole hours of the range that have a sum, and the profiles in between. */
static int add_hours(struct query *q, struct sum *sum, sqlite3 *db, int64_t series)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	uint64_t at = q->from_ns, to = MIN(q->sel->to_ns, (uint64_t)INT64_MAX);
	int r = db_prepare(db,
			   "SELECT t, header, data, 0, NULL FROM rollup WHERE series = ?1 AND span = 3600"
			   " AND t >= ?2 AND t <= ?3 ORDER BY t",
			   &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, (int64_t)(at / NSEC_PER_SEC + (at % NSEC_PER_SEC != 0)));
	(void)sqlite3_bind_int64(stmt, 3, (int64_t)((to + 1) / NSEC_PER_SEC) - 3600);
	while (!q->sel->limit && (r = db_step(stmt)) == 1) {
		uint64_t hour = (uint64_t)sqlite3_column_int64(stmt, 0) * NSEC_PER_SEC;

		if (hour < at)
			return -EUCLEAN;
		r = hour ? add_profiles(q, sum, db, series, at, hour - 1) : 0;
		r = r ? r : add_row(q, sum, stmt);
		if (r < 0)
			return r;
		at = hour + STORE_HOUR_NS;
	}
	return r ? r : add_profiles(q, sum, db, series, at, to);
}

/* Of several files of a year the last one that has all of a day's sum counts: an earlier one may have been out of reach
 * while it was made again. */
static bool is_owner(const struct query *q, const struct partition *year, int64_t day)
{
	uint32_t owner = q->owners && is_rolled(q, day) ? q->owners[day - q->first_day] : 0;

	return !owner || owner == year->generation;
}

static int add_days(struct query *q, struct partition *year, struct sum *sum, sqlite3 *db, int64_t series)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db,
			   "SELECT t, header, data, 0, NULL FROM rollup WHERE series = ?1 AND span = 86400"
			   " AND t BETWEEN ?2 AND ?3",
			   &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, q->first_day * 86400);
	(void)sqlite3_bind_int64(stmt, 3, (q->first_day + (int64_t)q->rolled_count - 1) * 86400);
	while ((r = db_step(stmt)) == 1) {
		int64_t day = sqlite3_column_int64(stmt, 0) / 86400;

		if (is_rolled(q, day) && is_owner(q, year, day))
			r = add_row(q, sum, stmt);
		if (r < 0)
			return r;
	}
	return r;
}

static int finish_sum(struct query *q, struct service *service, struct sum *sum)
{
	scoped(window_release) struct window part = { 0 };
	bool to_read = q->sel->to_read && !q->any, is_whole;
	int r;

	if (!sum->header.profiles)
		return 0;
	r = sum_columns(sum, &sum->columns);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&service->lock);
	if (to_read)
		r = unpack_to_read(&service->dictionary, &sum->header, &sum->columns, &part);
	else
		r = unpack_window(&service->dictionary, &sum->header, &sum->columns, str_n("", 0), &part);
	(void)pthread_mutex_unlock(&service->lock);
	if (r < 0)
		return r;
	q->info->profiles += sum->header.profiles;
	is_whole = !q->any && (to_read ? is_merged_to_read(part.model) : is_merged(part.model));
	return is_whole ? move_part(q, &part) : take_part(q, &part);
}

/* All series of one service: those from @first on that have its name. */
static int sum_service(struct query *q, struct partition *p, sqlite3 *db, struct series_list *list, size_t first)
{
	scoped(sum_release) struct sum sum = { 0 };
	struct service *service = NULL;
	struct str name = list->items[first].series.service;
	int r = service_get(p, name, &service);

	if (r < 0)
		return r;
	r = sum_init(&sum, service);
	for (size_t i = first; r == 0 && i < list->count; i++) {
		if (!str_eq(list->items[i].series.service, name))
			continue;
		r = p->is_year ? add_days(q, p, &sum, db, list->items[i].id)
			       : add_hours(q, &sum, db, list->items[i].id);
		list->items[i].id = -1; /* done */
	}
	r = r ? r : finish_sum(q, service, &sum);
	service_put(p, service);
	return r;
}

/* In one snapshot: whatever is seen then was in the dictionary before. */
static int sum_partition(struct query *q, struct partition *p, sqlite3 *db)
{
	scoped(series_list_release) struct series_list list = { 0 };
	int r = read_series(db, q->sel, &list);

	for (size_t i = 0; r == 0 && i < list.count; i++)
		if (list.items[i].id >= 0)
			r = sum_service(q, p, db, &list, i);
	return r;
}

static int read_owned(struct query *q, const struct partition *year, sqlite3 *db)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "SELECT CAST(substr(key, 8) AS INT) FROM meta WHERE key LIKE 'rolled-%'", &stmt);

	while (r == 0 && (r = db_step(stmt)) == 1) {
		int64_t day = sqlite3_column_int64(stmt, 0);

		if (day >= q->first_day && day - q->first_day < (int64_t)q->rolled_count)
			q->owners[day - q->first_day] = year->generation;
		r = 0;
	}
	return r;
}

/* @years: in the order of their numbers. Only where a year has several files. */
static int find_owners(struct query *q, const struct partition_list *years)
{
	bool several = false;
	int r = 0;

	for (size_t i = 1; i < years->count; i++)
		several |= years->items[i]->day == years->items[i - 1]->day;
	if (!several)
		return 0;
	q->owners = calloc(q->rolled_count, sizeof(*q->owners));
	if (!q->owners)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < years->count; i++) {
		struct reader *reader = NULL;

		r = partition_reader(years->items[i], &reader);
		if (r < 0) {
			r = state_unreadable(q->state, years->items[i], r);
			continue;
		}
		r = read_owned(q, years->items[i], reader->db);
		partition_reader_done(years->items[i], reader);
		if (db_is_damage(r)) {
			state_damaged(q->state, years->items[i]);
			q->info->parts_bad++;
			r = 0;
		}
	}
	return r;
}

static int sum_partitions(struct query *q, bool years)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	int r = state_partitions(q->state, years, (int64_t)(q->from_ns / STORE_DAY_NS),
				 (int64_t)(q->sel->to_ns / STORE_DAY_NS), &list);

	if (r == 0 && years)
		r = find_owners(q, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		struct partition *p = list.items[i];
		struct reader *reader = NULL;

		if (!years && is_rolled(q, p->day))
			continue;
		r = partition_reader(p, &reader);
		if (r < 0) {
			r = state_unreadable(q->state, p, r);
			q->info->parts_bad += r == 0;
			continue;
		}
		r = db_exec(reader->db, "BEGIN");
		r = r ? r : sum_partition(q, p, reader->db);
		if (!sqlite3_get_autocommit(reader->db))
			ignore(db_exec(reader->db, "COMMIT")); /* nothing was written */
		partition_reader_done(p, reader);
		if (db_is_damage(r)) {
			state_damaged(q->state, p);
			q->info->parts_bad++;
			r = 0;
		}
		if (r == 0 && store_stopped(q->sel))
			r = -ECANCELED;
	}
	return r;
}

/* Which whole days of a long range need not be looked at: those with one closed file whose sums are in the year's, and
 * those that are gone. */
static int find_rolled(struct query *q)
{
	scoped(partition_list_release) struct partition_list list = { 0 };
	uint64_t first = q->from_ns / STORE_DAY_NS + (q->from_ns % STORE_DAY_NS != 0);
	uint64_t end = MIN(q->sel->to_ns, (uint64_t)INT64_MAX - 1) / STORE_DAY_NS +
		       ((MIN(q->sel->to_ns, (uint64_t)INT64_MAX - 1) + 1) % STORE_DAY_NS == 0);
	int r;

	if (q->sel->limit || q->sel->to_ns - q->from_ns <= STORE_LONG_RANGE_NS || end <= first)
		return 0;
	q->rolled = malloc(end - first);
	if (!q->rolled)
		return -ENOMEM;
	memset(q->rolled, 1, end - first);
	q->first_day = (int64_t)first;
	q->rolled_count = end - first;
	r = state_partitions(q->state, false, (int64_t)first, (int64_t)end - 1, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		struct partition *p = list.items[i];
		int rolled = rollup_has_day(p);

		if (rolled <= 0 || (i && list.items[i - 1]->day == p->day))
			q->rolled[p->day - q->first_day] = 0;
		r = MIN(rolled, 0);
	}
	return r;
}

static int note_cut(void *ctx, const struct store_profile *profile)
{
	struct query *q = ctx;

	if (!q->at_cut_count)
		q->from_ns = profile->created_ns;
	if (profile->created_ns == q->from_ns)
		q->at_cut[q->at_cut_count++] = profile->id;
	return 0;
}

static int find_cut(struct query *q)
{
	if (!q->sel->limit)
		return 0;
	q->at_cut = calloc(MIN(q->sel->limit, (size_t)1 << 24), sizeof(*q->at_cut));
	if (!q->at_cut)
		return -ENOMEM;
	return sqlite_list((struct store_state *)q->state, q->sel, note_cut, q);
}

static void query_release(struct query *q)
{
	free(q->at_cut);
	free(q->rolled);
	free(q->owners);
}

int sqlite_sum(struct store_state *state, const struct store_selector *sel, struct window *out, struct store_sum *info)
{
	scoped(window_release) struct window result = { 0 };
	scoped(query_release) struct query q = {
		.state = (struct sqlite_state *)state, .sel = sel, .out = &result, .info = info, .from_ns = sel->from_ns
	};
	int r = window_init(&result, DICTIONARY_BYTES_MAX);

	*info = (struct store_sum){ 0 };
	if (sel->limit > (size_t)1 << 24)
		return -E2BIG;
	r = r ? r : find_cut(&q);
	r = r ? r : find_rolled(&q);
	if (r == 0 && q.rolled_count)
		r = sum_partitions(&q, true);
	r = r ? r : sum_partitions(&q, false);
	if (r < 0)
		return r;
	*out = result;
	result = (struct window){ 0 }; /* moved out */
	return 0;
}
