/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads share: time to burn inside a function, and a deadline, so that each ends by itself. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

/* Keeps a call from becoming a jump, so that the caller stays on the stack. */
#define STAY __asm__ volatile("" ::: "memory")

/* Inlined, so that the time is spent in the caller's own code. Each copy lies alike in its cache line: of two loops one
 * can be a fifth slower only for the line it crosses. */
static inline __attribute__((always_inline)) void burn(unsigned long turns)
{
	__asm__ volatile(".p2align 6");
	for (unsigned long i = 0; i < turns; i++)
		__asm__ volatile("" : "+r"(i));
}

static inline double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The first argument is how many seconds to run. */
static inline double seconds_of(int argc, char **argv, double otherwise)
{
	return argc > 1 ? strtod(argv[1], NULL) : otherwise;
}
