/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a profile that querier.v1 can ask for: one column, the samples of spans, what stands below a call site. */
#pragma once

#include "render/tree.h"

/** pick_column_of - the column called @sample with @unit (empty: any). Return: its number, or -1. */
int pick_column_of(const struct model *m, struct str sample, struct str unit);

/** pick_column - keep one column; samples without a value there go. Return: 0 or -ENOMEM. */
int pick_column(struct model *m, size_t column) warn_unused;

/**
 * pick_labelled - keep the samples whose text label @key is one of @values, in either case of letters
 * Return: 0 or -ENOMEM.
 */
int pick_labelled(struct model *m, struct str key, const struct str *values, size_t count) warn_unused;

/**
 * pick_call_site - keep the paths that begin with frames of these names, root first
 * Totals above them become what they have of these. Return: 0 or -ENOMEM.
 */
int pick_call_site(struct tree *t, const struct str *names, size_t count) warn_unused;
