/* SPDX-License-Identifier: Apache-2.0 */
/* A selection in parts: profiles of different hosts, or with different labels, added up apart, so that a flame graph
 * can say which is whose. */
#pragma once

#include "collector/collector_int.h"
#include "query/flame.h"

#define GROUPING_PARTS_MAX 250 /* different hosts and labels; what else there is is one more */

/**
 * grouping_fn - one part
 * @w: may be taken (zeroed)
 * @groups: those that were asked for, with what is usual in this part
 *
 * Return: whether to go on; otherwise the call is answered.
 */
typedef bool grouping_fn(void *ctx, struct window *w, const struct store_sum *info, const struct tree_group *groups);

/** grouping_sum - the profiles of @range, in one part unless @groups has hosts or labels. Return: whether there are
 * some and @take took all; otherwise the call is answered. */
bool grouping_sum(struct call *call, const struct query_range *range, const struct flame_groups *groups,
		  grouping_fn *take, void *ctx);
