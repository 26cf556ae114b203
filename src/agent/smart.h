/* SPDX-License-Identifier: Apache-2.0 */
/* Two stacks of each sample, one by frame pointers and one by a copy of the stack: of every process those stay that
 * show more. gProfiler's rule for --perf-mode smart (gprofiler/profilers/perf.py, merge by score). */
#pragma once

#include "agent/aggregate.h"

/**
 * smart_choose - of each pid, the rows of one kind count 0 from now on
 *
 * The score of a kind is the mean, over its distinct stacks, of the user frames that are known, and one. Frame pointers
 * win when theirs is greater, and where there is no copy. Both are of the same moments, so nothing is scaled. Return: 0
 * or -ENOMEM.
 */
int smart_choose(struct aggregate *a) warn_unused;
