/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session.h"

#include <time.h>

#include "agent/cloud.h"
#include "agent/session_beside.h"
#include "agent/session_runtimes.h"
#include "base/log.h"
#include "runtime/describer.h"

/* How long a process is remembered after its exit: no record older than this can still be in the ring. */
#define EXIT_GRACE_NS (2 * NSEC_PER_SEC)
#define EXPIRE_INTERVAL_NS (NSEC_PER_SEC / 2)
#define SOON_MS 20
#define SOON_FOR_NS (500 * NSEC_PER_MSEC) /* since code was met that was not known */
#define SETTLE_TURNS 5
#define SETTLE_PAUSE_NS (2 * NSEC_PER_MSEC)
#define MEMORY_INTERVAL_NS (5 * NSEC_PER_SEC) /* gProfiler's */
#define CLOCK_OFF_NS (100 * NSEC_PER_MSEC)    /* less is no jump */
#define HOLD_WAIT_NS (2 * NSEC_PER_SEC)       /* a stack that has not come by then does not come */
#define UNREAD_LOOK_NS (5 * NSEC_PER_SEC)     /* between looks for a runtime, where only those have stacks */

/* ---- reader ---- */

static void count_sample(struct session *s, struct proc *p, const struct abi_sample *sample, struct aggregate *a)
{
	int r;

	if (sample->trigger == ABI_TRIGGER_SWITCH) { /* counts when a wait refers to it */
		if (s->waits && waits_define(s->waits, sample) < 0)
			log_warn("out of memory: the stack of a wait is lost");
		return;
	}
	r = p ? take_in_sample(s->take_in, p, sample, 0, a) : -ENOMEM;
	s->samples += r == 0;
	s->left_out += r > 0;
	if (r >= 0)
		return;
	a->dropped++;
	s->dropped++;
}

static void take_finished(struct session *s);

static void send_job(struct session *s, struct job *job)
{
	void *dropped;

	queue_put(&s->jobs, job, &dropped);
	if (!dropped)
		return;
	session_count_dropped(s, job_samples(dropped));
	job_free(dropped);
}

static void take_vma(struct session *s, struct proc *p, const struct abi_raw *raw)
{
	/* /proc can't be asked any more: what the kernel says of one address is better than nothing. */
	if (p->exited || p->unreadable)
		ignore(proc_tell_mapping(s->processes, p, &raw->vma)); /* it says nothing new */
}

/* Return: true when the sample comes (again) by unwind_take(). */
static bool hand_over(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	int r = unwind_raw(s->unwind, sample, proc_mappings(p));

	if (r < 0 && s->sampler->is_replay) { /* nothing is in a hurry */
		unwind_drain(s->unwind);
		take_finished(s);
		r = unwind_raw(s->unwind, sample, proc_mappings(p));
	}
	s->raw_pending += r == 0;
	return r == 0;
}

/* Reads the mappings again when the one is missing in which the walk of @raw stands. Return: whether it is known. */
static bool reread(struct session *s, struct proc *p, const struct abi_raw *raw)
{
	const uint64_t address = raw->pc - raw->is_return;
	const struct abi_vma *vma = &raw->vma;
	bool is_mapped = (vma->kind == ABI_VMA_FILE || vma->kind == ABI_VMA_ANONYMOUS) && address >= vma->start &&
			 address < vma->end;

	return proc_reread(s->processes, p, address, is_mapped, clock_monotonic_ns(s->cfg.clock));
}

/* Its walk met an address whose mapping is not known. A process maps its libraries one by one while it starts: they may
 * be there by now. */
static bool hand_over_again(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	const struct abi_raw raw = unwind_raw_state(sample);

	if (sample->user_end != ABI_END_NO_MAPPING || !reread(s, p, &raw) ||
	    unwind_raw(s->unwind, sample, proc_mappings(p)) < 0)
		return false;
	s->raw_pending++;
	return true;
}

/* @read_ns: every record older than this was read, so programs that are not known to have ended by then live. */
static void send_closing(struct session *s, uint64_t read_ns)
{
	if (s->closing && !s->closing->raw_pending && read_ns >= s->closing->undecided_ns) {
		take_in_settle(s->take_in, s->closing->aggregate);
		send_job(s, s->closing);
		s->closing = NULL;
	}
}

