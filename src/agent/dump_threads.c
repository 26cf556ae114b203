/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of a dump: kernel frames, native ones and the runtime's, and which parts could not be read. */
#include "agent/dump_int.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "walk/walk_native.h"

#define FRAMES_MAX (1U << 20)
#define THREADS_MAX 65536
#define KERNEL_STACK_MAX KIB(16)
#define TRIES 3 /* a thread that wakes up while it is read is read again */

/* ---- texts of /proc ---- */

static bool next_hex(struct str *rest, uint64_t *out)
{
	struct str word;

	return str_next(rest, ' ', &word) && str_starts(word, STR("0x")) && str_to_hex64(str_skip(word, 2), out) == 0;
}

int dump_registers_parse(struct str text, struct dump_registers *out)
{
	struct dump_registers r = { 0 };
	struct str rest = str_trim(text), word;
	uint64_t unused;
	int64_t number;

	if (str_eq(rest, STR("running"))) {
		*out = (struct dump_registers){ .runs = true };
		return 0;
	}
	if (!str_next(&rest, ' ', &word) || str_to_i64(word, &number) < 0)
		return -EBADMSG;
	r.in_syscall = number >= 0;
	for (int i = 0; r.in_syscall && i < 6; i++)
		if (!next_hex(&rest, &unused))
			return -EBADMSG;
	if (!next_hex(&rest, &r.sp) || !next_hex(&rest, &r.pc) || rest.ptr)
		return -EBADMSG;
	*out = r;
	return 0;
}

bool dump_kernel_line(struct str line, struct str *name)
{
	ptrdiff_t plus;

	if (!str_starts(line, STR("[<")) || str_find(line, ' ') < 0)
		return false;
	line = str_skip(line, (size_t)str_find(line, ' ') + 1);
	plus = str_rfind(line, '+');
	*name = plus > 0 ? str_first(line, (size_t)plus) : line;
	return name->len > 0;
}

/* Return: bytes, or -errno. */
static ssize_t read_text(struct dumper *d, uint32_t tid, const char *name, char *text, size_t size)
{
	scoped(closep) int fd = -1;
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "%u/%s", tid, name);
	fd = openat(d->process->task_dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, text, size);
	return got < 0 ? -errno : got;
}

/* ---- frames ---- */

int dump_name(struct dumper *d, struct str text, uint32_t *out)
{
	struct intern *strings = &d->out->strings;
	int r = strings->size < DUMP_NAMES_BYTES && text.len <= DUMP_NAMES_BYTES - strings->size
			? intern_add(strings, text, out)
			: intern_find(strings, text, out);

	if (r == 0 || r == -ENOMEM)
		return r;
	*out = 0;
	d->has_lost_names = true;
	return 0;
}

int dump_remark(struct dumper *d, struct dump_thread *t, const char *text)
{
	uint32_t id;
	int r;

	if (t->remark_count == DUMP_REMARKS_MAX)
		return 0;
	r = intern_add(&d->out->strings, str_of(text), &id);
	if (r == 0 && !(t->remark_count && t->remarks[t->remark_count - 1] == id))
		t->remarks[t->remark_count++] = id;
	return r;
}

static int remark_lost(struct dumper *d, struct dump_thread *t)
{
	return dump_remark(d, t, "names are missing: those of all threads are too long");
}

int dump_add_frame(struct dumper *d, const struct dump_frame *f)
{
	struct dump *out = d->out;
	int r = array_grow(&out->frames, &out->frame_cap, out->frame_count, FRAMES_MAX);

	if (r == 0)
		out->frames[out->frame_count++] = *f;
	return r;
}

static const struct dump_before *find_before(const struct dumper *d, uint32_t tid)
{
	uint32_t at;

	return u64map_get(&d->before_index, tid, &at) == 0 ? &d->before[at] : NULL;
}

/* @moved: what was read belongs to another moment than the other frames. */
static int add_kernel(struct dumper *d, struct dump_thread *t, const struct dump_before *b, bool moved)
{
	struct str rest, line, name;
	int r = 0;

	if (b->error == -EACCES || b->error == -EPERM)
		return dump_remark(d, t, "kernel frames: only root may see them");
	if (b->error < 0)
		return b->error == -ENOENT ? 0 : dump_remark(d, t, "kernel frames: could not be read");
	if (moved && (b->state == 'R' || !b->size))
		return 0; /* it ran: nothing is missing */
	if (moved)
		return dump_remark(d, t, "kernel frames: it went on before it was stopped");
	rest = str_n(d->kernel.ptr + b->at, b->size);
	while (r == 0 && str_next(&rest, '\n', &line)) {
		struct dump_frame f = { .kind = DUMP_KERNEL };

		if (!dump_kernel_line(line, &name))
			continue;
		r = dump_name(d, name, &f.name);
		if (r == 0)
			r = dump_add_frame(d, &f);
	}
	return r;
}

