/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a folder. What lies in it may be anything: one file that cannot be used keeps nothing else from service, and
 * is left as it is. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/log.h"
#include "store/sqlite_int.h"

#define NAMES_MAX ((size_t)1 << 20)
#define ODD_MAX 65536
#define ROOM_WANTED MIB(4) /* of SQLite's shared memory: 32 KiB for each file that is open */
#define TEMPORARY ".tmp"

/* The catalog can be made again from the partitions: failing to write it fails nothing. */
static const char catalog_schema[] = "CREATE TABLE IF NOT EXISTS partition(name TEXT PRIMARY KEY, day INT, state TEXT "
				     "NOT NULL, changed INT NOT NULL)";

/* Odd files */

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "is a link";
	case S_IFDIR:
		return "is a folder";
	case S_IFIFO:
		return "is a FIFO";
	case S_IFSOCK:
		return "is a socket";
	default:
		return "is a device";
	}
}

/* Nothing is opened: a FIFO would wait, and a device do what it does. Return: as odd_look(). */
static bool look_at(const struct sqlite_state *s, const char *name, const char *suffix, bool *is_read_only,
		    char why[96])
{
	char whole[300];
	struct stat st;

	(void)snprintf(whole, sizeof(whole), "%s%s", name, suffix); /* a name of the folder has at most 255 */
	if (fstatat(s->folder_fd, whole, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return false;
		(void)snprintf(why, 96, "%s%s%s", suffix, *suffix ? " beside it: " : "", strerror(errno));
		return true;
	}
	if (!S_ISREG(st.st_mode)) {
		(void)snprintf(why, 96, "%s%s%s", suffix, *suffix ? " beside it " : "", kind_of(st.st_mode));
		return true;
	}
	if (faccessat(s->folder_fd, whole, R_OK | W_OK, AT_EACCESS) == 0)
		return false;
	if (!*suffix && faccessat(s->folder_fd, whole, R_OK, AT_EACCESS) == 0) {
		*is_read_only = true;
		return false;
	}
	(void)snprintf(why, 96, "%s%smay not be read and written: owner %u, mode %04o", suffix,
		       *suffix ? " beside it " : "", (unsigned int)st.st_uid, (unsigned int)(st.st_mode & 07777));
	return true;
}

bool odd_look(const struct sqlite_state *s, const char *name, bool *is_read_only, char why[96])
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

	*is_read_only = false;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (look_at(s, name, suffixes[i], is_read_only, why))
			return true;
	return false;
}

void odd_note(struct sqlite_state *s, const char *name, const char *why)
{
	struct odd_file odd = { 0 };

	(void)snprintf(odd.name, sizeof(odd.name), "%s", name);
	(void)snprintf(odd.why, sizeof(odd.why), "%s", why);
	(void)pthread_mutex_lock(&s->lock);
	if (array_grow(&s->odd, &s->odd_cap, s->odd_count, ODD_MAX) == 0)
		s->odd[s->odd_count++] = odd;
	(void)pthread_mutex_unlock(&s->lock);
	log_error("a file of the store cannot be used: it stays as it is, out of service", LOG_CSTR("file", odd.name),
		  LOG_CSTR("why", odd.why));
}

/* Partitions */

/* Of what the file is not the cause. */
static bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* Return: whether the file, as lstat() has it, is not empty. */
static bool has_bytes(const struct sqlite_state *s, const char *name, const char *suffix)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	struct stat st;

	state_path(s, name, suffix, &path);
	return lstat(buf_cstr(&path), &st) == 0 && st.st_size > 0;
}

/* @r: why a file cannot be a partition in use. Return: 0, or @r when nothing can be opened now. */
static int cannot_open(struct sqlite_state *s, const char *name, int r)
{
	if (is_shortage(r))
		return r;
	if (r == -ENODATA)
		(void)state_remove_files(s, name); /* its making was interrupted: nothing was acknowledged */
	else if (db_is_damage(r))
		state_set_aside(s, name);
	else
		odd_note(s, name, r == -ENOTSUP ? "was written by a newer version of hearth" : strerror(-r));
	return 0;
}

static int open_one(struct sqlite_state *s, struct str text)
{
	struct partition *p = NULL;
	bool is_year, is_read_only, has_wal;
	uint32_t generation;
	char name[40], why[96];
	int64_t day;
	int r;

	if (!partition_parse_name(text, &is_year, &day, &generation))
		return 0;
	partition_name(name, is_year, day, generation);
	if (odd_look(s, name, &is_read_only, why)) {
		odd_note(s, name, why);
		return 0;
	}
	has_wal = has_bytes(s, name, "-wal"); /* opening may take it away */
	r = has_wal && !has_bytes(s, name, "") ? -ENODATA : partition_open(s, is_year, day, generation, false, &p);
	if (r == -ENODATA && has_wal)
		r = -EUCLEAN; /* not left by a creation: that has tables before it has a WAL */
	if (r < 0)
		return cannot_open(s, name, r);
	if (is_read_only && !p->closed) {
		partition_free(p);
		odd_note(s, name, "takes profiles and may only be read");
		return 0;
	}
	r = state_insert(s, p);
	if (r < 0)
		partition_free(p);
	return r;
}

