/* SPDX-License-Identifier: Apache-2.0 */
/* The directory: which partitions there are, and the catalog that says so to others. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/log.h"
#include "store/sqlite_int.h"

#define PARTITIONS_MAX 65536
#define OPEN_DAYS_MAX 64 /* each has a thread, five descriptors and half a MiB */
#define CLOSE_TRIES 8

/* The catalog can be made again from the partitions: failing to write it fails nothing. */
static const char catalog_schema[] = "CREATE TABLE IF NOT EXISTS partition(name TEXT PRIMARY KEY, day INT, state TEXT "
				     "NOT NULL, changed INT NOT NULL)";

static void catalog_note(struct sqlite_state *s, const struct partition *p, const char *what)
{
	scoped(db_finalizep) sqlite3_stmt *stmt = NULL;
	int r;

	(void)pthread_mutex_lock(&s->catalog_lock);
	r = db_prepare(s->catalog, "INSERT OR REPLACE INTO partition VALUES(?1, ?2, ?3, ?4)", &stmt);
	if (r == 0) {
		(void)sqlite3_bind_text(stmt, 1, p->name, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(stmt, 2, p->day);
		(void)sqlite3_bind_text(stmt, 3, what, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(stmt, 4, (int64_t)(state_now(s) / NSEC_PER_SEC));
		r = db_step(stmt);
	}
	db_finalizep(&stmt);
	(void)pthread_mutex_unlock(&s->catalog_lock);
	if (r < 0)
		log_warn("the catalog could not be written; it will be made again at the next start", LOG_ERR(r));
}

static void path_of(const struct sqlite_state *s, const char *name, const char *suffix, struct buf *out)
{
	buf_clear(out);
	buf_addf(out, "%s/%s%s", s->path, name, suffix);
}

/* SQLite's own files beside a partition go with it. */
static void remove_files(const struct sqlite_state *s, const char *name)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		path_of(s, name, suffixes[i], &path);
		if (unlink(buf_cstr(&path)) < 0 && errno != ENOENT)
			log_warn("a partition's file could not be removed", LOG_STR("path", buf_str(&path)),
				 LOG_ERR(-errno));
	}
}

static void set_aside(struct sqlite_state *s, const char *name)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	scoped(buf_release) struct buf from = BUF_INIT(KIB(16)), to = BUF_INIT(KIB(16));

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		path_of(s, name, suffixes[i], &from);
		path_of(s, name, ".damaged", &to);
		buf_adds(&to, str_of(suffixes[i]));
		if (rename(buf_cstr(&from), buf_cstr(&to)) < 0 && errno != ENOENT)
			log_warn("a damaged partition could not be renamed", LOG_STR("path", buf_str(&from)),
				 LOG_ERR(-errno));
	}
	s->bad++;
	log_error("a partition is damaged: it was set aside, everything else is served", LOG_CSTR("partition", name));
}

/* The list. state->lock is held (or nobody else is there yet). */

static bool comes_before(const struct partition *a, const struct partition *b)
{
	if (a->is_year != b->is_year)
		return a->is_year;
	return a->day != b->day ? a->day < b->day : a->generation < b->generation;
}

static int insert(struct sqlite_state *s, struct partition *p)
{
	int r = array_grow(&s->partitions, &s->partitions_cap, s->partitions_count, PARTITIONS_MAX);
	size_t at = s->partitions_count;

	if (r < 0)
		return r;
	for (; at && comes_before(p, s->partitions[at - 1]); at--)
		s->partitions[at] = s->partitions[at - 1];
	s->partitions[at] = p;
	s->partitions_count++;
	return 0;
}

static bool take_out(struct sqlite_state *s, const struct partition *p)
{
	for (size_t i = 0; i < s->partitions_count; i++) {
		if (s->partitions[i] != p)
			continue;
		s->partitions_count--;
		memmove(&s->partitions[i], &s->partitions[i + 1],
			(s->partitions_count - i) * sizeof(struct partition *));
		return true;
	}
	return false;
}

/* Ends a partition that is out of the list and has no user. */
static void end(struct sqlite_state *s, struct partition *p)
{
	char name[sizeof(p->name)];
	uint64_t leaving = p->leaving;
	bool damaged = p->damaged;

	memcpy(name, p->name, sizeof(name));
	catalog_note(s, p, damaged ? "damaged" : "removed");
	partition_free(p);
	if (damaged)
		set_aside(s, name);
	else
		remove_files(s, name);
	s->leaving -= leaving;
}

