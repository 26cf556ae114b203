/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a collector, for every command that runs one. Their offsets are of struct serve_config, which has to
 * come first in the command's configuration. */
#pragma once

#include "cli/command.h"
#include "collector/serve.h"

extern const struct opt serve_options_general[], serve_options_keeping[], serve_options_access[],
	serve_options_limits[], serve_options_logging[];

/** serve_command - runs a collector as @c until a signal ends it. Return: enum exit_status, after saying why. */
int serve_command(const struct command *c, const struct serve_config *config) warn_unused;

/** command_become_owner - privilege_become_owner() as part of @c. Return: enum exit_status, after saying why. */
int command_become_owner(const struct command *c, const char *folder) warn_unused;
