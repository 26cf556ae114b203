/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/aggregate.h"
#include "agent/build_window.h"
#include "agent/metadata.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/random.h"
#include "proc/cpustat.h"
#include "proc/proc.h"
#include "symbol/symbol.h"

#define FILE_DESCRIPTORS_MAX 1024
/* How long a process is remembered after its exit: no record older than this can still be in the ring. */
#define EXIT_GRACE_NS (2 * NSEC_PER_SEC)
#define EXPIRE_INTERVAL_NS (NSEC_PER_SEC / 2)

/* One window on its way from the reader to the worker. */
struct job {
	struct aggregate *aggregate;          /* owned */
	uint64_t start_ns, end_ns;            /* wall clock */
	uint64_t counters[ABI_COUNTER_COUNT]; /* since the window's start */
	uint64_t dropped;
	struct cpustat cpu_start, cpu_end;
	uint64_t number;
};

/* The frames of one sample with what their addresses mean. */
struct placed {
	struct aggregate_frame frames[ABI_FRAMES_MAX];
	size_t count;
	uint8_t user_end;
	bool has_jit;
};

struct session {
	struct session_config cfg; /* both threads, never changed after open */
	const struct sampler *sampler;
	struct files *files; /* both threads; locked inside */
	uint64_t run_id[2];
	char *container; /* copy of cfg.container */

	/* The reader's. */
	struct sampler_state *sampling;
	struct proc_table *processes;
	struct aggregate *aggregate;
	struct placed placed; /* of the sample being taken in */
	uint64_t start_monotonic_ns, start_wall_ns, stop_monotonic_ns;
	uint64_t window_start_ns, expired_ns; /* monotonic */
	uint64_t window_number;
	uint64_t window_counters[ABI_COUNTER_COUNT]; /* at the window's start */
	struct cpustat cpu_window;                   /* at the window's start; all zero: unknown */
	uint64_t samples, dropped;
	uint64_t filtered, window_filtered; /* by container, here: in all, up to the window's start */
	bool started, stopped, worker_runs;

	/* The worker's. */
	struct symbols *symbols;
	pthread_t worker;
	struct queue jobs; /* of struct job */

	/* Both threads'. */
	_Atomic uint64_t dropped_windows, dropped_window_samples;
};

static void job_free(struct job *job)
{
	if (!job)
		return;
	aggregate_free(job->aggregate);
	free(job);
}

static void job_freep(struct job **job)
{
	job_free(*job);
}

static void count_dropped(struct session *s, const struct aggregate *a)
{
	atomic_fetch_add(&s->dropped_windows, 1);
	atomic_fetch_add(&s->dropped_window_samples, a->total);
}

/* ---- worker ---- */

static int set_names(const struct session *s, struct window *w)
{
	struct utsname host;
	const char *command = s->cfg.command;
	int r = uname(&host) < 0 ? -errno : 0;

	if (r == 0)
		r = window_set_text(&w->host, str_of(host.nodename));
	if (r == 0)
		r = window_set_text(&w->kernel_release, str_of(host.release));
	if (r == 0)
		r = window_set_text(&w->agent_version, STR(HEARTH_VERSION));
	if (r == 0)
		r = window_set_text(&w->sampler, str_of(s->sampler->name));
	if (r == 0)
		r = window_set_text(&w->unwinder, STR("fp"));
	if (r == 0 && command)
		r = window_set_text(&w->command, str_of(command));
	if (r == 0 && s->cfg.service_name)
		r = window_add_label(w, STR("group"), str_of(s->cfg.service_name));
	return r;
}

static const char *const counter_names[] = {
#define X(id, name, help) [ABI_COUNTER_##id] = name,
	ABI_COUNTERS(X)
#undef X
};

