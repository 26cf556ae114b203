/* SPDX-License-Identifier: Apache-2.0 */
/* How services are named: rows of an option table, for every command that samples. */
#pragma once

#include "cli/command.h"
#include "proc/service_rules.h"

/* Rows of a table over @config (a type) whose @member is a const char *. */
#define SERVICE_RULES_OPTION(config, member)                                                         \
	{                                                                                            \
		"service-rules", 0, OPT_PATH,                                                        \
			.at = offsetof(config, member), .arg = "FILE",                               \
			.help = "names of services: lines \"FIELD PATTERN -> NAME\", the first wins" \
	}

/** service_rules_load - @path: NULL: none. Return: EXIT_DONE, or another status after saying why. */
int service_rules_load(const struct command *c, const char *path, struct service_rules **out) warn_unused;
