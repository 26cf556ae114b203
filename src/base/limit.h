/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that grow with an input. */
#pragma once

#include "base/base.h"

/** limit_of_sizes - @count times @size, and @more; no more than a size can count, which may have 32 bits. */
static inline size_t limit_of_sizes(size_t count, size_t size, size_t more)
{
	uint64_t limit;

	if (__builtin_mul_overflow((uint64_t)count, size, &limit) || __builtin_add_overflow(limit, more, &limit))
		return SIZE_MAX / 2;
	return (size_t)MIN(limit, (uint64_t)SIZE_MAX / 2);
}
