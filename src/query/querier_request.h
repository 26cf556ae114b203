/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of querier.v1.QuerierService, what Grafana's data source for Pyroscope asks: one struct for all methods.
 * Pure parsers of bytes that come from strangers. */
#pragma once

#include "query/proto.h"

#define QUERIER_MATCHERS_MAX 8 /* selectors of one request */
#define QUERIER_NAMES_MAX 32   /* labels to group by, or to show */
#define QUERIER_STEPS_MAX 1024 /* of a call site */
#define QUERIER_IDS_MAX 1024   /* spans, traces */

enum querier_method {
	QUERIER_PROFILE_TYPES,
	QUERIER_LABEL_NAMES,
	QUERIER_LABEL_VALUES,
	QUERIER_SERIES,
	QUERIER_MERGE_STACKTRACES,
	QUERIER_MERGE_SPAN_PROFILE,
	QUERIER_MERGE_PROFILE,
	QUERIER_SELECT_SERIES,
	QUERIER_DIFF,
	QUERIER_STATS,
	QUERIER_ANALYZE,
	QUERIER_METHODS
};

enum querier_exemplars { QUERIER_EXEMPLARS_UNSPECIFIED, QUERIER_EXEMPLARS_NONE };

enum querier_format { QUERIER_UNSPECIFIED, QUERIER_FLAMEGRAPH, QUERIER_TREE, QUERIER_DOT, QUERIER_PPROF };

struct querier_texts {
	struct str *items;
	size_t count, cap;
};

/* All texts borrow from the body. */
struct querier_request {
	struct str type_id, selector, name, query, async_id;
	int64_t start_ms, end_ms; /* since 1970; 0: not said */
	int64_t max_nodes, limit; /* 0: not said */
	int64_t format, aggregation, async_type;
	int64_t exemplars; /* an enum querier_exemplars, or others that ask for some */
	double step_s;
	struct querier_texts matchers, names, call_site, spans, traces;
	bool has_profiles, has_go_pgo; /* what is not served is asked for */
	struct str left, right;        /* of a comparison: requests of QUERIER_MERGE_STACKTRACES */
};

void querier_request_release(struct querier_request *rq); /* a zeroed one is fine */

/** querier_method_find - by the name behind the service's. Return: 0 or -ENOENT. */
int querier_method_find(struct str name, enum querier_method *out);

/**
 * querier_request_json - append the protobuf form of a JSON request
 * Return: 0, -EBADMSG, or the buffer's error.
 */
int querier_request_json(enum querier_method method, struct str body, struct buf *out) warn_unused;

/**
 * querier_request_read - the protobuf form
 * Unknown fields are skipped. Return: 0, -EBADMSG, -E2BIG (a list is too long), -ENOMEM. @out needs a release only on
 * 0.
 */
int querier_request_read(enum querier_method method, struct str body, struct querier_request *out) warn_unused;
