/* SPDX-License-Identifier: Apache-2.0 */
/* --log-usage: what the agent's container has used of CPU and memory, cycle by cycle, as gProfiler writes it. Source:
 * granulate-utils, granulate_utils/linux/cgroups_v2; gprofiler/usage_loggers.py. */
#pragma once

#include "base/base.h"

struct agent_usage {
	const char *root; /* "/sys/fs/cgroup"; NULL: nobody asked */
	uint64_t at_ns, cpu_ns, memory, peak;
};

/** agent_usage_begin - @root is borrowed. Return: 0; -ENOENT: neither version of cgroups is there. */
int agent_usage_begin(const char *root, struct agent_usage *out);
/** agent_usage_log - two lines: since the last call. */
void agent_usage_log(struct agent_usage *u);
