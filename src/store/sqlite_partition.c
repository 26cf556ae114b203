/* SPDX-License-Identifier: Apache-2.0 */
/* One file: its name, its connections, its writer. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite_int.h"

#define READERS_KEPT_MAX 256 /* connections that wait for the next query; each may have 300 KiB of pages */

/* Names: 2026-11-21.db, 2026-11-21.2.db for its second file; rollup-2026.db. */

static struct tm date_of(int64_t day)
{
	time_t seconds = (time_t)(day * 86400);
	struct tm tm = { 0 };

	(void)gmtime_r(&seconds, &tm); /* days of 32-bit seconds: cannot fail */
	return tm;
}

void partition_name(char out[40], bool is_year, int64_t day, uint32_t generation)
{
	struct tm tm = date_of(day);
	int used =
		is_year ? snprintf(out, 40, "rollup-%04d", (tm.tm_year + 1900) % 10000)
			: snprintf(out, 40, "%04d-%02d-%02d", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday);

	if (generation > 1)
		(void)snprintf(out + used, 40 - (size_t)used, ".%u.db", generation); /* fits: 10 + 1 + 10 + 3 */
	else
		(void)snprintf(out + used, 40 - (size_t)used, ".db");
}

bool partition_parse_name(struct str name, bool *is_year, int64_t *day, uint32_t *generation)
{
	uint64_t year, month = 1, date = 1, number = 1;
	struct str rest, part;
	struct tm tm = { 0 };
	char again[40];

	*is_year = str_starts(name, STR("rollup-"));
	rest = *is_year ? str_skip(name, strlen("rollup-")) : name;
	if (str_to_u64(str_first(rest, 4), 1970, 9999, &year) < 0)
		return false;
	rest = str_skip(rest, 4);
	if (!*is_year) {
		if (str_to_u64(str_first(str_skip(rest, 1), 2), 1, 12, &month) < 0 ||
		    str_to_u64(str_first(str_skip(rest, 4), 2), 1, 31, &date) < 0)
			return false;
		rest = str_skip(rest, 6);
	}
	rest = str_skip(rest, 1);
	if (!str_next(&rest, '.', &part))
		return false;
	if (!str_eq(part, STR("db")) && str_to_u64(part, 2, UINT32_MAX, &number) < 0)
		return false;
	tm.tm_year = (int)year - 1900;
	tm.tm_mon = (int)month - 1;
	tm.tm_mday = (int)date;
	*day = timegm(&tm) / 86400;
	*generation = (uint32_t)number;
	partition_name(again, *is_year, *day, *generation);
	return str_eq(name, str_of(again)); /* says no to everything that is nearly a name */
}

/* Readers */

int partition_reader(struct partition *p, struct reader **out)
{
	struct reader *reader;
	int r;

	(void)pthread_mutex_lock(&p->lock);
	reader = p->readers;
	if (reader)
		p->readers = reader->next;
	(void)pthread_mutex_unlock(&p->lock);
	if (reader) {
		p->state->readers_kept--;
		*out = reader;
		return 0;
	}
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	r = db_open(p->state->vfs, p->path, true, &reader->db);
	if (r < 0) {
		free(reader);
		return r;
	}
	*out = reader;
	return 0;
}

void partition_reader_done(struct partition *p, struct reader *reader)
{
	if (!reader)
		return;
	p->state->readers_kept++;
	(void)pthread_mutex_lock(&p->lock);
	/* An open file keeps one at any rate: the last one takes the shared memory of the WAL along, and on a full disk
	 * there is no other to be had. */
	if (p->state->readers_kept <= READERS_KEPT_MAX || (!p->closed && !p->readers)) {
		reader->next = p->readers;
		p->readers = reader;
		reader = NULL;
	}
	(void)pthread_mutex_unlock(&p->lock);
	if (!reader)
		return;
	p->state->readers_kept--;
	db_closep(&reader->db);
	free(reader);
}

/* The writer */

static int writer_open(struct partition *p)
{
	const struct {
		sqlite3_stmt **stmt;
		const char *sql;
	} statements[] = {
		{ &p->find_service, "SELECT id FROM service WHERE name = ?1" },
		{ &p->add_service, "INSERT INTO service(name) VALUES(?1)" },
		{ &p->find_series, "SELECT id FROM series WHERE service = ?1 AND type = ?2 AND labels = ?3" },
		{ &p->add_series, "INSERT INTO series(service, type, labels) VALUES(?1, ?2, ?3)" },
		{ &p->add_chunk, "INSERT INTO dictionary VALUES(?1, ?2, ?3)" },
		{ &p->add_profile, "INSERT INTO profile(uid, series, t, uploaded, form, header, data, facts)"
				   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)" },
		{ &p->drop_rollup, "DELETE FROM rollup WHERE series = ?1 AND span = ?2 AND t = ?3" },
		{ &p->find_request, "SELECT uid FROM request WHERE key = ?1 AND at >= ?2" },
		{ &p->add_request, "INSERT OR REPLACE INTO request VALUES(?1, ?2, ?3)" },
		{ &p->add_rollup, "INSERT OR REPLACE INTO rollup VALUES(?1, ?2, ?3, ?4, ?5)" },
	};
	int r = db_open(p->state->vfs, p->path, false, &p->db);

	r = r ? r
	      : db_exec(p->db, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000; PRAGMA "
			       "journal_size_limit=67108864");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(statements); i++)
		r = db_prepare(p->db, statements[i].sql, statements[i].stmt);
	return r;
}

