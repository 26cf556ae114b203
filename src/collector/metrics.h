/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector counts, as Prometheus text. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"

#define COLLECTOR_COUNTERS(X)                                                                                      \
	X(PROFILES_STORED, "profiles_stored", "profiles that were stored")                                         \
	X(PROFILES_REPEATED, "profiles_repeated", "uploads whose Idempotency-Key was known: nothing stored again") \
	X(PROFILES_EMPTY, "profiles_empty", "block and mutex profiles without samples: accepted, not stored")      \
	X(PROFILES_MALFORMED, "profiles_malformed", "uploads that were no profile, or an empty one")               \
	X(PROFILES_TOO_LARGE, "profiles_too_large", "uploads over a limit")                                        \
	X(STACKS_CUT, "stacks_cut", "samples whose stack was over 1,024 frames: the root side is left out")        \
	X(PROFILES_OVERFLOWED, "profiles_overflowed", "profiles stored under __overflow__: too many series")       \
	X(RATE_LIMITED, "rate_limited", "uploads refused: their sender is over its bytes a second")                \
	X(DAYS_REFUSED, "days_refused", "uploads refused: their time would be one day more than the store keeps")  \
	X(PROFILES_OUT_OF_TIME, "profiles_out_of_time", "uploads refused: their time is too far from now")         \
	X(STORE_FULL, "store_full", "uploads refused because the disk is full")                                    \
	X(STORE_FAILED, "store_failed", "uploads and queries that the store failed")                               \
	X(SERVICES_DELETED, "services_deleted", "services that were deleted")                                      \
	X(PROFILES_DELETED, "profiles_deleted", "profiles that were deleted because somebody asked for it")        \
	X(TOKENS_MADE, "tokens_made", "tokens that were made over HTTP")                                           \
	X(TOKENS_REVOKED, "tokens_revoked", "tokens that were revoked over HTTP")                                  \
	X(UPLOADED_BYTES, "uploaded_bytes", "bytes of uploads as they came")                                       \
	X(PROFILES_MERGED, "profiles_merged", "profiles merged for answers")                                       \
	X(QUERIES_CANCELLED, "queries_cancelled", "queries whose client left")                                     \
	X(QUERIES_TOO_LONG, "queries_too_long", "queries ended by --query-timeout")                                \
	X(UNAUTHENTICATED, "unauthenticated", "requests without a token that is known")                            \
	X(FORBIDDEN, "forbidden", "requests with a token that has another scope, or from another host or origin")  \
	X(CRASHED_PARTS, "damaged_parts", "damaged rows that answers left out")

#define X(id, name, help) COLLECTOR_##id,
enum collector_counter { COLLECTOR_COUNTERS(X) COLLECTOR_COUNTER_COUNT };
#undef X

struct metrics;

int metrics_new(struct metrics **out) warn_unused;
void metrics_free(struct metrics *m); /* NULL is fine */
void metrics_add(struct metrics *m, enum collector_counter counter, uint64_t value);
/** metrics_request - one request that ended. @route, @method: static strings. */
void metrics_request(struct metrics *m, const char *route, const char *method, unsigned int code, uint64_t took_ns,
		     size_t bytes_in, size_t bytes_out);
void metrics_write(struct metrics *m, struct buf *out);

/* For other sources: one family with one value. */
void metrics_gauge(struct buf *out, const char *name, const char *help, uint64_t value);
void metrics_counter(struct buf *out, const char *name, const char *help, uint64_t value);
