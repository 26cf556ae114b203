/* SPDX-License-Identifier: Apache-2.0 */
/* The native step over a process whose registers and memory are the input: it ends, within bounds, and each frame it
 * says is above the one before. Layout: pc, sp, fp, lr (8 bytes each), a flag byte, then the memory. Memory is seen at
 * CODE and again at STACK. */
#include "fuzz.h"

#include <linux/types.h>

#include "base/cur.h"
#include "walk/walk_native.h"

#define CODE UINT64_C(0x10000)
#define STACK UINT64_C(0x7ffe00000000)

static int memory_read(void *self, void *dst, __u32 size, __u64 at)
{
	const struct cur *memory = self;
	size_t left = cur_left(memory);
	uint64_t offset = at >= STACK ? at - STACK : at - CODE;

	if (size > left || offset > left - size)
		return -EFAULT;
	memcpy(dst, memory->pos + offset, size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct walk_world world = { .read = memory_read, .self = &in };
	struct walk *w = calloc(1, sizeof(*w));
	uint64_t sp;
	uint8_t flags;

	must(w);
	w->world = &world;
	w->leaf[WALK_REG_PC] = cur_le64(&in);
	w->leaf[WALK_REG_SP] = cur_le64(&in);
	w->leaf[WALK_REG_FP] = cur_le64(&in);
	w->leaf[WALK_REG_FP + 1] = cur_le64(&in); /* x30 on aarch64; the stack pointer again on x86-64 */
	flags = cur_u8(&in);
	w->count = flags >> 1; /* kernel frames in front */
	walk_native_start(w, flags & 1);
	for (size_t turn = 0;; turn++) {
		must(turn <= ABI_FRAMES_MAX);
		bool signal = w->at_signal;

		sp = w->sp;
		if (walk_native_step(w) != WALK_MORE)
			break;
		must(w->sp > sp || turn == 0 || signal);
		must(w->pc >= WALK_USER_MIN && w->pc <= WALK_USER_MAX);
	}
	must(w->count <= ABI_FRAMES_MAX && w->end < ABI_END_COUNT && w->end != ABI_END_COMPLETE);
	free(w);
	return 0;
}
