/* SPDX-License-Identifier: Apache-2.0 */
/* --external-metadata: what another program knows of this machine. */
#pragma once

#include "cli/command.h"
#include "model/window.h"

/**
 * agent_external_read - the member "static" of the JSON object in @path
 * @out: appended to: one JSON object. A file that nobody has written for five minutes is refused: its writer is gone.
 * Return: EXIT_DONE, or EXIT_FAILED after saying why.
 */
int agent_external_read(const struct command *c, const char *path, struct buf *out);
/**
 * agent_external_add - its member "application": {"PID": {...}} goes over what a window knows of its processes
 * A file that cannot be used changes nothing, and is told in the log.
 */
void agent_external_add(const char *path, struct window *w);