/* Code may have been unmapped and other code mapped at its place: the kernel's walkers would not notice, and no sample
 * would ask. Called before each stack is taken in: that looks up addresses, and a look-up reads old mappings again
 * without telling the unwinder. */
static void refresh(struct session *s, struct proc *p)
{
	struct program program = session_program(p);
	uint64_t now_ns = clock_monotonic_ns(s->cfg.clock);

	if (!s->unwind || !proc_refresh(s->processes, p, now_ns))
		return;
	if (unwind_set_process(s->unwind, &program, proc_mappings(p)))
		p->unwind_again = (struct proc_again){ 0 };
	else
		proc_look_again(p, &p->unwind_again, now_ns);
}

/* Samples come back in the order they were handed over, so those of a window that has ended come first. */
static void take_finished(struct session *s)
{
	struct abi_sample *sample;

	while (s->unwind && (sample = unwind_take(s->unwind))) {
		struct proc *p =
			proc_get(s->processes, sample->pid, sample->process_start_ns, sample->exec_id, sample->comm);
		struct aggregate *a = s->aggregate;

		s->raw_pending--;
		s->finished_ns = sample->header.time_ns;
		if (s->closing && s->closing->raw_pending) {
			a = s->closing->aggregate;
			s->closing->raw_pending--;
		}
		if (p)
			refresh(s, p);
		if (!p || !(sample->flags & ABI_SAMPLE_RAW) || !hand_over_again(s, p, sample)) {
			unwind_strip(sample);
			count_sample(s, p, sample, a);
		}
		free(sample);
	}
}

/* Waits for all that the unwinder has. Ends: a sample is handed over again only for a mapping that was not known. */
static void finish_raw(struct session *s)
{
	while (s->raw_pending) {
		unwind_drain(s->unwind);
		take_finished(s);
	}
}

/* The kernel misses something: the mappings of the process, or one of them, or rows. */
static void mend(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	struct program program = session_program(p);
	struct abi_raw raw = { 0 };

	if (sample->flags & ABI_SAMPLE_RAW)
		raw = unwind_raw_state(sample);
	take_vma(s, p, &raw);
	if (sample->user_end == ABI_END_NO_PROCESS) /* callers may lie in what was loaded since its last sample */
		proc_reread_young(s->processes, p, clock_monotonic_ns(s->cfg.clock));
	if (raw.pc)
		ignore(reread(s, p, &raw));
	/* A process that the kernel knows nothing of is told of when that is worth it: by unwind_raw(). */
	if (sample->flags & ABI_SAMPLE_ASK && (sample->user_end != ABI_END_NO_PROCESS || !raw.pc))
		ignore(unwind_set_process(s->unwind, &program, proc_mappings(p))); /* the next sample asks again */
}

/* Without addresses nothing else tells that a process has loaded a runtime by now. One whose runtime is not known is
 * looked at more often. */
static void refresh_unwalked(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	uint64_t now_ns = clock_monotonic_ns(s->cfg.clock);

	if (sample->flags & ABI_SAMPLE_ASK) {
		proc_reread_young(s->processes, p, now_ns);
		proc_look_soon(p, now_ns, UNREAD_LOOK_NS);
	}
	ignore(proc_refresh(s->processes, p, now_ns)); /* whoever listens to the table is told */
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct session *s = ctx;
	struct proc *p = proc_get(s->processes, sample->pid, sample->process_start_ns, sample->exec_id, sample->comm);

	/* A stack is judged with its waits: without it they would be held, and then counted as lost. */
	if (p && sample->trigger != ABI_TRIGGER_SWITCH && !session_wants(s, p)) {
		s->filtered++;
		return;
	}
	if (p)
		refresh(s, p);
	if (p && !s->unwind && s->sampler->only_runtimes)
		refresh_unwalked(s, p, sample);
	if (p && s->unwind && sample->flags & (ABI_SAMPLE_RAW | ABI_SAMPLE_ASK))
		mend(s, p, sample);
	if (p && s->unwind && sample->flags & ABI_SAMPLE_RAW && hand_over(s, p, sample))
		return;
	count_sample(s, p, sample, s->aggregate);
}

