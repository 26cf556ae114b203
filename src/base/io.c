/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int io_write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int io_read_fd(int fd, struct buf *out)
{
	for (;;) {
		size_t room = MIN(MAX(out->cap - out->len, KIB(4)), out->max - out->len);
		char *at =
			buf_reserve(out, room ? room : 1); /* at the maximum: fails with -E2BIG unless the file ends */
		ssize_t n;

		if (!at) {
			char one;

			if (out->error != -E2BIG)
				return out->error;
			n = read(fd, &one, 1);
			if (n == 0)
				out->error = 0;
			return n < 0 ? -errno : out->error;
		}
		n = read(fd, at, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_commit(out, (size_t)n);
	}
}

int io_read_file_at(int dir_fd, const char *path, struct buf *out)
{
	scoped(closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return io_read_fd(fd, out);
}

int io_read_file(const char *path, struct buf *out)
{
	return io_read_file_at(AT_FDCWD, path, out);
}

int io_read_below(const char *root, const char *path, struct buf *out)
{
	scoped(buf_release) struct buf full = BUF_INIT(KIB(8));

	buf_addf(&full, "%s%s", root ? root : "", path);
	(void)buf_cstr(&full);
	return full.error ? full.error : io_read_file(full.ptr, out);
}

int io_open_regular(int path_fd, struct stat *st)
{
	char link[32];
	int fd;

	if (fstat(path_fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -ENODEV;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int io_pread_all(int fd, void *bytes, size_t size, uint64_t offset)
{
	char *at = bytes;

	while (size) {
		ssize_t n;

		if (offset > INT64_MAX)
			return -ENODATA;
		n = pread(fd, at, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_in_place(const char *path, const void *bytes, size_t size)
{
	scoped(closep) int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : io_write_all(fd, bytes, size);
}

static int write_new(const char *temporary, const void *bytes, size_t size)
{
	static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	scoped(closep) int fd = open(temporary, flags, 0666);
	int r;

	/* Left by a run that was killed, or laid there by a stranger: never written to, it could be a link to anything.
	 */
	if (fd < 0 && errno == EEXIST && unlink(temporary) == 0)
		fd = open(temporary, flags, 0666);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, bytes, size);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

/* A link in there stands for a descriptor of somebody (/dev/stdout): put a file in its place, and every program of the
 * machine has lost it. */
static bool is_descriptor(const char *path)
{
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

int io_replace_file(const char *path, const void *bytes, size_t size)
{
	scoped(buf_release) struct buf temporary = BUF_INIT(KIB(8));
	scoped(freep) char *target = NULL;
	struct stat st, link;
	int r;

	if (stat(path, &st) == 0) {
		bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);

		if (!S_ISREG(st.st_mode) || (is_link && is_descriptor(path)))
			return S_ISDIR(st.st_mode) ? -EISDIR : write_in_place(path, bytes, size);
		if (is_link)
			target = realpath(path, NULL); /* on failure the link gives way */
	}
	if (target)
		path = target;
	buf_addf(&temporary, "%s.tmp-%d", path, (int)getpid());
	(void)buf_cstr(&temporary);
	if (temporary.error)
		return temporary.error;
	r = write_new(temporary.ptr, bytes, size);
	if (r == 0 && rename(temporary.ptr, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary.ptr);
	return r;
}

int io_make_folders(const char *path)
{
	scoped(freep) char *copy = str_dup(str_of(path));

	if (!copy)
		return -ENOMEM;
	for (char *at = copy; *at && (at = strchr(at + 1, '/'));) {
		*at = 0;
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return 0;
}

int io_sync_folder(const char *folder)
{
	scoped(closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int io_map_open(const char *path, struct io_map *out)
{
	scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : io_map_fd(fd, out);
}

int io_map_fd(int fd, struct io_map *out)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENODEV;
	if (st.st_size == 0) {
		*out = (struct io_map){ NULL, 0 };
		return 0;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	*out = (struct io_map){ bytes, (size_t)st.st_size };
	return 0;
}

void io_map_release(struct io_map *map)
{
	if (map->bytes)
		munmap((void *)(uintptr_t)map->bytes, map->size);
	*map = (struct io_map){ NULL, 0 };
}
