/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files as results of commands. */
#pragma once

#include "cli/command.h"
#include "model/window.h"

/**
 * output_write - one window to one file through the file sink; says where it went unless @quiet
 * @format: NULL: by the path's suffix
 */
int output_write(const struct command *c, const char *path, const char *format, const struct window *w, bool quiet);
