/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/take_in.h"

#include <fcntl.h>
#include <time.h>

#include "agent/electron.h"
#include "agent/mix.h"
#include "agent/origins.h"
#include "agent/requests.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/jit_kind.h"
#include "proc/mappings.h"
#include "runtime/describer.h"
#include "runtime/launched.h"
#include "runtime/runtimes.h"

#define SETTLE_TRIES_MAX 8
#define KIND_FILES_MAX 1024 /* mapped files that are looked at to tell a program's kind */

/* The native frames of one sample with what their addresses mean. */
struct placed {
	struct aggregate_frame frames[ABI_FRAMES_MAX];
	uint8_t roles[ABI_FRAMES_MAX]; /* enum mix_role, of the user frames: the first belongs to frames[kernel_count]
					*/
	size_t count;
	uint8_t user_end;
	bool has_jit, guessed;
};

struct take_in {
	struct take_in_config cfg;
	size_t file_count; /* as far as asked */
	struct origins *origins;
	/* Of the sample being taken in. */
	struct program program;
	uint32_t process;   /* its row */
	bool native_only;   /* its frames of runtimes are not wanted */
	bool full_is_noted; /* that a window had no more room for metadata was said in this session */
	struct placed placed;
	struct mix_output mixed;
	struct runtime_shown expanded[RUNTIME_EXPAND_MAX]; /* of the frame at hand */
};

int take_in_new(const struct take_in_config *cfg, struct take_in **out)
{
	struct take_in *t = calloc(1, sizeof(*t));
	int r = t ? origins_new(cfg->host_root, &t->origins) : -ENOMEM;

	if (r < 0) {
		free(t);
		return r;
	}
	t->cfg = *cfg;
	*out = t;
	return 0;
}

void take_in_free(struct take_in *t)
{
	if (t)
		origins_free(t->origins);
	free(t);
}

/* What its command line and file say: of a program without a runtime, or whose runtime leaves the application to its
 * command line (launched.h). Return: -EAGAIN: it is told later, all of it; else 0. */
static int add_described(struct take_in *t, const struct proc *p, struct runtimes_process *known)
{
	bool has_runtime = known->state != RUNTIMES_NONE;
	struct str application = STR(""), metadata = STR("");
	int r;

	if (!t->cfg.describer || !p->exe ||
	    (has_runtime && (known->application.len || !launched_is_known(str_of(p->exe)))))
		return 0;
	r = describer_get(t->cfg.describer, &t->program, p->exe, &application, &metadata);
	known->application = application;
	if (!has_runtime)
		known->metadata_json = metadata;
	return r == -EAGAIN ? r : 0;
}

/* A process without metadata is better than none. */
static int add_metadata(struct take_in *t, struct aggregate *a, struct str text, struct aggregate_process *row)
{
	int r = intern_add(&a->metadata, text, &row->metadata_json);

	if (r != -E2BIG)
		return r;
	if (!t->full_is_noted)
		log_warn("a window has no more room for metadata of applications: further processes have none",
			 LOG_U64("bytes", a->metadata.size), LOG_U64("pid", t->program.pid));
	t->full_is_noted = true;
	row->has_no_room = true;
	return 0;
}

/* What its runtime says of it, else what its command line and file say; asked for until there is an answer. The command
 * line may tell the application before the runtime is known, which tells the rest. */
static int describe_process(struct take_in *t, const struct proc *p, struct aggregate *a, struct aggregate_process *row)
{
	struct runtimes_process known = { 0 };
	int r;

	if (row->metadata_json || row->has_no_room || p->is_kernel)
		return 0;
	if (t->cfg.runtimes && !t->native_only)
		runtimes_process(t->cfg.runtimes, &t->program, &known);
	if (row->application)
		return add_metadata(t, a, known.metadata_json, row);
	if (add_described(t, p, &known) == -EAGAIN)
		return 0;
	r = intern_add(&a->strings, known.application, &row->application);
	return r < 0 ? r : add_metadata(t, a, known.metadata_json, row);
}

