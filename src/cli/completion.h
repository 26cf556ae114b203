/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made from the command and option tables. */
#pragma once

#include "cli/command.h"

/** completion - a script that knows every command, option and choice. @shell: bash, zsh or fish; -EINVAL otherwise. */
int completion(struct str shell, struct buf *out) warn_unused;
/** completion_man - the options and examples of a command as scdoc source. */
void completion_man(const struct command *c, struct buf *out);
