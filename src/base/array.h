/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of plain arrays: `struct x *items; size_t count, cap;` kept by their owner. */
#pragma once

#include "base/base.h"

/**
 * array_grow - make room for one more element
 * @items: address of the array pointer; may hold NULL
 * @cap: its capacity in elements, updated
 * @count: elements in use
 * @max: most elements ever allowed
 *
 * Return: 0, -ENOMEM, or -E2BIG at @max. Nothing changes on failure.
 */
int array_grow_(void *items, size_t *cap, size_t count, size_t size, size_t max) warn_unused;
#define array_grow(items, cap, count, max)                                                         \
	({                                                                                         \
		size_t *cap_ = (cap), count_ = (count); /* mostly there is room: in line */        \
		count_ < *cap_ ? 0 : array_grow_((items), cap_, count_, sizeof(**(items)), (max)); \
	})

/** array_reserve - make room for @want elements in all. Return: 0 or -ENOMEM; nothing changes on failure. */
int array_reserve_(void *items, size_t *cap, size_t want, size_t size) warn_unused;
#define array_reserve(items, cap, want) array_reserve_((items), (cap), (want), sizeof(**(items)))

/** array_trim - shrink the block to @count elements; keeps it when no smaller block can be allocated */
void array_trim_(void *items, size_t *cap, size_t count, size_t size);
#define array_trim(items, cap, count) array_trim_((items), (cap), (count), sizeof(**(items)))