static bool is_electron(const struct take_in *t, const struct proc *p)
{
	char path[KIB(1)];
	scoped(closep) int root = -1;
	int n = snprintf(path, sizeof(path), "%s/proc/%u/root", t->cfg.host_root ? t->cfg.host_root : "", p->pid);

	if (n > 0 && (size_t)n < sizeof(path))
		root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root >= 0 && electron_beside(root, str_of(p->exe));
}

/* Its program tells, or a library that it has loaded, or what lies beside it. What cannot be read tells nothing. */
static enum jit_kind jit_kind(const struct take_in *t, const struct proc *p)
{
	const struct mappings *maps = proc_mappings(p);
	enum jit_kind kind = jit_kind_of(str_of(p->exe));
	uint32_t last = 0;

	for (size_t i = 0, asked = 0; i < maps->count && kind == JIT_KIND_OTHER && asked < KIND_FILES_MAX; i++) {
		const struct mapping *m = &maps->items[i];
		scoped(freep) char *path = NULL;

		if (m->kind != PROC_PLACE_FILE || m->file_id == last)
			continue;
		last = m->file_id;
		asked++;
		if (files_path(t->cfg.files, last, &path) == 0)
			kind = jit_kind_of(str_of(path));
	}
	return kind == JIT_KIND_OTHER && is_electron(t, p) ? JIT_KIND_ELECTRON : kind;
}

/* What is asked of a process only when it has run code of a JIT compiler. */
static void learn_jit(struct take_in *t, struct proc *p, struct aggregate_process *row)
{
	int fd = row->perf_map_fd < 0 ? proc_perf_map_fd(t->cfg.processes, p) : -1;

	if (fd >= 0)
		row->perf_map_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* -1: frames stay without names */
	if (row->jit_kind_known)
		return;
	row->jit_kind = (uint8_t)jit_kind(t, p);
	row->jit_kind_known = true;
}

static int add_process_row(struct take_in *t, struct aggregate *a, struct proc *p, const char *comm)
{
	struct aggregate_process row = { .pid = p->pid,
					 .generation = p->generation,
					 .start_ns = p->start_ns,
					 .exec_id = p->exec_id,
					 .born_ns = p->born_ns,
					 .ended_ns = p->exited ? p->exit_ns : 0,
					 .perf_map_fd = -1,
					 .is_kernel = p->is_kernel };
	struct str comm_text = str_n(comm, strnlen(comm, ABI_COMM_SIZE));
	/* One that was gone before anybody looked is known by its comm alone, as an executable without a file is. */
	enum workload_kind kind = p->service ? p->service_kind : WORKLOAD_EXECUTABLE;
	int r = intern_add(&a->strings, comm_text, &row.comm);

	if (r == 0)
		r = intern_add(&a->strings, str_of(p->container), &row.container);
	if (r == 0)
		r = intern_add(&a->strings, p->service ? str_of(p->service) : comm_text, &row.service);
	if (r == 0)
		r = intern_add(&a->strings, workload_kind_name(kind), &row.service_kind);
	row.may_be_short = workload_may_be_short(kind);
	if (r == 0)
		r = aggregate_add_process(a, &row, &t->process);
	if (r == 0 && t->placed.has_jit)
		learn_jit(t, p, &a->processes[t->process]);
	return r == 0 ? describe_process(t, p, a, &a->processes[t->process]) : r;
}

/* Placed where it was walked. The id is only believed when there is such a file. */
static struct aggregate_frame native_frame(struct take_in *t, const struct abi_frame *f)
{
	if (!f->a || f->a > t->file_count) {
		t->file_count = files_count(t->cfg.files);
		if (!f->a || f->a > t->file_count)
			return (struct aggregate_frame){ .kind = ABI_FRAME_USER, .flags = f->flags, .at = f->b };
	}
	if (t->cfg.unwind)
		unwind_touch(t->cfg.unwind, (uint32_t)f->a);
	return (struct aggregate_frame){
		.kind = ABI_FRAME_NATIVE, .flags = f->flags, .owner = (uint32_t)f->a, .at = f->b
	};
}

