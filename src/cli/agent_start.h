/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be so before the agent samples, in gProfiler's order and words (docs/agent.md). A scratch directory below
 * /tmp is not made: there are no helper programs that would need one. */
#pragma once

#include "cli/agent_options.h"

/**
 * agent_start_check - rights, pid namespace, the lock. Says on stderr what is wrong.
 * @lock: an abstract socket in the machine's first network namespace; holds the lock until it is closed
 * Return: exit status.
 */
int agent_start_check(const struct agent_options *o, int *lock);
/** agent_start_prepare - umask, core limit, pid file, output directory. Return: exit status. */
int agent_start_prepare(const struct command *c, const struct agent_options *o);
