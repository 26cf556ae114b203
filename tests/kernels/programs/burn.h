/* SPDX-License-Identifier: Apache-2.0 */
/* What the static programs share: a leaf that burns time in its own code, and a deadline. The clock is asked once per
 * some milliseconds of burning (under emulation), so that nearly every tick hits the known stack. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))

/* Keeps a call from becoming a jump, so that the caller stays on the stack. */
#define STAY __asm__ volatile("" ::: "memory")

#define BURN_TURNS 4000000UL

static inline __attribute__((always_inline)) void burn(void)
{
	for (unsigned long i = 0; i < BURN_TURNS; i++)
		__asm__ volatile("" : "+r"(i));
}

/* The first argument is how many seconds to run. */
static inline double deadline(int argc, char **argv, double otherwise)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9 + (argc > 1 ? strtod(argv[1], NULL) : otherwise);
}

static inline int before(double end)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9 < end;
}