/* What an address of the process means is decided here, while the process lives. */
static struct aggregate_frame place_frame(struct take_in *t, struct proc *p, const struct abi_frame *f, uint64_t now_ns)
{
	struct aggregate_frame out = { .kind = f->kind, .flags = f->flags, .at = f->a };
	struct proc_place place = { 0 };

	if (f->kind == ABI_FRAME_NATIVE)
		return native_frame(t, f);
	if (f->kind != ABI_FRAME_USER)
		return out;
	proc_find_place(t->cfg.processes, p, f->a - (f->flags & ABI_FRAME_RETURN ? 1 : 0), now_ns, &place);
	if (place.kind == PROC_PLACE_FILE || place.kind == PROC_PLACE_VDSO) {
		out.kind = ABI_FRAME_NATIVE;
		out.owner = place.file_id;
		out.at = place.offset + (f->flags & ABI_FRAME_RETURN ? 1 : 0);
	} else if (place.kind == PROC_PLACE_ANONYMOUS) {
		out.kind = ABI_FRAME_JIT;
	}
	return out;
}

/* Of a native frame, as far as its file is known: one that runs a runtime's loop is an activation of it. Where the file
 * is looked at only later, build_window() finds the loops of a sample that has no frames of a runtime. */
static enum mix_role role_of(const struct take_in *t, const struct aggregate_frame *f)
{
	const struct runtime_binary *binary =
		f->kind == ABI_FRAME_NATIVE && t->cfg.runtimes ? runtimes_file(t->cfg.runtimes, f->owner) : NULL;

	if (f->kind == ABI_FRAME_RUNTIME)
		return f->flags & ABI_FRAME_INTERNAL ? MIX_STUB : MIX_IN_LINE;
	if (!binary || t->native_only || t->cfg.only_in_line)
		return MIX_NATIVE;
	if (runtimes_in_loop(t->cfg.runtimes, f->owner, aggregate_frame_place(f)))
		return MIX_LOOP;
	return binary->refused[0] ? MIX_NATIVE : MIX_INTERPRETER;
}

/* A frame that was found by guessing and lies in no code we know of is no frame: the stack is cut there. */
static void place_frames(struct take_in *t, struct proc *p, const struct abi_sample *sample)
{
	struct placed *out = &t->placed;
	uint64_t now_ns = clock_monotonic_ns(t->cfg.clock);

	out->has_jit = out->guessed = false;
	out->user_end = sample->user_end;
	for (out->count = 0; out->count < sample->frame_count; out->count++) {
		struct aggregate_frame *f = &out->frames[out->count];

		*f = place_frame(t, p, &sample->frames[out->count], now_ns);
		if (f->kind == ABI_FRAME_USER && f->flags & ABI_FRAME_GUESSED) {
			out->user_end = ABI_END_NO_FRAME_POINTER;
			return;
		}
		out->has_jit |= f->kind == ABI_FRAME_JIT;
		out->guessed |= (f->flags & ABI_FRAME_GUESSED) != 0;
		if (out->count >= sample->kernel_count)
			out->roles[out->count - sample->kernel_count] = (uint8_t)role_of(t, f);
	}
	/* Only a native frame is the root of a thread. */
	if (out->user_end == ABI_END_COMPLETE && out->count > sample->kernel_count &&
	    out->frames[out->count - 1].kind == ABI_FRAME_RUNTIME)
		out->user_end = ABI_END_UNPROVEN_ROOT;
}

static bool begins_early(const struct take_in *t, const struct abi_sample *sample)
{
	const struct runtime *runtime = NULL;

	if (sample->runtime_count && t->cfg.runtimes)
		runtime = runtimes_of(t->cfg.runtimes, sample->frames[sample->frame_count].runtime);
	return runtime && runtime->begins_early;
}

