/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs with known stacks share. Each burns its time in known functions and dies by SIGALRM when its time
 * is up, so that no clock is read meanwhile: check_stacks.py knows every frame that can be on its stack. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* Keeps a call from becoming a jump, so that the caller stays on the stack. */
#define STAY __asm__ volatile("" ::: "memory")
/* Keeps an object in memory, on the stack. */
#define KEEP(object) __asm__ volatile("" ::"r"(object) : "memory")

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TURNS
#define TURNS 4000000ul /* about 2 ms */
#endif

NOINLINE void leaf(void)
{
	for (unsigned long i = 0; i < TURNS; i++)
		__asm__ volatile("" : "+r"(i));
}

static inline void deadline(int argc, char **argv)
{
	alarm(argc > 1 ? (unsigned)atoi(argv[1]) : 2);
}

#ifdef __cplusplus
}
#endif