/* What the meta of a closed day says of another file of its day: it is in it, it has rows that are not, or neither. */
static int replaced_by(sqlite3 *db, int64_t replaces, uint32_t generation, enum partition_fate *out)
{
	int64_t value = 0;
	char key[32];
	int r;

	*out = FATE_REMOVE;
	if (replaces == REPLACES_ALL)
		return 1;
	(void)snprintf(key, sizeof(key), REPLACED_KEY "%u", generation); /* 9 + 10: fits */
	r = db_get_meta(db, key, &value);
	if (value == REPLACED_BUT_ROWS)
		*out = FATE_ASIDE;
	return r;
}

/* A closed day's file replaces others, as does one that a service was cut out of; a crash may have left some. */
static void drop_replaced_by(struct sqlite_state *s, struct partition *p)
{
	struct reader *reader = NULL;
	int64_t replaces = 0;

	if (partition_reader(p, &reader) < 0)
		return;
	ignore(db_get_meta(reader->db, "replaces", &replaces)); /* without it none */
	for (size_t i = s->partitions_count; replaces && i-- > 0;) {
		struct partition *old = s->partitions[i];

		if (old->is_year != p->is_year || old->day != p->day || old->generation >= p->generation ||
		    replaced_by(reader->db, replaces, old->generation, &old->fate) != 1)
			continue;
		(void)state_take_out(s, old);
		state_end(s, old);
	}
	partition_reader_done(p, reader);
}

static void drop_replaced(struct sqlite_state *s)
{
	for (size_t i = s->partitions_count; i-- > 0; i = MIN(i, s->partitions_count)) {
		struct partition *p = s->partitions[i];

		if (p->is_year || p->closed)
			drop_replaced_by(s, p);
	}
}

/* Return: whether @text is NAME and @suffix, as writing a file anew leaves it when it is interrupted: NAME is taken by
 * an empty file. */
static bool is_left_over(const struct sqlite_state *s, struct str text, const char *suffix, char name[40])
{
	char whole[64];
	struct stat st, taken;
	uint32_t generation;
	bool is_year;
	int64_t day;

	if (!str_ends(text, str_of(suffix)) ||
	    !partition_parse_name(str_first(text, text.len - strlen(suffix)), &is_year, &day, &generation))
		return false;
	partition_name(name, is_year, day, generation);
	(void)snprintf(whole, sizeof(whole), "%s%s", name, suffix);
	return fstatat(s->folder_fd, name, &taken, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(s->folder_fd, whole, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       S_ISREG(taken.st_mode) && !taken.st_size && st.st_uid == taken.st_uid;
}

static void drop_left_over(struct sqlite_state *s, struct str text, const char *suffix)
{
	char name[40], whole[64];

	if (!is_left_over(s, text, suffix, name))
		return;
	(void)snprintf(whole, sizeof(whole), "%s%s", name, suffix);
	if (state_remove_files(s, whole) < 0) /* it was said; and it is in nobody's way, but for a deletion */
		s->cut_pending = true;
}

static bool is_marked(const struct sqlite_state *s)
{
	struct stat st;

	return fstatat(s->folder_fd, CUT_MARK, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* All names first: files come and go while they are opened. */
struct names {
	char **items;
	size_t count, cap;
};

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i]);
	free(n->items);
}

static int read_names(const char *path, struct names *out)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		char *name = str_dup(str_of(entry->d_name));

		r = name ? array_grow(&out->items, &out->cap, out->count, NAMES_MAX) : -ENOMEM;
		if (r == 0)
			out->items[out->count++] = name;
		else
			free(name);
	}
	(void)closedir(dir);
	return r;
}

/* A deletion that was past its moment is done now; one that was not has not happened. */
static int finish_cut(struct sqlite_state *s, const struct names *names)
{
	bool is_done = is_marked(s);
	char name[40];
	int r = 0;

	for (size_t i = 0; r == 0 && i < names->count; i++) {
		struct str text = str_of(names->items[i]);

		if (!is_done)
			drop_left_over(s, text, CUT_SUFFIX);
		else if (is_left_over(s, text, CUT_SUFFIX, name))
			r = cut_take_place(s, name);
	}
	if (r < 0 || !is_done)
		return r;
	r = state_sync(s);
	return r ? r : cut_forget(s);
}

static int open_all(struct sqlite_state *s)
{
	scoped(names_release) struct names names = { 0 };
	int r = read_names(s->path, &names);

	r = r ? r : finish_cut(s, &names);
	for (size_t i = 0; r == 0 && i < names.count; i++)
		drop_left_over(s, str_of(names.items[i]), TEMPORARY);
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = open_one(s, str_of(names.items[i]));
	if (r == 0)
		drop_replaced(s);
	return r;
}