static void mix(struct take_in *t, const struct abi_sample *sample)
{
	size_t kernel_count = MIN(t->placed.count, (size_t)sample->kernel_count);
	struct mix_input in = {
		.native = sample->frames + kernel_count,
		.roles = t->placed.roles,
		.native_count = t->placed.count - kernel_count,
		.runtime = sample->frames + sample->frame_count,
		.runtime_count = t->native_only ? 0 : sample->runtime_count,
		.stack_pointer = sample->stack_pointer,
		/* What nobody wants is not missing. */
		.runtime_end = t->native_only ? ABI_RUNTIME_END_WHOLE : sample->runtime_end,
		/* A chain of frame pointers that ended as a root's does may be proven later. If not, the stack is said
		 * to be cut in any case. */
		.native_is_whole =
			t->placed.user_end == ABI_END_COMPLETE || t->placed.user_end == ABI_END_UNPROVEN_ROOT,
		.keep_interpreter = t->cfg.keep_interpreter,
		.only_runtime = t->cfg.only_runtime,
		.begins_early = begins_early(t, sample),
	};

	mix_frames(&in, &t->mixed);
}

/* ---- frames of a language runtime ---- */

static int find_origin(struct take_in *t, struct proc *p, struct aggregate *a)
{
	struct aggregate_process *row = &a->processes[t->process];
	uint32_t number;
	int root_fd, r;

	if (row->origin_known)
		return 0;
	number = origins_of(t->origins, p, &root_fd);
	r = aggregate_add_origin(a, number, root_fd, &row->origin);
	row->origin_known = r == 0;
	return r == -E2BIG ? 0 : r;
}

/* A function of the process that @p is of. */
static int add_function(struct take_in *t, struct aggregate *a, const struct aggregate_pending *p,
			const struct runtime_function *f, uint32_t *out)
{
	struct aggregate_function row = { .kind = AGGREGATE_FUNCTION_NAMED,
					  .origin = a->processes[p->process].origin,
					  .runtime = (uint8_t)p->runtime,
					  .shown = f->kind,
					  .first_line = f->first_line,
					  .first_column = f->first_column,
					  .map_id = f->map_id,
					  .name_column = f->name_column };
	int r = intern_add(&a->strings, f->name, &row.name);

	if (r == 0)
		r = intern_add(&a->strings, f->file, &row.file);
	if (r == 0)
		r = intern_add(&a->strings, runtimes_version(t->cfg.runtimes, &t->program, p->runtime), &row.version);
	return r < 0 ? r : aggregate_add_function(a, &row, out);
}

static int add_named_function(struct take_in *t, struct aggregate *a, uint32_t number, struct aggregate_pending *p)
{
	uint64_t key = (uint64_t)a->processes[p->process].origin << 32 | number;
	struct runtime_function f;
	int r;

	if (u64map_get(&a->function_numbers, key, &p->function) == 0)
		return 0;
	r = runtimes_function(t->cfg.runtimes, number, &f);
	if (r == 0)
		r = add_function(t, a, p, &f, &p->function);
	return r < 0 ? r : u64map_put(&a->function_numbers, key, p->function);
}

static int push(struct aggregate *a, const struct aggregate_frame *f, uint32_t *stack, uint32_t *frame)
{
	int r = aggregate_add_frame(a, f, frame);

	return r < 0 ? r : aggregate_add_stack(a, *stack, *frame, stack);
}

/* A frame that stands for what is not known. */
static int push_stand_in(struct aggregate *a, enum aggregate_function_kind kind, uint16_t runtime, uint32_t *stack)
{
	struct aggregate_function row = { .kind = (uint8_t)kind, .runtime = (uint8_t)runtime };
	struct aggregate_frame f = { .kind = ABI_FRAME_RUNTIME };
	uint32_t frame;
	int r = aggregate_add_function(a, &row, &f.owner);

	return r < 0 ? r : push(a, &f, stack, &frame);
}

static struct abi_frame frame_of(const struct aggregate_pending *p)
{
	return (struct abi_frame){
		.kind = ABI_FRAME_RUNTIME,
		.flags = p->flags,
		.runtime = p->runtime,
		.extra = p->position,
		.a = p->key,
		.b = p->cookie,
	};
}