static void writer_close(struct partition *p)
{
	db_finalizep(&p->find_service);
	db_finalizep(&p->add_service);
	db_finalizep(&p->find_series);
	db_finalizep(&p->add_series);
	db_finalizep(&p->add_chunk);
	db_finalizep(&p->add_profile);
	db_finalizep(&p->drop_rollup);
	db_finalizep(&p->find_request);
	db_finalizep(&p->add_request);
	db_finalizep(&p->add_rollup);
	db_closep(&p->db);
}

/* One transaction for all that has gathered. Return: 0, or what they all failed with. */
static int run_batch(struct partition *p, struct job *batch)
{
	int r = p->db ? 0 : writer_open(p);

	r = r ? r : db_exec(p->db, "BEGIN IMMEDIATE");
	for (struct job *job = batch; r == 0 && job; job = job->next)
		r = job->run(p, job);
	r = r ? r : db_exec(p->db, "COMMIT");
	if (r < 0 && p->db && !sqlite3_get_autocommit(p->db))
		ignore(db_exec(p->db, "ROLLBACK")); /* it may have rolled back by itself */
	service_written(p, r == 0);
	if (r == 0)
		p->state->commits++;
	else if (r == -EIO || r == -EUCLEAN)
		writer_close(p); /* what this connection believes may be wrong: the next batch begins with a new one */
	return r;
}

static struct job *take_batch(struct partition *p)
{
	struct job *batch;
	size_t count = 0;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->first && !p->stop)
		(void)pthread_cond_wait(&p->wanted, &p->lock);
	batch = p->first;
	for (struct job *job = batch; job; job = job->next) {
		if (++count < BATCH_MAX && job->next)
			continue;
		p->first = job->next;
		job->next = NULL;
	}
	if (!p->first)
		p->last = NULL;
	(void)pthread_mutex_unlock(&p->lock);
	return batch;
}

static void *write_loop(void *arg)
{
	struct partition *p = arg;
	struct job *batch;

	while ((batch = take_batch(p))) {
		int r = run_batch(p, batch);

		(void)pthread_mutex_lock(&p->lock);
		while (batch) {
			struct job *next = batch->next; /* once done, it is its owner's again */

			if (r < 0)
				batch->result = r;
			batch->done = true;
			(void)pthread_cond_signal(&batch->changed);
			batch = next;
		}
		(void)pthread_mutex_unlock(&p->lock);
	}
	writer_close(p);
	return NULL;
}

/* p->lock is held. */
static int start_writer(struct partition *p)
{
	int r;

	if (p->running)
		return 0;
	r = -pthread_create(&p->thread, NULL, write_loop, p);
	p->running = r == 0;
	return r;
}

int partition_submit(struct partition *p, struct job *job)
{
	int r;

	job->next = NULL;
	job->done = false;
	(void)pthread_cond_init(&job->changed, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_mutex_lock(&p->lock);
	r = p->closed || p->stop ? -ESTALE : start_writer(p);
	if (r == 0) {
		if (p->last)
			p->last->next = job;
		else
			p->first = job;
		p->last = job;
		(void)pthread_cond_signal(&p->wanted);
		while (!job->done)
			(void)pthread_cond_wait(&job->changed, &p->lock);
		r = job->result;
	}
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_cond_destroy(&job->changed);
	return r;
}

bool partition_is_closed(struct partition *p)
{
	return p->closed;
}

void partition_close(struct partition *p)
{
	bool was_running;

	(void)pthread_mutex_lock(&p->lock);
	p->closed = true;
	p->stop = true;
	was_running = p->running;
	p->running = false;
	(void)pthread_cond_signal(&p->wanted);
	(void)pthread_mutex_unlock(&p->lock);
	if (was_running)
		(void)pthread_join(p->thread, NULL); /* it finishes what is queued */
}

/* Life */

void partition_free(struct partition *p)
{
	if (!p)
		return;
	/* Before the writer's connection: only that one, as the last, can empty and remove the WAL. */
	for (struct reader *reader = p->readers, *next; reader; reader = next) {
		next = reader->next;
		p->state->readers_kept--;
		db_closep(&reader->db);
		free(reader);
	}
	partition_close(p);
	for (size_t i = 0; i < p->services_cap; i++)
		if (p->services[i]) {
			p->state->dictionary_bytes -= p->services[i]->size;
			service_free(p->services[i]);
		}
	free(p->services);
	intern_release(&p->names);
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->wanted);
	free(p->path);
	free(p);
}

