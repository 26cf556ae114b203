/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	must(clock_gettime(id, &t) == 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static uint64_t system_monotonic(void *self)
{
	(void)self;
	return read_clock(CLOCK_MONOTONIC);
}

static uint64_t system_wall(void *self)
{
	(void)self;
	return read_clock(CLOCK_REALTIME);
}

const struct clock clock_system = { .monotonic_ns = system_monotonic, .wall_ns = system_wall };

void clock_add_iso(struct buf *out, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;
	char text[32];

	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	buf_adds(out, str_of(text));
}
