/* SPDX-License-Identifier: Apache-2.0 */
/* For WebAssembly, which has no pages to advise about. */
#pragma once

#include <stddef.h>

#define MADV_HUGEPAGE 14

static inline int madvise(void *at, size_t size, int advice)
{
	(void)at, (void)size, (void)advice;
	return 0;
}