static int name_native(struct dumper *d, const struct abi_frame *f, struct dump_frame *out)
{
	bool is_return = f->flags & ABI_FRAME_RETURN;
	struct symbol symbol = { 0 };
	char text[32];
	int r, size;

	*out = (struct dump_frame){ .kind = DUMP_NATIVE, .guessed = (f->flags & ABI_FRAME_GUESSED) != 0 };
	if (f->kind == ABI_FRAME_NATIVE) {
		r = symbols_native(d->symbols, (uint32_t)f->a, f->b, is_return, &symbol);
		if (r == 0)
			r = dump_name(d, symbol.name, &out->name);
		return r < 0 ? r : dump_name(d, symbol.module, &out->module);
	}
	size = snprintf(text, sizeof(text), "[%s+0x%llx]", f->kind == ABI_FRAME_JIT ? "jit" : "unknown",
			(unsigned long long)f->a);
	return dump_name(d, str_n(text, (size_t)size), &out->name);
}

/* The frames of @t again, with names: one in line may be several. */
static int name_thread(struct dumper *d, struct dump_thread *t, const struct dump_frame *old, size_t *next)
{
	size_t first = d->out->frame_count;
	int r = 0;

	d->has_lost_names = false;
	for (size_t i = t->first; i < t->first + t->count && r == 0; i++) {
		const struct dump_unnamed *u = *next < d->unnamed_count ? &d->unnamed[*next] : NULL;
		struct dump_frame f = old[i];

		if (u && u->at == i) {
			(*next)++;
			if (u->in_line) {
				r = dump_add_in_line(d, &u->frame);
				continue;
			}
			r = name_native(d, &u->frame, &f);
		}
		if (r == 0)
			r = dump_add_frame(d, &f);
	}
	t->first = first;
	t->count = d->out->frame_count - first;
	return r == 0 && d->has_lost_names ? remark_lost(d, t) : r;
}

int dump_name_frames(struct dumper *d)
{
	scoped(freep) struct dump_frame *old = d->out->frames;
	size_t next = 0;
	int r = 0;

	d->out->frames = NULL;
	d->out->frame_count = d->out->frame_cap = 0;
	for (size_t i = 0; i < d->out->thread_count && r == 0; i++)
		r = name_thread(d, &d->out->threads[i], old, &next);
	return r;
}

static int add_unnamed(struct dumper *d, const struct abi_frame *f, bool in_line)
{
	const struct dump_frame unnamed = { .kind = in_line ? DUMP_RUNTIME : DUMP_NATIVE };
	int r = array_grow(&d->unnamed, &d->unnamed_cap, d->unnamed_count, FRAMES_MAX);

	if (r == 0)
		r = dump_add_frame(d, &unnamed);
	if (r == 0)
		d->unnamed[d->unnamed_count++] = (struct dump_unnamed){ d->out->frame_count - 1, *f, in_line };
	return r;
}

/* What lies in its memory may be moved when it runs again, so as much as there is time for is read at once. */
static int add_in_line(struct dumper *d, const struct abi_frame *f)
{
	if (d->stop.since_ns && clock_monotonic_ns(&clock_system) - d->stop.since_ns > DUMP_NAMING_NS)
		return add_unnamed(d, f, true);
	return dump_add_in_line(d, f);
}

static int add_runtime(struct dumper *d, const struct abi_frame *f)
{
	struct dump_frame out;
	int r = dump_runtime_frame(d, f, &out);

	return r < 0 ? r : dump_add_frame(d, &out);
}

static int add_mixed(struct dumper *d)
{
	int r = 0;

	for (size_t i = 0; i < d->mixed.count && r == 0; i++) {
		uint32_t at = d->mixed.frames[i];

		r = at & MIX_RUNTIME              ? add_runtime(d, &d->sample->frames[at & ~MIX_RUNTIME])
		    : d->roles[at] == MIX_IN_LINE ? add_in_line(d, &d->walk->frames[at])
						  : add_unnamed(d, &d->walk->frames[at], false);
	}
	return r;
}

/* ---- reading ---- */

