/* SPDX-License-Identifier: Apache-2.0 */
/* What a window counts of one language runtime (agent/build_window.h). */
#pragma once

#include "model/window.h"

struct runtime_shares {
	uint64_t samples, complete;        /* with frames of it; of them whole */
	uint64_t frames, unnamed, unlined; /* its frames; without name, without line */
	uint64_t vague;                    /* with the line of the next place that compiled code describes */
};

/** runtime_shares_add - add what @w counts of the runtime @name. */
void runtime_shares_add(struct runtime_shares *shares, const struct window *w, struct str name);
/** runtime_shares_add_vague - append how many lines are only near and what would make them exact, without a line feed;
 * nothing when there are none. */
void runtime_shares_add_vague(const struct runtime_shares *shares, struct str name, struct buf *out);
/**
 * runtime_shares_next - the runtimes that @w counts, also such as this version does not know
 * @at: 0 at first, then what was left there. Return: false behind the last; otherwise *name, borrowed from @w.
 */
bool runtime_shares_next(const struct window *w, size_t *at, struct str *name);
