/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime whose frames are frames of the native stack: its steps in the walk, and the functions of its frames. */
#include "agent/dump_int.h"

#include <time.h>

#include "base/array.h"
#include "walk/walk_native.h"

#define CODE_ROOM_MAX MIB(16)
#define HIDDEN_LOOKS 5 /* at compiled code that is being written */

int dump_learn(struct dumper *d, struct dump_runtime *found)
{
	const struct runtime *runtime = found->binary->runtime;
	int r = runtime->learn_file ? runtime->learn_file(found->binary, &d->target, &found->learnt) : 0;

	d->target.of_file = found->learnt;
	return r;
}

/* Return: how many ranges; -errno. */
static int find_ranges(struct dumper *d, const struct runtime_binary *binary)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };
	int count = -EAGAIN;

	for (int look = 0; count == -EAGAIN && look < HIDDEN_LOOKS; look++) {
		if (look)
			nanosleep(&pause, NULL);
		count = binary->runtime->sync(binary, &d->target, d->info, d->ranges);
	}
	return count;
}

int dump_sync(struct dumper *d, const struct runtime_binary *binary)
{
	const struct runtime *runtime = binary->runtime;
	int count = runtime->sync ? find_ranges(d, binary) : 0, r = 0;

	if (runtime->learn_process)
		r = runtime->learn_process(&d->target, d->info, &d->learnt);
	d->target.of_process = d->learnt;
	d->range_count = (uint16_t)MAX(count, 0);
	for (uint16_t i = 0; i < d->range_count; i++)
		d->ranges[i].runtime = runtime->id;
	return r == -ENOMEM ? r : 0; /* otherwise its functions stay without names */
}

static int learn_name(void *ctx, uint32_t tid, struct str name)
{
	struct dumper *d = ctx;
	uint32_t id;
	int r;

	if (!name.len) /* the kernel's tells no more */
		return 0;
	r = intern_add(&d->out->strings, name, &id);
	return r < 0 ? r : u64map_put(&d->thread_names, tid, id);
}

int dump_learn_names(struct dumper *d)
{
	int r = d->runtime && d->runtime->thread_names ? d->runtime->thread_names(&d->target, d->info, learn_name, d)
						       : 0;

	return r == -ENOMEM ? r : 0;
}

void dump_release_learnt(struct dumper *d)
{
	u64map_release(&d->thread_names);
	for (size_t i = 0; i < d->runtime_count; i++)
		if (d->runtimes[i].learnt)
			d->runtimes[i].binary->runtime->unlearn(d->runtimes[i].learnt);
	if (d->learnt)
		d->runtime->unlearn(d->learnt);
	for (size_t i = 0; i < d->code_count; i++)
		buf_release(&d->codes[i].room);
	buf_release(&d->passing.room);
	free(d->codes);
	u64map_release(&d->code_index);
}

/* ---- the walk ---- */

static enum walk_next take_step(void *self, struct walk *w)
{
	struct world *world = self;
	const struct dumper *d = ((struct dump_world *)(void *)((char *)world - offsetof(struct dump_world, world)))->d;

	if (w->info_of != w->unwinder) {
		memcpy(w->info, d->info, sizeof(w->info));
		w->info_of = w->unwinder;
	}
	return d->runtime->walk_step(w, w->info);
}

void dump_world_begin(struct dumper *d, struct dump_world *self)
{
	struct walk *w = d->walk;

	self->d = d;
	self->live = (struct world_live){ .pid = d->process->pid };
	world_init(&self->world, &d->maps, &d->tables, (struct world_memory){ world_live_read, &self->live });
	w->world = &self->world.walk;
	w->range_count = 0;
	w->in_line = 0;
	if (!d->range_count || !d->runtime->walk_step)
		return;
	self->world.walk.in_line = take_step;
	w->range_count = d->range_count;
	w->in_line = 1;
	memcpy(w->ranges, d->ranges, sizeof(w->ranges));
}

/* ---- functions ---- */

static int add_function(struct dumper *d, const struct abi_frame *f, const struct runtime_function *function,
			int32_t line)
{
	struct dump_frame out = { .kind = DUMP_RUNTIME,
				  .guessed = (f->flags & ABI_FRAME_GUESSED) != 0,
				  .line = line,
				  .first_line = function->first_line };
	scoped(buf_release) struct buf name = BUF_INIT(KIB(64));
	int r;

	if (d->runtime->readable)
		d->runtime->readable(function->name, &name);
	r = dump_name(d, name.len ? buf_str(&name) : function->name, &out.name);
	if (r == 0)
		r = dump_name(d, function->file, &out.file);
	return r < 0 ? r : dump_add_frame(d, &out);
}

/* Return: 0, or why there is no room to keep it. */
static int keep(struct dumper *d, const struct dump_code *code)
{
	int r = d->code_bytes + code->room.cap > DUMP_CODES_BYTES ? -E2BIG : 0;

	if (r == 0)
		r = array_grow(&d->codes, &d->code_cap, d->code_count, DUMP_CODES_MAX);
	if (r == 0)
		r = u64map_put(&d->code_index, code->key, (uint32_t)d->code_count);
	if (r < 0)
		return r;
	d->codes[d->code_count++] = *code;
	d->code_bytes += code->room.cap;
	return 0;
}

static bool is_code(const struct dump_code *code, const struct dump_code *other)
{
	return code->key == other->key && code->cookie == other->cookie && code->is_compiled == other->is_compiled;
}

/* Many threads wait in the same code. Return: NULL: nothing is known of it. Valid until the next one. */
static const struct dump_code *find_code(struct dumper *d, const struct abi_frame *f)
{
	struct dump_code code = { .key = f->a,
				  .cookie = f->b,
				  .is_compiled = (f->flags & ABI_FRAME_COMPILED) != 0,
				  .room = BUF_INIT(CODE_ROOM_MAX) };
	typeof(d->runtime->read_name) read = code.is_compiled ? d->runtime->read_code : d->runtime->read_name;
	const struct dump_code *found = &d->passing;
	uint32_t at;

	if (!read)
		return NULL;
	if (u64map_get(&d->code_index, f->a, &at) == 0 && is_code(&d->codes[at], &code))
		found = &d->codes[at];
	if (!is_code(found, &code)) {
		code.is_known = read(&d->target, d->info, f->a, f->b, &code.room, &code.function) == 0;
		if (keep(d, &code) == 0) {
			found = &d->codes[d->code_count - 1];
		} else {
			buf_release(&d->passing.room);
			d->passing = code;
		}
	}
	return found->is_known ? found : NULL;
}

static int add_compiled(struct dumper *d, const struct abi_frame *f, const struct runtime_function *code)
{
	size_t count = d->runtime->expand(code, f->extra, f->flags & ABI_FRAME_RETURN, d->shown);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = add_function(d, f, &d->shown[i].function, d->shown[i].line);
	return count ? r : add_function(d, f, code, 0);
}

int dump_add_in_line(struct dumper *d, const struct abi_frame *f)
{
	const struct dump_code *code = find_code(d, f);

	if (!code)
		return add_function(d, f, &(struct runtime_function){ 0 }, 0);
	if (code->is_compiled)
		return add_compiled(d, f, &code->function);
	return add_function(d, f, &code->function, d->runtime->line ? d->runtime->line(&code->function, f->extra) : 0);
}
