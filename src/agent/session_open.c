/* SPDX-License-Identifier: Apache-2.0 */
/* How a session begins. */
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/cloud.h"
#include "agent/session_beside.h"
#include "agent/session_runtimes.h"
#include "agent/session_worker.h"
#include "base/log.h"
#include "base/random.h"
#include "proc/container.h"
#include "runtime/describer.h"
#include "walk/walk.h"

#define FILE_DESCRIPTORS_MAX 1024
#define DESCRIPTORS_OWN 48
#define DESCRIPTORS_FEW 2
#define USUAL_HZ 99
#define READER_NICE (-10)
#define READER_SLICE_NS (NSEC_PER_MSEC / 10)

/* ---- what the process table tells ---- */

static void on_ended(void *ctx, const struct proc *p)
{
	struct session *s = ctx;
	struct program program = session_program(p);

	aggregate_end_program(s->aggregate, &program, p->born_ns, p->exit_ns);
	if (s->closing)
		aggregate_end_program(s->closing->aggregate, &program, p->born_ns, p->exit_ns);
	if (s->unwind)
		unwind_forget(s->unwind, &program);
	session_forget(s, &program);
}

/* Later than on_ended(): samples of it may have been held back till now. */
static void on_dropped(void *ctx, const struct proc *p)
{
	session_drop(ctx, p);
}

static void on_mapped(void *ctx, struct proc *p)
{
	session_see(ctx, p);
}

/* ---- parts ---- */

/* Who looks at processes from outside knows time only. */
static int check_event(const struct session *s, struct buf *why)
{
	const struct sampler_event *event = s->cfg.sampling.event;

	if (!event || (!s->sampler->only_runtimes && !s->sampler->is_replay && !s->cfg.beside_hz))
		return 0;
	buf_addf(why, "'%s' cannot be sampled %s", event->name,
		 s->sampler->is_replay ? "from a recording" : "from outside of processes: that knows time only");
	return -ENOTSUP;
}

/* Runtimes that are read from outside at a lower rate than @asked. What any command asks for when nothing is said is no
 * reason for a warning. */
static void tell_rate(const struct session *s, uint32_t asked)
{
	scoped(buf_release) struct buf titles = BUF_INIT(KIB(1));

	if (!s->cfg.beside_hz || s->cfg.beside_hz >= asked || s->sampler->is_replay)
		return;
	for (size_t i = 0; s->wanted[i]; i++)
		if (s->wanted[i]->outside_hz_max)
			buf_addf(&titles, "%s%s", titles.len ? ", " : "", s->wanted[i]->title);
	if (!titles.len)
		return;
	log_at(asked > USUAL_HZ ? LOG_WARN : LOG_DEBUG,
	       "these runtimes are read from outside at fewer samples a second: more is too much for that",
	       LOG_STR("runtimes", buf_str(&titles)), LOG_U64("rate", s->cfg.beside_hz), LOG_U64("asked", asked));
}

/* A sampler that walks nothing itself walks by frame pointers when it is told so, whatever the mode says. Runtimes that
 * keep a list of their own it cannot walk either: they are read from outside, as with --python-mode pyspy. */
static void choose_stacks(struct session *s)
{
	uint32_t outside_hz = 0;
	struct sampler_config *cfg = &s->cfg.sampling;

	if (!s->sampler->copies_stacks) {
		cfg->stacks = SAMPLER_STACKS_BY_MODE;
		return;
	}
	if (cfg->stacks == SAMPLER_STACKS_CHAIN)
		cfg->mode = WALK_FP;
	else if (cfg->stacks != SAMPLER_STACKS_BY_MODE && cfg->mode == WALK_FP)
		cfg->mode = WALK_AUTO;
	if (cfg->stacks == SAMPLER_STACKS_BOTH) /* stacks are chosen when the window ends */
		s->cfg.sample_times = false;
	for (size_t i = 0; s->wanted[i]; i++)
		outside_hz = MAX(outside_hz, s->wanted[i]->outside_hz_max);
	if (!cfg->event && !s->cfg.beside_hz && outside_hz) {
		s->cfg.beside_hz = MIN(cfg->frequency_hz, outside_hz);
		s->cfg.sample_times = false;
	}
}

