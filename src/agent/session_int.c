/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session_int.h"

struct program session_program(const struct proc *p)
{
	return (struct program){ .pid = p->pid, .exec_id = p->exec_id, .start_ns = p->start_ns };
}

bool session_wants(struct session *s, struct proc *p)
{
	const struct selection *selection = &s->cfg.selection;
	uint32_t user = 0;

	if (selection_is_all(selection))
		return true;
	if (selection->user_count && proc_user(s->processes, p, clock_monotonic_ns(s->cfg.clock), &user) < 0)
		return false;
	return selection_wants(selection, p, user);
}

int session_new_aggregate(const struct session *s, uint64_t start_ns, struct aggregate **out)
{
	uint32_t share = s->cfg.sampling.wait_share;
	int r = aggregate_new(out);

	if (r < 0)
		return r;
	/* A recording is of another time; merged counts (session_merge.h) are no samples of either sampler. */
	(*out)->with_times = s->cfg.sample_times && !s->sampler->is_replay && !s->beside;
	(*out)->start_ns = start_ns;
	(*out)->with_waits = s->cfg.sampling.off_cpu;
	(*out)->wait_weight = share ? 0x1p32 / share : 1;
	return 0;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	aggregate_free(job->aggregate);
	aggregate_free(job->beside);
	free(job);
}

void job_freep(struct job **job)
{
	job_free(*job);
}

uint64_t job_samples(const struct job *job)
{
	return job->aggregate->total + (job->beside ? job->beside->total : 0);
}

void session_count_dropped(struct session *s, uint64_t samples)
{
	atomic_fetch_add(&s->dropped_windows, 1);
	atomic_fetch_add(&s->dropped_window_samples, samples);
}

static const char *const counter_names[] = {
#define X(id, name, help) [ABI_COUNTER_##id] = name,
	ABI_COUNTERS(X)
#undef X
};

const char *session_counter_name(size_t counter)
{
	return counter_names[counter];
}
