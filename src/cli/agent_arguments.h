/* SPDX-License-Identifier: Apache-2.0 */
/* run_arguments of a .col header: every option with its value, by the names that gProfiler gives them inside. */
#pragma once

#include "cli/agent_options.h"

/**
 * agent_arguments_json - append the object, on one line; the token is no part of it
 * @o: checked options
 *
 * gProfiler's come first, in its order, then hearth's own. Return: 0 or the buffer's error.
 */
int agent_arguments_json(const struct agent_options *o, struct buf *out) warn_unused;
