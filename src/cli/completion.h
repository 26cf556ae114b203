/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made from the command and option tables. */
#pragma once

#include "cli/command.h"

/** completion_bash - a script for bash-completion that knows every command, option and choice. */
void completion_bash(struct buf *out);
/** completion_man - the options and examples of a command as scdoc source. */
void completion_man(const struct command *c, struct buf *out);