static int set_counters(const struct job *job, struct window *w)
{
	int r = window_set_counter(w, STR("lost_aggregate"), job->dropped);

	for (size_t i = 0; i < ABI_COUNTER_COUNT && r == 0; i++)
		if (i != ABI_COUNTER_SAMPLES) /* `samples` is what the window holds; the difference is what was lost */
			r = window_set_counter(w, str_of(counter_names[i]), job->counters[i]);
	return r;
}

static int set_metadata(const struct session *s, struct window *w)
{
	scoped(buf_release) struct buf json = BUF_INIT(MIB(1));
	struct metadata_config cfg = { .host_root = s->cfg.host_root,
				       .spawn_wall_ns = s->start_wall_ns,
				       .now_wall_ns = w->end_ns,
				       .frequency_hz = s->cfg.sampling.frequency_hz };
	int r;

	if (!s->cfg.want_metadata)
		return 0;
	r = metadata_json(&cfg, &json);
	return r < 0 ? r : window_set_text(&w->metadata_json, buf_str(&json));
}

static int finish_job(struct session *s, const struct job *job, struct window *w)
{
	int r;

	w->start_ns = job->start_ns;
	w->end_ns = job->end_ns;
	w->frequency_hz = s->cfg.sampling.frequency_hz;
	w->cpu_count = job->cpu_end.cpu_count;
	w->run_id[0] = s->run_id[0];
	w->run_id[1] = s->run_id[1];
	w->cycle_id = job->number;
	w->busy_ns = cpustat_busy_ns(&job->cpu_start, &job->cpu_end);
	w->cpu_average = cpustat_busy_percent(&job->cpu_start, &job->cpu_end);
	w->memory_average = cpustat_memory_percent(s->cfg.host_root);
	r = set_names(s, w);
	if (r == 0)
		r = set_counters(job, w);
	if (r == 0)
		r = set_metadata(s, w);
	return r < 0 ? r : build_window(job->aggregate, s->symbols, s->cfg.sampling.frequency_hz, w);
}

static void *worker_main(void *argument)
{
	struct session *s = argument;

	for (;;) {
		scoped(job_freep) struct job *job = queue_take(&s->jobs);
		scoped(window_release) struct window w = { 0 };
		int r;

		if (!job)
			return NULL;
		r = finish_job(s, job, &w);
		if (r < 0) {
			count_dropped(s, job->aggregate);
			log_error("a window is lost", LOG_ERR(r), LOG_U64("samples", job->aggregate->total));
			continue;
		}
		if (s->cfg.on_window)
			s->cfg.on_window(s->cfg.ctx, &w);
	}
}

/* ---- reader ---- */

static bool container_wanted(const struct session *s, const struct proc *p)
{
	struct str wanted = str_of(s->container);

	if (!s->container)
		return true;
	return (p->container && str_eq(str_of(p->container), wanted)) ||
	       (wanted.len >= 12 && str_starts(str_of(p->container_id), wanted));
}

static int add_process_row(struct session *s, struct proc *p, const char *comm, bool has_jit, uint32_t *out)
{
	struct aggregate *a = s->aggregate;
	struct aggregate_process row = { .pid = p->pid,
					 .generation = p->generation,
					 .start_ns = p->start_ns,
					 .perf_map_fd = -1,
					 .is_kernel = p->is_kernel };
	int r = intern_add(&a->strings, str_n(comm, strnlen(comm, ABI_COMM_SIZE)), &row.comm);

	if (r == 0)
		r = intern_add(&a->strings, str_of(p->container), &row.container);
	if (r == 0)
		r = aggregate_add_process(a, &row, out);
	if (r == 0 && has_jit && a->processes[*out].perf_map_fd < 0) {
		int fd = proc_perf_map_fd(s->processes, p);

		if (fd >= 0)
			a->processes[*out].perf_map_fd =
				fcntl(fd, F_DUPFD_CLOEXEC, 0); /* -1: frames stay without names */
	}
	return r;
}

