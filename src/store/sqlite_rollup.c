/* SPDX-License-Identifier: Apache-2.0 */
/* Sums kept: of an hour in its day's file, of a day in its year's. A profile that comes later deletes its hour's. */
#include <time.h>

#include "base/array.h"
#include "store/sqlite_int.h"

#define PLAIN_MAX GIB(1)

struct rollup_job {
	struct job job;
	struct store_series series;
	struct str labels;
	struct service *service; /* of the year's file; NULL: an hour's, whose rows are there already */
	int64_t series_id, span, t, last_id;
	uint64_t profiles;
	struct buf header, data;
};

static void rollup_release(struct rollup_job *job)
{
	buf_release(&job->header);
	buf_release(&job->data);
}

/* What was added up must still be all there is. */
static int is_current(struct partition *p, const struct rollup_job *job, bool *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(p->db, "SELECT count(*) FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3", &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, job->series_id);
	(void)sqlite3_bind_int64(stmt, 2, job->t * (int64_t)NSEC_PER_SEC);
	(void)sqlite3_bind_int64(stmt, 3, (job->t + job->span) * (int64_t)NSEC_PER_SEC - 1);
	r = db_step(stmt);
	*out = r == 1 && (uint64_t)sqlite3_column_int64(stmt, 0) == job->profiles;
	return MIN(r, 0);
}

static int run_rollup(struct partition *p, struct job *base)
{
	struct rollup_job *job = (struct rollup_job *)(void *)base;
	bool current = true;
	int64_t service;
	int r = 0;

	if (job->service) {
		r = service_write(p, job->series.service, job->service, &service);
		r = r ? r : service_series(p, service, job->series.type, job->labels, &job->series_id);
	} else {
		r = is_current(p, job, &current);
	}
	if (r == 0 && current)
		r = write_rollup(p, job->series_id, job->span, job->t, buf_str(&job->header), buf_str(&job->data));
	base->result = 0;
	return r;
}

/* Adds up what @sql finds. Return: 0; 1 when something in it cannot be added up; -errno. */
static int add_up(sqlite3 *db, struct sum *sum, int64_t series, int64_t from_ns, int64_t to_ns)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "SELECT header, data, form FROM profile WHERE series = ?1 AND t BETWEEN ?2 AND ?3",
			   &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, series);
	(void)sqlite3_bind_int64(stmt, 2, from_ns);
	(void)sqlite3_bind_int64(stmt, 3, to_ns);
	while ((r = db_step(stmt)) == 1) {
		if (sqlite3_column_int(stmt, 2) != FORM_PACKED)
			return 1;
		r = sum_add(sum, db_column(stmt, 0), db_column(stmt, 1));
		if (r == -EINVAL || r == -EBADMSG)
			return 1;
		if (r < 0)
			return r;
	}
	return r;
}

static int encode_sum(struct sum *sum, struct rollup_job *job)
{
	scoped(buf_release) struct buf plain = BUF_INIT(PLAIN_MAX);
	int r = sum_columns(sum, &sum->columns);

	if (r < 0)
		return r;
	job->profiles = sum->header.profiles;
	header_encode(&sum->header, &job->header);
	columns_encode(&sum->columns, &plain);
	r = job->header.error ? job->header.error : plain.error;
	return r ? r : pack_compress(buf_str(&plain), LIVE_LEVEL, &job->data);
}

/* Hours */

static int roll_hour(struct partition *p, sqlite3 *db, const struct series_row *series, int64_t hour)
{
	scoped(sum_release) struct sum sum = { 0 };
	scoped(rollup_release) struct rollup_job job = { .job.run = run_rollup,
							 .series_id = series->id,
							 .span = 3600,
							 .t = hour,
							 .header = BUF_INIT(PLAIN_MAX),
							 .data = BUF_INIT(PLAIN_MAX) };
	struct service *service = NULL;
	int r = service_get(p, series->series.service, &service);

	if (r < 0)
		return r;
	r = sum_init(&sum, service);
	r = r ? r
	      : add_up(db, &sum, series->id, hour * (int64_t)NSEC_PER_SEC, (hour + 3600) * (int64_t)NSEC_PER_SEC - 1);
	if (r == 0 && sum.header.profiles > 1) {
		r = encode_sum(&sum, &job);
		r = r ? r : partition_submit(p, &job.job);
	}
	service_put(p, service);
	return r == -ESTALE ? 0 : MIN(r, 0);
}

struct hour {
	int64_t series, t;
};

/* Hours with several profiles and no sum. */
static int missing_hours(sqlite3 *db, uint64_t until_ns, struct hour **out, size_t *count)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	size_t cap = 0;
	int r = db_prepare(
		db,
		"SELECT series, t / 3600000000000 * 3600 AS hour FROM profile WHERE hour < ?1"
		" GROUP BY series, hour HAVING count(*) > 1 AND NOT EXISTS"
		" (SELECT 1 FROM rollup WHERE rollup.series = profile.series AND span = 3600 AND rollup.t = hour)",
		&stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(stmt, 1, (int64_t)(until_ns / STORE_HOUR_NS * 3600));
	while ((r = db_step(stmt)) == 1) {
		r = array_grow(out, &cap, *count, UINT32_MAX);
		if (r < 0)
			return r;
		(*out)[(*count)++] = (struct hour){ sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1) };
	}
	return r;
}