/* What is known of the registers. @is_exact: all of them. Return: true when a walk can begin. */
static bool get_registers(struct dumper *d, struct dump_thread *t, const struct dump_registers *told, bool *is_return,
			  bool *is_exact)
{
	struct walk *w = d->walk;

	*is_exact = false;
	memset(w->leaf, 0, sizeof(w->leaf));
	if (d->cfg->freeze) {
		int r = dump_stop_registers(&d->stop, (pid_t)t->tid, w, is_return);

		*is_exact = r == 0;
		if (r != -ESRCH)
			return r == 0;
	}
#ifdef WALK_X86_64
	/* As during a system call. 0 would say that this is the child of clone(), not its caller who waits for it. */
	w->leaf[0] = (uint64_t)-ENOSYS;
#endif
	w->leaf[WALK_REG_SP] = told->sp;
	w->leaf[WALK_REG_PC] = told->pc;
	*is_return = told->in_syscall;
	return told->pc && told->sp;
}

/* @is_exact: all registers are known. Without the frame register a function that needs it ends the walk: 0 is above no
 * stack pointer. */
static void walk_native(struct dumper *d, bool is_return, bool is_exact)
{
	struct walk *w = d->walk;
	struct dump_world world;

	dump_world_begin(d, &world);
	w->mode = WALK_AUTO;
	w->count = 0;
	walk_native_start(w, is_return);
	if (is_exact)
		full_walk(d->full, w);
	else
		unwind_walk(w);
	w->world = NULL;
}

static void mix(struct dumper *d)
{
	const struct walk *w = d->walk;
	struct mix_input in = {
		.native = w->frames,
		.roles = d->roles,
		.native_count = w->count,
		.runtime = d->sample->frames,
		.runtime_count = d->sample->runtime_count,
		.stack_pointer = w->leaf[WALK_REG_SP],
		.runtime_end = d->sample->runtime_end,
		.native_is_whole = w->end == ABI_END_COMPLETE || w->end == ABI_END_UNPROVEN_ROOT,
		.only_runtime = !w->count,
		.begins_early = d->runtime && d->runtime->begins_early,
	};

	for (uint32_t i = 0; i < w->count; i++)
		d->roles[i] = (uint8_t)dump_role(d, &w->frames[i]);
	mix_frames(&in, &d->mixed);
}

static const char *const walk_ends[] = {
#define X(id, name, help) [ABI_END_##id] = name,
	ABI_ENDS(X)
#undef X
};
static const char *const runtime_ends[] = {
#define X(id, name, help) [ABI_RUNTIME_END_##id] = help,
	ABI_RUNTIME_ENDS(X)
#undef X
};

static int remark_native(struct dumper *d, struct dump_thread *t, bool is_exact)
{
	char text[128];

	if (!d->walk->count)
		return dump_remark(d, t,
				   d->cfg->freeze ? "native frames: its registers could not be read"
						  : "native frames: it runs; --freeze stops it and shows them");
	if (d->walk->end == ABI_END_COMPLETE || d->walk->end == ABI_END_UNPROVEN_ROOT)
		return 0;
	snprintf(text, sizeof(text), "native frames: cut (%s)%s", walk_ends[d->walk->end],
		 is_exact ? "" : "; its other registers are not known without --freeze");
	return dump_remark(d, t, text);
}

static int remark_runtime(struct dumper *d, struct dump_thread *t)
{
	char text[160];

	if (!d->outside || d->mixed.end == ABI_RUNTIME_END_WHOLE ||
	    d->sample->runtime_end == ABI_RUNTIME_END_NO_STATE || d->mixed.end == ABI_RUNTIME_END_NONE)
		return 0;
	snprintf(text, sizeof(text), "%s frames: %s", d->runtime->title, runtime_ends[d->mixed.end]);
	return dump_remark(d, t, text);
}

/* One reading of the thread. Return: 0; 1: it did something else meanwhile; -errno. */
static int read_once(struct dumper *d, struct remote_thread *thread, struct dump_thread *t, bool *is_exact)
{
	struct dump_registers before = { 0 };
	char text[512], again[512];
	ssize_t size = read_text(d, t->tid, "syscall", text, sizeof(text)), after;
	bool is_return = false;

	if (size == -ENOENT || size == -ESRCH)
		return -ESRCH;
	if (size > 0 && dump_registers_parse(str_n(text, (size_t)size), &before) < 0)
		before = (struct dump_registers){ 0 };
	d->walk->count = 0;
	d->walk->end = ABI_END_NO_REGISTERS;
	if (get_registers(d, t, &before, &is_return, is_exact))
		walk_native(d, is_return, *is_exact);
	thread->runnable = before.runs;
	thread->leaf = *is_exact ? d->walk->leaf : NULL;
	d->sample = d->outside ? d->outside->read(d->walker, d->process, thread) : &d->nothing;
	mix(d);
	after = read_text(d, t->tid, "syscall", again, sizeof(again));
	return after != size || (size > 0 && memcmp(text, again, (size_t)size)) ? 1 : 0;
}