void state_release(struct sqlite_state *s, struct partition *p)
{
	bool last;

	if (!p)
		return;
	(void)pthread_mutex_lock(&s->lock);
	last = !--p->refs && p->gone;
	(void)pthread_mutex_unlock(&s->lock);
	if (last)
		end(s, p);
}

/* The caller has a reference, so the partition lives on until it lets go. */
static void leave(struct sqlite_state *s, struct partition *p, bool damaged, uint64_t size)
{
	(void)pthread_mutex_lock(&s->lock);
	if (take_out(s, p)) {
		p->gone = true;
		p->damaged = damaged;
		p->leaving = size;
		s->leaving += size;
	}
	(void)pthread_mutex_unlock(&s->lock);
}

void state_damaged(struct sqlite_state *s, struct partition *p)
{
	leave(s, p, true, 0);
}

void state_drop(struct sqlite_state *s, struct partition *p)
{
	leave(s, p, false, 0);
}

void state_drop_sized(struct sqlite_state *s, struct partition *p, uint64_t size)
{
	leave(s, p, false, size);
}

uint32_t state_next_generation(struct sqlite_state *s, bool is_year, int64_t day)
{
	uint32_t next = 1;

	for (size_t i = 0; i < s->partitions_count; i++)
		if (s->partitions[i]->is_year == is_year && s->partitions[i]->day == day)
			next = MAX(next, s->partitions[i]->generation + 1);
	for (;; next++) { /* a damaged file that was set aside keeps its number */
		scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
		char name[40];

		partition_name(name, is_year, day, next);
		path_of(s, name, "", &path);
		if (access(buf_cstr(&path), F_OK) == 0)
			continue;
		path_of(s, name, ".damaged", &path);
		if (access(buf_cstr(&path), F_OK) < 0)
			return next;
	}
}

int state_sync(struct sqlite_state *s)
{
	return io_sync_folder(s->path);
}

int state_swap(struct sqlite_state *s, struct partition *fresh, const struct partition_list *old)
{
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = insert(s, fresh);
	for (size_t i = 0; r == 0 && i < old->count; i++)
		if (take_out(s, old->items[i]))
			old->items[i]->gone = true;
	if (r == 0)
		fresh->refs++;
	(void)pthread_mutex_unlock(&s->lock);
	if (r == 0)
		catalog_note(s, fresh, "closed");
	return r;
}

/* state->lock is held. Return: days with a file. */
static size_t count_days(const struct sqlite_state *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->partitions_count; i++)
		count += !s->partitions[i]->is_year &&
			 (!i || s->partitions[i - 1]->is_year || s->partitions[i - 1]->day != s->partitions[i]->day);
	return count;
}

static bool has_day(const struct sqlite_state *s, int64_t day)
{
	for (size_t i = 0; i < s->partitions_count; i++)
		if (!s->partitions[i]->is_year && s->partitions[i]->day == day)
			return true;
	return false;
}

/* state->lock is held. Return: the open day that nothing came for for longest, when there are too many of them. Today
 * and tomorrow stay. */
static const struct partition *one_too_many(struct sqlite_state *s)
{
	int64_t today = (int64_t)(state_now(s) / STORE_DAY_NS);
	const struct partition *oldest = NULL;
	size_t open = 0;

	for (size_t i = 0; i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year || partition_is_closed(p) || p->day == today || p->day == today + 1)
			continue;
		open++;
		if (!oldest || p->newest_upload < oldest->newest_upload)
			oldest = p;
	}
	return open >= OPEN_DAYS_MAX ? oldest : NULL;
}

int state_reserve(const char *path)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	return fd < 0 ? -errno : 0;
}

/* state->lock is held. */
static int reserve(struct sqlite_state *s, bool is_year, int64_t day, uint32_t *generation)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	char name[40];

	if (!is_year && count_days(s) >= STORE_DAYS_MAX && !has_day(s, day))
		return -EOVERFLOW;
	*generation = state_next_generation(s, is_year, day);
	partition_name(name, is_year, day, *generation);
	path_of(s, name, "", &path);
	return path.error ? path.error : state_reserve(buf_cstr(&path));
}

