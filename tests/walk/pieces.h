/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process as recordings have it, tests/corpus/walk_ruby and others: pieces, each with address and size (8
 * bytes each), its bytes, and padding up to a multiple of 8. */
#pragma once

#include <linux/types.h>

#include "base/cur.h"

#define PIECES_MAX 512

struct piece {
	uint64_t at, size;
	const uint8_t *bytes; /* borrowed */
};

struct pieces {
	struct piece pieces[PIECES_MAX];
	size_t count;
};

/** pieces_read - struct walk_world's read(): what lies within one piece. @self: struct pieces */
static inline int pieces_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct pieces *m = self;

	for (size_t i = 0; i < m->count; i++) {
		const struct piece *p = &m->pieces[i];

		if (at >= p->at && at - p->at <= p->size && size <= p->size - (at - p->at)) {
			memcpy(dst, p->bytes + (at - p->at), size);
			return 0;
		}
	}
	return -EFAULT;
}

/** pieces_read_target - struct runtime_target's. */
static inline int pieces_read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return pieces_read(self, dst, size, at);
}

/** pieces_take - the rest of @in; a piece that is not whole ends it. */
static inline void pieces_take(struct cur *in, struct pieces *m)
{
	while (m->count < PIECES_MAX) {
		struct piece *p = &m->pieces[m->count];

		p->at = cur_le64(in);
		p->size = cur_le64(in);
		p->bytes = cur_bytes(in, p->size);
		if (in->bad)
			return;
		m->count++;
		ignore(cur_bytes(in, (8 - p->size % 8) % 8) == NULL); /* the end may be short of it */
	}
}