int rollup_hours(struct partition *p, uint64_t until_ns)
{
	scoped(series_list_release) struct series_list list = { 0 };
	scoped(freep) struct hour *hours = NULL;
	struct reader *reader = NULL;
	size_t count = 0;
	int r = partition_reader(p, &reader);

	r = r ? r : read_series(reader->db, &(struct store_selector){ 0 }, &list);
	r = r ? r : missing_hours(reader->db, until_ns, &hours, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		for (size_t at = 0; r == 0 && at < list.count; at++)
			if (list.items[at].id == hours[i].series)
				r = roll_hour(p, reader->db, &list.items[at], hours[i].t);
	partition_reader_done(p, reader);
	return r;
}

/* Days */

static int64_t year_of(int64_t day)
{
	time_t seconds = (time_t)(day * 86400);
	struct tm tm = { 0 };

	(void)gmtime_r(&seconds, &tm); /* days of 32-bit seconds: cannot fail */
	tm.tm_mon = 0;
	tm.tm_mday = 1;
	tm.tm_hour = 0;
	return timegm(&tm) / 86400;
}

/* The sum in rows of the year's dictionary. */
static int move_sum(struct sum *sum, const struct dictionary *from, struct dictionary *into, struct rollup_job *job)
{
	scoped(remap_release) struct remap rm = { 0 };
	scoped(header_release) struct header header = { 0 };
	scoped(buf_release) struct buf plain = BUF_INIT(PLAIN_MAX);
	int r = sum_columns(sum, &sum->columns);

	r = r ? r : remap_init(&rm, &into->m, &from->m);
	r = r ? r : pack_place_all(&rm);
	r = r ? r : pack_header(&rm, &sum->header, &header);
	for (size_t i = 0; r == 0 && i < sum->columns.count; i++)
		r = pack_key(&rm, into, &from->keys[sum->columns.keys[i]], &sum->columns.keys[i]);
	r = r ? r : columns_sort(&sum->columns);
	if (r < 0)
		return r;
	header_encode(&header, &job->header);
	columns_encode(&sum->columns, &plain);
	r = job->header.error ? job->header.error : plain.error;
	return r ? r : pack_compress(buf_str(&plain), CLOSED_LEVEL, &job->data);
}

/* What went wrong in the year's file must not be taken for damage of the day. Its next file gets all sums again. */
static int in_year(struct partition *year, int r)
{
	if (!db_is_damage(r))
		return r;
	state_damaged(year->state, year);
	return -EIO;
}

/* Return: 0, 1 when this series' day cannot be added up, -errno. *rolled: its number in the year's file, when it has a
 * sum there now. */
static int roll_series(struct partition *p, struct partition *year, sqlite3 *db, const struct series_row *series,
		       int64_t *rolled)
{
	scoped(sum_release) struct sum sum = { 0 };
	scoped(buf_release) struct buf labels = BUF_INIT(MIB(1));
	scoped(rollup_release) struct rollup_job job = { .job.run = run_rollup,
							 .series = series->series,
							 .span = 86400,
							 .t = p->day * 86400,
							 .header = BUF_INIT(PLAIN_MAX),
							 .data = BUF_INIT(PLAIN_MAX) };
	struct service *service = NULL;
	int r = service_get(p, series->series.service, &service);

	if (r < 0)
		return r;
	store_labels_pack(series->labels, series->series.label_count, &labels);
	job.labels = buf_str(&labels);
	r = sum_init(&sum, service);
	r = r ? r
	      : add_up(db, &sum, series->id, p->day * (int64_t)STORE_DAY_NS, (p->day + 1) * (int64_t)STORE_DAY_NS - 1);
	if (r == 0 && sum.header.profiles)
		r = in_year(year, service_get(year, series->series.service, &job.service));
	if (r == 0 && job.service) {
		/* The closed day's dictionary changes no more: only the year's needs its lock. */
		(void)pthread_mutex_lock(&job.service->lock);
		r = move_sum(&sum, &service->dictionary, &job.service->dictionary, &job);
		r = r ? r : service_pack(job.service, CLOSED_LEVEL);
		(void)pthread_mutex_unlock(&job.service->lock);
		r = r ? r : in_year(year, partition_submit(year, &job.job));
		service_put(year, job.service);
		*rolled = r == 0 ? job.series_id : 0;
	}
	service_put(p, service);
	return r;
}

/* The year's file remembers which file of the day it has added up: another one of the day is a change. */

static void rolled_key(char out[32], int64_t day)
{
	(void)snprintf(out, 32, "rolled-%lld", (long long)day); /* 7 + 20: fits */
}

struct note_job {
	struct job job;
	const struct partition *day;
	int64_t *series; /* the ones that have a sum of the day, in order */
	size_t count;
};

static void note_release(struct note_job *note)
{
	free(note->series);
}

static int number_order(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool has_sum(const struct note_job *note, int64_t series)
{
	return note->count && bsearch(&series, note->series, note->count, sizeof(series), number_order);
}

/* Sums of the day that an earlier file of it had, and this one has not: of profiles that were removed since. */
static int drop_stale(struct partition *p, const struct note_job *note)
{
	scoped(db_finalizep) sqlite3_stmt *each = NULL, *drop = NULL;
	int r = db_prepare(p->db, "SELECT id FROM series", &each);

	r = r ? r : db_prepare(p->db, "DELETE FROM rollup WHERE series = ?1 AND span = 86400 AND t = ?2", &drop);
	if (r < 0)
		return r;
	while ((r = db_step(each)) == 1) {
		int64_t series = sqlite3_column_int64(each, 0);

		if (has_sum(note, series))
			continue;
		(void)sqlite3_bind_int64(drop, 1, series);
		(void)sqlite3_bind_int64(drop, 2, note->day->day * 86400);
		r = db_step(drop);
		(void)sqlite3_reset(drop);
		if (r < 0)
			return r;
	}
	return r;
}

static int run_note(struct partition *p, struct job *job)
{
	struct note_job *note = (struct note_job *)(void *)job;
	int r = drop_stale(p, note);
	char key[32];

	rolled_key(key, note->day->day);
	job->result = 0;
	return r ? r : db_set_meta(p->db, key, note->day->generation);
}

int rollup_forget(struct partition *p, int64_t day)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	char key[32];
	int r = db_prepare(p->db, "DELETE FROM meta WHERE key = ?1", &stmt);

	if (r < 0)
		return r;
	rolled_key(key, day);
	(void)sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
	return db_step(stmt);
}

/* *generation: number of the file that the year's sums of the day were made from, 0: it has none. Return: 0 or -errno.
 */
static int find_rolled(struct partition *p, const struct partition_list *years, int64_t *generation)
{
	int64_t first = year_of(p->day);
	char key[32];
	int r = 0;

	rolled_key(key, p->day);
	for (size_t i = 0; r == 0 && i < years->count; i++) {
		struct reader *reader = NULL;

		if (years->items[i]->day != first)
			continue;
		r = partition_reader(years->items[i], &reader);
		if (r < 0) {
			r = state_unreadable(p->state, years->items[i], r);
			continue;
		}
		r = MIN(db_get_meta(reader->db, key, generation), 0);
		partition_reader_done(years->items[i], reader);
		if (db_is_damage(r)) { /* sums can be made again */
			state_damaged(p->state, years->items[i]);
			r = 0;
		}
	}
	return r;
}

int rollup_has_day(struct partition *p)
{
	scoped(partition_list_release) struct partition_list years = { 0 };
	int64_t first = year_of(p->day), generation = 0;
	int r = state_partitions(p->state, true, first, first, &years);

	r = r ? r : find_rolled(p, &years, &generation);
	return r ? r : generation == p->generation;
}

int rollup_follow(sqlite3 *db, int64_t day, uint32_t from, uint32_t to)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	char key[32];
	int r = db_prepare(db, "UPDATE meta SET value = ?3 WHERE key = ?1 AND value = ?2", &stmt);

	if (r < 0)
		return r;
	rolled_key(key, day);
	(void)sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(stmt, 2, from);
	(void)sqlite3_bind_int64(stmt, 3, to);
	return db_step(stmt);
}