static int open_sampler(struct session *s, struct buf *why)
{
	uint32_t asked = s->cfg.sampling.frequency_hz;
	int r = 0;

	s->sampler = s->cfg.sampler;
	if (!s->sampler)
		r = sampler_choose(&s->cfg.sampling, why, &s->sampler);
	if (r < 0)
		return r;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): set where r is 0 */
	if (!s->cfg.sampler && s->sampler->only_runtimes && !s->cfg.only_runtime)
		log_warn("native stacks cannot be sampled here: only those of Python, Ruby, PHP and Perl are taken, "
			 "from outside",
			 LOG_STR("why", buf_str(why)));
	if (s->cfg.sampling.php_request && (!s->sampler->runtimes || s->sampler->only_runtimes) &&
	    !s->sampler->is_replay)
		log_warn("what PHP is busy with is told by the sampler bpf alone");
	r = check_event(s, why);
	if (r < 0)
		return r;
	choose_stacks(s);
	s->cfg.only_runtime |= s->sampler->only_runtimes;
	if (s->sampler->only_runtimes && s->cfg.beside_hz)
		s->cfg.sampling.frequency_hz = s->cfg.beside_hz;
	buf_clear(why);
	r = s->sampler->open(&s->cfg.sampling, why, &s->sampling);
	if (r == 0 && why->len)
		log_warn(buf_cstr(why)); /* it works, with less */
	if (r == 0)
		tell_rate(s, asked);
	return r;
}

/* Two caches of descriptors, of files and of their symbols, take half of what the sampler's programs and maps, /proc
 * and the outputs leave. */
static size_t descriptor_budget(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FILE_DESCRIPTORS_MAX;
	if (limit.rlim_cur < DESCRIPTORS_OWN + 4 * DESCRIPTORS_FEW)
		return DESCRIPTORS_FEW;
	return (size_t)MIN((limit.rlim_cur - DESCRIPTORS_OWN) / 4, (rlim_t)FILE_DESCRIPTORS_MAX);
}

/* Nothing comes raw from a sampler that walks by frame pointers. */
static int open_unwind(struct session *s)
{
	struct in_line runtimes;
	struct table_sink sink;
	struct unwind_config cfg = { .budget_bytes = s->cfg.unwind_bytes,
				     .host_root = s->cfg.host_root,
				     .mode = s->cfg.sampling.mode,
				     .clock = s->cfg.clock,
				     .wake_fd = -1 };
	int r = 0;

	if (cfg.mode == WALK_FP || s->sampler->only_runtimes)
		return 0;
	if (s->sampler->tables) {
		r = s->sampler->tables(s->sampling, &sink);
		cfg.sink = &sink;
	}
	session_in_line(s, &runtimes);
	cfg.runtimes = &runtimes;
	return r < 0 ? r : unwind_open(&cfg, s->files, &s->unwind);
}

static int open_runtimes(struct session *s)
{
	struct runtime_sink sink;
	int r = s->wanted[0] ? session_runtime_sink(s, &sink) : 1;

	return r < 0 ? r : session_open_runtimes(s, r ? NULL : &sink);
}

/* Processes are chosen after a tenth of the first window, or a second. */
static int open_choice(struct session *s)
{
	uint64_t window_ns = s->cfg.window_ns ? s->cfg.window_ns : s->cfg.duration_ns;
	const struct choice_config cfg = { .runtimes = s->cfg.runtimes_chosen,
					   .age_min_ns = s->cfg.runtime_age_min_ns,
					   .process_max = s->cfg.runtime_process_max,
					   .look_ns = window_ns ? MIN(window_ns / 10, NSEC_PER_SEC) : NSEC_PER_SEC };

	return cfg.age_min_ns || cfg.process_max ? choice_new(&cfg, &s->choice) : 0;
}

static int open_take_in(struct session *s)
{
	const struct take_in_config cfg = { .clock = s->cfg.clock,
					    .host_root = s->cfg.host_root,
					    .processes = s->processes,
					    .files = s->files,
					    .unwind = s->unwind,
					    .runtimes = s->runtimes,
					    .only_in_line = s->beside != NULL,
					    .describer = s->describer,
					    .requests = s->requests,
					    .choice = s->choice,
					    .addresses = s->cfg.addresses,
					    .keep_interpreter = s->cfg.keep_interpreter,
					    .only_runtime = s->cfg.only_runtime,
					    .thread_names = s->cfg.thread_names };

	return take_in_new(&cfg, &s->take_in);
}

static int open_parts(struct session *s, struct buf *why)
{
	const struct proc_config proc_cfg = { .host_root = s->cfg.host_root,
					      .container_socket = s->cfg.container_socket,
					      .service_rules = s->cfg.service_rules,
					      .recorded = s->sampler->is_replay,
					      .ended = on_ended,
					      .dropped = on_dropped,
					      .mapped = on_mapped,
					      .ctx = s };
	const struct describer_config describer_cfg = { .host_root = s->cfg.host_root,
							.wants_argument = s->cfg.wants_argument,
							.ctx = s->cfg.ctx,
							.with_spark = s->cfg.with_spark };
	const struct symbols_config symbols_cfg = { .host_root = s->cfg.host_root,
						    .descriptor_max = descriptor_budget() };
	int r = files_open(descriptor_budget(), &s->files);

	if (r == 0)
		r = files_set_host_root(s->files, s->cfg.host_root);
	if (r == 0)
		r = proc_table_open(&proc_cfg, s->files, &s->processes);
	if (r == 0)
		r = open_unwind(s);
	if (r == 0)
		r = session_open_beside(s, why);
	if (r == 0)
		r = open_runtimes(s);
	if (r == 0)
		r = open_choice(s);
	if (r == 0 && !s->sampler->is_replay)
		r = describer_open(&describer_cfg, &s->describer);
	if (r == 0 && s->cfg.sampling.php_request)
		r = requests_new(&s->requests);
	if (r == 0)
		r = open_take_in(s);
	if (r == 0)
		r = symbols_open(&symbols_cfg, s->files, &s->symbols);
	if (r == 0 && s->cfg.sampling.off_cpu)
		r = waits_new(&s->waits);
	if (r == 0)
		r = session_new_aggregate(s, 0, &s->aggregate);
	return r;
}

