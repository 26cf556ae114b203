/* SPDX-License-Identifier: Apache-2.0 */
/* A store that nobody writes to, shown to one user: the collector's pages and its API, read only, behind a path that
 * only this user knows (view_gate.h). */
#pragma once

#include "collector/collector.h"

struct view_server_config {
	int listen_fd;   /* ours from then on, also on failure */
	struct str host; /* it listens on, as --addr says it; empty: every address */
	const struct store *store;
	struct store_state *state; /* stays the caller's */
	const struct collector_shown *shown;
	const struct rlimit *browser_data; /* the limit of memory that a browser gets; NULL: none is opened */
};

/**
 * view_server_run - print the address, open the browser, serve until SIGINT, SIGTERM or SIGHUP
 *
 * Gives up what a server does not need (collector/confine.h); for the rest of the process. To be called while there is
 * one thread. Return: 0; -errno with one line in @why.
 */
int view_server_run(const struct view_server_config *config, struct buf *why) warn_unused;