/* The functions of a frame of compiled code. Return: 0; -EAGAIN, -ENOENT: not now; -errno. */
static int expand(struct take_in *t, struct aggregate *a, uint32_t number, struct aggregate_pending *p)
{
	const struct abi_frame raw = frame_of(p);
	struct aggregate_shown shown[RUNTIME_EXPAND_MAX];
	int count = runtimes_expand(t->cfg.runtimes, number, &raw, t->expanded), r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		shown[i].place = (struct aggregate_place){ t->expanded[i].line, t->expanded[i].column };
		shown[i].is_vague = t->expanded[i].is_vague;
		r = add_function(t, a, p, &t->expanded[i].function, &shown[i].function);
	}
	if (count < 0 || r < 0)
		return count < 0 ? count : r;
	r = aggregate_show(a, p, shown, (size_t)count);
	p->is_settled = r == 0;
	return r;
}

/* The function of a frame, of compiled code the one that was compiled. Return: 0, with its number when it has a name;
 * -errno. */
static int find_function(struct take_in *t, struct aggregate *a, struct aggregate_pending *p, uint32_t *number)
{
	const struct abi_frame raw = frame_of(p);
	struct runtimes_frame named = { 0 };

	runtimes_frame(t->cfg.runtimes, &p->program, &raw, &named);
	*number = named.function;
	p->place = (struct aggregate_place){ named.line, named.column };
	return named.function ? add_named_function(t, a, named.function, p) : 0;
}

/* Asks for what a frame shows; what is not known now may be known later. Return: 0; -EAGAIN: the budget for reading
 * tables is used up; -ENODATA: it can never be told; -errno. */
static int settle(struct take_in *t, struct aggregate *a, struct aggregate_pending *p)
{
	uint32_t number = 0;
	int r = find_function(t, a, p, &number);

	if (r == 0 && number && p->flags & ABI_FRAME_COMPILED)
		r = expand(t, a, number, p);
	else if (r == 0)
		p->is_settled = number && p->place.line;
	return r == -ENOENT ? 0 : r;
}

static int push_settled(struct aggregate *a, const struct aggregate_pending *what, uint32_t *stack)
{
	struct aggregate_frame f = { .kind = ABI_FRAME_RUNTIME,
				     .owner = what->function,
				     .at = aggregate_place_at(&what->place) };
	uint32_t frame;

	if (what->function == AGGREGATE_NO_FUNCTION)
		return push_stand_in(a, AGGREGATE_FUNCTION_LOST, what->runtime, stack);
	return push(a, &f, stack, &frame);
}

/* Without room for one more position: what is known of it now is pushed, each function as a frame of its own. */
static int push_code_now(struct take_in *t, struct aggregate *a, struct aggregate_pending *what, uint32_t *stack)
{
	const struct abi_frame raw = frame_of(what);
	uint32_t number, frame;
	int r = find_function(t, a, what, &number), count = 0;

	if (r == 0 && number)
		count = runtimes_expand(t->cfg.runtimes, number, &raw, t->expanded);
	if (r == 0 && number && count == 0)
		return push_settled(a, what, stack);
	if (r == -ENOENT || (r == 0 && count <= 0))
		return push_stand_in(a, AGGREGATE_FUNCTION_LOST, what->runtime, stack);
	while (r == 0 && count-- > 0) {
		const struct aggregate_place place = { t->expanded[count].line, t->expanded[count].column };
		struct aggregate_frame f = { .kind = ABI_FRAME_RUNTIME, .at = aggregate_place_at(&place) };

		r = add_function(t, a, what, &t->expanded[count].function, &f.owner);
		if (r == 0)
			r = push(a, &f, stack, &frame);
	}
	return r;
}

/* Compiled code: each position is looked at once in a window. */
static int push_code(struct take_in *t, struct aggregate *a, struct aggregate_pending *what, uint32_t *stack)
{
	struct aggregate_frame f = { .kind = ABI_FRAME_RUNTIME, .at = AGGREGATE_PENDING };
	size_t before = a->pending_count;
	uint32_t frame;
	int r = aggregate_add_pending(a, what, &f.owner);

	if (r == -E2BIG)
		return push_code_now(t, a, what, stack);
	if (r == 0 && a->pending_count > before) {
		r = settle(t, a, &a->pending[f.owner]);
		a->unsettled -= a->pending[f.owner].is_settled;
		/* E2BIG: there is no room for its functions. ENODATA: they cannot be told. It has no name, then.
		 * EAGAIN: it is asked for again. */
		r = r == -E2BIG || r == -ENODATA || r == -EAGAIN ? 0 : r;
	}
	return r < 0 ? r : push(a, &f, stack, &frame);
}

