/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"
#include "base/random.h"
#include "base/u64map.h"
#include "proc/proc_read.h"

#define FILES_MAX (1U << 17)
#define RETRY_NS (30 * NSEC_PER_SEC)
#define RETRY_DOUBLINGS 4
#define IMAGE_BYTES_MAX MIB(16) /* of all images together */

struct file {
	struct file_key key;
	char *path;
	void *image;
	size_t image_size;
	struct file_sight seen; /* last */
	int fd;                 /* -1: never opened, or closed to make room for another */
	uint32_t newer, older;  /* ids in the list of open descriptors, most recently used first; 0: none */
	uint32_t next_same;     /* id of another file whose key has the same hash; 0: none */
};

struct files {
	char *host_root;      /* NULL: none; not changed once the table is in use */
	pthread_mutex_t lock; /* guards everything below */
	struct file *items;   /* id - 1 */
	size_t count, cap;
	struct u64map by_key; /* hash of a key -> id of the newest file with that hash */
	size_t fd_max, fd_count, image_bytes;
	uint32_t newest, oldest; /* open descriptors */
	uint64_t seed;
};

static struct file *file_at(struct files *f, uint32_t id)
{
	must(id && id <= f->count);
	return &f->items[id - 1];
}

static uint64_t hash_key(const struct files *f, const struct file_key *key)
{
	return XXH3_64bits_withSeed(key, sizeof(*key), f->seed);
}

static bool key_equal(const struct file_key *a, const struct file_key *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

static void list_remove(struct files *f, uint32_t id)
{
	struct file *file = file_at(f, id);

	*(file->newer ? &file_at(f, file->newer)->older : &f->newest) = file->older;
	*(file->older ? &file_at(f, file->older)->newer : &f->oldest) = file->newer;
	file->newer = file->older = 0;
	f->fd_count--;
}

static void list_push(struct files *f, uint32_t id)
{
	struct file *file = file_at(f, id);

	file->newer = 0;
	file->older = f->newest;
	*(f->newest ? &file_at(f, f->newest)->newer : &f->oldest) = id;
	f->newest = id;
	f->fd_count++;
}

static void drop_fd(struct files *f, uint32_t id)
{
	struct file *file = file_at(f, id);

	list_remove(f, id);
	close(file->fd);
	file->fd = -1;
}

static void adopt_fd(struct files *f, uint32_t id, int fd)
{
	if (fd < 0)
		return;
	if (!f->fd_max) {
		close(fd);
		return;
	}
	if (f->fd_count >= f->fd_max)
		drop_fd(f, f->oldest);
	file_at(f, id)->fd = fd;
	list_push(f, id);
}

int files_open(size_t fd_max, struct files **out)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	u64map_init(&f->by_key, FILES_MAX);
	f->fd_max = fd_max;
	f->seed = random_u64();
	*out = f;
	return 0;
}

int files_set_host_root(struct files *f, const char *host_root)
{
	free(f->host_root);
	f->host_root = str_dup(str_of(host_root));
	return f->host_root ? 0 : -ENOMEM;
}

void files_close(struct files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++) {
		closep(&f->items[i].fd);
		free(f->items[i].path);
		free(f->items[i].image);
	}
	free(f->items);
	free(f->host_root);
	u64map_release(&f->by_key);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static uint32_t find_locked(struct files *f, const struct file_key *key, const void *image)
{
	uint32_t id = 0;

	ignore(u64map_get(&f->by_key, hash_key(f, key), &id)); /* a miss leaves 0 */
	for (; id; id = file_at(f, id)->next_same) {
		const struct file *file = file_at(f, id);

		if (!key_equal(&file->key, key) || !file->image != !image)
			continue;
		if (!image || !memcmp(file->image, image, file->image_size)) /* the size is part of the key */
			return id;
	}
	return 0;
}

