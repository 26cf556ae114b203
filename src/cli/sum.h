/* SPDX-License-Identifier: Apache-2.0 */
/* Several profile files as one. */
#pragma once

#include "cli/command.h"
#include "model/window.h"

struct sum_options {
	const char *from; /* format of the inputs; NULL: by content, then by suffix */
	bool compat;      /* where value types differ, keep those that all files have */
	bool quiet;       /* no progress on the terminal */
};

/* A row of a table over @config (a type) whose @member is a bool. */
#define COMPAT_OPTION(config, member)                                                                     \
	{                                                                                                 \
		"compat", 0, OPT_FLAG, .at = offsetof(config, member),                                    \
				       .help = "where value types differ, keep those that all files have" \
	}

/**
 * sum_load - read files and add up their samples
 * @paths: at least one; "-" is standard input
 *
 * Times span all inputs, durations and counters add up. Says in one line what is wrong. Return: EXIT_DONE, or another
 * status; *out is released by the caller in any case.
 */
int sum_load(const struct command *c, const struct sum_options *options, char **paths, int count, struct window *out);
