/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a made-up PHP process, from an input: pieces of address and size (8 bytes each), bytes, padding up to a
 * multiple of 8. */
#pragma once

#include <linux/types.h>

#include "base/cur.h"

#define PIECES_MAX 512

struct piece {
	uint64_t at, size;
	const uint8_t *bytes;
};

struct memory {
	struct piece pieces[PIECES_MAX];
	size_t count, reads;
};

static inline int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct memory *m = self;

	m->reads++;
	for (size_t i = 0; i < m->count; i++) {
		const struct piece *p = &m->pieces[i];

		if (at >= p->at && at - p->at <= p->size && size <= p->size - (at - p->at)) {
			memcpy(dst, p->bytes + (at - p->at), size);
			return 0;
		}
	}
	return -EFAULT;
}

/* struct runtime_target's. */
static inline int memory_read_target(void *self, void *dst, uint32_t size, uint64_t at)
{
	return memory_read(self, dst, size, at);
}

static inline void take_pieces(struct cur *in, struct memory *m)
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
