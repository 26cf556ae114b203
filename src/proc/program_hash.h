/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as keys of a struct u64map. */
#pragma once

#include <xxhash.h>

#include "proc/program.h"

/** program_hash - @seed: random, since users choose what they start. Collisions are negligible. */
static inline uint64_t program_hash(const struct program *p, uint64_t seed)
{
	const uint64_t words[] = { (uint64_t)p->pid << 32 | p->exec_id, p->start_ns };

	return XXH3_64bits_withSeed(words, sizeof(words), seed);
}
