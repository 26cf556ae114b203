/* SPDX-License-Identifier: Apache-2.0 */
/* Times, labels and types as the collector's HTTP APIs write them (docs/collector.md). Pure parsers of bytes that come
 * from strangers. */
#pragma once

#include "model/window.h"
#include "store/store.h"

/**
 * query_time - a moment
 * @now_ns: what relative forms count from
 *
 * YYYY-MM-DDTHH:MM:SS with optional fraction and zone (UTC without one); Unix seconds, milliseconds, microseconds or
 * nanoseconds by their number of digits; "now", "now-15m", "-15m" with the units of opt_parse_duration(). Before 1970
 * means 1970. Return: 0 or -EBADMSG (also for year 1, which stands for no time).
 */
int query_time(struct str text, uint64_t now_ns, uint64_t *out) warn_unused;

struct query_labels {
	struct store_label items[STORE_LABELS_MAX];
	size_t count;
	struct buf bytes; /* what the labels borrow from */
};

void query_labels_release(struct query_labels *l); /* a zeroed one is fine */

/**
 * query_labels_parse - "k1=v1,k2=v2" of a query value, decoded once already; every piece is decoded again
 * Sorted by key; a piece without a key is skipped, one without '=' has an empty value.
 *
 * Return: 0, -EBADMSG (bad escape), -E2BIG (too many or too long), -ENOMEM. @out needs a release only on 0.
 */
int query_labels_parse(struct str text, struct query_labels *out) warn_unused;

/** query_name_parse - Pyroscope's "app.name{key=value,key=value}": @name is borrowed from @text. Return: as above. */
int query_name_parse(struct str text, struct str *name, struct query_labels *out) warn_unused;

/** query_type_known - whether @name is a type that profiles are stored under. */
bool query_type_known(struct str name);
/** query_type_detect - what a profile's sample types say it is: "cpu", "heap" ... "other"; a static string. */
struct str query_type_detect(const struct model *m);
/** query_is_trace - whether the bytes begin as a Go execution trace does. */
bool query_is_trace(struct str bytes);