/* The number of the next file, which nobody else gets from here on. */
static int reserve_next(struct sqlite_state *s, bool is_year, int64_t day, uint32_t *generation)
{
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = reserve(s, is_year, day, generation);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

/* make_lock is held, and no other: nobody waits while the file is made but those who want it. */
static int make(struct sqlite_state *s, bool is_year, int64_t day)
{
	struct partition *p = NULL;
	uint32_t generation;
	int r = reserve_next(s, is_year, day, &generation);

	if (r < 0)
		return r;
	r = partition_open(s, is_year, day, generation, true, &p);
	r = r ? r : io_sync_folder(s->path);
	if (r == 0) {
		catalog_note(s, p, "open");
		(void)pthread_mutex_lock(&s->lock);
		r = insert(s, p);
		(void)pthread_mutex_unlock(&s->lock);
	}
	if (r < 0) {
		char name[40];

		partition_free(p);
		partition_name(name, is_year, day, generation);
		remove_files(s, name);
	}
	return r;
}

/* state->lock is held. Return: the partition of the day that takes writes, or NULL. */
static struct partition *open_one_of(struct sqlite_state *s, bool is_year, int64_t day)
{
	struct partition *found = NULL;

	for (size_t i = 0; i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year == is_year && p->day == day && !partition_is_closed(p))
			found = p;
	}
	return found;
}

/* Return: whether there is one that takes writes; then *out has a reference. */
static bool find_open(struct sqlite_state *s, bool is_year, int64_t day, struct partition **out)
{
	struct partition *found;

	(void)pthread_mutex_lock(&s->lock);
	found = open_one_of(s, is_year, day);
	if (found) {
		found->refs++;
		*out = found;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return found;
}

/* Profiles of many days at once (an import) must not keep all of these open. */
static int close_one_too_many(struct sqlite_state *s, int64_t day)
{
	int r = 0;

	for (int i = 0; i < CLOSE_TRIES && r == 0; i++) { /* others may open some meanwhile */
		const struct partition *p;
		int64_t other = 0;

		(void)pthread_mutex_lock(&s->lock);
		p = open_one_of(s, false, day) ? NULL : one_too_many(s);
		if (p)
			other = p->day;
		(void)pthread_mutex_unlock(&s->lock);
		if (!p)
			return 0;
		r = compact_day(s, other, NULL);
		if (db_is_damage(r))
			r = 0; /* it was set aside */
	}
	return r == -EAGAIN ? 0 : r;
}

int state_for_write(struct sqlite_state *s, bool is_year, int64_t day, struct partition **out)
{
	int r = is_year ? 0 : close_one_too_many(s, day);

	while (r == 0 && !find_open(s, is_year, day, out)) {
		(void)pthread_mutex_lock(&s->make_lock);
		if (find_open(s, is_year, day, out)) { /* somebody made it while this one waited */
			(void)pthread_mutex_unlock(&s->make_lock);
			break;
		}
		r = make(s, is_year, day);
		(void)pthread_mutex_unlock(&s->make_lock);
	}
	return r;
}

int state_partitions(struct sqlite_state *s, bool years, int64_t first, int64_t last, struct partition_list *out)
{
	int r = 0;

	*out = (struct partition_list){ .state = s };
	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; r == 0 && i < s->partitions_count; i++) {
		struct partition *p = s->partitions[i];

		if (p->is_year != years || p->day > last || p->day + (years ? 365 : 0) < first)
			continue;
		r = array_grow(&out->items, &out->cap, out->count, PARTITIONS_MAX);
		if (r == 0) {
			p->refs++;
			out->items[out->count++] = p;
		}
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (r < 0)
		partition_list_release(out);
	return r;
}

void partition_list_release(struct partition_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		state_release(list->state, list->items[i]);
	free(list->items);
	*list = (struct partition_list){ 0 };
}

/* Opening */

static int open_one(struct sqlite_state *s, struct str name)
{
	struct partition *p = NULL;
	uint32_t generation;
	char terminated[40];
	bool is_year;
	int64_t day;
	int r;

	if (!partition_parse_name(name, &is_year, &day, &generation))
		return 0;
	partition_name(terminated, is_year, day, generation);
	r = partition_open(s, is_year, day, generation, false, &p);
	if (r == -ENODATA) { /* its making was interrupted: nothing was acknowledged */
		remove_files(s, terminated);
		return 0;
	}
	if (db_is_damage(r)) {
		set_aside(s, terminated);
		return 0;
	}
	if (r == 0) {
		r = insert(s, p);
		if (r < 0)
			partition_free(p);
	}
	return r;
}

/* A compacted file replaces all earlier ones of its day; a crash may have left some. */
static void drop_replaced(struct sqlite_state *s)
{
	for (size_t i = s->partitions_count; i-- > 1;) {
		struct partition *p = s->partitions[i];
		struct reader *reader = NULL;
		int64_t replaces = 0;

		if (p->closed && partition_reader(p, &reader) == 0) {
			ignore(db_get_meta(reader->db, "replaces", &replaces)); /* without it none */
			partition_reader_done(p, reader);
		}
		while (replaces && i > 0 && s->partitions[i - 1]->day == p->day && !s->partitions[i - 1]->is_year &&
		       !p->is_year) {
			struct partition *old = s->partitions[i - 1];

			(void)take_out(s, old);
			end(s, old);
			i--;
		}
	}
}

static int open_all(struct sqlite_state *s)
{
	DIR *dir = opendir(s->path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		struct str name = str_of(entry->d_name);

		if (str_ends(name, STR(".tmp")))
			remove_files(s, entry->d_name); /* a compaction that was interrupted */
		else
			r = open_one(s, name);
	}
	(void)closedir(dir);
	if (r == 0)
		drop_replaced(s);
	return r;
}

static int open_catalog(struct sqlite_state *s)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	int r;

	path_of(s, "catalog.db", "", &path);
	r = db_open(buf_cstr(&path), false, &s->catalog);
	r = r ? r : db_exec(s->catalog, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
	r = r ? r : db_exec(s->catalog, catalog_schema);
	if (db_is_damage(r)) {
		db_closep(&s->catalog);
		set_aside(s, "catalog.db");
		r = db_open(buf_cstr(&path), false, &s->catalog);
		r = r ? r : db_exec(s->catalog, catalog_schema);
	}
	return r;
}

static int fill_catalog(struct sqlite_state *s)
{
	int r = db_exec(s->catalog, "BEGIN; DELETE FROM partition WHERE state <> 'damaged'");

	for (size_t i = 0; r == 0 && i < s->partitions_count; i++)
		catalog_note(s, s->partitions[i], s->partitions[i]->closed ? "closed" : "open");
	return r ? r : db_exec(s->catalog, "COMMIT");
}

static int lock_directory(struct sqlite_state *s)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));

	if (mkdir(s->path, 0750) < 0 && errno != EEXIST)
		return -errno;
	path_of(s, "lock", "", &path);
	s->lock_fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (s->lock_fd < 0)
		return -errno;
	return flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static void state_closep(struct sqlite_state **s)
{
	state_close(*s);
}

