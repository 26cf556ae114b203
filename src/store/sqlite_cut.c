/* SPDX-License-Identifier: Apache-2.0 */
/* A file without one service. A service's rows refer to its own dictionary only, so those of the others are copied as
 * they are: as fast as the disk, where packing them anew would take minutes for a large day. */
#include "store/sqlite_int.h"

#define COLUMNS_MAX 9
#define OTHERS "service IS NOT (SELECT id FROM service WHERE name = ?1)"
#define OTHER_SERIES "series IN (SELECT id FROM series WHERE " OTHERS ")"

/* ?1 is the service that goes. What this file says of itself is written anew. */
static const struct {
	const char *read, *write;
} tables[] = {
	{ "SELECT id, name FROM service WHERE name <> ?1 ORDER BY id", "INSERT INTO service VALUES(?1, ?2)" },
	{ "SELECT id, service, type, labels FROM series WHERE " OTHERS " ORDER BY id",
	  "INSERT INTO series VALUES(?1, ?2, ?3, ?4)" },
	{ "SELECT service, chunk, data FROM dictionary WHERE " OTHERS, "INSERT INTO dictionary VALUES(?1, ?2, ?3)" },
	{ "SELECT id, uid, series, t, uploaded, form, header, data, facts FROM profile WHERE " OTHER_SERIES
	  " ORDER BY id",
	  "INSERT INTO profile VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)" },
	{ "SELECT series, span, t, header, data FROM rollup WHERE " OTHER_SERIES,
	  "INSERT INTO rollup VALUES(?1, ?2, ?3, ?4, ?5)" },
	{ "SELECT key, uid, at FROM request WHERE ?1 IS NOT NULL", "INSERT INTO request VALUES(?1, ?2, ?3)" },
	{ "SELECT key, value FROM meta WHERE ?1 IS NOT NULL AND key NOT IN ('newest_upload', 'closed')",
	  "INSERT OR REPLACE INTO meta VALUES(?1, ?2)" },
};

/* What goes wrong in the new file must not be taken for damage of the old one. */
static int in_new(int r)
{
	return db_is_damage(r) ? -EIO : r;
}

static int copy_rows(sqlite3 *from, sqlite3 *to, size_t table, struct str service)
{
	scoped(db_finalizep) sqlite3_stmt *read = NULL, *write = NULL;
	int columns, r = db_prepare(from, tables[table].read, &read);

	r = r ? r : in_new(db_prepare(to, tables[table].write, &write));
	if (r < 0)
		return r;
	db_bind_str(read, 1, service);
	columns = sqlite3_column_count(read);
	must(columns <= COLUMNS_MAX && columns == sqlite3_bind_parameter_count(write));
	while ((r = db_step(read)) == 1) {
		for (int i = 0; i < columns; i++)
			(void)sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
		r = in_new(db_step(write));
		(void)sqlite3_reset(write);
		if (r < 0)
			return r;
	}
	return r;
}

/* Which day's file has what is newest, and what this one replaces. A year's file goes on in WAL mode. */
static int describe(sqlite3 *db, const struct partition *old)
{
	char key[32];
	int64_t newest = 0;
	int r = db_number(db, "SELECT max(uploaded) FROM profile", &newest);

	(void)snprintf(key, sizeof(key), REPLACED_KEY "%u", old->generation); /* 9 + 10: fits */
	r = r == 1 ? db_set_meta(db, "newest_upload", newest) : r;
	r = r ? r : db_set_meta(db, "replaces", REPLACES_LISTED);
	r = r ? r : db_set_meta(db, key, REPLACED_WHOLLY);
	r = r ? r : db_exec(db, "COMMIT");
	return r || !old->is_year ? r : db_exec(db, "PRAGMA journal_mode=WAL");
}

static int begin(struct sqlite_state *s, const char *path, sqlite3 **out)
{
	int r = db_open(s->vfs, path, false, out);

	/* Nobody knows of this file until it is renamed, synced and whole. */
	r = r ? r : db_exec(*out, "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
	r = r ? r : db_create(*out);
	return r ? r : db_exec(*out, "BEGIN");
}

static int copy_all(struct partition *p, sqlite3 *to, struct str service)
{
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : db_exec(reader->db, "BEGIN"); /* one state of it */
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++)
		r = copy_rows(reader->db, to, i, service);
	if (reader && !sqlite3_get_autocommit(reader->db))
		ignore(db_exec(reader->db, "COMMIT")); /* nothing was written */
	partition_reader_done(p, reader);
	return r;
}

int cut_file(struct partition *p, struct str service, const char *path)
{
	scoped(db_closep) sqlite3 *db = NULL;
	int r = in_new(begin(p->state, path, &db));

	r = r ? r : copy_all(p, db, service);
	return r ? r : in_new(describe(db, p));
}

