/* SPDX-License-Identifier: Apache-2.0 */
/* perf events without BPF: the kernel follows frame pointers, or copies registers and stacks, which the host walks as
 * it does raw samples. For machines where BPF programs are not permitted; docs/perf-sampler.md. */
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "sampler/event.h"
#include "sampler/perf/rings.h"
#include "sampler/perf/tasks.h"
#include "sampler/samplers.h"
#include "walk/walk.h"

#define COPY_BYTES 8192
#define CHAIN_MAX 127 /* kernel.perf_event_max_stack, as it is if nobody has changed it */
#define FOLLOW_NS (2 * NSEC_PER_SEC)

struct sampler_state {
	struct perf_rings rings;
	struct perf_tasks tasks;
	struct perf_format format;
	const struct sampler_events *events; /* during poll only */
	struct abi_sample *sample;           /* PERF_ABI_SAMPLE_MAX bytes: what is handed over */
	uint32_t *pids;                      /* sorted */
	uint32_t skip_pid;                   /* 0: none */
	enum sampler_stacks stacks;
	size_t chain_max;
	uint64_t swept_ns;
	bool stopped;
	uint64_t counters[ABI_COUNTER_COUNT];
};

/* ---- records ---- */

static void send_process(struct sampler_state *s, const struct perf_process *p, uint16_t type, uint64_t time_ns)
{
	const struct abi_process event = perf_tasks_event(p, type, time_ns);

	if (p->is_wanted)
		s->events->process(s->events->ctx, &event);
}

static void drop(struct sampler_state *s, struct perf_process *p, uint64_t time_ns)
{
	send_process(s, p, ABI_RECORD_EXIT, time_ns);
	perf_tasks_drop(&s->tasks, p);
}

/* What it has mapped before its first sample. */
static void tell_maps(struct sampler_state *s, struct perf_process *p)
{
	for (size_t i = 0; i < p->map_count; i++) {
		if (s->events->mapping)
			s->events->mapping(s->events->ctx, p->maps[i]);
		free(p->maps[i]);
	}
	free(p->maps);
	p->maps = NULL;
	p->map_count = p->map_cap = 0;
	p->is_sampled = true;
}

static void hand_over(struct sampler_state *s, const struct perf_record *r, const struct perf_identity *who)
{
	bool failed = false;

	if (s->stacks == SAMPLER_STACKS_BOTH && s->events->chain) {
		ignore(perf_sample_make(r, who, PERF_WALK_CHAIN, s->chain_max, s->sample)); /* told below */
		s->events->chain(s->events->ctx, s->sample);
	}
	failed = perf_sample_make(r, who, s->stacks == SAMPLER_STACKS_CHAIN ? PERF_WALK_CHAIN : PERF_WALK_STACK,
				  s->chain_max, s->sample);
	s->counters[ABI_COUNTER_KERNEL_STACK_FAILED] += failed;
	s->counters[ABI_COUNTER_RAW] += (s->sample->flags & ABI_SAMPLE_RAW) != 0;
	s->counters[ABI_COUNTER_SAMPLES]++;
	s->events->sample(s->events->ctx, s->sample);
}

/* Tasks of other pid namespaces than ours have the number 0 or -1. */
static void take_sample(struct sampler_state *s, const struct perf_record *r)
{
	struct perf_process *p;
	struct perf_identity who;

	s->counters[ABI_COUNTER_TICKS]++;
	if (!r->pid && !r->tid) {
		s->counters[ABI_COUNTER_IDLE]++;
		return;
	}
	if ((int32_t)r->pid <= 0 || (int32_t)r->tid <= 0 || r->pid == s->skip_pid) {
		s->counters[ABI_COUNTER_FILTERED]++;
		return;
	}
	p = perf_tasks_get(&s->tasks, r->pid);
	if (!p) {
		s->counters[ABI_COUNTER_LOST_NO_STATE]++;
		return;
	}
	if (!p->is_wanted) {
		s->counters[ABI_COUNTER_FILTERED]++;
		return;
	}
	if (!p->is_sampled)
		tell_maps(s, p);
	who = (struct perf_identity){ .process_start_ns = p->start_ns,
				      .exec_id = p->exec_id,
				      .is_kernel = p->is_kernel,
				      .comm = p->comm,
				      .thread_name = perf_tasks_thread_name(&s->tasks, p, r->tid) };
	hand_over(s, r, &who);
}

