/* SPDX-License-Identifier: Apache-2.0 */
/* Time comes in through this struct, so that tests run the real code on a simulated clock. */
#pragma once

#include "base/buf.h"

struct clock {
	uint64_t (*monotonic_ns)(void *self);
	uint64_t (*wall_ns)(void *self); /* since the Unix epoch */
	void *self;
};

extern const struct clock clock_system;

static inline uint64_t clock_monotonic_ns(const struct clock *c)
{
	return c->monotonic_ns(c->self);
}

static inline uint64_t clock_wall_ns(const struct clock *c)
{
	return c->wall_ns(c->self);
}

/** clock_add_iso - append UTC time as 2026-08-03T21:30:25, without zone or fraction. */
void clock_add_iso(struct buf *out, uint64_t wall_ns);