/* What an address of the process means is decided here, while the process lives. */
static struct aggregate_frame place_frame(struct session *s, struct proc *p, const struct abi_frame *f, uint64_t now_ns)
{
	struct aggregate_frame out = { .kind = f->kind, .flags = f->flags, .at = f->a };
	struct proc_place place = { 0 };

	if (f->kind != ABI_FRAME_USER)
		return out;
	proc_find_place(s->processes, p, f->a - (f->flags & ABI_FRAME_RETURN ? 1 : 0), now_ns, &place);
	if (place.kind == PROC_PLACE_FILE || place.kind == PROC_PLACE_VDSO) {
		out.kind = ABI_FRAME_NATIVE;
		out.owner = place.file_id;
		out.at = place.offset + (f->flags & ABI_FRAME_RETURN ? 1 : 0);
	} else if (place.kind == PROC_PLACE_ANONYMOUS) {
		out.kind = ABI_FRAME_JIT;
	}
	return out;
}

/* A frame that was found by guessing and lies in no code we know of is no frame: the stack is cut there. */
static void place_frames(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	struct placed *out = &s->placed;
	uint64_t now_ns = clock_monotonic_ns(s->cfg.clock);

	out->has_jit = false;
	out->user_end = sample->user_end;
	for (out->count = 0; out->count < sample->frame_count; out->count++) {
		struct aggregate_frame *f = &out->frames[out->count];

		*f = place_frame(s, p, &sample->frames[out->count], now_ns);
		if (f->kind == ABI_FRAME_USER && f->flags & ABI_FRAME_GUESSED) {
			out->user_end = ABI_END_NO_FRAME_POINTER;
			return;
		}
		out->has_jit |= f->kind == ABI_FRAME_JIT;
	}
}

/* From the root (last) to the leaf (first). */
static int add_frames(struct session *s, const struct abi_sample *sample, uint32_t process,
		      struct aggregate_sample *row)
{
	struct aggregate *a = s->aggregate;

	row->root_frame = AGGREGATE_NO_FRAME;
	row->user_end = s->placed.user_end;
	for (size_t i = s->placed.count; i-- > 0;) {
		struct aggregate_frame *f = &s->placed.frames[i];
		uint32_t frame;
		int r;

		if (f->kind == ABI_FRAME_JIT || f->kind == ABI_FRAME_USER)
			f->owner = process;
		r = aggregate_add_frame(a, f, &frame);
		if (r == 0 && i + 1 == s->placed.count && i >= sample->kernel_count)
			row->root_frame = frame;
		if (r == 0)
			r = aggregate_add_stack(a, row->stack, frame, &row->stack);
		if (r < 0)
			return r;
	}
	return 0;
}

static int aggregate_sample(struct session *s, struct proc *p, const struct abi_sample *sample)
{
	struct aggregate_sample row = { .tid = sample->tid,
					.has_user = !(sample->flags & ABI_SAMPLE_KERNEL_THREAD),
					.kernel_cut = (sample->flags & ABI_SAMPLE_KERNEL_CUT) != 0 };
	int r;

	place_frames(s, p, sample);
	r = add_process_row(s, p, sample->comm, s->placed.has_jit, &row.process);
	if (r == 0)
		r = intern_add(&s->aggregate->strings,
			       str_n(sample->thread_name, strnlen(sample->thread_name, ABI_COMM_SIZE)),
			       &row.thread_name);
	if (r == 0)
		r = add_frames(s, sample, row.process, &row);
	return r < 0 ? r : aggregate_add_sample(s->aggregate, &row);
}

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct session *s = ctx;
	struct proc *p = proc_get(s->processes, sample->pid, sample->process_start_ns, sample->exec_id, sample->comm);

	if (p && !container_wanted(s, p)) {
		s->filtered++;
		return;
	}
	if (!p || aggregate_sample(s, p, sample) < 0) {
		s->aggregate->dropped++;
		s->dropped++;
		return;
	}
	s->samples++;
}

static void on_process(void *ctx, const struct abi_process *event)
{
	struct session *s = ctx;

	proc_event(s->processes, event);
}

