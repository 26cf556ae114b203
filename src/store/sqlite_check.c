/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at everything: the files by SQLite's own check, then every row as a query would read it. */
#include "codec/window_codec.h"
#include "store/sqlite_int.h"

#define PLAIN_MAX GIB(1)

struct checking {
	store_problem_fn *visit;
	void *ctx;
	const struct partition *p;
	int problems;
	struct header header;
	struct columns columns;
	struct buf plain;
};

static void checking_release(struct checking *c)
{
	header_release(&c->header);
	columns_release(&c->columns);
	buf_release(&c->plain);
}

static void report(struct checking *c, const char *format, ...) printf_like(2, 3);

static void report(struct checking *c, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args); /* cut when longer */
	va_end(args);
	c->visit(c->ctx, c->p->name, text);
	c->problems++;
}

static int check_file(struct checking *c, sqlite3 *db)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "PRAGMA integrity_check(20)", &stmt);

	while (r == 0 && (r = db_step(stmt)) == 1) {
		struct str line = db_column(stmt, 0);

		if (!str_eq(line, STR("ok")))
			report(c, STR_FMT, STR_ARG(line));
		r = 0;
	}
	return r;
}

static int check_window(struct checking *c)
{
	scoped(window_release) struct window w = { 0 };

	return codec_window.decode(buf_str(&c->plain), &w, NULL);
}

static int check_packed(struct checking *c, const struct dictionary *d, struct str header, struct str facts)
{
	int r = header_decode(header, intern_count(&d->m.strings), d->m.mappings_count, &c->header);

	r = r ? r : columns_decode(buf_str(&c->plain), d->keys_count, c->header.value_type_count, &c->columns);
	for (size_t i = 0; r == 0 && i < c->header.value_type_count; i++) {
		int64_t total = 0;

		for (size_t row = 0; row < c->columns.count; row++)
			total = saturating_add(total, c->columns.values[i * c->columns.count + row]);
		if (total != c->header.totals[i])
			r = -EBADMSG;
	}
	if (r == 0 && facts.len) {
		buf_clear(&c->plain);
		r = pack_expand(facts, &c->plain);
		r = r ? r : check_window(c);
	}
	return r;
}

/* Columns: form, header, data, facts, what, t. */
static int check_row(struct checking *c, const struct dictionary *d, const struct series_row *series,
		     sqlite3_stmt *stmt)
{
	int form = sqlite3_column_int(stmt, 0), r;

	buf_clear(&c->plain);
	r = pack_expand(db_column(stmt, 2), &c->plain);
	if (r == 0 && form == FORM_PACKED)
		r = check_packed(c, d, db_column(stmt, 1), db_column(stmt, 3));
	else if (r == 0 && form == FORM_WINDOW)
		r = check_window(c);
	else if (form != FORM_RAW)
		r = r ? r : -EBADMSG;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		report(c, "service " STR_FMT ", %s at %lld: damaged", STR_ARG(str_first(series->series.service, 100)),
		       (const char *)sqlite3_column_text(stmt, 4), (long long)sqlite3_column_int64(stmt, 5));
	return 0;
}

static int check_series(struct checking *c, struct partition *p, sqlite3 *db, const struct series_row *series)
{
	static const char *const queries[] = {
		"SELECT form, header, data, facts, 'profile', t FROM profile WHERE series = ?1",
		"SELECT 0, header, data, NULL, 'sum', t FROM rollup WHERE series = ?1",
	};
	struct service *service = NULL;
	int r = service_get(p, series->series.service, &service);

	if (db_is_damage(r)) {
		report(c, "service " STR_FMT ": its dictionary is damaged",
		       STR_ARG(str_first(series->series.service, 100)));
		return 0;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(queries); i++) {
		scoped(db_finalizep) sqlite3_stmt *stmt = NULL;

		r = db_prepare(db, queries[i], &stmt);
		if (r == 0)
			(void)sqlite3_bind_int64(stmt, 1, series->id);
		while (r == 0 && (r = db_step(stmt)) == 1) {
			(void)pthread_mutex_lock(&service->lock);
			r = check_row(c, &service->dictionary, series, stmt);
			(void)pthread_mutex_unlock(&service->lock);
		}
	}
	if (service)
		service_put(p, service);
	return r;
}

static int check_partition(struct checking *c, struct partition *p)
{
	scoped(series_list_release) struct series_list list = { 0 };
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	c->p = p;
	r = r ? r : check_file(c, reader->db);
	r = r ? r : read_series(reader->db, &(struct store_selector){ 0 }, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++)
		r = check_series(c, p, reader->db, &list.items[i]);
	partition_reader_done(p, reader);
	if (db_is_damage(r) || r == -EIO) {
		report(c, "cannot be read to its end");
		r = 0;
	}
	return r;
}

static bool next_odd(struct sqlite_state *s, size_t at, struct odd_file *out)
{
	bool found;

	(void)pthread_mutex_lock(&s->lock);
	found = at < s->odd_count;
	if (found)
		*out = s->odd[at];
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

/* Files that are out of service, and those that were set aside now or long ago. */
int sqlite_odd(struct store_state *state, store_problem_fn *visit, void *ctx)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	int r = odd_visit_aside(s, visit, ctx);
	struct odd_file odd;

	for (size_t i = 0; r >= 0 && next_odd(s, i, &odd); i++) {
		scoped(buf_release) struct buf what = BUF_INIT(KIB(1));

		buf_addf(&what, "%s: out of service, left as it is", odd.why);
		visit(ctx, odd.name, buf_cstr(&what));
		r++;
	}
	return r;
}

int sqlite_check(struct store_state *state, store_problem_fn *visit, void *ctx)
{
	scoped(checking_release) struct checking c = { .visit = visit, .ctx = ctx, .plain = BUF_INIT(PLAIN_MAX) };
	int r = sqlite_odd(state, visit, ctx);

	c.problems = MAX(r, 0);
	r = MIN(r, 0);
	for (int years = 0; r == 0 && years < 2; years++) {
		scoped(partition_list_release) struct partition_list list = { 0 };

		r = state_partitions((struct sqlite_state *)state, years, INT64_MIN, INT64_MAX, &list);
		for (size_t i = 0; r == 0 && i < list.count; i++)
			r = check_partition(&c, list.items[i]);
	}
	return r ? r : c.problems;
}

/* Every day that has several files, or is open and over: what maintain() does, without waiting for quiet. */
int sqlite_compact(struct store_state *state)
{
	struct sqlite_state *s = (struct sqlite_state *)state;
	scoped(partition_list_release) struct partition_list list = { 0 };
	int64_t today = (int64_t)(state_now(s) / STORE_DAY_NS);
	int r = state_partitions(s, false, INT64_MIN, today - 1, &list), days = 0;

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		struct partition *p = list.items[i];
		bool several = i && list.items[i - 1]->day == p->day;

		if ((i + 1 < list.count && list.items[i + 1]->day == p->day) ||
		    ((p->compacted || !p->newest_upload) && !several))
			continue;
		r = compact_day(s, p->day, NULL);
		days += r == 0;
		if (db_is_damage(r))
			r = 0; /* it was set aside */
	}
	return r ? r : days;
}
