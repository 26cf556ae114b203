/* SPDX-License-Identifier: Apache-2.0 */
/* --app-id-args-filter: which arguments of JVMs are a part of their application ids. */
#pragma once

#include "cli/command.h"
#include "query/regex.h"

struct agent_filter {        /* all zero: nothing is */
	struct regex *items; /* owned */
	size_t count;
};

/** agent_filter_open - Return: EXIT_DONE, or another status after saying why. */
int agent_filter_open(const struct command *c, const struct opt_list *patterns, struct agent_filter *out);
/** agent_filter_wants - does any expression fit somewhere in @argument? One thread at a time. @filter: to its struct.
 */
bool agent_filter_wants(struct agent_filter *filter, struct str argument);
void agent_filter_release(struct agent_filter *f);
