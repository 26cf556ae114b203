/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/target_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static int open_path(int root_fd, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd;

	if (root_fd < 0)
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int target_open(int root_fd, const char *path, uint64_t *size)
{
	scoped(closep) int found = open_path(root_fd, path, 0);
	struct stat st;
	int fd;

	if (found < 0)
		return found;
	fd = io_open_regular(found, &st);
	if (fd >= 0)
		*size = (uint64_t)st.st_size;
	return fd;
}

int target_stat(int root_fd, const char *path, struct stat *out)
{
	scoped(closep) int found = open_path(root_fd, path, 0);

	if (found < 0)
		return found;
	if (fstat(found, out) < 0)
		return -errno;
	return S_ISREG(out->st_mode) ? 0 : -ENODEV;
}

uint64_t target_file_id(const struct stat *st)
{
	const uint64_t words[] = { st->st_dev,
				   st->st_ino,
				   (uint64_t)st->st_size,
				   (uint64_t)st->st_mtim.tv_sec,
				   (uint64_t)st->st_mtim.tv_nsec,
				   (uint64_t)st->st_ctim.tv_sec,
				   (uint64_t)st->st_ctim.tv_nsec };

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static int read_up_to(int fd, size_t max, struct buf *out)
{
	char bytes[KIB(2)];
	size_t have = 0;

	while (have < max) {
		ssize_t n = pread(fd, bytes, MIN(sizeof(bytes), max - have), (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
		buf_add(out, bytes, (size_t)n);
	}
	return out->error;
}

int target_read_head(int root_fd, const char *path, size_t max, struct buf *out)
{
	size_t before = out->len;
	uint64_t size;
	scoped(closep) int fd = target_open(root_fd, path, &size);
	int r;

	if (fd < 0)
		return fd;
	r = read_up_to(fd, max, out);
	if (r < 0)
		out->len = before;
	return r;
}

/* One byte more than allowed shows that a file is too long, also one that grows. */
int target_read(int root_fd, const char *path, size_t max, struct buf *out)
{
	size_t before = out->len;
	int r = target_read_head(root_fd, path, max + 1, out);

	if (r < 0 || out->len - before <= max)
		return r;
	out->len = before;
	return -E2BIG;
}

int target_link(int root_fd, const char *path, struct buf *out)
{
	scoped(closep) int fd = open_path(root_fd, path, O_NOFOLLOW);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return -EINVAL;
	text = buf_reserve(out, TARGET_PATH_MAX);
	if (!text)
		return out->error;
	n = readlinkat(fd, "", text, TARGET_PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == TARGET_PATH_MAX)
		return -ENAMETOOLONG;
	buf_commit(out, (size_t)n);
	return 0;
}

bool target_has(int root_fd, const char *path)
{
	scoped(closep) int fd = open_path(root_fd, path, 0);

	return fd >= 0;
}

static int read_below(void *self, const char *path, size_t max, struct buf *out)
{
	return target_read(*(const int *)self, path, max, out);
}

static int link_below(void *self, const char *path, struct buf *out)
{
	return target_link(*(const int *)self, path, out);
}

struct target_files target_files_below(const int *root_fd)
{
	return (struct target_files){ .read = read_below, .link = link_below, .self = (void *)(uintptr_t)root_fd };
}

/* Resolving goes from left to right: @done holds what is behind us, without links; @todo what is to come. */

static void drop_last(struct buf *done)
{
	while (done->len && done->ptr[--done->len] != '/')
		;
}

/* A link's text goes in front of what is to come. */
static int follow(struct buf *done, const struct buf *link, struct str rest, struct buf *todo)
{
	scoped(buf_release) struct buf next = BUF_INIT(TARGET_PATH_MAX);

	if (link->len && link->ptr[0] == '/')
		done->len = 0;
	else
		drop_last(done);
	buf_adds(&next, buf_str(link));
	buf_addc(&next, '/');
	buf_adds(&next, rest);
	if (next.error)
		return next.error == -E2BIG ? -ENAMETOOLONG : next.error;
	buf_clear(todo);
	buf_adds(todo, buf_str(&next));
	return todo->error;
}

/* One name: onto @done, or, when that is a link, its text onto @todo. Return: 1 when it was a link. */
static int add_name(const struct target_files *files, struct buf *done, struct str name, struct str rest,
		    struct buf *todo)
{
	scoped(buf_release) struct buf link = BUF_INIT(2 * TARGET_PATH_MAX);
	int r;

	if (!name.len || str_eq(name, STR(".")))
		return 0;
	if (str_eq(name, STR(".."))) {
		drop_last(done);
		return 0;
	}
	buf_addc(done, '/');
	buf_adds(done, name);
	(void)buf_cstr(done);
	if (done->error)
		return done->error == -E2BIG ? -ENAMETOOLONG : done->error;
	r = files->link(files->self, done->ptr, &link);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !link.len)
		return 0; /* no link, or nobody can tell */
	r = follow(done, &link, rest, todo);
	return r < 0 ? r : 1;
}

int target_resolve(const struct target_files *files, struct str path, struct buf *out)
{
	scoped(buf_release) struct buf done = BUF_INIT(TARGET_PATH_MAX), todo = BUF_INIT(TARGET_PATH_MAX);
	struct str rest, name;
	int links = 0;

	if (!path.len || path.ptr[0] != '/' || memchr(path.ptr, 0, path.len))
		return -EINVAL;
	buf_adds(&todo, path);
	if (todo.error)
		return todo.error == -E2BIG ? -ENAMETOOLONG : todo.error;
	rest = buf_str(&todo);
	while (str_next(&rest, '/', &name)) {
		int r = add_name(files, &done, name, rest, &todo);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (++links > TARGET_LINKS_MAX)
			return -ELOOP;
		rest = buf_str(&todo);
	}
	buf_adds(out, done.len ? buf_str(&done) : STR("/"));
	return out->error;
}
