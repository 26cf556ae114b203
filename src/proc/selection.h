/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes a session is about, by what they are; process ids and cgroups are the sampler's. It holds for
 * processes that start later, too. */
#pragma once

#include "base/opt.h"
#include "proc/proc.h"

#define SELECTION_USERS_MAX 64

/* NULL is an empty list. Of each list that is not empty a process has to fit one item. Items are patterns: '*' any
 * bytes, '?' one byte; they are borrowed and have to stay. */
struct selection {
	const struct opt_list *comms;
	const struct opt_list *units; /* with or without ".service" */
	const struct opt_list *pods;
	const char *container;               /* its name, or at least 12 digits of its id; NULL: any */
	uint32_t users[SELECTION_USERS_MAX]; /* effective ids */
	size_t user_count;
};

bool selection_is_all(const struct selection *s);
/** selection_wants - @user: of the process; asked for only when user_count is not 0. Pure. */
bool selection_wants(const struct selection *s, const struct proc *p, uint32_t user);