int state_open(const struct store_config *config, struct sqlite_state **out)
{
	scoped(state_closep) struct sqlite_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->lock_fd = -1;
	s->config = *config;
	s->dictionary_max = config->dictionary_max ? config->dictionary_max : DICTIONARY_MEMORY;
	(void)pthread_mutex_init(&s->lock, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_mutex_init(&s->catalog_lock, NULL);
	(void)pthread_mutex_init(&s->compact_lock, NULL);
	(void)pthread_mutex_init(&s->make_lock, NULL);
	(void)pthread_cond_init(&s->changed, NULL);
	store_ids_init(&s->ids);
	s->path = str_dup(str_of(config->path));
	r = s->path ? lock_directory(s) : -ENOMEM;
	r = r ? r : open_catalog(s);
	r = r ? r : open_all(s);
	r = r ? r : fill_catalog(s);
	if (r < 0)
		return r;
	*out = s;
	s = NULL; /* moved out */
	return 0;
}

void state_close(struct sqlite_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->partitions_count; i++)
		partition_free(s->partitions[i]);
	free(s->partitions);
	db_closep(&s->catalog);
	closep(&s->lock_fd);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_mutex_destroy(&s->catalog_lock);
	(void)pthread_mutex_destroy(&s->compact_lock);
	(void)pthread_mutex_destroy(&s->make_lock);
	(void)pthread_cond_destroy(&s->changed);
	free(s->path);
	free(s);
}
