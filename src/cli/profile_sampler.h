/* SPDX-License-Identifier: Apache-2.0 */
/* Which sampler hearth profile takes: bpf, or without its rights perf, for processes of the same user. */
#pragma once

#include "cli/command.h"
#include "sampler/sampler.h"

/**
 * profile_sampler - choose one, and say once when it is not bpf
 *
 * Return: NULL after saying in one line which rights are missing; that is EXIT_NOT_PERMITTED.
 */
const struct sampler *profile_sampler(const struct command *c, const struct sampler_config *sampling);
