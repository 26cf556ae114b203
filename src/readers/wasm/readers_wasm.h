/* SPDX-License-Identifier: Apache-2.0 */
/* In front of every source that becomes WebAssembly: what wasi-libc's headers lack. */
#pragma once

#include <stddef.h>

void qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b, void *ctx),
	     void *ctx);