static int push_runtime(struct take_in *t, struct proc *p, struct aggregate *a, const struct abi_frame *raw,
			uint32_t *stack)
{
	struct aggregate_pending what = { .program = t->program,
					  .key = raw->a,
					  .cookie = raw->b,
					  .position = raw->extra,
					  .process = t->process,
					  .runtime = raw->runtime,
					  .flags = raw->flags & (ABI_FRAME_COMPILED | ABI_FRAME_RETURN),
					  .function = AGGREGATE_NO_FUNCTION };
	struct aggregate_frame f = { .kind = ABI_FRAME_RUNTIME, .at = AGGREGATE_PENDING };
	uint32_t frame;
	int r;

	a->processes[t->process].has_runtime = true;
	if (!t->cfg.runtimes)
		return push_stand_in(a, AGGREGATE_FUNCTION_LOST, raw->runtime, stack);
	r = find_origin(t, p, a);
	if (r == 0 && raw->flags & ABI_FRAME_COMPILED)
		return push_code(t, a, &what, stack);
	if (r == 0)
		r = settle(t, a, &what);
	if (r == 0 && what.is_settled)
		return push_settled(a, &what, stack);
	if (r == 0)
		r = aggregate_add_pending(a, &what, &f.owner);
	if (r == -E2BIG) /* too many wait: it stays what it is */
		return push_settled(a, &what, stack);
	return r < 0 ? r : push(a, &f, stack, &frame);
}

void take_in_cut(struct take_in *t)
{
	origins_cut(t->origins);
}

/* Where the budget for tables is used up the next turn begins, so that one process's do not take all of it. */
size_t take_in_settle(struct take_in *t, struct aggregate *a)
{
	size_t count = a->pending_count, first = a->settle_first;
	bool has_budget = true;

	for (size_t n = 0; n < count && a->unsettled; n++) {
		size_t at = (first + n) % count;
		struct aggregate_pending *p = &a->pending[at];
		int r;

		if (p->is_settled || p->tries == SETTLE_TRIES_MAX || (!has_budget && p->flags & ABI_FRAME_COMPILED))
			continue;
		t->program = p->program;
		r = settle(t, a, p);
		if (r == -EAGAIN) { /* nobody looked: no try */
			a->settle_first = at;
			has_budget = false;
			continue;
		}
		p->tries = r < 0 ? SETTLE_TRIES_MAX : p->tries + 1; /* out of memory, or never to be told */
		if (p->is_settled || p->tries == SETTLE_TRIES_MAX)
			a->unsettled--;
	}
	return a->unsettled;
}

/* What is missing on the root's side of the outermost runtime frame. */
static int push_end(struct aggregate *a, const struct abi_sample *sample, uint32_t *stack)
{
	uint16_t runtime = sample->frames[sample->frame_count].runtime;

	switch (sample->runtime_end) {
	case ABI_RUNTIME_END_FRAME_LIMIT:
		return push_stand_in(a, AGGREGATE_FUNCTION_TRUNCATED, runtime, stack);
	case ABI_RUNTIME_END_READ_FAILED:
	case ABI_RUNTIME_END_BAD_CHAIN:
		return push_stand_in(a, AGGREGATE_FUNCTION_GAP, runtime, stack);
	default:
		return 0;
	}
}

/* ---- the whole stack ---- */

/* A frame of the native stack. */
static int push_native(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a,
		       size_t index, uint32_t *stack)
{
	struct aggregate_frame *f = &t->placed.frames[index];
	uint32_t frame;

	if (f->kind == ABI_FRAME_RUNTIME)
		return push_runtime(t, p, a, &sample->frames[index], stack);
	if (f->kind == ABI_FRAME_JIT || f->kind == ABI_FRAME_USER)
		f->owner = t->process;
	return push(a, f, stack, &frame);
}

/* Does code that its runtime's compiler made run in the sample's innermost runtime frame, so that what the frame says
 * is where it called last? */
