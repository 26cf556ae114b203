/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/in_line.h"

/* A stack is read from its copy alone: the thread runs on. Where the copy ends or may go on, and in front of it, the
 * process is not asked. */
static int in_line_read(void *self, void *dst, uint32_t size, uint64_t at)
{
	struct in_line_world *i = self;
	struct world_live live = { .pid = i->program.pid };
	int r = world_copy_read(i->copy, dst, size, at);

	if (r == 0 || !i->steps || i->copy->ran_out || i->copy->is_dead)
		return r;
	if (!i->has_read && !i->with->lives(i->with->self, &i->program))
		return -ESRCH;
	i->has_read = true;
	return world_live_read(&live, dst, size, at);
}

static enum walk_next take_step(void *self, struct walk *w)
{
	struct world *world = self;
	struct in_line_world *i =
		(struct in_line_world *)(void *)((char *)world - offsetof(struct in_line_world, world));
	enum walk_next next;

	if (w->info_of != w->unwinder) {
		if (i->with->info(i->with->self, &i->program, (enum abi_runtime)w->unwinder, w->info) < 0)
			return WALK_SWITCH;
		w->info_of = w->unwinder;
	}
	i->steps = true;
	next = i->with->step(i->with->self, w);
	i->steps = false;
	return next;
}

void in_line_begin(struct in_line_world *i, const struct in_line *with, const struct program *program,
		   const struct mappings *maps, const struct world_tables *tables, struct world_copy *copy,
		   struct walk *w)
{
	struct abi_runtimes head = { 0 };

	*i = (struct in_line_world){ .with = with, .program = *program, .copy = copy };
	world_init(&i->world, maps, tables, (struct world_memory){ .read = in_line_read, .self = i });
	i->world.walk.is_late = 1;
	w->world = &i->world.walk;
	w->range_count = 0;
	w->in_line = 0;
	if (!with || w->mode == WALK_FP || with->head(with->self, program, &head) < 0)
		return;
	i->world.walk.in_line = take_step;
	w->range_count = MIN(head.range_count, (uint16_t)ABI_CODE_RANGES);
	memcpy(w->ranges, head.ranges, sizeof(w->ranges));
	w->in_line = w->range_count != 0;
}

bool in_line_holds(const struct in_line_world *i)
{
	struct abi_runtimes head;

	/* An exec takes the head away as soon as its record has come. */
	return !i->has_read ||
	       (i->with->lives(i->with->self, &i->program) && i->with->head(i->with->self, &i->program, &head) == 0);
}
