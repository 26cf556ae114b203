/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of profile_text() of windows that follow each other, added up to one: rows of equal text are one row. */
#pragma once

#include "base/buf.h"
#include "base/intern.h"

struct profile_sum {
	bool folded;        /* the form: lines, otherwise blocks */
	struct intern rows; /* a row's text without its count */
	uint64_t *counts;   /* by row */
	size_t cap;
};

void profile_sum_init(struct profile_sum *s, bool folded);
void profile_sum_release(struct profile_sum *s); /* a zeroed one is fine */
/** profile_sum_add - all rows of @text, as profile_text() wrote it. Return: 0, -ENOMEM, -E2BIG. */
int profile_sum_add(struct profile_sum *s, struct str text) warn_unused;
/** profile_sum_write - append the rows, the most frequent last, and forget them. Return: 0, -ENOMEM, -E2BIG. */
int profile_sum_write(struct profile_sum *s, struct buf *out) warn_unused;
