/* SPDX-License-Identifier: Apache-2.0 */
/* One window of a machine into one per workload and type of profile. */
#pragma once

#include "model/window.h"

#define MODEL_SERVICE_KIND "service_kind"

struct window_part {
	struct str workload; /* of its processes; "unknown" for samples that have none */
	struct str kind;     /* what it is named after, or empty; also the window's label MODEL_SERVICE_KIND */
	struct str type;     /* "offcpu": the columns waits and off_cpu; "cpu": all others */
	struct window
		*window; /* @visit may change it. Figures of the whole machine (load, busy time) are set to unknown */
};

typedef int window_part_fn(void *ctx, const struct window_part *part);

/**
 * window_split - call @visit for every workload and type that has samples, in order of first appearance
 *
 * Workloads of one name that are named after different things are different ones.
 * Every sample of @w is in exactly one part, except samples whose values are all zero. Samples that are equal, time
 * included, become one. Counters of lost samples, and of whole and guessed stacks, belong to the whole machine: a part
 * has them as machine_..., so that they are shown but not added up; "samples" is its own. Pure but for @visit.
 *
 * Return: 0, -ENOMEM, -E2BIG, or the first result of @visit that is not 0.
 */
int window_split(const struct window *w, window_part_fn *visit, void *ctx) warn_unused;

/** @group: its number; @part: as above, it may be changed */
typedef int window_group_fn(void *ctx, size_t group, struct window *part);

/**
 * window_split_groups - call @visit for every group that has samples, by number
 * @group_of: the group of each sample, below @group_count
 *
 * Parts have all columns and the header of @w, and no time offsets: equal samples become one. The rest is as
 * window_split() has it, the Return too.
 */
int window_split_groups(const struct window *w, const uint32_t *group_of, size_t group_count, window_group_fn *visit,
			void *ctx) warn_unused;
