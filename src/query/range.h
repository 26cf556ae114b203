/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles a request means: the one reader of service, type, labels and times of a query string, for every HTTP
 * API of the collector. Pure; all of it comes from strangers. */
#pragma once

#include "net/http_parse.h"
#include "query/matchers.h"
#include "query/params.h"
#include "query/within.h"

/* What one API calls its parameters, and what is meant without them. */
struct query_range_rules {
	const char *prefix; /* "base-": base-from wins over from, and so on. NULL: none */
	const char *to;     /* the end's name; NULL: "to" */
	const char *from_usual, *to_usual,
		*type_usual; /* without the parameter; NULL: times are required, a type is not */
	bool needs_service, times_only, known_type, has_within;
	bool has_matchers; /* labels may be a selector in braces */
	bool is_profefe;   /* a begin after the end is refused in profefe's own words */
};

extern const struct query_range_rules query_range_profefe, query_range_pyroscope, query_range_view, query_range_base;

struct query_range {
	struct str service, type; /* borrowed from the query; empty: any */
	struct str before;        /* an id or a time, or empty */
	struct query_labels labels;
	struct matchers *matchers; /* literal ones, in place of the labels; NULL: none */
	uint64_t from_ns, to_ns;   /* from_ns <= to_ns */
	size_t limit;              /* 0: none */
	struct query_within within;
};

void query_range_release(struct query_range *r); /* a zeroed one is fine */

/**
 * query_range_read - in this order: service, labels, from, to, limit, type, within; the first that is wrong counts
 * @now_ns: what relative times count from
 * @why: on -EBADMSG the reason, in profefe's words
 *
 * Return: 0, -EBADMSG or -ENOMEM. @out needs a release only on 0.
 */
int query_range_read(const struct http_query *query, const struct query_range_rules *rules, uint64_t now_ns,
		     struct query_range *out, struct buf *why) warn_unused;

/** query_range_labels - the parameter labels alone. Return: the same. */
int query_range_labels(struct str raw, struct query_labels *out, struct buf *why) warn_unused;
/** query_range_service - the parameter service alone, which must be there. Return: the same. */
int query_range_service(struct str raw, struct str *out, struct buf *why) warn_unused;
/** query_range_bad_time - the words for a time that cannot be read. @kind: such as "timestamp ", or "" */
void query_range_bad_time(const char *name, struct str raw, const char *kind, struct buf *why);

/** query_range_select - as the store wants it; borrows from @r. Its matchers count what they take. */
struct store_selector query_range_select(const struct query_range *r);
