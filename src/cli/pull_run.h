/* SPDX-License-Identifier: Apache-2.0 */
/* Scraping as part of a command: from a file of targets into a store. */
#pragma once

#include "cli/command.h"
#include "collector/pull.h"

/** pull_load - Return: EXIT_DONE, or says what is wrong with the file. */
int pull_load(const struct command *c, const char *path, struct pull_targets *out);
/** pull_reload - the file again; when it cannot be used, that is said and the targets stay. Return: 0 or -EINVAL. */
int pull_reload(const struct command *c, const char *path, struct pull *pull) warn_unused;
/** pull_into_store - @state: of store_sqlite; stays the caller's. Return: EXIT_DONE, or says what is wrong. */
int pull_into_store(const struct command *c, const char *path, struct store_state *state, struct pull **out);
