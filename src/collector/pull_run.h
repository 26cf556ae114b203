/* SPDX-License-Identifier: Apache-2.0 */
/* Scraping as part of a program: from a file of targets, into a store. @why: one line on failure. */
#pragma once

#include "base/buf.h"
#include "collector/pull.h"
#include "store/store.h"

/** pull_load - the targets that the file @path names. Return: 0, -EBADMSG or -errno. */
int pull_load(const char *path, struct buf *why, struct pull_targets *out) warn_unused;
/** pull_reload - the file again; when it cannot be used, the targets stay. Return: 0 or -errno. */
int pull_reload(const char *path, struct buf *why, struct pull *pull) warn_unused;
/* Where profiles go. */
struct pull_store {
	const struct store *store;
	struct store_state *state;
};

/** pull_into_store - @to stays the caller's, and is used as long as *out. Return: 0 or -errno. */
int pull_into_store(const char *path, const struct pull_store *to, struct buf *why, struct pull **out) warn_unused;
