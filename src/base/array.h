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
#define array_grow(items, cap, count, max) array_grow_((items), (cap), (count), sizeof(**(items)), (max))
