/* SPDX-License-Identifier: Apache-2.0 */
/* A collector from its configuration to its end; hearth serve and hearth up run it. */
#pragma once

#include "base/buf.h"
#include "base/opt.h"
#include "store/store.h"

struct serve_config {
	const char *addr, *data_dir, *user, *targets;
	uint64_t exit_timeout_ns;
	uint64_t age_max_ns, size_max, free_min, rollup_age_max_ns, dictionary_max, flame_max, past_max_ns,
		ahead_max_ns;
	uint64_t snapshots_max, snapshots_size;
	const char *tls_cert, *tls_key;
	bool no_auth;
	const struct store *store; /* NULL: SQLite */
	struct opt_list cors;
	uint64_t body_max, expanded_max, samples_max, merge_max, list_limit;
	uint64_t connections_max, connections_per_ip, bodies_max, answers_max, series_max, rate_max, header_ns, idle_ns,
		query_max_ns;
	size_t log_level, log_format; /* of serve_log_levels, serve_log_formats */
	const char *web_dir;          /* NULL: the viewer's files are those in the program */
	bool access_log;
	int feed_fd;  /* windows come from here, and their end ends the server; 0: none */
	int ready_fd; /* a line with the URL goes here once requests are taken; 0: none */
};

extern const char *const serve_log_levels[], *const serve_log_formats[];

/** serve_data_dir - where the store is: @given, or the usual place of this user. */
void serve_data_dir(const char *given, struct buf *out);

/** serve_address_check - Return: 0, or -EINVAL when @addr is not HOST:PORT. */
int serve_address_check(const char *addr) warn_unused;

/** serve_run - until a signal ends it. @why: one line on failure. Return: 0 or -errno. */
int serve_run(const struct serve_config *config, struct buf *why) warn_unused;
