/* SPDX-License-Identifier: Apache-2.0 */
/* What two samplers saw, as one profile. */
#pragma once

#include "agent/session_int.h"

/** session_merge_counts - replace the stacks that the first sampler saw by the runtime's, in the counts of both
 * aggregates. Return: 0 or -ENOMEM. */
int session_merge_counts(struct job *job) warn_unused;
/** session_merge_windows - add the second window to the first. */
int session_merge_windows(struct window *w, const struct window *beside) warn_unused;
