/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of this process become a pprof. */
#pragma once

#include "libhearth/places.h"
#include "libhearth/sampler.h"
#include "model/window.h"

struct profile;

/** profile_open - empty, from now on. Return: 0 or -ENOMEM. */
int profile_open(unsigned int frequency_hz, struct profile **out) warn_unused;
void profile_free(struct profile *p); /* NULL is fine */

/** profile_add - for sampler_drain(); what finds no memory is counted. */
void profile_add(void *profile, const struct sample *sample);
/** profile_finish - append it, gzipped, with the labels given. *samples: in it. Return: 0 or -errno. */
int profile_finish(struct profile *p, const struct window_label *labels, size_t label_count, struct buf *out,
		   uint64_t *samples) warn_unused;
/** profile_start_ns - wall clock. */
uint64_t profile_start_ns(const struct profile *p);