static int count(sqlite3 *db, const char *sql, struct str service, int64_t *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, sql, &stmt);

	if (r < 0)
		return r;
	db_bind_str(stmt, 1, service);
	r = db_step(stmt);
	*out = r == 1 ? sqlite3_column_int64(stmt, 0) : 0;
	return MIN(r, 0);
}

#define ITS_SERIES "series IN (SELECT id FROM series WHERE service = (SELECT id FROM service WHERE name = ?1))"

int cut_look(struct partition *p, struct str service, struct cut_traces *out)
{
	int64_t it = 0, others = 0, profiles = 0, sums = 0;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	r = r ? r : count(reader->db, "SELECT count(*) FROM service WHERE name = ?1", service, &it);
	if (r == 0 && it) {
		r = count(reader->db, "SELECT count(*) FROM service WHERE name <> ?1", service, &others);
		r = r ? r : count(reader->db, "SELECT count(*) FROM profile WHERE " ITS_SERIES, service, &profiles);
		r = r ? r : count(reader->db, "SELECT count(*) FROM rollup WHERE " ITS_SERIES, service, &sums);
	}
	partition_reader_done(p, reader);
	if (r == 0)
		*out = (struct cut_traces){ it > 0, others == 0, profiles, sums };
	return r;
}

/* Weighing */

#define BLOBS(a, b) "total(ifnull(length(" a "), 0) + ifnull(length(" b "), 0))"

/* Bytes of its rows; the pages they are in have more. */
static int weigh_rows(struct partition *p, struct str service, int64_t *out)
{
	static const char *const parts[] = {
		"SELECT " BLOBS("header", "data") " FROM profile WHERE " ITS_SERIES,
		"SELECT " BLOBS("header", "data") " FROM rollup WHERE " ITS_SERIES,
		"SELECT total(length(data)) FROM dictionary WHERE service = (SELECT id FROM service WHERE name = ?1)",
	};
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	*out = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
		int64_t size = 0;

		r = count(reader->db, parts[i], service, &size);
		*out += size;
	}
	partition_reader_done(p, reader);
	return r;
}

static int weigh_in(struct partition *p, struct str service, struct store_removed *out)
{
	struct cut_traces found = { 0 };
	int64_t size = 0;
	int r = cut_look(p, service, &found);

	if (r < 0 || !found.any)
		return r;
	if (found.is_alone)
		size = (int64_t)partition_size(p);
	else
		r = weigh_rows(p, service, &size);
	if (r < 0)
		return r;
	out->files++;
	out->bytes += (uint64_t)size;
	out->profiles += (uint64_t)found.profiles;
	out->sums += (uint64_t)(p->is_year ? found.sums : 0);
	return 0;
}

/* Visits every file in use. A file that cannot be read is out of service then, and counted. */
static int each_file(struct sqlite_state *s, const struct store_selector *sel,
		     int (*visit)(struct partition *p, void *ctx), void *ctx, uint64_t *aside)
{
	int r = 0;

	for (int years = 0; r == 0 && years < 2; years++) {
		scoped(partition_list_release) struct partition_list list = { 0 };

		r = state_partitions(s, years, 0, INT64_MAX / STORE_DAY_NS, &list);
		for (size_t i = 0; r == 0 && i < list.count; i++) {
			int failed = visit(list.items[i], ctx);

			if (db_is_damage(failed))
				state_damaged(s, list.items[i]);
			else if (failed < 0)
				r = state_unreadable(s, list.items[i], failed);
			*aside += failed < 0 && r == 0;
			if (r == 0 && store_stopped(sel))
				r = -ECANCELED;
		}
	}
	return r;
}

struct weighing {
	struct str service;
	struct store_removed found;
};

static int weigh_file(struct partition *p, void *ctx)
{
	struct weighing *w = ctx;

	return weigh_in(p, w->service, &w->found);
}

int sqlite_weigh(struct store_state *state, const struct store_selector *sel, struct store_removed *out)
{
	struct weighing w = { .service = sel->service };
	int r = each_file((struct sqlite_state *)state, sel, weigh_file, &w, &w.found.aside);

	if (r == 0)
		*out = w.found;
	return r;
}

static int add_names(struct partition *p, void *ctx)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	struct reader *reader = NULL;
	struct intern *names = ctx;
	int r = partition_reader(p, &reader);

	r = r ? r : db_prepare(reader->db, "SELECT name FROM service", &stmt);
	while (r == 0 && (r = db_step(stmt)) == 1) {
		uint32_t unused;

		r = intern_add(names, db_column(stmt, 0), &unused);
	}
	db_finalizep(&stmt);
	partition_reader_done(p, reader);
	return r;
}

int sqlite_services(struct store_state *state, const struct store_selector *sel, store_service_fn *visit, void *ctx)
{
	scoped(intern_release) struct intern names = { 0 };
	uint64_t aside = 0;
	int r;

	intern_init(&names, STORE_SERVICES_BYTES_MAX);
	r = each_file((struct sqlite_state *)state, sel, add_names, &names, &aside);
	return r ? r : store_visit_names(&names, visit, ctx);
}
