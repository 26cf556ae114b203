// SPDX-License-Identifier: Apache-2.0
#include "unwind/world.h"
#include "walk/walk_native.h"

enum walk_next unwind_turn(struct walk *w)
{
	enum walk_next next = walk_native_step(w);

	if (next != WALK_SWITCH)
		return next;
	walk_begin_step(w);
	if (w->world->in_line)
		next = w->world->in_line(w->world->self, w);
	return walk_stepped(w, next);
}

void unwind_walk(struct walk *w)
{
	for (int turn = 0; turn < ABI_FRAMES_MAX; turn++) {
		if (unwind_turn(w) != WALK_MORE)
			return;
	}
}