int rollup_day(struct partition *p)
{
	scoped(series_list_release) struct series_list list = { 0 };
	scoped(note_release) struct note_job note = { .job.run = run_note, .day = p };
	struct partition *year = NULL;
	struct reader *reader = NULL;
	bool all = true;
	int r = p->has_no_sum ? 1 : rollup_has_day(p);

	if (r != 0)
		return MIN(r, 0);
	r = state_for_write(p->state, true, year_of(p->day), &year);
	r = r ? r : partition_reader(p, &reader);
	r = r ? r : read_series(reader->db, &(struct store_selector){ 0 }, &list);
	if (r == 0) {
		note.series = calloc(list.count + 1, sizeof(*note.series));
		r = note.series ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = roll_series(p, year, reader->db, &list.items[i], &note.series[note.count]);
		all &= r == 0;
		note.count += r == 0 && note.series[note.count];
		r = MIN(r, 0);
	}
	partition_reader_done(p, reader);
	if (db_is_damage(r))
		state_damaged(p->state, p);
	if (r == 0 && all) {
		qsort(note.series, note.count, sizeof(*note.series), number_order);
		r = in_year(year, partition_submit(year, &note.job));
	} else if (r == 0) {
		p->has_no_sum = true; /* for good: a change of the day makes another file */
	}
	state_release(p->state, year);
	return r;
}
