/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of Perl's frames over an interpreter's memory, which is the input: it ends, within bounds, whatever the
 * memory and even what attaching said of it. Layout: struct abi_perl, the thread pointer, pid and tid (the same) and a
 * number of native frames (8 bytes each), then pieces of memory: address and size (8 bytes each), bytes, padding up to
 * a multiple of 8. */
#include "fuzz.h"

#include "../walk/pieces.h"
#include "walk/walk_perl.h"

static void check_frames(const struct walk *w)
{
	must(w->runtime_end > ABI_RUNTIME_END_NONE && w->runtime_end < ABI_RUNTIME_END_COUNT);
	must(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	for (uint32_t i = 0; i < w->runtime_count; i++) {
		const struct abi_frame *frame = &w->frames[w->count + i];

		must(frame->runtime == ABI_RUNTIME_PERL && frame->extra < 1U << 31);
		if (frame->kind == ABI_FRAME_ACTIVATION)
			must(!frame->flags && !frame->b && !frame->extra);
		else
			must(frame->kind == ABI_FRAME_RUNTIME && !(frame->flags & ~ABI_FRAME_ENTRY));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct pieces *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = pieces_read, .self = m };
	const uint8_t *bytes = cur_bytes(&in, sizeof(struct abi_perl));
	struct abi_perl info = { 0 };

	must(w && m);
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	w->world = &world;
	w->tp = cur_le64(&in);
	walk_sample(w)->pid = walk_sample(w)->tid = (uint32_t)cur_le64(&in);
	w->count = (uint32_t)(cur_le64(&in) % (ABI_FRAMES_MAX + 1));
	pieces_take(&in, m);
	walk_perl_start(w, &info, 0);
	for (size_t turn = 0; walk_perl_step(w) == WALK_MORE; turn++)
		must(turn < WALK_PERL_TURNS);
	check_frames(w);
	free(w);
	free(m);
	return 0;
}
