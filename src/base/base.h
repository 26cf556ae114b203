/* SPDX-License-Identifier: Apache-2.0 */
/* What every file may use: sizes, scope cleanup, checked arithmetic, our own assert. Knows nothing about profiling. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* before the names below are poisoned */
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define GIB(n) ((size_t)MIN((uint64_t)(n) << 30, (uint64_t)SIZE_MAX / 2)) /* a limit, also where a size has 32 bits */
#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A result that must be looked at; dropping one takes ignore() and a reason. */
#define warn_unused __attribute__((warn_unused_result))
#define ignore(result)        \
	do {                  \
		if (result) { \
		}             \
	} while (0)
#define printf_like(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* For a step whose large locals must not add to its only caller's: inlined, they would stand there all the time. */
#define own_frame __attribute__((noinline))
/* Runs fn(&variable) when the variable's scope ends: the leak-free path is the short path. */
#define scoped(fn) __attribute__((cleanup(fn)))

/* For our own mistakes only, never for input. Stays on in release. */
#define must(condition) ((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__))

_Noreturn void must_failed(const char *condition, const char *file, int line);

static inline size_t align_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static inline int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static inline int64_t saturating_abs(int64_t a)
{
	return a == INT64_MIN ? INT64_MAX : a < 0 ? -a : a;
}

void freep(void *pointer_to_pointer); /* scoped(freep) char *p */
void closep(int *fd);                 /* scoped(closep) int fd = -1 */

#undef sprintf /* a macro in glibc's fortified headers under clang */
#pragma GCC poison strcpy strcat sprintf strtok atoi gets