static void on_mapping(void *ctx, const struct abi_mapping *mapping)
{
	struct session *s = ctx;

	proc_mapping(s->processes, mapping);
}

/* Wall time is read once, at the start: a clock that jumps moves no window. */
static uint64_t wall_of(const struct session *s, uint64_t monotonic_ns)
{
	return s->start_wall_ns + (monotonic_ns - s->start_monotonic_ns);
}

static int cut_window(struct session *s, uint64_t now_ns)
{
	scoped(job_freep) struct job *job = calloc(1, sizeof(*job));
	struct aggregate *next = NULL;
	uint64_t counters[ABI_COUNTER_COUNT];
	void *dropped;
	int r = job ? aggregate_new(&next) : -ENOMEM;

	if (r < 0)
		return r; /* the window goes on and is cut at the next step */
	s->sampler->counters(s->sampling, counters);
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++) {
		job->counters[i] = counters[i] - s->window_counters[i];
		s->window_counters[i] = counters[i];
	}
	job->counters[ABI_COUNTER_FILTERED] += s->filtered - s->window_filtered;
	s->window_filtered = s->filtered;
	job->start_ns = wall_of(s, s->window_start_ns);
	job->end_ns = wall_of(s, now_ns);
	job->dropped = s->aggregate->dropped;
	job->number = s->window_number++;
	job->cpu_start = s->cpu_window;
	if (cpustat_read(s->cfg.host_root, &job->cpu_end) < 0)
		job->cpu_end = (struct cpustat){ 0 }; /* busy time and load are unknown, in the next window too */
	s->cpu_window = job->cpu_end;
	job->aggregate = s->aggregate;
	s->aggregate = next;
	s->window_start_ns = now_ns;
	queue_put(&s->jobs, job, &dropped);
	job = NULL;
	if (dropped) {
		count_dropped(s, ((struct job *)dropped)->aggregate);
		job_free(dropped);
	}
	return 0;
}

int session_step(struct session *s, int timeout_ms)
{
	const struct sampler_events events = {
		.sample = on_sample, .process = on_process, .mapping = on_mapping, .ctx = s
	};
	uint64_t before_ns = clock_monotonic_ns(s->cfg.clock), now_ns;
	int r;

	must(s->started && !s->stopped);
	r = s->sampler->poll(s->sampling, timeout_ms, &events);
	now_ns = clock_monotonic_ns(s->cfg.clock);
	if (before_ns > EXIT_GRACE_NS && now_ns - s->expired_ns >= EXPIRE_INTERVAL_NS) {
		s->expired_ns = now_ns;
		proc_expire(s->processes, before_ns - EXIT_GRACE_NS);
	}
	if (s->cfg.window_ns && now_ns - s->window_start_ns >= s->cfg.window_ns && cut_window(s, now_ns) < 0)
		log_warn("out of memory: the window goes on");
	return r;
}

/* ---- life ---- */

static int open_sampler(struct session *s, struct buf *why)
{
	int r = 0;

	s->sampler = s->cfg.sampler;
	if (!s->sampler)
		r = sampler_choose(&s->cfg.sampling, why, &s->sampler);
	if (r == 0)
		buf_clear(why);
	return r < 0 ? r : s->sampler->open(&s->cfg.sampling, why, &s->sampling);
}

/* Caches of descriptors take half of what the process may have: the rest is for reading /proc. */
static size_t descriptor_budget(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FILE_DESCRIPTORS_MAX;
	return (size_t)MIN(limit.rlim_cur / 4, (rlim_t)FILE_DESCRIPTORS_MAX);
}

