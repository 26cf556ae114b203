/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a recording of perf as columns of a profile: "samples" counts all of them, and each event has a column
 * of its own with its periods. */
#pragma once

#include "codec/codec.h"

#define PERF_EVENTS_MAX (MODEL_VALUE_TYPES_MAX - 1)

struct perf_events {
	struct str names[PERF_EVENTS_MAX]; /* owned */
	bool has_period[PERF_EVENTS_MAX];
	size_t count;
	uint64_t without_column; /* samples of further events: they count in "samples" alone */
};

void perf_events_release(struct perf_events *e);
/**
 * perf_events_add - the column of the event @name, which may be new
 * @out: its index, or PERF_EVENTS_MAX when there is no room for it
 *
 * Return: 0 or -ENOMEM.
 */
int perf_events_add(struct perf_events *e, struct str name, bool has_period, size_t *out) warn_unused;
/** perf_events_columns - before the first sample. Return: as model_add_value_type(). */
int perf_events_columns(const struct perf_events *e, struct model *m) warn_unused;
/** perf_events_values - one sample's. @event: SIZE_MAX: none is known. @values: MODEL_VALUE_TYPES_MAX; @period:
 * saturates. */
void perf_events_values(struct perf_events *e, size_t event, uint64_t period, int64_t *values);
/** perf_events_close - say what has no column, in the window's counters and in @error, which may be NULL. Return: 0 or
 * -ENOMEM. */
int perf_events_close(const struct perf_events *e, struct window *w, struct codec_error *error) warn_unused;
