/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped files of all processes, opened while the process lives: file id <-> identity. Ids are dense from 1 and are
 * never reused within a session. Added to by the ring reader, read by the symbol worker: guarded inside by one mutex.
 */
#pragma once

#include "base/buf.h"

struct stat;

#define BUILD_ID_MAX 64

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_MAX];
};

struct file_key {
	uint64_t device, inode;
	uint64_t size, mtime_ns; /* a library replaced in place is another file */
};

/* A mapping of a file: through it the file can be opened again, wherever it lies. */
struct file_sight {
	uint32_t pid; /* 0: none */
	uint64_t start, end;
};

struct files;

int files_open(size_t fd_max,
	       struct files **out) warn_unused; /* fd_max descriptors at most: least recently used first */
void files_close(struct files *f);
/** files_set_host_root - below which /proc and paths are when a file is opened again; without: our own. Before any
 * other call. Return: 0 or -ENOMEM. */
int files_set_host_root(struct files *f, const char *host_root) warn_unused;

/**
 * files_add - the id of an open file
 * @fd: moved in when 0 is returned (and closed at once when the file is known and still open); -1: a file that a
 *      recording tells of, opened by its path when it is wanted
 * @path: as the process sees it
 */
int files_add(struct files *f, int fd, const struct file_key *key, struct str path, uint32_t *out) warn_unused;
/** files_add_image - bytes that are no file (the vDSO, a recording's module); copied. */
int files_add_image(struct files *f, const void *bytes, size_t size, struct str name, uint32_t *out) warn_unused;
/** files_find - Return: 0 and *out, or -ENOENT. */
int files_find(struct files *f, const struct file_key *key, uint32_t *out);
/** files_has_fd - false when the descriptor was closed to make room; files_add() with a new one opens the file again.
 */
bool files_has_fd(struct files *f, uint32_t id);
/** files_saw - file @id is mapped there now: files_view() opens it through this process when it has no descriptor. */
void files_saw(struct files *f, uint32_t id, const struct file_sight *sight);
void file_key_of(const struct stat *st, struct file_key *out);

struct file_view {
	int fd;            /* a duplicate the caller closes, or -1 */
	const void *image; /* borrowed bytes, or NULL */
	size_t image_size;
	char *path; /* owned by the caller */
	struct file_key key;
};

/**
 * files_view - what is needed to read file @id from another thread
 *
 * Return: 0 and either out->fd or out->image; -ENOENT when there is no such id, or the process that was seen with it
 * last maps it no more and its path is gone; -ESTALE when the file was written over since it was mapped, or another one
 * is at its path; or why it can't be opened. After all of these it can be opened again once a process maps it the next
 * time. A file that could not be opened when it was added has a key of size 0 and never opens under this id: later it
 * gets another one. files_path() answers even then.
 */
int files_view(struct files *f, uint32_t id, struct file_view *out) warn_unused;
/** files_path - the path alone, as the process saw it; the caller frees it. Return: 0, -ENOENT or -ENOMEM. */
int files_path(struct files *f, uint32_t id, char **out) warn_unused;
void file_view_release(struct file_view *v);

/** files_error_is_final - does @error (negative errno) say what is in a file? All others say that it cannot be opened
 * or read now. */
bool files_error_is_final(int error);

/* When a file that cannot be opened or read now is tried again: after 30 s, then each time twice as long, 8 min at
 * most. Zeroed: at once. */
struct file_retry {
	bool is_away;      /* the last try failed, and that said nothing of what is in the file */
	uint8_t doublings; /* of the time until it is tried again; 0: it never failed so */
	uint64_t at_ns;
};

/** file_retry_failed - the try at @now_ns ended with @error (negative errno) */
void file_retry_failed(struct file_retry *retry, int error, uint64_t now_ns);
bool file_retry_waits(const struct file_retry *retry, uint64_t now_ns);
size_t files_count(struct files *f);
