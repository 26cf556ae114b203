/* SPDX-License-Identifier: Apache-2.0 */
/* --value TYPE: which column of a profile. */
#pragma once

#include "cli/command.h"
#include "codec/codec.h"
#include "model/model.h"

/* A row of a table over @config (a type) whose @member is a const char *. */
#define VALUE_OPTION(config, member)                                                                                   \
	{                                                                                                              \
		"value", 0, OPT_TEXT, .at = offsetof(config, member), .arg = "TYPE",                                   \
				      .help = "which of the profile's values to show, such as samples, cpu, waits or " \
					      "off_cpu; NAME/UNIT tells two of one name apart (default: what the "     \
					      "profile says; cpu where hearth sampled)"                                \
	}

/** value_choose - @name NULL: the profile's default. Return: EXIT_DONE, or EXIT_USAGE after listing what there is. */
int value_choose(const struct command *c, const struct model *m, const char *name, size_t *out);
/**
 * value_apply - what @name asks of an output: text counts by it, pages show it first, and it becomes the profile's
 * default
 * @name: NULL changes nothing
 *
 * Return: as value_choose().
 */
int value_apply(const struct command *c, struct model *m, const char *name, struct codec_options *options);
