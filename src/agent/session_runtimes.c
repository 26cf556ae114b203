/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session_runtimes.h"

#include "base/log.h"
#include "runtime/describer.h"

#define NOTICES_MAX KIB(128)

void session_choose_runtimes(struct session *s)
{
	const struct runtime *runtime;
	size_t count = 0;

	for (size_t i = 0; (runtime = runtime_at(i)); i++)
		if (!(s->cfg.without_runtimes & 1U << runtime->id))
			s->wanted[count++] = runtime;
}

int session_open_runtimes(struct session *s, const struct runtime_sink *sink)
{
	const struct runtimes_config cfg = { .runtimes = s->wanted,
					     .host_root = s->cfg.host_root,
					     .clock = s->cfg.clock,
					     .want_application = true,
					     .want_threads = s->cfg.thread_names,
					     .by_frame_pointers = s->cfg.sampling.mode == WALK_FP,
					     .only_runtimes = s->cfg.only_runtime,
					     .sink = sink };
	int r;

	if (!s->wanted[0])
		return 0;
	r = runtime_sources_new(s->wanted, &s->sources);
	if (r == 0)
		r = source_maps_new(&s->maps);
	return r < 0 ? r : runtimes_open(&cfg, s->files, &s->runtimes);
}

/* ---- for the unwinder's thread: it has no work before the runtimes are open, and ends before them ---- */

static int in_line_head(void *self, const struct program *p, struct abi_runtimes *out)
{
	struct session *s = self;

	return s->runtimes ? runtimes_head(s->runtimes, p, out) : -ENOENT;
}

static int in_line_info(void *self, const struct program *p, enum abi_runtime runtime, void *out)
{
	struct session *s = self;

	return runtimes_info(s->runtimes, p, runtime, out);
}

static enum walk_next in_line_step(void *self, struct walk *w)
{
	struct session *s = self;
	const struct runtime *runtime = runtimes_of(s->runtimes, (enum abi_runtime)w->unwinder);

	return runtime && runtime->walk_step ? runtime->walk_step(w, w->info) : WALK_SWITCH;
}

static bool in_line_lives(void *self, const struct program *p)
{
	struct session *s = self;

	return runtimes_lives(s->runtimes, p);
}

void session_in_line(struct session *s, struct in_line *out)
{
	*out = (struct in_line){
		.head = in_line_head, .info = in_line_info, .step = in_line_step, .lives = in_line_lives, .self = s
	};
}

int session_close_runtimes(struct session *s)
{
	int r = runtimes_close(s->runtimes);

	s->runtimes = NULL;
	return r;
}

void session_see(struct session *s, struct proc *p)
{
	struct program program = session_program(p);

	if (!s->runtimes || p->is_kernel || p->exited)
		return;
	if (runtimes_see(s->runtimes, &program, proc_mappings(p)))
		p->see_again = (struct proc_again){ 0 };
	else
		proc_look_again(p, &p->see_again, clock_monotonic_ns(s->cfg.clock));
}

void session_forget(struct session *s, const struct program *program)
{
	if (s->runtimes)
		runtimes_forget(s->runtimes, program);
}

void session_drop(struct session *s, const struct proc *p)
{
	struct program program = session_program(p);

	if (s->runtimes)
		runtimes_forget_names(s->runtimes, &program);
	if (s->describer)
		describer_forget(s->describer, &program);
}

void session_process(struct session *s, const struct abi_process *event)
{
	struct program program = { .pid = event->pid, .exec_id = event->exec_id, .start_ns = event->process_start_ns };
	const struct proc *parent;
	struct program from;

	if (!s->runtimes)
		return;
	if (event->header.type == ABI_RECORD_EXEC)
		runtimes_started(s->runtimes, &program);
	if (event->header.type != ABI_RECORD_FORK)
		return;
	parent = proc_parent(s->processes, event);
	if (!parent)
		return;
	from = session_program(parent);
	runtimes_share(s->runtimes, &program, &from);
}

void session_name(struct session *s, const struct abi_name *name)
{
	if (s->runtimes)
		runtimes_name(s->runtimes, name);
}

void session_notices(struct session *s, struct buf *out)
{
	if (s->runtimes)
		runtimes_notices(s->runtimes, out);
}

void session_log_notices(struct session *s)
{
	scoped(buf_release) struct buf text = BUF_INIT(NOTICES_MAX);
	struct str rest, line;

	session_notices(s, &text);
	rest = buf_str(&text);
	while (rest.len && str_next(&rest, '\n', &line))
		if (line.len)
			log_info("a language runtime", LOG_STR("what", line));
}
