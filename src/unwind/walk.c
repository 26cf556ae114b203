// SPDX-License-Identifier: Apache-2.0
#include "unwind/world.h"
#include "walk/walk_native.h"

void unwind_walk(struct walk *w)
{
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++) {
		if (walk_native_step(w) != WALK_MORE)
			return;
	}
}
