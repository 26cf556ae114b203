/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of HotSpot's frames over a recording of a JVM's memory (tests/walk/java_image.h), which is the input: it
 * ends, within bounds, whatever the memory and even what attaching said of it. */
#include "fuzz.h"

#include "tests/walk/java_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cur in = cur_of(data, size);
	struct java_image *m = calloc(1, sizeof(*m));
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_world world = { .read = java_image_read, .find_map = java_image_find_map, .self = m };

	must(m && w);
	java_image_take(&in, m);
	m->info.met = 0;
	w->world = &world;
	java_image_walk(w, &m->info, m->leaf, m->is_return);
	must(w->end < ABI_END_COUNT && w->count <= ABI_FRAMES_MAX);
	for (uint32_t i = 0; i < w->count; i++) {
		const struct abi_frame *frame = &w->frames[i];

		must(frame->kind == ABI_FRAME_RUNTIME && frame->runtime == ABI_RUNTIME_JAVA);
		must(!(frame->flags & ABI_FRAME_INTERNAL) || !frame->b);
	}
	free(w);
	free(m);
	return 0;
}
