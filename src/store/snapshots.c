/* SPDX-License-Identifier: Apache-2.0 */
#include "store/snapshots.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/log.h"
#include "store/expiry.h"

#define PREFIX "snapshot-"
#define TEMPORARY ".tmp"
#define NAME_SIZE (sizeof(PREFIX) + SNAPSHOT_ID_TEXT + sizeof(TEMPORARY))
#define FILES_MAX 65536

struct entry {
	char id[SNAPSHOT_ID_TEXT + 1];
	bool is_whole; /* false: its room is taken, its file is being written */
	uint64_t size, created_ns;
};

struct snapshots {
	struct snapshots_config config;
	char *path;
	int folder_fd;
	uint64_t odd;
	pthread_mutex_t lock; /* guards what follows; not held over I/O */
	struct entry *items;
	size_t count, cap;
	uint64_t size;
};

/* Names */

static bool is_id(struct str text)
{
	bool fine = text.len == SNAPSHOT_ID_TEXT;

	for (size_t i = 0; fine && i < text.len; i++)
		fine = (text.ptr[i] >= '0' && text.ptr[i] <= '9') || (text.ptr[i] >= 'a' && text.ptr[i] <= 'f');
	return fine;
}

/* Return: the id in the name of a file, or an empty string. @is_temporary: one that was being written. */
static struct str id_of(struct str name, bool *is_temporary)
{
	struct str id = str_skip(name, sizeof(PREFIX) - 1);

	*is_temporary = str_ends(name, STR(TEMPORARY));
	if (*is_temporary)
		id = str_first(id, id.len - MIN(id.len, sizeof(TEMPORARY) - 1));
	return str_starts(name, STR(PREFIX)) && is_id(id) ? id : STR("");
}

bool snapshots_owns_name(struct str name)
{
	bool is_temporary;

	return id_of(name, &is_temporary).len > 0;
}

static void name_of(const char *id, bool is_temporary, char out[NAME_SIZE])
{
	(void)snprintf(out, NAME_SIZE, PREFIX "%s%s", id, is_temporary ? TEMPORARY : "");
}

/* Reading */

/* Nothing but a plain file is opened: a FIFO would wait, and a device do what it does. Return: a descriptor, -ENOENT,
 * -EBADMSG: it is no plain file, -E2BIG: it is larger than a snapshot can be, -errno. */
static int open_file(const struct snapshots *s, const char *name, uint64_t *size)
{
	scoped(closep) int fd = -1;
	struct stat st;
	int out;

	if (fstatat(s->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	fd = openat(s->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > SNAPSHOT_FILE_MAX)
		return -E2BIG;
	*size = (uint64_t)st.st_size;
	out = fd;
	fd = -1; /* moved out */
	return out;
}

static int read_file(const struct snapshots *s, const char *name, size_t max, struct buf *out, uint64_t *size)
{
	scoped(closep) int fd = open_file(s, name, size);
	char *at;
	size_t want;
	int r;

	if (fd < 0)
		return fd;
	want = MIN((size_t)*size, max);
	at = buf_reserve(out, MAX(want, (size_t)1));
	if (!at)
		return out->error;
	r = io_pread_all(fd, at, want, 0);
	if (r == 0)
		buf_commit(out, want);
	return r == -ENODATA ? -EBADMSG : r;
}

static int read_head(const struct snapshots *s, const char *name, struct buf *bytes, uint64_t *size,
		     struct snapshot_head *out)
{
	int r;

	buf_clear(bytes);
	r = read_file(s, name, SNAPSHOT_FRONT_MAX, bytes, size);
	return r ? r : snapshot_decode_head(buf_str(bytes), *size, out);
}

/* Opening */

static const char *why_odd(int r)
{
	switch (r) {
	case -EBADMSG:
		return "is no whole snapshot";
	case -ENOTSUP:
		return "was written by a newer version of hearth";
	case -E2BIG:
		return "is larger than a snapshot can be";
	default:
		return strerror(-r);
	}
}

static int newest_first(const void *left, const void *right)
{
	const struct entry *l = left, *r = right;

	if (l->created_ns != r->created_ns)
		return l->created_ns > r->created_ns ? -1 : 1;
	return strcmp(l->id, r->id);
}

static int add_entry(struct snapshots *s, struct str id, uint64_t size, uint64_t created_ns, bool is_whole)
{
	int r = array_grow(&s->items, &s->cap, s->count, FILES_MAX);
	struct entry *e;

	if (r < 0)
		return r;
	e = &s->items[s->count++];
	*e = (struct entry){ .size = size, .created_ns = created_ns, .is_whole = is_whole };
	memcpy(e->id, id.ptr, SNAPSHOT_ID_TEXT);
	s->size += size;
	return 0;
}

/* Nobody was told of it: what was acknowledged has its name. */
static void drop_temporary(const struct snapshots *s, const char *name)
{
	struct stat st;

	if (fstatat(s->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && unlinkat(s->folder_fd, name, 0) < 0)
		log_warn("what is left of a snapshot cannot be removed", LOG_CSTR("file", name), LOG_ERR(-errno));
}

static int take_file(struct snapshots *s, const char *name, struct buf *bytes)
{
	struct snapshot_head head;
	bool is_temporary;
	struct str id = id_of(str_of(name), &is_temporary);
	uint64_t size;
	int r;

	if (!id.len)
		return 0;
	if (is_temporary) {
		drop_temporary(s, name);
		return 0;
	}
	r = read_head(s, name, bytes, &size, &head);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r == 0)
		return add_entry(s, id, size, head.created_ns, true);
	s->odd++;
	log_error("a snapshot cannot be used: it stays as it is, out of service", LOG_CSTR("file", name),
		  LOG_CSTR("why", why_odd(r)));
	return 0;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int take_all(struct snapshots *s)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(SNAPSHOT_FRONT_MAX);
	scoped(closedirp) DIR *dir = opendir(s->path);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir)))
		r = take_file(s, entry->d_name, &bytes);
	return r;
}

