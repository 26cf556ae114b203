/* SPDX-License-Identifier: Apache-2.0 */
/* Files below the root directory of a process. Whoever runs there chooses what lies under a name: no path leads out of
 * the root, only regular files are read, never more than a limit, and nothing is waited for. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"

#define TARGET_PATH_MAX KIB(4)
#define TARGET_LINKS_MAX 40 /* as Linux: linux/namei.h, MAXSYMLINKS */

/**
 * target_open - a regular file below @root_fd
 * @size: filled. Return: a descriptor, -ENODEV when it is no regular file, -ENOENT, -errno.
 */
int target_open(int root_fd, const char *path, uint64_t *size) warn_unused;

/** target_stat - a regular file below @root_fd, which is not opened. Return: 0; -ENODEV, -ENOENT, -errno. */
int target_stat(int root_fd, const char *path, struct stat *out) warn_unused;

/** target_file_id - a number of a file's state: it is another one once the file was written to. Never 0. */
uint64_t target_file_id(const struct stat *st);

/** target_read - append a whole file. Return: 0; -E2BIG when it is longer than @max; otherwise as target_open(). */
int target_read(int root_fd, const char *path, size_t max, struct buf *out) warn_unused;

/** target_read_head - append its first @max bytes, or all. */
int target_read_head(int root_fd, const char *path, size_t max, struct buf *out) warn_unused;

/** target_link - append what the link @path says. Return: 0; -EINVAL: it is no link; -errno. */
int target_link(int root_fd, const char *path, struct buf *out) warn_unused;

/** target_has - is there anything under this name, links followed? */
bool target_has(int root_fd, const char *path);

/* The same as an interface, for what is tested without files. */
struct target_files {
	int (*read)(void *self, const char *path, size_t max, struct buf *out);
	int (*link)(void *self, const char *path, struct buf *out);
	void *self;
};

/** target_files_below - @root_fd must stay where it is. */
struct target_files target_files_below(const int *root_fd);

/**
 * target_resolve - append the path that @path means without links, "." and ".."
 * @path: absolute; it need not exist: what cannot be read is taken as it is written
 * Return: 0; -ELOOP; -ENAMETOOLONG; -EINVAL when it is not absolute or holds NUL; -ENOMEM.
 */
int target_resolve(const struct target_files *files, struct str path, struct buf *out) warn_unused;
