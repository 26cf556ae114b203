/* SPDX-License-Identifier: Apache-2.0 */
/* What a session tells the runtimes of its processes, on the reader's thread. */
#include "agent/session_int.h"

int session_open_runtimes(struct session *s)
{
	struct runtime_sink sink;
	struct runtimes_config cfg = { .host_root = s->cfg.host_root, .clock = s->cfg.clock, .want_application = true };
	int r = 0;

	if (s->cfg.no_runtimes)
		return 0;
	r = session_runtime_sink(s, &sink);
	if (r == 0)
		cfg.sink = &sink;
	if (r >= 0)
		r = python_sources_new(&s->sources);
	return r < 0 ? r : runtimes_open(&cfg, s->files, &s->runtimes);
}

int session_close_runtimes(struct session *s)
{
	int r = runtimes_close(s->runtimes);

	s->runtimes = NULL;
	return r;
}

void session_see(struct session *s, const struct proc *p)
{
	struct program program = session_program(p);

	if (s->runtimes && !p->is_kernel && !p->exited)
		runtimes_see(s->runtimes, &program, proc_mappings(p));
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