/* The kernel's side has given the child its parent's address space already. */
static void share_space(struct session *s, const struct abi_process *event)
{
	const struct proc *parent = proc_parent(s->processes, event);
	struct program from,
		child = { .pid = event->pid, .exec_id = event->exec_id, .start_ns = event->process_start_ns };

	if (!parent)
		return;
	from = session_program(parent);
	unwind_share(s->unwind, &child, &from);
}

/* The same moment comes again with a copy of the stack, which counts it. */
static void on_chain(void *ctx, const struct abi_sample *sample)
{
	struct session *s = ctx;
	struct proc *p = proc_get(s->processes, sample->pid, sample->process_start_ns, sample->exec_id, sample->comm);

	if (!p || !session_wants(s, p))
		return;
	refresh(s, p);
	if (take_in_chain(s->take_in, p, sample, s->aggregate) < 0)
		log_warn("out of memory: a stack by frame pointers is lost");
}

static void on_process(void *ctx, const struct abi_process *event)
{
	struct session *s = ctx;

	proc_event(s->processes, event);
	if (s->unwind && event->header.type == ABI_RECORD_FORK)
		share_space(s, event);
	session_process(s, event);
}

static void on_name(void *ctx, const struct abi_name *name)
{
	session_name(ctx, name);
}

static void on_request(void *ctx, const struct abi_request *request)
{
	struct session *s = ctx;

	if (s->requests && requests_put(s->requests, request) < 0)
		log_warn("out of memory: what a worker is busy with is lost");
}

static void on_mapping(void *ctx, const struct abi_mapping *mapping)
{
	struct session *s = ctx;

	proc_mapping(s->processes, mapping);
}

static void count_wait(struct session *s, const struct abi_wait *wait)
{
	const struct abi_sample *stack = waits_find(s->waits, wait->stack_id);
	struct proc *p =
		stack ? proc_get(s->processes, stack->pid, stack->process_start_ns, stack->exec_id, stack->comm) : NULL;
	int r;

	if (p && !session_wants(s, p))
		return;
	if (p)
		refresh(s, p);
	r = p ? take_in_sample(s->take_in, p, stack, wait->wait_ns, s->aggregate) : -ENOENT;
	s->waits_taken += r == 0;
	s->waits_lost += r < 0;
}

static void on_wait(void *ctx, const struct abi_wait *wait)
{
	struct session *s = ctx;

	if (!s->waits)
		return;
	if (waits_find(s->waits, wait->stack_id) || !waits_hold(s->waits, wait))
		count_wait(s, wait);
}

/* @before_ns: those that came earlier are not held any longer. */
static void release_waits(struct session *s, uint64_t before_ns)
{
	struct abi_wait wait;

	while (s->waits && waits_take_held(s->waits, before_ns, &wait))
		count_wait(s, &wait);
}

/* Wall time is read at the start, and where it is asked for between two windows: a clock that jumps moves no border of
 * a window. */
static uint64_t wall_of(const struct session *s, uint64_t monotonic_ns)
{
	return s->wall_base_ns + (monotonic_ns - s->start_monotonic_ns);
}

/* Between two windows. Both clocks are read at one moment, or this is left for the next time. */
static void follow_clock(struct session *s)
{
	uint64_t before_ns = clock_monotonic_ns(s->cfg.clock), wall_ns = clock_wall_ns(s->cfg.clock);
	uint64_t after_ns = clock_monotonic_ns(s->cfg.clock), known_ns = wall_of(s, before_ns);
	uint64_t off_ns = wall_ns > known_ns ? wall_ns - known_ns : known_ns - wall_ns;

	if (s->cfg.follows_clock && off_ns > CLOCK_OFF_NS && after_ns - before_ns < CLOCK_OFF_NS / 10)
		s->wall_base_ns += wall_ns - known_ns; /* modulo 2^64: it may be negative */
}

static void count_unwind(struct session *s, struct unwind_totals *since)
{
	struct unwind_totals now, *before = &s->window_unwind;

	if (!s->unwind)
		return;
	unwind_totals(s->unwind, &now);
	*since = now;
	since->tables_loaded -= before->tables_loaded;
	since->tables_evicted -= before->tables_evicted;
	since->tables_failed -= before->tables_failed;
	since->tables_refused -= before->tables_refused;
	since->load_ns -= before->load_ns;
	since->raw_walked -= before->raw_walked;
	since->raw_dropped -= before->raw_dropped;
	*before = now;
}

