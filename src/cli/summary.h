/* SPDX-License-Identifier: Apache-2.0 */
/* What a session tells at its end: how much was sampled, how much of it is whole, what was hot, where it is written. */
#pragma once

#include "agent/session.h"
#include "render/render.h"

#define SUMMARY_CUTS_MAX 48

/* Sums over all windows of a session. Fed by the worker, read after it has ended. */
struct summary {
	struct intern names;
	int64_t *self; /* samples by name id */
	size_t self_cap;
	uint64_t samples, user_samples, complete, frames, unnamed_frames, busy_ns, window_count;
	struct intern cut_names;         /* reasons, in the order they were met */
	uint64_t cuts[SUMMARY_CUTS_MAX]; /* samples by reason id - 1 */
	uint64_t runtime_samples, runtime_complete, runtime_frames, runtime_unnamed_frames, runtime_unlined_frames;
	uint64_t lines_asked, lines_found, lines_failed; /* distinct addresses */
	uint32_t cpu_count, frequency_hz;
	bool incomplete;          /* memory ran out: the list of functions is short */
	struct frame_style style; /* set behind summary_init() */
};

void summary_init(struct summary *s);
void summary_release(struct summary *s);
void summary_add(struct summary *s, const struct window *w);
/** summary_text - append the closing text. @stats: of the stopped session. */
void summary_text(const struct summary *s, const struct session_stats *stats, struct buf *out);