int odd_visit_aside(const struct sqlite_state *s, store_problem_fn *visit, void *ctx)
{
	scoped(names_release) struct names names = { 0 };
	int count = 0, r = read_names(s->path, &names);

	for (size_t i = 0; r == 0 && i < names.count; i++) {
		struct str name = str_of(names.items[i]);

		if (str_search(name, STR(".db.damaged")) < 0 || str_ends(name, STR("-wal")) ||
		    str_ends(name, STR("-shm")) || str_ends(name, STR("-journal")))
			continue;
		visit(ctx, names.items[i],
		      "was set aside as damaged; nothing reads it, remove it when it is not needed");
		count++;
	}
	return r ? r : count;
}

/* The catalog */

static int open_catalog(struct sqlite_state *s, const char *path)
{
	int r = db_open(s->vfs, path, false, &s->catalog);

	r = r ? r : db_exec(s->catalog, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
	return r ? r : db_exec(s->catalog, catalog_schema);
}

static int fill_catalog(struct sqlite_state *s)
{
	int r = db_exec(s->catalog, "BEGIN; DELETE FROM partition WHERE state <> 'damaged'");

	for (size_t i = 0; r == 0 && i < s->partitions_count; i++)
		state_catalog_note(s, s->partitions[i], s->partitions[i]->closed ? "closed" : "open");
	r = r ? r : db_exec(s->catalog, "COMMIT");
	if (r < 0 && !sqlite3_get_autocommit(s->catalog))
		ignore(db_exec(s->catalog, "ROLLBACK")); /* it may have rolled back by itself */
	return r;
}

/* The store does without it. */
static void make_catalog(struct sqlite_state *s)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(16));
	bool is_read_only;
	char why[96];
	int r;

	if (odd_look(s, CATALOG, &is_read_only, why) || is_read_only) {
		odd_note(s, CATALOG, is_read_only ? "may only be read" : why);
		return;
	}
	state_path(s, CATALOG, "", &path);
	r = open_catalog(s, buf_cstr(&path));
	if (db_is_damage(r)) {
		db_closep(&s->catalog);
		state_set_aside(s, CATALOG);
		r = open_catalog(s, buf_cstr(&path));
	}
	r = r ? r : fill_catalog(s);
	if (r == 0)
		return;
	log_warn("the catalog could not be written: it is made again at the next start", LOG_ERR(r));
	db_closep(&s->catalog);
}

/* The folder */

static int lock_fd(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

/* The folder itself is locked, and a file in it for file systems that lock no folders. Return: 0, -EWOULDBLOCK: another
 * process has it, -errno. */
static int lock_folder(struct sqlite_state *s)
{
	bool is_locked, is_read_only;
	char why[96];
	int r;

	if (mkdir(s->path, 0750) < 0 && errno != EEXIST)
		return -errno;
	s->folder_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder_fd < 0)
		return -errno;
	r = lock_fd(s->folder_fd);
	if (r == -EWOULDBLOCK)
		return r;
	is_locked = r == 0;
	s->lock_fd = openat(s->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	r = s->lock_fd < 0 ? -errno : lock_fd(s->lock_fd);
	if (r == 0 || r == -EWOULDBLOCK || !is_locked)
		return r;
	if (r == -ENOSPC || r == -EDQUOT || r == -EROFS)
		return 0; /* nothing is wrong with the file: it is not there yet */
	odd_note(s, "lock", odd_look(s, "lock", &is_read_only, why) ? why : strerror(-r));
	return 0;
}

static bool has_room(const char *path)
{
	scoped(closep) int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statvfs fs;
	int r;

	if (fd >= 0) { /* asked for in truth: quotas count, too */
		r = posix_fallocate(fd, 0, (off_t)ROOM_WANTED);
		return r != ENOSPC && r != EDQUOT;
	}
	return statvfs(path, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_WANTED;
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
	s->lock_fd = s->folder_fd = -1;
	s->config = *config;
	s->dictionary_max = config->dictionary_max ? config->dictionary_max : DICTIONARY_MEMORY;
	(void)pthread_mutex_init(&s->lock, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_mutex_init(&s->catalog_lock, NULL);
	(void)pthread_mutex_init(&s->expire_lock, NULL);
	(void)pthread_mutex_init(&s->compact_lock, NULL);
	(void)pthread_mutex_init(&s->make_lock, NULL);
	(void)pthread_cond_init(&s->changed, NULL);
	store_ids_init(&s->ids);
	s->path = str_dup(str_of(config->path));
	r = s->path ? lock_folder(s) : -ENOMEM;
	if (r < 0)
		return r;
	if (!has_room(s->path)) {
		s->vfs = "unix-excl";
		log_warn("the disk is full: what is stored is served, until there is room nothing is taken");
	}
	r = open_all(s);
	if (r < 0)
		return r;
	make_catalog(s);
	retention_open(s);
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
	free(s->odd);
	db_closep(&s->catalog);
	closep(&s->lock_fd);
	closep(&s->folder_fd);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_mutex_destroy(&s->catalog_lock);
	(void)pthread_mutex_destroy(&s->expire_lock);
	(void)pthread_mutex_destroy(&s->compact_lock);
	(void)pthread_mutex_destroy(&s->make_lock);
	(void)pthread_cond_destroy(&s->changed);
	free(s->path);
	free(s);
}