int snapshots_open(const struct snapshots_config *config, struct snapshots **out)
{
	struct snapshots *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->path = str_dup(str_of(config->path));
	(void)pthread_mutex_init(&s->lock, NULL); /* no attributes: cannot fail on Linux */
	s->folder_fd = s->path ? open(config->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	r = !s->path ? -ENOMEM : s->folder_fd < 0 ? -errno : take_all(s);
	if (r < 0) {
		snapshots_close(s);
		return r;
	}
	*out = s;
	return 0;
}

void snapshots_close(struct snapshots *s)
{
	if (!s)
		return;
	closep(&s->folder_fd);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->items);
	free(s->path);
	free(s);
}

/* Keeping */

/* The lock is held. */
static struct entry *find(struct snapshots *s, struct str id)
{
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(str_of(s->items[i].id), id))
			return &s->items[i];
	return NULL;
}

static int take_room(struct snapshots *s, const char *id, uint64_t size, uint64_t created_ns)
{
	int r = 0;

	if (size > s->config.size_max)
		return -EFBIG;
	(void)pthread_mutex_lock(&s->lock);
	if (s->count >= s->config.count_max || s->size > s->config.size_max - size)
		r = -EDQUOT;
	r = r ? r : add_entry(s, str_of(id), size, created_ns, false);
	(void)pthread_mutex_unlock(&s->lock);
	return r == -E2BIG ? -EDQUOT : r;
}

static void drop_entry(struct snapshots *s, struct str id)
{
	struct entry *e;

	(void)pthread_mutex_lock(&s->lock);
	e = find(s, id);
	if (e) {
		s->size -= e->size;
		*e = s->items[--s->count];
	}
	(void)pthread_mutex_unlock(&s->lock);
}

static void note_whole(struct snapshots *s, const char *id)
{
	struct entry *e;

	(void)pthread_mutex_lock(&s->lock);
	e = find(s, str_of(id));
	if (e)
		e->is_whole = true;
	(void)pthread_mutex_unlock(&s->lock);
}

/* Days must not go to make room for a snapshot. */
static int check_disk(const struct snapshots *s, uint64_t size)
{
	struct statvfs fs;
	uint64_t room, goal = s->config.free_min;

	if (fstatvfs(s->folder_fd, &fs) < 0)
		return 0; /* then the disk itself says whether there is room */
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (goal == EXPIRY_FREE_AUTO)
		goal = MIN((uint64_t)GIB(1), (uint64_t)fs.f_blocks * fs.f_frsize / 20);
	return room < goal || room - goal < size ? -ENOSPC : 0;
}

