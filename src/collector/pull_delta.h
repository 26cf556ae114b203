/* SPDX-License-Identifier: Apache-2.0 */
/* Go's heap, block and mutex profiles count since the program started. What one interval added is the difference of two
 * of them. Kept between them is not the profile but a number per stack. */
#pragma once

#include "model/model.h"

#define PULL_BASELINE_MAX ((size_t)256 << 10) /* stacks of one profile */

struct pull_baseline {
	struct pull_baseline_row *rows; /* by key */
	size_t count;
	size_t width;  /* value columns */
	bool is_known; /* false: nothing was scraped yet */
};

void pull_baseline_release(struct pull_baseline *b); /* a zeroed one is fine */

enum pull_change {
	PULL_FIRST,     /* there was nothing to compare with: cumulative columns are zero now */
	PULL_DELTA,     /* cumulative columns have become differences */
	PULL_RESTARTED, /* a stack is gone or counts less: another process, whose values are all since its start */
};

/**
 * pull_delta - replace the cumulative columns of @m by what they grew since @b, and remember @m's in @b
 *
 * Cumulative are alloc_objects, alloc_space, contentions and delay; other columns (inuse_...) stay. Samples whose
 * values are all zero are dropped, equal ones added up. Return: 0; -E2BIG over PULL_BASELINE_MAX; -ENOMEM. @b is
 * unchanged on failure, @m may be changed.
 */
int pull_delta(struct model *m, struct pull_baseline *b, enum pull_change *how) warn_unused;
