/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as Pyroscope's APIs name them: selectors, a time, and a column. */
#pragma once

#include "collector/collector_int.h"
#include "query/matchers.h"

/* Texts are borrowed from the request. */
struct selection {
	struct matchers *sets; /* a series that one of them means is meant; none: every series */
	size_t count;
	struct store_selector sel;
	struct str sample, unit; /* of the column; empty: the default one, any */
	bool is_nothing;         /* no profile can be meant */
};

/** selection_begin - the store's selector of @s, of the call's deadline. @s stays where it is. */
void selection_begin(struct selection *s, struct call *call);
/** selection_failed - whether a store call of @s failed with @r, or its regular expressions took too long; then the
 * call is answered. */
bool selection_failed(struct call *call, const struct selection *s, int r, const char *what);
/**
 * selection_sum - all of it as one profile
 * Where sample types differ, only the column is added up: profiles without it are left out.
 * @column: its number in *out
 *
 * Return: whether it went well, otherwise the call is answered; info->profiles may be 0.
 */
bool selection_sum(struct call *call, struct selection *s, struct window *out, struct store_sum *info, size_t *column);
/** selection_value - the column's value in @point. Return: whether it has one. */
bool selection_value(const struct selection *s, const struct store_point *point, int64_t *out);