static int open_lines(struct session *s, struct buf *why)
{
	int r = s->cfg.lines ? debug_lines_open(&(struct debug_lines_config){ 0 }, s->symbols, &s->lines) : 0;

	if (r == -ENOTSUP)
		buf_adds(why, STR("inlined frames and lines need libdw.so.1: install libdw1 (elfutils)"));
	else if (r == -EPIPE)
		buf_adds(why, STR("the reader of debug information cannot give up its rights here (no seccomp?)"));
	else if (r < 0)
		buf_addf(why, "cannot start the reader of debug information: %s", strerror(-r));
	return r;
}

/* Before anything is measured: a name may be mistyped. A pattern may fit later. */
static int find_container(const struct session *s, struct buf *why)
{
	const char *wanted = s->cfg.selection.container;

	if (!wanted || s->sampler->is_replay || strpbrk(wanted, "*?"))
		return 0;
	return containers_find(s->cfg.host_root ? s->cfg.host_root : "", s->cfg.container_socket, str_of(wanted), why);
}

static void session_freep(struct session **s)
{
	session_close(*s);
}

int session_open(const struct session_config *cfg, struct buf *why, struct session **out)
{
	scoped(session_freep) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	if (cfg->sampling.event) {
		s->event = *cfg->sampling.event;
		s->cfg.sampling.event = &s->event;
	}
	session_choose_runtimes(s);
	s->stopped = true; /* nothing to stop yet */
	s->run_id[0] = random_u64();
	s->run_id[1] = random_u64();
	r = queue_init(&s->jobs);
	if (r < 0) {
		free(s);
		s = NULL;
		return r;
	}
	r = open_sampler(s, why);
	if (r < 0)
		return r;
	r = find_container(s, why);
	if (r < 0)
		return r;
	r = open_parts(s, why);
	if (r < 0) {
		if (!why->len)
			buf_addf(why, "cannot prepare the session: %s", strerror(-r));
		return r;
	}
	r = open_lines(s, why);
	if (r < 0)
		return r;
	if (cfg->want_metadata && cfg->want_cloud && cloud_open(cfg->host_root, &s->cloud) < 0)
		log_warn("out of memory: nobody asks which cloud this is");
	*out = s;
	s = NULL;
	return 0;
}

/* ---- start ---- */

/* struct sched_attr of linux 4.8, include/uapi/linux/sched/types.h, whose struct sched_param glibc has too. */
struct attributes {
	uint32_t size, sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
};

/* The first sample of a short program is a race for its mappings: the reader is woken for it and should run at once,
 * not at the end of somebody's time slice. Linux 6.12 lets a thread ask for a short slice of its own, with which it
 * goes before others when it wakes and gets no more of the CPU in all; before, the niceness alone has to do. Worker
 * threads are there already and keep what they have. Source: sched_setattr(2); linux 6.12, kernel/sched/fair.c, custom
 * slices. */
static void hurry(void)
{
	struct attributes attr = { .size = sizeof(attr),
				   .sched_policy = SCHED_OTHER,
				   .sched_nice = READER_NICE,
				   .sched_runtime = READER_SLICE_NS };

	if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0) /* without the right to it: a little later */
		ignore(setpriority(PRIO_PROCESS, (id_t)gettid(), READER_NICE));
}

int session_start(struct session *s)
{
	int r;

	s->start_monotonic_ns = s->window_start_ns = clock_monotonic_ns(s->cfg.clock);
	s->start_wall_ns = s->wall_base_ns = clock_wall_ns(s->cfg.clock);
	s->aggregate->start_ns = s->start_monotonic_ns;
	if (cpustat_read(s->cfg.host_root, &s->cpu_window) < 0)
		s->cpu_window = (struct cpustat){ 0 };
	r = pthread_create(&s->worker, NULL, session_worker, s);
	if (r)
		return -r;
	s->worker_runs = true;
	hurry();
	s->started = true;
	s->stopped = false;
	r = session_start_beside(s);
	return r < 0 ? r : s->sampler->start(s->sampling);
}
