/* SPDX-License-Identifier: Apache-2.0 */
/* Two samplers saw one process: the runtime's stacks replace perf's, and perf's number of samples stays. Pure.
 * Source: gProfiler, merge.py. Where that rounds by chance, the largest remainders are rounded up here, so that the
 * total of a process is exactly perf's. */
#pragma once

#include "model/model.h"

struct merge_row { /* one stack of one process */
	uint32_t pid;
	bool is_error; /* of runtime rows: it says why there is no stack, "[Profiling error: ...]" */
	uint64_t count;
	uint64_t merged; /* out: how often it counts in the result */
	/* out, of perf rows: index + 1 of the runtime row whose error frame goes in front of its root; 0: none */
	uint32_t error_row;
};

/**
 * merge_runtime_rows - fill what is `out` in both lists
 *
 * For each pid, R and P are the sums of its counts in @runtime and @perf:
 *
 *	no runtime row                      perf rows stay
 *	P > 0, stacks                       perf rows go, runtime rows count * P / R
 *	P > 0, nothing but one error        perf rows stay, with the error's frame put in
 *	P = 0, stacks                       runtime rows stay as they are
 *	P = 0, nothing but one error        nothing
 *
 * Return: 0 or -ENOMEM.
 */
int merge_runtime_rows(struct merge_row *perf, size_t perf_count, struct merge_row *runtime,
		       size_t runtime_count) warn_unused;

/** merge_runtime_is_error - does this frame's name say why there are no stacks? Source: gProfiler, merge.py */
bool merge_runtime_is_error(struct str name);

/**
 * merge_runtime_models - the same for two profiles
 * @perf: its samples are changed; NULL: there is none, then counts stay and an error counts once
 * @runtime: its samples are changed
 * @out: an empty model
 *
 * Containers: the runtime's, or perf's where that is empty; application ids and their metadata: the runtime's. Samples
 * that do not count (waits) stay. Return: 0, -EINVAL when the sample types differ, -ENOMEM, -E2BIG.
 */
int merge_runtime_models(struct model *perf, struct model *runtime, struct model *out) warn_unused;
