/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_int.h"

#define BUSY_MS 10000

static const char schema[] =
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"CREATE TABLE service(id INTEGER PRIMARY KEY, name BLOB UNIQUE NOT NULL);"
	"CREATE TABLE series(id INTEGER PRIMARY KEY, service INT NOT NULL, type BLOB NOT NULL, labels BLOB NOT NULL,"
	" UNIQUE(service, type, labels));"
	"CREATE TABLE dictionary(service INT, chunk INT, data BLOB NOT NULL, PRIMARY KEY(service, chunk));"
	"CREATE TABLE profile(id INTEGER PRIMARY KEY, uid BLOB NOT NULL, series INT NOT NULL, t INT NOT NULL,"
	" uploaded INT NOT NULL, form INT NOT NULL, header BLOB, data BLOB, facts BLOB);"
	"CREATE INDEX profile_series ON profile(series, t);"
	"CREATE UNIQUE INDEX profile_uid ON profile(uid);"
	"CREATE TABLE rollup(series INT, span INT, t INT, header BLOB NOT NULL, data BLOB NOT NULL,"
	" PRIMARY KEY(series, span, t));"
	"CREATE TABLE request(key BLOB PRIMARY KEY, uid BLOB NOT NULL, at INT NOT NULL) WITHOUT ROWID;";

int db_error(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
		return -EUCLEAN;
	case SQLITE_TOOBIG:
		return -E2BIG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	default:
		return -EIO;
	}
}

/* What the system said, where it decides what happens next. */
static int system_error(sqlite3 *db, int rc)
{
	static const int told[] = { ENOSPC, EDQUOT, EMFILE, ENFILE, EACCES };
	int primary = rc & 0xff, said = sqlite3_system_errno(db);

	if (primary != SQLITE_CANTOPEN && primary != SQLITE_IOERR)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		if (said == told[i])
			return -said;
	return 0;
}

bool db_is_damage(int r)
{
	return r == -EUCLEAN;
}

/* A header that says so has no code of its own. Source: sqlite 3.40, src/prepare.c, sqlite3InitOne(). */
static int error_in(sqlite3 *db, int rc)
{
	bool is_strange = rc == SQLITE_ERROR && !strcmp(sqlite3_errmsg(db), "unsupported file format");

	int r = system_error(db, rc);

	return r ? r : is_strange ? -EUCLEAN : db_error(rc);
}

/* Without room for SQLite's shared memory ("-shm") its index of the WAL is kept in ours: by this VFS, for files that a
 * connection may write to. Such a reader promises by itself to write nothing. Source: sqlite 3.40, src/os_unix.c,
 * unixOpenSharedMemory() and unixFileLock(). */
static int flags_of(const char *vfs, bool read_only)
{
	if (!read_only)
		return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	return vfs ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
}

int db_open(const char *vfs, const char *path, bool read_only, sqlite3 **out)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, flags_of(vfs, read_only) | SQLITE_OPEN_NOMUTEX, vfs);

	if (rc == SQLITE_OK) {
		(void)sqlite3_extended_result_codes(db, 1);
		(void)sqlite3_busy_timeout(db, BUSY_MS);
		/* A file may come from anywhere: it must not run functions, and no trigger or view is ours. */
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, read_only, NULL);
		rc = sqlite3_exec(db, "PRAGMA cache_size=-2048; PRAGMA mmap_size=0", NULL, NULL, NULL);
		if (rc == SQLITE_OK && read_only)
			rc = sqlite3_exec(db, "PRAGMA query_only=1", NULL, NULL, NULL);
	}
	if (rc != SQLITE_OK) {
		int r = error_in(db, rc);

		(void)sqlite3_close_v2(db);
		return r;
	}
	*out = db;
	return 0;
}

void db_closep(sqlite3 **db)
{
	(void)sqlite3_close_v2(*db); /* NULL is fine */
	*db = NULL;
}

int db_exec(sqlite3 *db, const char *sql)
{
	return error_in(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out)
{
	int rc = sqlite3_prepare_v2(db, sql, -1, out, NULL);

	/* Our statements are right: a table or column that is not there was taken by damage to the schema. */
	return rc == SQLITE_ERROR ? -EUCLEAN : error_in(db, rc);
}

int db_step(sqlite3_stmt *stmt)
{
	int rc = sqlite3_step(stmt);

	return rc == SQLITE_ROW ? 1 : error_in(sqlite3_db_handle(stmt), rc);
}

void db_finalizep(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt); /* the error of the last step, known already */
	*stmt = NULL;
}

/* Binding fails for a wrong index or without memory; the step then finds a NULL where none may be. */

void db_bind_str(sqlite3_stmt *stmt, int at, struct str text)
{
	(void)sqlite3_bind_blob64(stmt, at, text.len ? text.ptr : "", text.len, SQLITE_STATIC);
}

void db_bind_blob(sqlite3_stmt *stmt, int at, struct str bytes)
{
	(void)sqlite3_bind_blob64(stmt, at, bytes.len ? bytes.ptr : NULL, bytes.len, SQLITE_STATIC);
}

struct str db_column(sqlite3_stmt *stmt, int at)
{
	const char *bytes = sqlite3_column_blob(stmt, at);

	return str_n(bytes, bytes ? (size_t)sqlite3_column_bytes(stmt, at) : 0);
}

int db_number(sqlite3 *db, const char *sql, int64_t *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, sql, &stmt);

	r = r ? r : db_step(stmt);
	if (r <= 0 || sqlite3_column_type(stmt, 0) == SQLITE_NULL)
		return MIN(r, 0);
	*out = sqlite3_column_int64(stmt, 0);
	return 1;
}

int db_set_meta(sqlite3 *db, const char *key, int64_t value)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(stmt, 2, value);
	return db_step(stmt);
}

int db_get_meta(sqlite3 *db, const char *key, int64_t *out)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "SELECT value FROM meta WHERE key = ?1", &stmt);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
	r = db_step(stmt);
	if (r <= 0)
		return r;
	*out = sqlite3_column_int64(stmt, 0);
	return 1;
}

int db_create(sqlite3 *db)
{
	int r = db_exec(db, "BEGIN IMMEDIATE");

	r = r ? r : db_exec(db, schema);
	r = r ? r : db_set_meta(db, "version", SQLITE_STORE_VERSION);
	r = r ? r : db_exec(db, "COMMIT");
	return r;
}
