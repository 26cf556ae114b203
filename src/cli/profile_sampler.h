/* SPDX-License-Identifier: Apache-2.0 */
/* Which sampler hearth profile takes: bpf, or where it cannot run perf; and what it will not see. */
#pragma once

#include "cli/command.h"
#include "sampler/sampler.h"

/**
 * profile_sampler - choose one, and say once when it is not bpf
 *
 * Return: NULL after saying in one line what bpf lacks, and which options cannot be had without it; that is
 * EXIT_NOT_PERMITTED.
 */
const struct sampler *profile_sampler(const struct command *c, const struct sampler_config *sampling);

/** profile_warn_hidden - a line on stderr when kernel stacks come, but the kernel hides its addresses from us. */
void profile_warn_hidden(const struct sampler_config *sampling);
