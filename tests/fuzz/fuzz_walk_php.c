/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of PHP's frames over any memory: it ends, within bounds, whatever that holds and even what attaching said of
 * it. Layout: struct abi_php, the thread pointer, the tick's pc, r14 and r15 and a number of native frames (8 bytes
 * each), then pieces of memory: address and size (8 bytes each), bytes, padding up to a multiple of 8. */
#include "fuzz.h"

#include "../walk/pieces.h"
#include "walk/walk_php.h"

#define TURNS_MAX (2 * ABI_FRAMES_MAX + 64 * PIECES_MAX)

static void check_frames(const struct walk *w)
{
	must(w->runtime_end > ABI_RUNTIME_END_NONE && w->runtime_end < ABI_RUNTIME_END_COUNT);
	must(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	for (uint32_t i = 0; i < w->runtime_count; i++) {
		const struct abi_frame *frame = &w->frames[w->count + i];

		must(frame->kind == ABI_FRAME_RUNTIME && frame->runtime == ABI_RUNTIME_PHP);
		must(!(frame->flags & ~(ABI_FRAME_ENTRY | ABI_FRAME_GAP | ABI_FRAME_OTHER_STACK)) &&
		     frame->extra <= WALK_PHP_LINES_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct pieces *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = pieces_read, .self = m };
	const uint8_t *bytes = cur_bytes(&in, sizeof(struct abi_php));
	struct abi_php info = { 0 };

	must(w && m);
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	w->world = &world;
	w->tp = cur_le64(&in);
	w->leaf[WALK_REG_PC] = cur_le64(&in);
	w->leaf[WALK_PHP_REG_FRAME] = cur_le64(&in);
	w->leaf[WALK_PHP_REG_OP] = cur_le64(&in);
	w->count = (uint32_t)(cur_le64(&in) % (ABI_FRAMES_MAX + 1));
	pieces_take(&in, m);
	walk_php_start(w, &info, 0);
	for (size_t turn = 0; walk_php_step(w) == WALK_MORE; turn++)
		must(turn < TURNS_MAX);
	check_frames(w);
	free(w);
	free(m);
	return 0;
}
