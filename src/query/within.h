/* SPDX-License-Identifier: Apache-2.0 */
/* The times of single samples: the parameter within of the viewer's API (docs/api.yaml), and where a sample of a stored
 * profile lies. Pure; all of it comes from strangers. */
#pragma once

#include "store/store.h"

#define WITHIN_SPAN_MAX_NS (UINT64_C(600) * NSEC_PER_SEC) /* of what is asked for */
#define WITHIN_BACK_NS (UINT64_C(600) * NSEC_PER_SEC)     /* profiles that began longer before are not looked into */
#define WITHIN_SLACK_NS NSEC_PER_SEC                      /* starts are told in whole seconds, ends come late */

/* Samples from @from_ns on that lie before @to_ns, wall clock; to_ns 0: all samples, with a time or without. */
struct query_within {
	uint64_t from_ns, to_ns;
};

/**
 * query_within_read - "FROM-TO", both in ms since 1970; empty: all samples
 * @why: on -EBADMSG the reason
 *
 * Return: 0 or -EBADMSG: bad numbers, an end that is not behind the start, more than ten minutes, later than INT64_MAX
 * ns.
 */
int query_within_read(struct str raw, struct query_within *out, struct buf *why) warn_unused;

/** query_within_select - @sel with the times of profiles that may have samples in @w. */
struct store_selector query_within_select(const struct query_within *w, struct store_selector sel);
/** query_within_since - profiles that ended before have none. */
uint64_t query_within_since(const struct query_within *w);

/* When a stored profile was. */
struct query_moment {
	uint64_t created_ns, start_ns, duration_ns; /* start 0, duration 0: not said */
};

/** query_within_meets - whether the profile's time and @w share anything: of one that does not say how long it took,
 * whether it began in @w. */
bool query_within_meets(const struct query_within *w, const struct query_moment *p);
/**
 * query_within_time - wall clock of the sample at @offset_ns
 * The start counts where it agrees with created_ns, else that does: profiles are found by it.
 *
 * Return: false: it has none, or none that the profile could have: behind its end, or ten minutes from its start.
 */
bool query_within_time(const struct query_moment *p, uint64_t offset_ns, uint64_t *out);

/**
 * query_within_pick - keep the samples in @w
 * @column: whose values are counted; a profile that has no such column counts for nothing
 * @untimed: of samples without a time, when the profile meets @w; else 0
 */
void query_within_pick(const struct query_within *w, const struct query_moment *p, size_t column, struct model *m,
		       uint64_t *untimed);