static void partition_freep(struct partition **p)
{
	partition_free(*p);
}

/* The tables are in the file itself before there is a WAL: a file without tables and with a WAL was not left by a
 * creation that was interrupted, it has lost them. */
static int create(const char *vfs, const char *path)
{
	scoped(db_closep) sqlite3 *db = NULL;
	int r = db_open(vfs, path, false, &db);

	r = r ? r : db_exec(db, "PRAGMA page_size=8192; PRAGMA synchronous=FULL");
	r = r ? r : db_create(db);
	return r ? r : db_exec(db, "PRAGMA journal_mode=WAL");
}

/* Return: 0, -ENODATA: the file was never finished and holds nothing, -EUCLEAN, -ENOTSUP, -errno. */
static int check_version(sqlite3 *db)
{
	int64_t value = 0;
	int r = db_number(db, "SELECT count(*) FROM sqlite_master", &value);

	if (r < 0 || !value)
		return r < 0 ? r : -ENODATA;
	r = db_get_meta(db, "version", &value);
	if (r < 1)
		return r < 0 ? r : -EUCLEAN;
	return value == SQLITE_STORE_VERSION ? 0 : -ENOTSUP;
}

/* The last upload without a look at every row: a closed file says it, rows of an open one are in the order of their
 * commits, which differs by moments from that of their uploads. */
static int read_newest(sqlite3 *db, bool closed, int64_t *out)
{
	int r = closed ? db_get_meta(db, "newest_upload", out) : 0;

	if (r == 0 && closed)
		r = db_number(db, "SELECT max(uploaded) FROM profile", out);
	else if (r == 0)
		r = db_number(db,
			      "SELECT max(uploaded) FROM (SELECT uploaded FROM profile ORDER BY id DESC LIMIT 1000)",
			      out);
	return r;
}

/* As check_version(). */
static int read_meta(struct partition *p)
{
	int64_t closed = 0, newest_upload = 0, newest_request = 0;
	struct reader *reader = NULL;
	int r = partition_reader(p, &reader);

	if (r < 0)
		return r;
	r = check_version(reader->db);
	r = r < 0 ? r : db_get_meta(reader->db, "closed", &closed);
	r = r < 0 ? r : read_newest(reader->db, closed, &newest_upload);
	r = r < 0 ? r : db_number(reader->db, "SELECT max(at) FROM request", &newest_request);
	partition_reader_done(p, reader);
	p->closed = p->compacted = closed;
	p->newest_upload = (uint64_t)newest_upload;
	p->newest_request = (uint64_t)newest_request;
	return MIN(r, 0);
}

static struct partition *partition_new(struct sqlite_state *s)
{
	struct partition *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->state = s;
	(void)pthread_mutex_init(&p->lock, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_cond_init(&p->wanted, NULL);
	intern_init(&p->names, MIB(64));
	return p;
}

/* A crash while the file was made leaves a journal, which readers may not roll back. */
static int roll_back(const char *vfs, const char *path)
{
	scoped(db_closep) sqlite3 *db = NULL;
	int64_t tables;
	int r = db_open(vfs, path, false, &db);

	r = r ? r : db_number(db, "SELECT count(*) FROM sqlite_master", &tables);
	return MIN(r, 0);
}

int partition_open(struct sqlite_state *s, bool is_year, int64_t day, uint32_t generation, bool make,
		   struct partition **out)
{
	scoped(partition_freep) struct partition *p = partition_new(s);
	struct buf path = BUF_INIT(KIB(16));
	size_t size;
	int r;

	if (!p)
		return -ENOMEM;
	p->day = day;
	p->generation = generation;
	p->is_year = is_year;
	partition_name(p->name, is_year, day, generation);
	buf_addf(&path, "%s/%s", s->path, p->name);
	buf_addc(&path, 0);
	r = path.error;
	p->path = buf_take(&path, &size);
	if (r == 0 && make)
		r = create(s->vfs, p->path);
	r = r ? r : read_meta(p);
	if (r == -EROFS) {
		r = roll_back(s->vfs, p->path);
		r = r ? r : read_meta(p);
	}
	if (r < 0)
		return r;
	*out = p;
	p = NULL; /* moved out */
	return 0;
}

int partition_open_at(struct sqlite_state *s, const char *path, int64_t day, struct partition **out)
{
	scoped(partition_freep) struct partition *p = partition_new(s);
	int r;

	if (!p)
		return -ENOMEM;
	p->day = day;
	p->path = str_dup(str_of(path));
	r = p->path ? read_meta(p) : -ENOMEM;
	if (r < 0)
		return r;
	*out = p;
	p = NULL; /* moved out */
	return 0;
}