static bool is_vague(const struct take_in *t, const struct abi_sample *sample)
{
	const struct runtime *runtime = NULL;

	if (t->cfg.runtimes && t->placed.count > sample->kernel_count &&
	    t->placed.frames[sample->kernel_count].kind == ABI_FRAME_JIT)
		runtime = runtimes_of(t->cfg.runtimes, sample->frames[sample->frame_count].runtime);
	return runtime && runtime->is_vague_compiled;
}

/* The user part, from the root (last) to the leaf (first). */
static int push_mixed(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a,
		      uint32_t *stack)
{
	bool end_is_pushed = false, gap_is_pushed = false, has_native = false;
	struct abi_frame vague;
	int r = 0;

	for (size_t i = t->mixed.count; i-- > 0 && r == 0;) {
		uint32_t at = t->mixed.frames[i];
		const struct abi_frame *raw = &sample->frames[sample->frame_count + (at & ~MIX_RUNTIME)];

		if (!(at & MIX_RUNTIME)) {
			has_native = true;
			r = push_native(t, p, sample, a, sample->kernel_count + at, stack);
			continue;
		}
		if (at == MIX_RUNTIME && is_vague(t, sample)) {
			vague = *raw;
			vague.extra = RUNTIME_NOWHERE;
			raw = &vague;
		}
		if (!end_is_pushed)
			r = push_end(a, sample, stack);
		end_is_pushed = true;
		if (r == 0 && raw->flags & ABI_FRAME_GAP)
			r = push_stand_in(a, AGGREGATE_FUNCTION_GAP, raw->runtime, stack);
		gap_is_pushed |= (raw->flags & ABI_FRAME_GAP) != 0;
		if (r == 0)
			r = push_runtime(t, p, a, raw, stack);
	}
	/* Read from outside: the innermost frames could not be made sure of. */
	if (r == 0 && end_is_pushed && !has_native && !gap_is_pushed && sample->runtime_end == ABI_RUNTIME_END_GAP)
		r = push_stand_in(a, AGGREGATE_FUNCTION_GAP, sample->frames[sample->frame_count].runtime, stack);
	return r;
}

/* It may be folded away; what it is decides whether the stack is whole. */
static int add_root_frame(struct take_in *t, const struct abi_sample *sample, struct aggregate *a, uint32_t *out)
{
	struct aggregate_frame *f;

	*out = AGGREGATE_NO_FRAME;
	if (t->placed.count <= sample->kernel_count)
		return 0;
	f = &t->placed.frames[t->placed.count - 1];
	if (f->kind == ABI_FRAME_RUNTIME) /* no root */
		return 0;
	if (f->kind == ABI_FRAME_JIT || f->kind == ABI_FRAME_USER)
		f->owner = t->process;
	return aggregate_add_frame(a, f, out);
}

static int add_frames(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a,
		      struct aggregate_sample *row)
{
	int r = add_root_frame(t, sample, a, &row->root_frame);

	if (r == 0)
		r = push_mixed(t, p, sample, a, &row->stack);
	if (t->cfg.only_runtime)
		return r;
	for (size_t i = MIN(t->placed.count, (size_t)sample->kernel_count); i-- > 0 && r == 0;)
		r = push_native(t, p, sample, a, i, &row->stack);
	return r;
}

/* Where @offset of a file lies in the process; what is not mapped any more is not known. */
static int learn_base(struct take_in *t, const struct proc *p, struct aggregate *a, uint32_t file, uint64_t offset)
{
	const struct mappings *maps = proc_mappings(p);

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->items[i];
		struct aggregate_base row = { .process = t->process,
					      .file = file,
					      .first = m->offset,
					      .end = m->offset + (m->end - m->start),
					      .base = m->start - m->offset };

		if (m->file_id == file && offset >= row.first && offset < row.end)
			return aggregate_add_base(a, &row);
	}
	return 0;
}

