/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles on disk that a collector has not acknowledged yet: a file each, whole or not at all, in a directory that one
 * process holds. Who bounds it is push.c. docs/formats/spool.md has the bytes. */
#pragma once

#include "sink/upload.h"

struct spool;

/** A file that an earlier run left. A result other than 0 ends spool_open(). */
typedef int spool_found_fn(void *ctx, uint64_t number, size_t size);

/**
 * spool_open - take the directory @path (made when missing, its parents too) and tell what is in it, oldest first
 * @why: one line on failure
 *
 * Return: 0; -EWOULDBLOCK: another process has it; -errno.
 */
int spool_open(const char *path, spool_found_fn *found, void *ctx, struct buf *why, struct spool **out) warn_unused;
void spool_close(struct spool *s); /* NULL is fine */

/** spool_size - bytes that a file for @u takes. */
size_t spool_size(const struct upload *u);
/** spool_write - when it returns 0 the file is there after a crash. From any thread. Return: 0 or -errno. */
int spool_write(struct spool *s, uint64_t number, const struct upload *u) warn_unused;
/** spool_read - @bytes gets the file, @out points into it. Return: 0, -EBADMSG when it is damaged, -errno. */
int spool_read(struct spool *s, uint64_t number, struct buf *bytes, struct upload *out) warn_unused;
/** spool_remove - Return: 0 or -errno. */
int spool_remove(struct spool *s, uint64_t number) warn_unused;

/** spool_encode, spool_decode - the bytes of a file. Pure; decode returns 0 or -EBADMSG and borrows from @bytes. */
void spool_encode(const struct upload *u, struct buf *out);
int spool_decode(struct str bytes, struct upload *out) warn_unused;