/* Return: of the names that came from the kernel since the window's start, those that were known. */
static uint64_t count_names_again(struct session *s)
{
	uint64_t before = s->window_names_again, now = 0;

	for (size_t i = 0; s->runtimes && s->wanted[i]; i++) {
		struct runtime_stats stats;

		runtimes_stats(s->runtimes, s->wanted[i]->id, &stats);
		now += stats.names_again;
	}
	s->window_names_again = now;
	return now - before;
}

static void look_at_memory(struct session *s, uint64_t now_ns)
{
	double percent = cpustat_memory_percent(s->cfg.host_root);

	s->memory.next_ns = now_ns + MEMORY_INTERVAL_NS;
	if (percent < 0)
		return;
	s->memory.sum += percent;
	s->memory.count++;
}

static void count_window(struct session *s, struct job *job)
{
	uint64_t counters[ABI_COUNTER_COUNT];

	s->sampler->counters(s->sampling, counters);
	session_beside_counters(s, counters);
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++) {
		job->counters[i] = counters[i] - s->window_counters[i];
		s->window_counters[i] = counters[i];
	}
	job->counters[ABI_COUNTER_FILTERED] += s->filtered - s->window_filtered;
	s->window_filtered = s->filtered;
	job->counters[ABI_COUNTER_WAITS] = s->aggregate->waits; /* the kernel side knows no containers */
	job->counters[ABI_COUNTER_WAITS_LOST] += s->waits_lost - s->window_waits_lost;
	s->window_waits_lost = s->waits_lost;
	count_unwind(s, &job->unwind);
	job->names_again = count_names_again(s);
	job->cpu_start = s->cpu_window;
	if (cpustat_read(s->cfg.host_root, &job->cpu_end) < 0)
		job->cpu_end = (struct cpustat){ 0 }; /* busy time and load are unknown, in the next window too */
	s->cpu_window = job->cpu_end;
	if (!s->memory.count)
		look_at_memory(s, clock_monotonic_ns(s->cfg.clock));
	job->memory_average = s->memory.count ? s->memory.sum / s->memory.count : -1;
	s->memory.sum = s->memory.count = 0;
}

/* Until when programs of the window that ended at @end_ns may still turn out to be short. The next window must not wait
 * for this one, so one of less than two seconds leaves some of them with their own names. At the end nobody waits. */
static uint64_t undecided_ns(const struct session *s, uint64_t end_ns)
{
	uint64_t until_ns;

	if (s->stopped || s->sampler->is_replay)
		return 0;
	until_ns = MIN(aggregate_undecided_ns(s->aggregate, WORKLOAD_SHORT_NS), end_ns + s->cfg.window_ns / 2);
	return until_ns > clock_monotonic_ns(s->cfg.clock) ? until_ns : 0;
}

/* A window whose samples are not all back waits for them, one at a time; and so does one with programs that may turn
 * out to be short. */
static int cut_window(struct session *s, uint64_t end_ns)
{
	scoped(job_freep) struct job *job = calloc(1, sizeof(*job));
	struct aggregate *next = NULL;
	int r;

	/* Waiting for it here would let the ring run over: this window goes on and is cut at a later step. */
	if (s->closing)
		return 0;
	r = job ? session_new_aggregate(s, end_ns, &next) : -ENOMEM;
	if (r == 0)
		r = session_cut_beside(s, job);
	if (r < 0) {
		aggregate_free(next);
		return r; /* likewise */
	}
	count_window(s, job);
	job->start_ns = wall_of(s, s->window_start_ns);
	job->end_ns = wall_of(s, end_ns);
	job->number = s->window_number++;
	take_in_settle(s->take_in, s->aggregate);
	take_in_cut(s->take_in);
	if (s->choice)
		choice_cut(s->choice);
	job->aggregate = s->aggregate;
	job->raw_pending = s->raw_pending;
	job->undecided_ns = undecided_ns(s, end_ns);
	s->aggregate = next;
	s->window_start_ns = end_ns;
	follow_clock(s);
	if (job->raw_pending || job->undecided_ns)
		s->closing = job;
	else
		send_job(s, job);
	job = NULL;
	return 0;
}