static int open_parts(struct session *s)
{
	const struct proc_config proc_cfg = { .host_root = s->cfg.host_root,
					      .container_socket = s->cfg.container_socket,
					      .recorded = s->sampler->is_replay };
	const struct symbols_config symbols_cfg = { .host_root = s->cfg.host_root,
						    .descriptor_max = descriptor_budget() };
	int r = files_open(descriptor_budget(), &s->files);

	if (r == 0)
		r = proc_table_open(&proc_cfg, s->files, &s->processes);
	if (r == 0)
		r = symbols_open(&symbols_cfg, s->files, &s->symbols);
	if (r == 0)
		r = aggregate_new(&s->aggregate);
	return r;
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
	s->stopped = true; /* nothing to stop yet */
	s->run_id[0] = random_u64();
	s->run_id[1] = random_u64();
	r = queue_init(&s->jobs);
	if (r < 0) {
		free(s);
		s = NULL;
		return r;
	}
	if (cfg->container) {
		s->container = str_dup(str_of(cfg->container));
		if (!s->container)
			return -ENOMEM;
	}
	r = open_sampler(s, why);
	if (r < 0)
		return r;
	r = open_parts(s);
	if (r < 0) {
		buf_addf(why, "cannot prepare the session: %s", strerror(-r));
		return r;
	}
	*out = s;
	s = NULL;
	return 0;
}

int session_start(struct session *s)
{
	int r;

	s->start_monotonic_ns = s->window_start_ns = clock_monotonic_ns(s->cfg.clock);
	s->start_wall_ns = clock_wall_ns(s->cfg.clock);
	if (cpustat_read(s->cfg.host_root, &s->cpu_window) < 0)
		s->cpu_window = (struct cpustat){ 0 };
	r = pthread_create(&s->worker, NULL, worker_main, s);
	if (r)
		return -r;
	s->worker_runs = true;
	s->started = true;
	s->stopped = false;
	return s->sampler->start(s->sampling);
}

static int drain(struct session *s)
{
	const struct sampler_events events = {
		.sample = on_sample, .process = on_process, .mapping = on_mapping, .ctx = s
	};
	int r;

	do
		r = s->sampler->poll(s->sampling, 0, &events);
	while (r > 0);
	return r == -ENODATA ? 0 : r;
}

int session_stop(struct session *s)
{
	int r;

	if (s->stopped)
		return 0;
	s->stopped = true;
	r = s->sampler->stop(s->sampling);
	s->stop_monotonic_ns = clock_monotonic_ns(s->cfg.clock);
	if (r == 0)
		r = drain(s);
	if (cut_window(s, s->stop_monotonic_ns) < 0) {
		count_dropped(s, s->aggregate);
		r = -ENOMEM;
	}
	queue_close(&s->jobs);
	if (s->worker_runs)
		pthread_join(s->worker, NULL);
	s->worker_runs = false;
	return r;
}

void session_stats(const struct session *s, struct session_stats *out)
{
	uint64_t end_ns = s->stopped ? s->stop_monotonic_ns : clock_monotonic_ns(s->cfg.clock);

	*out = (struct session_stats){ .sampler = s->sampler,
				       .samples = s->samples,
				       .lost = s->dropped + atomic_load(&s->dropped_window_samples),
				       .dropped_windows = atomic_load(&s->dropped_windows),
				       .elapsed_ns = end_ns - s->start_monotonic_ns };
	s->sampler->counters(s->sampling, out->counters);
	out->counters[ABI_COUNTER_FILTERED] += s->filtered;
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++)
		if (str_starts(str_of(counter_names[i]), STR("lost_")))
			out->lost += out->counters[i];
}

void session_close(struct session *s)
{
	if (!s)
		return;
	ignore(session_stop(s)); /* a caller who wants to know stops first */
	if (s->sampling)
		s->sampler->close(s->sampling);
	proc_table_close(s->processes);
	symbols_close(s->symbols);
	files_close(s->files);
	aggregate_free(s->aggregate);
	queue_close(&s->jobs);
	for (struct job *job; (job = queue_take(&s->jobs));) /* only when the worker never ran */
		job_free(job);
	queue_release(&s->jobs);
	free(s->container);
	free(s);
}
