/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of V8's frames over memory that is the input: it ends, within bounds, whatever the memory and even what
 * attaching said of it. Layout: pc, sp, fp, rdi, a number whose bit 0 says "leaf", struct abi_nodejs, then pieces of
 * memory: address and size (8 bytes each), bytes, padding up to a multiple of 8. */
#include "fuzz.h"

#include "../walk/pieces.h"
#include "walk/walk_nodejs.h"

#define TURNS_MAX (ABI_FRAMES_MAX + 1)

static void check_frames(const struct walk *w)
{
	must(w->count <= ABI_FRAMES_MAX);
	for (uint32_t i = 0; i < w->count; i++) {
		const struct abi_frame *frame = &w->frames[i];

		must(frame->kind == ABI_FRAME_RUNTIME && frame->runtime == ABI_RUNTIME_NODEJS);
		must(!(frame->flags & ~(ABI_FRAME_RETURN | ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct pieces *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = pieces_read, .self = m };
	struct abi_nodejs info = { 0 };
	enum walk_next next = WALK_MORE;
	const uint8_t *bytes;

	must(w && m);
	w->world = &world;
	w->pc = cur_le64(&in);
	w->sp = cur_le64(&in);
	w->fp = cur_le64(&in);
	w->leaf[WALK_NODEJS_RDI] = cur_le64(&in);
	w->is_leaf = cur_le64(&in) & 1;
	w->is_return = !w->is_leaf;
	bytes = cur_bytes(&in, sizeof(info));
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	pieces_take(&in, m);
	for (size_t turn = 0; next == WALK_MORE; turn++) {
		walk_begin_step(w);
		next = walk_nodejs_step(w, &info);
		must(next != WALK_SWITCH || w->count == w->before.count);
		if (next == WALK_MORE)
			next = walk_stepped(w, next);
		must(turn < TURNS_MAX);
	}
	check_frames(w);
	free(w);
	free(m);
	return 0;
}
