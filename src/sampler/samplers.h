/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry lists; used by samplers.c and by the files that define them. */
#pragma once

#include "sampler/sampler.h"

extern const struct sampler sampler_bpf;
extern const struct sampler sampler_perf;
extern const struct sampler sampler_recorded;
extern const struct sampler sampler_remote;
