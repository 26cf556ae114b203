/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of what a walk of HotSpot's frames read (tests/walk/java_record.c), and the walk over it. Layout: struct
 * abi_java; leaf[] of struct walk and whether pc is a return address (8 bytes each); then pieces of memory (pieces.h).
 */
#pragma once

#include <linux/types.h>

#include "tests/walk/pieces.h"
#include "walk/walk_java.h"

#define JAVA_IMAGE_TURNS (ABI_FRAMES_MAX * (WALK_JAVA_SCAN_MAX / WALK_JAVA_SCAN + 1))

#ifdef WALK_X86_64
#define JAVA_IMAGE_LIBRARIES 0x7f0000000000
#else
#define JAVA_IMAGE_LIBRARIES 0xaaaa00000000
#endif

struct java_image { /* borrows the recording */
	struct abi_java info;
	uint64_t leaf[WALK_REGS];
	bool is_return;
	struct pieces memory;
};

static inline int java_image_read(void *self, void *dst, __u32 size, __u64 at)
{
	struct java_image *m = self;

	return pieces_read(&m->memory, dst, size, at);
}

/* Libraries lie there, for all that a recording knows. */
static inline int java_image_find_map(void *self, __u64 pc, struct abi_map *out)
{
	(void)self;
	if (pc < JAVA_IMAGE_LIBRARIES)
		return -ENOENT;
	*out = (struct abi_map){ .start = pc, .end = pc + 1, .kind = ABI_MAP_BARE };
	return 0;
}

static inline void java_image_take(struct cur *in, struct java_image *m)
{
	const uint8_t *info = cur_bytes(in, sizeof(m->info));

	if (info)
		memcpy(&m->info, info, sizeof(m->info));
	for (size_t i = 0; i < WALK_REGS; i++)
		m->leaf[i] = cur_le64(in);
	m->is_return = cur_le64(in) & 1;
	pieces_take(in, &m->memory);
}

/* The frames from pc up to the first native one, where w stands then with end FRAME_LIMIT. @w: with its world, zeros
 * otherwise. */
static inline void java_image_walk(struct walk *w, const struct abi_java *info, const uint64_t leaf[WALK_REGS],
				   bool is_return)
{
	for (size_t i = 0; i < WALK_REGS; i++)
		w->leaf[i] = leaf[i];
	walk_native_start(w, is_return);
	memcpy(w->info, info, sizeof(*info));
	w->info_of = ABI_RUNTIME_JAVA;
	w->range_count = 1;
	w->in_line = 1;
	w->ranges[0] = (struct abi_code_range){ info->low, info->high - info->low, ABI_RUNTIME_JAVA, 0 };
	for (size_t turn = 0; walk_in_runtime(w); turn++) {
		walk_begin_step(w);
		must(turn < JAVA_IMAGE_TURNS);
		if (walk_stepped(w, walk_java_step(w)) != WALK_MORE || w->passed)
			return;
	}
}
