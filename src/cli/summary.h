/* SPDX-License-Identifier: Apache-2.0 */
/* What a session tells at its end: how much was sampled, how much of it is whole, what was hot, where it is written. */
#pragma once

#include "agent/session.h"
#include "codec/codec.h"
#include "model/jit_kind.h"
#include "render/render.h"
#include "render/runtimes.h"

#define SUMMARY_CUTS_MAX 48

/* Sums over all windows of a session. Fed by the worker, read after it has ended. */
struct summary {
	struct intern names;
	int64_t *self; /* of that value, by name id */
	size_t self_cap;
	uint64_t samples, frames, unnamed_frames, busy_ns, window_count;
	struct window_classes classes; /* without what was lost: the session knows that */
	uint64_t unnamed_jit[JIT_KIND_COUNT];
	struct intern cut_names;                             /* reasons, in the order they were met */
	uint64_t cuts[SUMMARY_CUTS_MAX];                     /* samples by reason id - 1 */
	struct runtime_shares runtimes[MODEL_RUNTIME_COUNT]; /* in the order of model_runtime_at() */
	uint64_t lines_asked, lines_found, lines_failed;     /* distinct addresses */
	uint32_t cpu_count, frequency_hz;
	struct buf event;             /* what was counted, when it was not a clock; empty: CPU time */
	int64_t period;               /* counts per sample, where it is known */
	bool incomplete;              /* memory ran out: the list of functions is short */
	int64_t shown;                /* sum of the value that the list of functions is by */
	struct codec_options options; /* set behind summary_init() */
};

void summary_init(struct summary *s);
void summary_release(struct summary *s);
void summary_add(struct summary *s, const struct window *w);
/** summary_text - append the closing text. @stats: of the stopped session. */
void summary_text(const struct summary *s, const struct session_stats *stats, struct buf *out);
