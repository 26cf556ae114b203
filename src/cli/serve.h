/* SPDX-License-Identifier: Apache-2.0 */
/* A collector from its options to its end; hearth serve and hearth up run it. */
#pragma once

#include "cli/command.h"

struct serve_config {
	const char *addr, *data_dir, *user, *targets;
	uint64_t exit_timeout_ns;
	uint64_t age_max_ns, size_max, free_min, rollup_age_max_ns, dictionary_max;
	const char *tls_cert, *tls_key;
	bool no_auth;
	struct opt_list cors;
	uint64_t body_max, expanded_max, samples_max, merge_max, list_limit;
	uint64_t connections_max, connections_per_ip, bodies_max, answers_max, series_max, rate_max, header_ns, idle_ns,
		query_max_ns;
	size_t log_level, log_format;
	bool access_log, version, unused_flag;
	const char *storage_type, *clickhouse, *s3, *gcs, *unused;
	int feed_fd;  /* windows come from here, and their end ends the server; 0: none */
	int ready_fd; /* a line with the URL goes here once requests are taken; 0: none */
};

extern const struct opt serve_options_general[], serve_options_keeping[], serve_options_access[],
	serve_options_limits[], serve_options_logging[];
extern const char *const serve_log_levels[], *const serve_log_formats[];

/** serve_data_dir - where the store is: @given, or the usual place of this user. */
void serve_data_dir(const char *given, struct buf *out);

/** serve_run - until a signal ends it. Return: enum exit_status. */
int serve_run(const struct command *c, const struct serve_config *config);