static int learn_bases(struct take_in *t, const struct proc *p, struct aggregate *a)
{
	int r = 0;

	for (size_t i = 0; i < t->placed.count && r == 0; i++) {
		const struct aggregate_frame *f = &t->placed.frames[i];
		uint64_t offset = aggregate_frame_place(f);

		if (f->kind == ABI_FRAME_NATIVE && !aggregate_has_base(a, t->process, f->owner, offset))
			r = learn_base(t, p, a, f->owner, offset);
	}
	return r == -E2BIG ? 0 : r; /* those are shown without addresses */
}

static bool is_chosen(const struct take_in *t, const struct abi_sample *sample)
{
	struct timespec boot;

	if (!t->cfg.choice)
		return true;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return choice_takes(t->cfg.choice, sample, (uint64_t)boot.tv_sec * NSEC_PER_SEC + (uint64_t)boot.tv_nsec);
}

/* Without room for what it was busy with a sample is counted all the same. */
static int add_request(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a,
		       uint32_t *out)
{
	struct aggregate_owner owner = { .container = a->processes[t->process].container };
	struct str script, path;
	int r;

	if (!t->cfg.requests || !(sample->flags & ABI_SAMPLE_REQUEST) ||
	    !requests_find(t->cfg.requests, &t->program, sample->request_key, &script, &path))
		return 0;
	if (proc_user(t->cfg.processes, p, clock_monotonic_ns(t->cfg.clock), &owner.user) < 0)
		owner.user = UINT32_MAX;
	r = aggregate_add_request(a, &owner, script, path, out);
	return r == -E2BIG ? 0 : r;
}

/* Its name is found when the window is built. */
static void learn_thread(struct take_in *t, const struct abi_sample *sample, struct aggregate_process *row)
{
	struct str name = str_n(sample->thread_name, strnlen(sample->thread_name, ABI_COMM_SIZE));

	row->names_threads |= runtimes_thread(t->cfg.runtimes, &t->program, sample->tid, name);
}

static int take_in_row(struct take_in *t, struct proc *p, const struct abi_sample *sample, uint64_t wait_ns,
		       bool by_chain, struct aggregate *a)
{
	struct aggregate_sample row = { .tid = sample->tid,
					.has_user = !(sample->flags & ABI_SAMPLE_KERNEL_THREAD),
					.is_wait = sample->trigger == ABI_TRIGGER_SWITCH,
					.wait_ns = wait_ns,
					.by_chain = by_chain,
					.kernel_cut = (sample->flags & ABI_SAMPLE_KERNEL_CUT) != 0 };
	int r;

	t->program = (struct program){ .pid = p->pid, .exec_id = p->exec_id, .start_ns = p->start_ns };
	t->native_only = !is_chosen(t, sample);
	place_frames(t, p, sample);
	mix(t, sample);
	if (t->cfg.only_runtime && !t->mixed.count) {
		a->left_out += !row.is_wait;
		return 1;
	}
	row.user_end = t->placed.user_end;
	row.runtime_end = t->mixed.end;
	row.guessed = t->placed.guessed;
	if (t->cfg.only_runtime) { /* nothing native is shown: nothing of it is missing */
		row.user_end = ABI_END_COMPLETE;
		row.guessed = row.kernel_cut = false;
	}
	r = add_process_row(t, a, p, sample->comm);
	row.process = t->process;
	if (r == 0 && t->cfg.thread_names && t->cfg.runtimes)
		learn_thread(t, sample, &a->processes[t->process]);
	if (r == 0 && t->cfg.addresses)
		r = learn_bases(t, p, a);
	if (r == 0)
		r = intern_add(&a->strings, str_n(sample->thread_name, strnlen(sample->thread_name, ABI_COMM_SIZE)),
			       &row.thread_name);
	if (r == 0)
		r = add_request(t, p, sample, a, &row.request);
	if (r == 0)
		r = add_frames(t, p, sample, a, &row);
	return r < 0 ? r : aggregate_add_sample(a, &row, sample->header.time_ns);
}

int take_in_sample(struct take_in *t, struct proc *p, const struct abi_sample *sample, uint64_t wait_ns,
		   struct aggregate *a)
{
	return take_in_row(t, p, sample, wait_ns, false, a);
}

int take_in_chain(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a)
{
	return take_in_row(t, p, sample, 0, true, a);
}