/* @path and @image are moved in when 0 is returned. */
static int append_locked(struct files *f, const struct file_key *key, char *path, void *image, size_t image_size,
			 uint32_t *out)
{
	uint64_t hash = hash_key(f, key);
	uint32_t id, same = 0;
	int r = array_grow(&f->items, &f->cap, f->count, FILES_MAX);

	if (r < 0)
		return r;
	id = (uint32_t)f->count + 1;
	ignore(u64map_get(&f->by_key, hash, &same)); /* a miss leaves 0 */
	r = u64map_put(&f->by_key, hash, id);
	if (r < 0)
		return r;
	f->items[f->count++] = (struct file){
		.key = *key,
		.path = path,
		.image = image,
		.image_size = image_size,
		.fd = -1,
		.next_same = same,
	};
	*out = id;
	return 0;
}

static int add_locked(struct files *f, int fd, const struct file_key *key, struct str path, uint32_t *out)
{
	uint32_t id = find_locked(f, key, NULL);
	char *copy;
	int r;

	if (id) {
		if (file_at(f, id)->fd >= 0)
			closep(&fd);
		adopt_fd(f, id, fd); /* it was closed to make room for another: open it again */
		*out = id;
		return 0;
	}
	copy = str_dup(path);
	if (!copy)
		return -ENOMEM;
	r = append_locked(f, key, copy, NULL, 0, &id);
	if (r < 0) {
		free(copy);
		return r;
	}
	adopt_fd(f, id, fd);
	*out = id;
	return 0;
}

int files_add(struct files *f, int fd, const struct file_key *key, struct str path, uint32_t *out)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = add_locked(f, fd, key, path, out);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int add_image_locked(struct files *f, const void *bytes, size_t size, struct str name, uint32_t *out)
{
	/* No file has device and inode 0, so the key of an image, made from its content, never equals a file's. */
	struct file_key key = { .size = size, .mtime_ns = XXH3_64bits(bytes, size) };
	uint32_t id = find_locked(f, &key, bytes);
	scoped(freep) char *path = NULL;
	scoped(freep) void *copy = NULL;
	int r;

	if (id) {
		*out = id;
		return 0;
	}
	if (size > IMAGE_BYTES_MAX - f->image_bytes)
		return -E2BIG;
	path = str_dup(name);
	copy = malloc(size ? size : 1);
	if (!path || !copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, bytes, size);
	r = append_locked(f, &key, path, copy, size, out);
	if (r < 0)
		return r;
	f->image_bytes += size;
	path = NULL;
	copy = NULL;
	return 0;
}

int files_add_image(struct files *f, const void *bytes, size_t size, struct str name, uint32_t *out)
{
	int r;

	pthread_mutex_lock(&f->lock);
	r = add_image_locked(f, bytes, size, name, out);
	pthread_mutex_unlock(&f->lock);
	return r;
}

int files_find(struct files *f, const struct file_key *key, uint32_t *out)
{
	uint32_t id;

	pthread_mutex_lock(&f->lock);
	id = find_locked(f, key, NULL);
	pthread_mutex_unlock(&f->lock);
	if (!id)
		return -ENOENT;
	*out = id;
	return 0;
}

bool files_has_fd(struct files *f, uint32_t id)
{
	bool has;

	pthread_mutex_lock(&f->lock);
	has = id && id <= f->count && f->items[id - 1].fd >= 0;
	pthread_mutex_unlock(&f->lock);
	return has;
}

void files_saw(struct files *f, uint32_t id, const struct file_sight *sight)
{
	pthread_mutex_lock(&f->lock);
	if (id && id <= f->count)
		f->items[id - 1].seen = *sight;
	pthread_mutex_unlock(&f->lock);
}

void file_key_of(const struct stat *st, struct file_key *out)
{
	*out = (struct file_key){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec,
	};
}

/* @fd: or -errno; closed when it is another file than that of @key. Return: it, or -errno. */
static int keep_if_same(int fd, const struct file_key *key)
{
	struct file_key found;
	struct stat st;
	int r;

	if (fd < 0)
		return fd == -ENODEV ? -ESTALE : fd;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0) {
		file_key_of(&st, &found);
		r = key_equal(&found, key) ? 0 : -ESTALE;
	}
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int open_regular_at(int dir, const char *path)
{
	scoped(closep) int path_fd = openat(dir, path, O_PATH | O_CLOEXEC);
	struct stat st;

	return path_fd < 0 ? -errno : io_open_regular(path_fd, &st);
}

/* Through the process that was seen last with the file. Another process may have got this pid since: what it has mapped
 * is either another file, or the same one. */