static int write_file(const struct snapshots *s, const char *name, struct str file)
{
	scoped(closep) int fd = openat(s->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	int r = fd < 0 ? -errno : io_write_all(fd, file.ptr, file.len);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

/* Under its own name there is only ever a whole file. */
static int write_whole(const struct snapshots *s, const char *id, struct str file)
{
	char temporary[NAME_SIZE], name[NAME_SIZE];
	int r;

	name_of(id, true, temporary);
	name_of(id, false, name);
	r = write_file(s, temporary, file);
	if (r == 0 && renameat(s->folder_fd, temporary, s->folder_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		if (r != -EEXIST)
			(void)unlinkat(s->folder_fd, temporary, 0); /* otherwise the next start does it */
		return r;
	}
	if (fsync(s->folder_fd) == 0)
		return 0;
	r = -errno;
	(void)unlinkat(s->folder_fd, name, 0); /* nobody is told of it */
	return r;
}

static int make_id(char out[SNAPSHOT_ID_TEXT + 1])
{
	uint8_t random[SNAPSHOT_ID_TEXT / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", random[i]);
	return 0;
}

int snapshots_put(struct snapshots *s, struct str file, uint64_t created_ns, char id[SNAPSHOT_ID_TEXT + 1])
{
	char made[SNAPSHOT_ID_TEXT + 1];
	int r = make_id(made);

	r = r ? r : take_room(s, made, file.len, created_ns);
	if (r < 0)
		return r;
	r = check_disk(s, file.len);
	r = r ? r : write_whole(s, made, file);
	if (r < 0) {
		drop_entry(s, str_of(made));
		return r;
	}
	note_whole(s, made);
	memcpy(id, made, sizeof(made));
	return 0;
}

/* Using */

static bool is_known(struct snapshots *s, struct str id)
{
	const struct entry *e;
	bool known;

	(void)pthread_mutex_lock(&s->lock);
	e = find(s, id);
	known = e && e->is_whole;
	(void)pthread_mutex_unlock(&s->lock);
	return known;
}

int snapshots_read(struct snapshots *s, struct str id, size_t max, struct buf *out, uint64_t *size)
{
	char text[SNAPSHOT_ID_TEXT + 1] = { 0 }, name[NAME_SIZE];

	if (!is_id(id) || !is_known(s, id))
		return -ENOENT;
	memcpy(text, id.ptr, SNAPSHOT_ID_TEXT);
	name_of(text, false, name);
	return read_file(s, name, max, out, size);
}

int snapshots_remove(struct snapshots *s, struct str id)
{
	char text[SNAPSHOT_ID_TEXT + 1] = { 0 }, name[NAME_SIZE];

	if (!is_id(id) || !is_known(s, id))
		return -ENOENT;
	memcpy(text, id.ptr, SNAPSHOT_ID_TEXT);
	name_of(text, false, name);
	if (unlinkat(s->folder_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	if (fsync(s->folder_fd) < 0)
		return -errno;
	drop_entry(s, id);
	return 0;
}

void snapshots_stats(struct snapshots *s, struct snapshots_stats *out)
{
	(void)pthread_mutex_lock(&s->lock);
	*out = (struct snapshots_stats){ .count = s->count,
					 .size = s->size,
					 .odd = s->odd,
					 .count_max = s->config.count_max,
					 .size_max = s->config.size_max };
	(void)pthread_mutex_unlock(&s->lock);
}

/* A copy of the list: reading takes no lock. */
static int copy_entries(struct snapshots *s, struct entry **out, size_t *count)
{
	struct entry *copy;

	*count = 0;
	(void)pthread_mutex_lock(&s->lock);
	copy = calloc(s->count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < s->count; i++)
		if (s->items[i].is_whole)
			copy[(*count)++] = s->items[i];
	(void)pthread_mutex_unlock(&s->lock);
	*out = copy;
	return copy ? 0 : -ENOMEM;
}

int snapshots_list(struct snapshots *s, snapshots_fn *visit, void *ctx)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(SNAPSHOT_FRONT_MAX);
	scoped(freep) struct entry *list = NULL;
	struct snapshot_head head;
	char name[NAME_SIZE];
	uint64_t size;
	size_t count;
	int r = copy_entries(s, &list, &count);

	if (r < 0)
		return r;
	qsort(list, count, sizeof(*list), newest_first);
	for (size_t i = 0; r == 0 && i < count; i++) {
		name_of(list[i].id, false, name);
		if (read_head(s, name, &bytes, &size, &head) == 0) /* otherwise it went meanwhile, or check() says */
			r = visit(ctx, list[i].id, size, &head);
	}
	return r;
}

/* Checking */

static int check_file(const struct snapshots *s, const char *name, struct buf *bytes)
{
	scoped(window_release) struct window w = { 0 };
	struct snapshot_head head;
	uint64_t size;
	int r;

	buf_clear(bytes);
	r = read_file(s, name, SNAPSHOT_FILE_MAX, bytes, &size);
	return r ? r : snapshot_decode(buf_str(bytes), &head, &w);
}

int snapshots_check(struct snapshots *s, store_problem_fn *visit, void *ctx)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(SNAPSHOT_FILE_MAX);
	scoped(closedirp) DIR *dir = opendir(s->path);
	const struct dirent *entry;
	int problems = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		bool is_temporary;
		int r = 0;

		if (!id_of(str_of(entry->d_name), &is_temporary).len)
			continue;
		if (!is_temporary)
			r = check_file(s, entry->d_name, &bytes);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && !is_temporary)
			continue;
		visit(ctx, entry->d_name, is_temporary ? "is left of one that was not finished" : why_odd(r));
		problems++;
	}
	return problems;
}
