/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded memory that counts how often it is read. */
#pragma once

#include "../walk/pieces.h"

struct counted {
	struct pieces pieces;
	size_t reads;
};

/** counted_read - struct walk_world's. @self: struct counted */
static inline int counted_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct counted *m = self;

	m->reads++;
	return pieces_read(&m->pieces, dst, size, at);
}

/** counted_read_target - struct runtime_target's. */
static inline int counted_read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return counted_read(self, dst, size, at);
}