static int reopen_mapped(const char *host_root, const struct file_sight *seen, const struct file_view *v)
{
	scoped(closep) int dir = seen->pid ? proc_dir_open(host_root, seen->pid) : -ENOENT;
	char name[PROC_MAP_FILE_SIZE];
	int fd;

	if (dir < 0)
		return dir;
	proc_map_file(seen->start, seen->end, name);
	fd = keep_if_same(open_regular_at(dir, name), &v->key);
	if (fd >= 0)
		return fd;
	return keep_if_same(proc_open_below(dir, "root", v->path, true), &v->key);
}

/* A file of a recording, or one whose descriptor was closed for another. */
static int reopen(const char *host_root, const struct file_sight *seen, const struct file_view *v)
{
	int fd = reopen_mapped(host_root ? host_root : "", seen, v);

	if (fd >= 0)
		return fd;
	if (host_root && *host_root)
		return keep_if_same(proc_open_below(AT_FDCWD, host_root, v->path, true), &v->key);
	return keep_if_same(open_regular_at(AT_FDCWD, v->path), &v->key);
}

static int view_locked(struct files *f, uint32_t id, struct file_view *v, struct file_sight *seen)
{
	struct file *file;

	if (!id || id > f->count)
		return -ENOENT;
	file = file_at(f, id);
	v->path = str_dup(str_of(file->path));
	if (!v->path)
		return -ENOMEM;
	*seen = file->seen;
	v->key = file->key;
	v->image = file->image;
	v->image_size = file->image_size;
	if (file->fd < 0)
		return 0;
	v->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (v->fd < 0)
		return -errno;
	list_remove(f, id);
	list_push(f, id);
	return 0;
}

/* The content an open descriptor gives now may no longer be what was mapped: the file was written over. */
static int check_fresh(const struct file_view *v)
{
	struct file_key now;
	struct stat st;

	if (fstat(v->fd, &st) < 0)
		return -errno;
	file_key_of(&st, &now);
	return key_equal(&now, &v->key) ? 0 : -ESTALE;
}

int files_view(struct files *f, uint32_t id, struct file_view *out)
{
	scoped(file_view_release) struct file_view v = { .fd = -1 };
	struct file_sight seen = { 0 };
	int r;

	pthread_mutex_lock(&f->lock);
	r = view_locked(f, id, &v, &seen);
	pthread_mutex_unlock(&f->lock);
	if (r < 0)
		return r;
	if (!v.image && v.fd < 0) {
		v.fd = reopen(f->host_root, &seen, &v);
		if (v.fd < 0)
			return v.fd;
	} else if (!v.image) {
		r = check_fresh(&v);
		if (r < 0)
			return r;
	}
	*out = v;
	v = (struct file_view){ .fd = -1 };
	return 0;
}

int files_path(struct files *f, uint32_t id, char **out)
{
	char *copy = NULL;
	int r = -ENOENT;

	pthread_mutex_lock(&f->lock);
	if (id && id <= f->count) {
		copy = str_dup(str_of(file_at(f, id)->path));
		r = copy ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&f->lock);
	if (r == 0)
		*out = copy;
	return r;
}

void file_view_release(struct file_view *v)
{
	closep(&v->fd);
	free(v->path);
	*v = (struct file_view){ .fd = -1 };
}

bool files_error_is_final(int error)
{
	return error == -EBADMSG || error == -ENOTSUP || error == -ENODATA || error == -E2BIG;
}

void file_retry_failed(struct file_retry *retry, int error, uint64_t now_ns)
{
	retry->is_away = !files_error_is_final(error);
	if (!retry->is_away)
		return;
	retry->at_ns = now_ns + (RETRY_NS << retry->doublings);
	retry->doublings = (uint8_t)MIN(retry->doublings + 1, RETRY_DOUBLINGS);
}

bool file_retry_waits(const struct file_retry *retry, uint64_t now_ns)
{
	return retry->is_away && now_ns < retry->at_ns;
}

size_t files_count(struct files *f)
{
	size_t count;

	pthread_mutex_lock(&f->lock);
	count = f->count;
	pthread_mutex_unlock(&f->lock);
	return count;
}