/* ---- before the stop, or at once ---- */

static char read_state(struct dumper *d, uint32_t tid)
{
	char text[512];
	ssize_t size = read_text(d, tid, "stat", text, sizeof(text));
	struct str s = str_n(text, size > 0 ? (size_t)size : 0);
	ptrdiff_t at = str_rfind(s, ')');

	return at >= 0 && (size_t)at + 2 < s.len ? s.ptr[at + 2] : '?';
}

static int look(struct dumper *d, uint32_t tid, struct dump_before *out)
{
	struct dump_before b = { .tid = tid, .state = read_state(d, tid), .at = d->kernel.len };
	struct dump_registers told = { 0 };
	char text[512], *kernel;
	ssize_t size = read_text(d, tid, "syscall", text, sizeof(text));

	if (size > 0 && dump_registers_parse(str_n(text, (size_t)size), &told) == 0)
		b.sp = told.sp;
	kernel = buf_reserve(&d->kernel, KERNEL_STACK_MAX);
	if (!kernel)
		return d->kernel.error;
	size = read_text(d, tid, "stack", kernel, KERNEL_STACK_MAX);
	b.error = (int)MIN(size, 0);
	b.size = (size_t)MAX(size, 0);
	buf_commit(&d->kernel, b.size);
	*out = b;
	return 0;
}

int dump_look_before(struct dumper *d)
{
	for (size_t i = 0; i < d->process->thread_count; i++) {
		int r = array_grow(&d->before, &d->before_cap, d->before_count, THREADS_MAX);

		if (r == 0)
			r = look(d, d->process->threads[i].tid, &d->before[d->before_count]);
		if (r == 0)
			r = u64map_put(&d->before_index, d->process->threads[i].tid, (uint32_t)d->before_count);
		if (r < 0)
			return r;
		d->before_count++;
	}
	return 0;
}

static int look_at_kernel(struct dumper *d, struct dump_thread *t)
{
	const struct dump_before *b = find_before(d, t->tid);
	struct dump_before now;
	int r = b ? 0 : look(d, t->tid, &now);

	if (r < 0)
		return r;
	t->state = b ? b->state : now.state;
	return add_kernel(d, t, b ? b : &now, b && b->sp != d->walk->leaf[WALK_REG_SP]);
}

int dump_add_thread(struct dumper *d, struct remote_thread *thread)
{
	struct dump_thread t = { .tid = thread->tid, .first = d->out->frame_count };
	bool is_exact = false;
	int r = array_grow(&d->out->threads, &d->out->thread_cap, d->out->thread_count, THREADS_MAX);
	int changed = 1;

	if (r < 0)
		return r;
	d->has_lost_names = false;
	remote_thread_name(&d->procs, d->process, thread, 1);
	if (u64map_get(&d->thread_names, thread->inner_tid, &t.name) < 0)
		r = intern_add(&d->out->strings, str_of(thread->name), &t.name);
	for (int i = 0; i < TRIES && changed == 1 && r == 0; i++)
		changed = read_once(d, thread, &t, &is_exact);
	if (r < 0 || changed == -ESRCH)
		return r; /* it has ended: there is nothing to show */
	if (changed == 1)
		r = dump_remark(d, &t, "it went on while it was read: frames may be of different moments");
	if (r == 0)
		r = look_at_kernel(d, &t);
	if (r == 0)
		r = add_mixed(d);
	if (r == 0 && t.state == 'Z')
		r = dump_remark(d, &t, "it has ended; the process goes on without it");
	else if (r == 0)
		r = remark_native(d, &t, is_exact);
	if (r == 0)
		r = remark_runtime(d, &t);
	if (r == 0 && d->cfg->freeze && !d->stop.since_ns)
		r = dump_remark(d, &t, "it was not stopped: the time for that was over");
	if (r == 0 && d->has_lost_names)
		r = remark_lost(d, &t);
	t.count = d->out->frame_count - t.first;
	if (r == 0)
		d->out->threads[d->out->thread_count++] = t;
	return r;
}