static void take_fork(struct sampler_state *s, const struct perf_record *r)
{
	struct perf_process *before = r->pid == r->parent_pid ? NULL : perf_tasks_find(&s->tasks, r->pid), *p;

	if ((int32_t)r->pid <= 0 || (int32_t)r->tid <= 0)
		return;
	if (before) /* its exit was not told */
		drop(s, before, r->time_ns);
	p = perf_tasks_fork(&s->tasks, r);
	if (p)
		send_process(s, p, ABI_RECORD_FORK, r->time_ns);
}

static void take_comm(struct sampler_state *s, const struct perf_record *r)
{
	struct perf_process *p = (int32_t)r->pid > 0 ? perf_tasks_comm(&s->tasks, r) : NULL;

	if (p)
		send_process(s, p, ABI_RECORD_EXEC, r->time_ns);
}

static void take_map(struct sampler_state *s, const struct perf_record *r)
{
	struct abi_mapping *m = NULL;

	if (perf_tasks_map(&s->tasks, r, &m) <= 0) /* without memory it is read from /proc, when that is asked */
		return;
	if (s->events->mapping)
		s->events->mapping(s->events->ctx, m);
	free(m);
}

static void take_record(struct sampler_state *s, const void *bytes, size_t size)
{
	struct perf_record r;

	if (perf_record_parse(bytes, size, &s->format, &r) < 0) {
		s->counters[ABI_COUNTER_LOST_REJECTED]++;
		return;
	}
	switch (r.kind) {
	case PERF_KIND_SAMPLE:
		take_sample(s, &r);
		break;
	case PERF_KIND_FORK:
		take_fork(s, &r);
		break;
	case PERF_KIND_EXIT:
		perf_tasks_exit(&s->tasks, &r);
		break;
	case PERF_KIND_COMM:
		take_comm(s, &r);
		break;
	case PERF_KIND_MAP:
		take_map(s, &r);
		break;
	case PERF_KIND_LOST:
		s->counters[ABI_COUNTER_LOST_RING_FULL] += r.lost;
		break;
	default:
		break;
	}
}

/* ---- life ---- */

static void perf_close(struct sampler_state *s)
{
	if (!s)
		return;
	perf_rings_close(&s->rings);
	perf_tasks_release(&s->tasks);
	free(s->sample);
	free(s->pids);
	free(s);
}

