/* SPDX-License-Identifier: Apache-2.0 */
/* --value TYPE: which column of a profile. */
#pragma once

#include "cli/command.h"
#include "model/model.h"

/** value_choose - @name NULL: the profile's default. Return: EXIT_DONE, or EXIT_USAGE after listing what there is. */
int value_choose(const struct command *c, const struct model *m, const char *name, size_t *out);