/* Windows end on a grid that begins with the session: one that is cut late makes the next one no later. A late cut
 * takes as many of them together as are over. Return: the end of the window that is over at @now_ns, or 0. */
static uint64_t window_end(const struct session *s, uint64_t now_ns)
{
	uint64_t windows = s->cfg.window_ns ? (now_ns - s->window_start_ns) / s->cfg.window_ns : 0;
	uint64_t end_ns = s->window_start_ns + windows * s->cfg.window_ns;

	if (!windows || (s->cfg.duration_ns && end_ns - s->start_monotonic_ns >= s->cfg.duration_ns))
		return 0;
	return end_ns;
}

/* Where code was met that was not known, more of it may come, and be gone or moved soon. Some reads have none: a
 * program that waits for a CPU runs now and then only. */
static int until_soon(struct session *s, int timeout_ms, uint64_t now_ns)
{
	if (s->runtimes && runtimes_has_asked(s->runtimes))
		s->soon_until_ns = now_ns + SOON_FOR_NS;
	if (now_ns >= s->soon_until_ns)
		return timeout_ms;
	return timeout_ms < 0 ? SOON_MS : MIN(timeout_ms, SOON_MS);
}

/* At most @timeout_ms, and not beyond the end of the window: what comes later belongs to the next one. */
static int wait_ms(const struct session *s, int timeout_ms, uint64_t now_ns)
{
	uint64_t passed = now_ns - s->window_start_ns, left;

	if (!s->cfg.window_ns || passed >= s->cfg.window_ns || timeout_ms < 0)
		return timeout_ms;
	left = (s->cfg.window_ns - passed + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return (int)MIN((uint64_t)timeout_ms, left);
}

/* Nothing of the last, short window is to be told: every sample is in the windows before it, and none was lost since.
 */
static bool is_last_empty(struct session *s)
{
	uint64_t counters[ABI_COUNTER_COUNT], lost = 0;

	if (!s->window_number || s->aggregate->total || s->aggregate->waits || s->aggregate->left_out ||
	    s->raw_pending || s->stop_monotonic_ns - s->window_start_ns >= s->cfg.window_ns)
		return false;
	s->sampler->counters(s->sampling, counters);
	session_beside_counters(s, counters);
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++)
		if (str_starts(str_of(session_counter_name(i)), STR("lost_")))
			lost += counters[i] - s->window_counters[i];
	return !lost;
}

/* No record older than @before_ns is in the ring; what the unwinder still has may be older. */
static void expire(struct session *s, uint64_t before_ns)
{
	uint64_t read_ns = before_ns > EXIT_GRACE_NS ? before_ns - EXIT_GRACE_NS : 0;

	proc_expire(s->processes, s->raw_pending ? MIN(read_ns, s->finished_ns) : read_ns);
}

/* What is known of a process goes with it. */
static size_t settle(struct session *s)
{
	size_t left = take_in_settle(s->take_in, s->aggregate) + session_settle_beside(s);

	return left + (s->closing ? take_in_settle(s->take_in, s->closing->aggregate) : 0);
}

/* What was asked for a moment ago. */
static void settle_last(struct session *s)
{
	const struct timespec pause = { .tv_nsec = SETTLE_PAUSE_NS };

	for (int turn = 0; turn < SETTLE_TURNS && settle(s); turn++)
		ignore(nanosleep(&pause, NULL));
}

static struct sampler_events events_of(struct session *s)
{
	return (struct sampler_events){ .sample = on_sample,
					.process = on_process,
					.mapping = on_mapping,
					.ctx = s,
					.name = on_name,
					.wait = on_wait,
					.request = on_request,
					.chain = on_chain };
}