static void perf_closep(struct sampler_state **s)
{
	perf_close(*s);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int set_filter(struct sampler_state *s, const struct sampler_config *cfg)
{
	s->pids = calloc(cfg->pid_count + 1, sizeof(*s->pids));
	if (!s->pids)
		return -ENOMEM;
	for (size_t i = 0; i < cfg->pid_count; i++)
		s->pids[i] = (uint32_t)cfg->pids[i];
	qsort(s->pids, cfg->pid_count, sizeof(*s->pids), by_number);
	s->tasks.pids = s->pids;
	s->tasks.pid_count = cfg->pid_count;
	s->tasks.follow_children = cfg->follow_children;
	s->skip_pid = cfg->include_self ? 0 : (uint32_t)getpid();
	return 0;
}

static size_t chain_max(const char *host_root)
{
	scoped(buf_release) struct buf text = BUF_INIT(64);
	uint64_t number;

	if (io_read_below(host_root, "/proc/sys/kernel/perf_event_max_stack", &text) < 0 ||
	    str_to_u64(str_trim(buf_str(&text)), 1, UINT32_MAX, &number) < 0)
		return CHAIN_MAX;
	return (size_t)number;
}

static enum sampler_stacks stacks_of(const struct sampler_config *cfg)
{
	if (cfg->stacks != SAMPLER_STACKS_BY_MODE)
		return (enum sampler_stacks)cfg->stacks;
	return cfg->mode == WALK_FP ? SAMPLER_STACKS_CHAIN : SAMPLER_STACKS_COPY;
}

static int check_options(const struct sampler_config *cfg, struct buf *why)
{
	if (cfg->off_cpu)
		buf_adds(why, STR("cannot see how long threads wait: leave out --off-cpu"));
	else if (cfg->tid_count || cfg->cgroup_map || cfg->mount_map || cfg->cpus || cfg->idle_tasks)
		buf_adds(why, STR("cannot choose threads, CPUs, idle tasks, or by a pinned map"));
	else if (cfg->no_kernel || cfg->no_user)
		buf_adds(why, STR("cannot leave out a part of stacks"));
	else
		return 0;
	return -ENOTSUP;
}

static int perf_open(const struct sampler_config *cfg, struct buf *why, struct sampler_state **out)
{
	scoped(perf_closep) struct sampler_state *s = calloc(1, sizeof(*s));
	struct perf_rings_config rings = { .sampling = cfg };
	int r = check_options(cfg, why);

	if (!s || r < 0)
		return s ? r : -ENOMEM;
	perf_tasks_init(&s->tasks, cfg->host_root);
	s->stacks = stacks_of(cfg);
	s->chain_max = chain_max(cfg->host_root);
	rings.with_chain = s->stacks != SAMPLER_STACKS_COPY;
	if (s->stacks != SAMPLER_STACKS_CHAIN)
		rings.stack_bytes =
			cfg->copy_bytes ? (uint32_t)MIN(align_up(cfg->copy_bytes, 8), (size_t)SAMPLER_COPY_BYTES_MAX)
					: COPY_BYTES;
	s->format.with_stack = rings.stack_bytes > 0;
	s->sample = malloc(PERF_ABI_SAMPLE_MAX);
	r = s->sample ? set_filter(s, cfg) : -ENOMEM;
	if (r == 0)
		r = perf_rings_open(&s->rings, &rings, why);
	if (r < 0)
		return r;
	*out = s;
	s = NULL;
	return 0;
}

static int perf_start(struct sampler_state *s)
{
	return perf_rings_start(&s->rings);
}

/* What has ended since. */
static void follow(struct sampler_state *s, uint64_t now_ns)
{
	struct perf_process *p;

	while ((p = perf_tasks_left(&s->tasks)))
		drop(s, p, p->left_ns);
	if (now_ns - s->swept_ns < FOLLOW_NS)
		return;
	s->swept_ns = now_ns;
	p = perf_tasks_sweep(&s->tasks);
	if (p)
		drop(s, p, now_ns);
	perf_rings_follow(&s->rings, now_ns);
}

/* A record that was written while the rings were looked at may be older than one that was seen of another ring: what is
 * newer than the look waits for the next time. */
static int perf_poll(struct sampler_state *s, int timeout_ms, const struct sampler_events *events)
{
	int waited = perf_rings_wait(&s->rings, timeout_ms), size, count = 0;
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	const void *bytes = NULL;

	if (waited < 0)
		return waited;
	s->events = events;
	perf_rings_look(&s->rings);
	while ((size = perf_rings_next(&s->rings, s->stopped ? UINT64_MAX : now_ns, &bytes))) {
		if (size < 0)
			s->counters[ABI_COUNTER_LOST_REJECTED]++;
		else
			take_record(s, bytes, (size_t)size);
		count++;
	}
	follow(s, now_ns);
	s->events = NULL;
	return count;
}

static int perf_fd(const struct sampler_state *s)
{
	return s->rings.epoll;
}

static int perf_stop(struct sampler_state *s)
{
	perf_rings_stop(&s->rings);
	s->stopped = true;
	return 0;
}

static void perf_counters(const struct sampler_state *s, uint64_t out[ABI_COUNTER_COUNT])
{
	memcpy(out, s->counters, sizeof(s->counters));
}

/* The rings are the best trial: they are opened as they would be, and closed again. */
static int perf_probe(const struct sampler_config *cfg, struct buf *why)
{
	struct perf_rings_config rings = { .sampling = cfg, .with_chain = true };
	struct perf_rings opened = { 0 };
	scoped(buf_release) struct buf said = BUF_INIT(KIB(4));
	int r = check_options(cfg, &said);

	if (r == 0)
		r = perf_rings_open(&opened, &rings, &said);
	perf_rings_close(&opened);
	if (r >= 0)
		return 0;
	buf_adds(why, said.len ? buf_str(&said) : str_of(strerror(-r)));
	return r == -EPERM || r == -EACCES ? -EPERM : -ENOTSUP;
}

const struct sampler sampler_perf = {
	.name = "perf",
	.help = "perf events of every CPU, without BPF",
	.copies_stacks = true,
	.probe = perf_probe,
	.open = perf_open,
	.start = perf_start,
	.poll = perf_poll,
	.fd = perf_fd,
	.stop = perf_stop,
	.counters = perf_counters,
	.close = perf_close,
};
