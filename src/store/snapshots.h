/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshots of a data directory: files snapshot-ID beside the store's. Nothing removes one but snapshots_remove();
 * when there is no room a new one is refused. All functions may be called from several threads at once, but close(). */
#pragma once

#include "store/snapshot.h"
#include "store/store.h"

#define SNAPSHOT_ID_TEXT 32 /* hex digits: 128 random bits, so that nobody finds one by trying */

struct snapshots_config {
	const char *path;   /* the data directory; it is there, and nobody else uses it */
	uint64_t count_max; /* 0: none are taken */
	uint64_t size_max;  /* bytes of all */
	uint64_t free_min;  /* bytes that the file system keeps; 0: none; EXPIRY_FREE_AUTO. See expiry.h */
};

struct snapshots;

/**
 * snapshots_open - look at what is there
 * What a crash left half is removed. A file that cannot be used stays as it is, out of service, and the log says so.
 *
 * Return: 0 or -errno.
 */
int snapshots_open(const struct snapshots_config *config, struct snapshots **out) warn_unused;
void snapshots_close(struct snapshots *s); /* NULL is fine */

/**
 * snapshots_put - keep a file of snapshot_encode(); when it returns 0, it is durable
 * @created_ns: of its head
 *
 * Return: 0; -EDQUOT: there are count_max, or size_max is reached; -EFBIG: it alone is larger than size_max; -ENOSPC:
 * the disk is full, or would have less than free_min left; -errno. On failure nothing is left of it.
 */
int snapshots_put(struct snapshots *s, struct str file, uint64_t created_ns, char id[SNAPSHOT_ID_TEXT + 1]) warn_unused;

/**
 * snapshots_read - append the file called @id, at most @max bytes from its front
 * @size: of the whole file
 *
 * Return: 0, -ENOENT, -EBADMSG or -E2BIG (no file of its kind), -errno.
 */
int snapshots_read(struct snapshots *s, struct str id, size_t max, struct buf *out, uint64_t *size) warn_unused;

/** snapshots_remove - for good. Return: 0, -ENOENT, -errno: it may still be there. */
int snapshots_remove(struct snapshots *s, struct str id) warn_unused;

struct snapshots_stats {
	uint64_t count, size; /* in service */
	uint64_t odd;         /* files out of service when it was opened */
	uint64_t count_max, size_max;
};

void snapshots_stats(struct snapshots *s, struct snapshots_stats *out);

/** @head: borrowed for the length of the call. Not 0: the walk ends. */
typedef int snapshots_fn(void *ctx, const char *id, uint64_t size, const struct snapshot_head *head);

/** snapshots_list - what each says in front of its profile, newest first. Return: 0, -errno or what @visit returned. */
int snapshots_list(struct snapshots *s, snapshots_fn *visit, void *ctx) warn_unused;

/** snapshots_check - read everything. Return: the number of problems, each told to @visit, or -errno. */
int snapshots_check(struct snapshots *s, store_problem_fn *visit, void *ctx) warn_unused;

/** snapshots_owns_name - whether hearth makes files of this name for snapshots. */
bool snapshots_owns_name(struct str name);
