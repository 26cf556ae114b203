/* SPDX-License-Identifier: Apache-2.0 */
/* Pyroscope's names of what we call a type and a column: "process_cpu:cpu:nanoseconds:cpu:nanoseconds", and queries
 * that begin with one. Pure parsers of bytes that come from strangers. Source: grafana/pyroscope, public documentation
 * of the server's HTTP API; docs/collector.md. */
#pragma once

#include "query/params.h"

/* One column of the profiles of a type. */
struct query_column {
	struct str metric, sample, unit, period_type, period_unit;
};

/** query_column_parse - its five parts, borrowed; ":delta" may follow. Return: 0 or -EBADMSG. */
int query_column_parse(struct str text, struct query_column *out) warn_unused;
/** query_column_text - append the five parts. */
void query_column_text(const struct query_column *column, struct buf *out);

/** query_suffix_type - what the last part of an application's name ("app.cpu") says: our type, or empty. Static. */
struct str query_suffix_type(struct str suffix);
/** query_metric_type - what a profile's name says ("process_cpu", "memory"): our type, or empty. */
struct str query_metric_type(struct str name);
/** query_type_metric - the name of profiles of a type of ours; @type itself when they have no other. */
struct str query_type_metric(struct str type);
