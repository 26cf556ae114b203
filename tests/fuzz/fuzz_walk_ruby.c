/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of Ruby's frames over an interpreter's memory, which is the input (made by tests/unit/ruby_test.c): it ends,
 * within bounds, whatever the memory and even what attaching said of it; names are read from the same memory. Layout:
 * struct abi_ruby, the thread pointer and a number of native frames (8 bytes each), then pieces of memory: address and
 * size (8 bytes each), bytes, padding up to a multiple of 8. */
#include "fuzz.h"

#include "../walk/pieces.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/names.h"
#include "walk/walk_ruby.h"

#define TURNS_MAX 1024 /* of UNWIND_LOOP() */
#define NAMES_MAX 64

static void check_frames(const struct walk *w)
{
	must(w->runtime_end > ABI_RUNTIME_END_NONE && w->runtime_end < ABI_RUNTIME_END_COUNT);
	must(w->count + w->runtime_count <= ABI_FRAMES_MAX);
	for (uint32_t i = 0; i < w->runtime_count; i++) {
		const struct abi_frame *frame = &w->frames[w->count + i];

		must(frame->runtime == ABI_RUNTIME_RUBY && frame->kind == ABI_FRAME_RUNTIME);
		must(!(frame->flags & ~(ABI_FRAME_ENTRY | ABI_FRAME_GAP)));
	}
}

static void read_names(const struct walk *w, struct pieces *m, const struct abi_ruby *info)
{
	const struct runtime_target target = { .read = pieces_read_target, .self = m };

	for (uint32_t i = 0; i < w->runtime_count && i < NAMES_MAX; i++) {
		const struct abi_frame *frame = &w->frames[w->count + i];
		scoped(buf_release) struct buf room = BUF_INIT(MIB(1));
		struct runtime_function f = { 0 };

		if (ruby_read_name(&target, info, frame->a, frame->b, &room, &f) < 0)
			continue;
		must(f.name.len && f.lines.size <= f.lines_whole);
		must(ruby_line(&f, frame->extra) >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct pieces *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = pieces_read, .self = m };
	const uint8_t *bytes = cur_bytes(&in, sizeof(struct abi_ruby));
	struct abi_ruby info = { 0 };

	must(w && m);
	if (bytes)
		memcpy(&info, bytes, sizeof(info));
	w->world = &world;
	w->tp = cur_le64(&in);
	w->count = (uint32_t)(cur_le64(&in) % (ABI_FRAMES_MAX + 1));
	pieces_take(&in, m);
	walk_ruby_start(w, &info, 0);
	/* The shell stops as well: a frame has 8 bytes at least, or the size says 0 and the walk stands still. */
	for (size_t turn = 0; turn < TURNS_MAX && walk_ruby_step(w) == WALK_MORE; turn++)
		;
	check_frames(w);
	read_names(w, m, &info);
	free(w);
	free(m);
	return 0;
}