int session_step(struct session *s, int timeout_ms)
{
	const struct sampler_events events = events_of(s);
	uint64_t before_ns = clock_monotonic_ns(s->cfg.clock), now_ns, end_ns;
	int r;

	must(s->started && !s->stopped);
	r = s->sampler->poll(s->sampling, wait_ms(s, until_soon(s, timeout_ms, before_ns), before_ns), &events);
	session_poll_beside(s);
	take_finished(s);
	send_closing(s, before_ns);
	now_ns = clock_monotonic_ns(s->cfg.clock);
	if (now_ns >= s->memory.next_ns)
		look_at_memory(s, now_ns);
	release_waits(s, now_ns > HOLD_WAIT_NS ? now_ns - HOLD_WAIT_NS : 0);
	if (now_ns - s->expired_ns >= EXPIRE_INTERVAL_NS) {
		s->expired_ns = now_ns;
		settle(s);
		expire(s, before_ns);
		if (s->requests && s->runtimes && requests_want_recall(s->requests))
			runtimes_recall(s->runtimes);
	}
	end_ns = window_end(s, now_ns);
	if (end_ns && cut_window(s, end_ns) < 0)
		log_warn("out of memory: the window goes on");
	return r;
}

/* ---- life ---- */

static int drain(struct session *s)
{
	const struct sampler_events events = events_of(s);
	int r;

	do {
		r = s->sampler->poll(s->sampling, 0, &events);
		take_finished(s);
	} while (r > 0);
	finish_raw(s);
	release_waits(s, UINT64_MAX);
	return r == -ENODATA ? 0 : r;
}

int session_stop(struct session *s)
{
	int r;

	if (s->stopped)
		return 0;
	s->stopped = true;
	session_stop_beside(s);
	r = s->sampler->stop(s->sampling);
	s->stop_monotonic_ns = clock_monotonic_ns(s->cfg.clock);
	if (r == 0)
		r = drain(s);
	else
		finish_raw(s);
	send_closing(s, UINT64_MAX);
	settle_last(s);
	if (!is_last_empty(s) && cut_window(s, s->stop_monotonic_ns) < 0) {
		session_count_dropped(s, s->aggregate->total);
		r = -ENOMEM;
	}
	queue_close(&s->jobs);
	if (s->worker_runs)
		pthread_join(s->worker, NULL);
	s->worker_runs = false;
	return r ? r : s->last_result;
}

void session_stats(const struct session *s, struct session_stats *out)
{
	uint64_t end_ns = s->stopped ? s->stop_monotonic_ns : clock_monotonic_ns(s->cfg.clock);

	*out = (struct session_stats){ .sampler = s->sampler,
				       .samples = s->samples,
				       .left_out = s->left_out,
				       .lost = s->dropped + atomic_load(&s->dropped_window_samples),
				       .dropped_windows = atomic_load(&s->dropped_windows),
				       .elapsed_ns = end_ns - s->start_monotonic_ns,
				       .off_cpu = s->cfg.sampling.off_cpu };
	s->sampler->counters(s->sampling, out->counters);
	session_beside_counters(s, out->counters);
	out->counters[ABI_COUNTER_FILTERED] += s->filtered;
	out->counters[ABI_COUNTER_WAITS] = s->waits_taken;
	out->counters[ABI_COUNTER_WAITS_LOST] += s->waits_lost;
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++)
		if (str_starts(str_of(session_counter_name(i)), STR("lost_")))
			out->lost += out->counters[i];
}

void session_close(struct session *s)
{
	if (!s)
		return;
	ignore(session_stop(s));        /* a caller who wants to know stops first */
	proc_table_close(s->processes); /* tells the unwinder what it forgets */
	describer_close(s->describer);
	unwind_close(s->unwind); /* before the maps that it fills */
	if (session_close_runtimes(s) < 0)
		return; /* it may go on reading: all that it could use stays until the program's end */
	session_close_beside(s);
	take_in_free(s->take_in);
	choice_free(s->choice);
	requests_free(s->requests);
	waits_free(s->waits);
	job_free(s->closing);
	if (s->sampling)
		s->sampler->close(s->sampling);
	debug_lines_close(s->lines);
	symbols_close(s->symbols);
	cloud_close(s->cloud);
	source_maps_free(s->maps);
	runtime_sources_free(s->sources);
	files_close(s->files);
	aggregate_free(s->aggregate);
	queue_close(&s->jobs);
	for (struct job *job; (job = queue_take(&s->jobs));) /* only when the worker never ran */
		job_free(job);
	queue_release(&s->jobs);
	free(s);
}
