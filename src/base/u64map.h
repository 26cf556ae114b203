/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing from a 64-bit key to a 32-bit value, usually an index into the owner's array. Keys that come from
 * outside are mixed with a random seed, so nobody can choose collisions. */
#pragma once

#include "base/base.h"

struct u64map {
	struct u64map_slot *slots;
	size_t cap, used, max; /* cap is 0 or a power of two; used counts live entries */
	size_t dead;           /* tombstones */
	uint64_t seed;
};

void u64map_init(struct u64map *m, size_t max_entries);
void u64map_release(struct u64map *m);
void u64map_clear(struct u64map *m); /* keeps the memory */

/** u64map_get - Return: 0 and *out, or -ENOENT (out untouched). */
int u64map_get(const struct u64map *m, uint64_t key, uint32_t *out);
/** u64map_put - adds or replaces. Return: 0, -ENOMEM or -E2BIG. */
int u64map_put(struct u64map *m, uint64_t key, uint32_t value) warn_unused;
/** u64map_remove - Return: 0 or -ENOENT. */
int u64map_remove(struct u64map *m, uint64_t key);
