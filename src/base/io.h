/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out. */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

/** io_write_all - every byte, through short writes and EINTR. Return: 0 or -errno. */
int io_write_all(int fd, const void *bytes, size_t size) warn_unused;

/** io_read_fd - append everything up to end of file. Return: 0, -errno, or -E2BIG/-ENOMEM from the buffer. */
int io_read_fd(int fd, struct buf *out) warn_unused;

/** io_read_file - append a whole file (regular, or of /proc); never blocks on a FIFO. Return: as io_read_fd(). */
int io_read_file(const char *path, struct buf *out) warn_unused;
int io_read_file_at(int dir_fd, const char *path, struct buf *out) warn_unused;

/** io_read_below - the same for @path below the directory @root, "" or NULL for none: /proc and /sys of a mounted host.
 */
int io_read_below(const char *root, const char *path, struct buf *out) warn_unused;

/**
 * io_open_regular - open for reading what an O_PATH descriptor stands for
 *
 * Opening a stranger's path could block on a FIFO or act on a device; this looks first. Return: a descriptor, -ENODEV
 * when it is no regular file, -errno. *st is filled (not on failure of fstat).
 */
int io_open_regular(int path_fd, struct stat *st) warn_unused;

/** io_pread_all - exactly @size bytes. Return: 0, -errno, or -ENODATA when the file ends before. */
int io_pread_all(int fd, void *bytes, size_t size, uint64_t offset) warn_unused;

/**
 * io_replace_file - write @path so that readers see the old content or the whole new one
 *
 * Writes PATH.tmp-PID beside it, syncs, renames. A @path that exists and is no regular file (a FIFO), or
 * a link in /dev or /proc (/dev/stdout), is written in place; other links are followed, what they point to is replaced.
 * On failure nothing of the old file is lost and the temporary one is gone. Return: 0 or -errno.
 */
int io_replace_file(const char *path, const void *bytes, size_t size) warn_unused;
/** io_make_folders - those that @path lies in; modes as umask has them. Return: 0 or -errno. */
int io_make_folders(const char *path) warn_unused;
/** io_sync_folder - a file that was made or renamed in @folder is there after a crash. Return: 0 or -errno. */
int io_sync_folder(const char *folder) warn_unused;

/* A read-only view of a file's bytes. The file may be cut while it is mapped, which kills a reader with SIGBUS: for
 * files that strangers can change use pread. */
struct io_map {
	const void *bytes;
	size_t size;
};

int io_map_open(const char *path, struct io_map *out) warn_unused;
/** io_map_fd - the same of an open file, which stays the caller's. Return: 0, -ENODEV (a FIFO or device) or -errno. */
int io_map_fd(int fd, struct io_map *out) warn_unused;
void io_map_release(struct io_map *map);
