// SPDX-License-Identifier: Apache-2.0
/* Reads the stacks of language runtimes from outside, by process_vm_readv: no right on perf or BPF is needed, nothing
 * is stopped. One thread looks at a fixed rate; records cross to poll() as they do from the kernel's side. */
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/thread.h"
#include "runtime/runtime_sink.h"
#include "sampler/remote/access.h"
#include "sampler/remote/proc.h"
#include "sampler/remote/readers.h"
#include "sampler/remote/ring.h"
#include "sampler/samplers.h"

#define RING_HALF MIB(4)
#define CHECK_NS (250 * NSEC_PER_MSEC) /* does it still run the same program? */
#define FORGET_NS (5 * NSEC_PER_SEC)   /* pids that were refused are looked at again */
#define SCAN_MIN_NS (20 * NSEC_PER_MSEC)
#define SCAN_MAX_NS (500 * NSEC_PER_MSEC)
#define SCAN_SHARE 100 /* looking for new processes takes at most a hundredth of the time */
#define YOUNG_NS (2 * NSEC_PER_SEC)
#define OTHERS_NS (100 * NSEC_PER_MSEC) /* between looks at processes without a runtime */
#define END_NS (2 * NSEC_PER_SEC)       /* for the last look */
#define KNOWN_MAX 16384
#define DESCRIPTORS_MAX 16384

struct known_head { /* what every struct of abi/ begins with */
	uint64_t start_ns;
	uint32_t exec_id;
};

struct known_process {
	uint32_t pid;
	enum abi_runtime runtime;
	uint64_t info[RUNTIME_INFO_MAX / 8]; /* its struct of abi/ */
};

struct known { /* filled by the runtimes' worker, read by the looking thread; the lock guards all */
	pthread_mutex_t lock;
	struct known_process *items;
	size_t count, cap;
	struct u64map index; /* pid -> index */
	_Atomic uint64_t version;
};

struct sampler_state {
	uint32_t frequency_hz;
	pid_t *pids;
	size_t pid_count;
	bool follow_children, include_self, idle, beside;
	struct remote_ring ring;
	struct known known;
	const struct sampler_events *events;
	int stop_fd;
	pthread_t thread;
	bool runs, is_left; /* is_left: it hangs in a read, and is there until the program's end */
	uint64_t rejected;
	_Atomic uint64_t counters[ABI_COUNTER_COUNT];
	_Atomic bool recall;

	/* The looking thread's. */
	struct remote_procs procs;
	struct remote_walker *walkers[ABI_RUNTIME_COUNT]; /* of the readers that were needed */
	uint64_t adopted;                                 /* version of `known` whose processes are looked at */
	uint64_t period_ns, scan_ns, scan_period_ns, forget_ns, last_running;
	bool all;
};

static void count_up(struct sampler_state *s, enum abi_counter counter, uint64_t by)
{
	atomic_fetch_add_explicit(&s->counters[counter], by, memory_order_relaxed);
}

/* ---- records ---- */

static void fill_head(const struct remote_process *p, const struct remote_thread *t, uint64_t now_ns,
		      struct abi_sample *sample)
{
	*sample = (struct abi_sample){
		.header = { .type = ABI_RECORD_SAMPLE, .version = ABI_VERSION, .time_ns = now_ns },
		.process_start_ns = p->start_ns,
		.pid = p->pid,
		.tid = t->tid,
		.exec_id = p->exec_id,
		.user_end = ABI_END_COMPLETE, /* there are no native frames: this sampler reads none */
	};
	memcpy(sample->comm, p->comm, sizeof(sample->comm));
	memcpy(sample->thread_name, t->name, sizeof(sample->thread_name));
}

static void send_sample(struct sampler_state *s, struct abi_sample *sample, bool wake)
{
	sample->header.size = (uint32_t)(sizeof(*sample) + sample->runtime_count * sizeof(struct abi_frame));
	count_up(s, ABI_COUNTER_TICKS, 1);
	if (remote_ring_put(&s->ring, &sample->header, wake) < 0)
		count_up(s, ABI_COUNTER_LOST_RING_FULL, 1);
	else
		count_up(s, ABI_COUNTER_SAMPLES, 1);
}

static void send_process(struct sampler_state *s, const struct remote_process *p, enum abi_record_type type,
			 uint64_t now_ns)
{
	struct abi_process event = {
		.header = { .type = (__u16)type, .version = ABI_VERSION, .size = sizeof(event), .time_ns = now_ns },
		.process_start_ns = p->start_ns,
		.pid = p->pid,
		.parent_pid = p->parent_pid,
		.exec_id = p->exec_id,
	};

	memcpy(event.comm, p->comm, sizeof(event.comm));
	if (remote_ring_put(&s->ring, &event.header, type == ABI_RECORD_EXEC) < 0)
		count_up(s, ABI_COUNTER_EVENTS_LOST, 1);
}

static void send_names(struct sampler_state *s, struct remote_process *p, const struct remote_reader *reader,
		       const struct abi_sample *sample)
{
	struct remote_walker *w = s->walkers[reader->runtime];

	for (size_t i = 0; i < sample->runtime_count; i++) {
		const struct abi_frame *frame = &sample->frames[i];
		const struct abi_name *name;

		if (frame->kind != ABI_FRAME_RUNTIME)
			continue;
		name = reader->name(w, p, frame, sample->header.time_ns);
		if (!name)
			continue;
		if (remote_ring_put(&s->ring, &name->header, false) < 0) {
			count_up(s, ABI_COUNTER_NAMES_LOST, 1); /* it is asked for again next time */
		} else {
			reader->sent(w, p, frame);
			count_up(s, ABI_COUNTER_NAMES, 1);
		}
	}
}

/* ---- one thread ---- */

static void count_walk(struct sampler_state *s, const struct abi_sample *sample)
{
	count_up(s, ABI_COUNTER_RUNTIME_WALKS, 1);
	switch (sample->runtime_end) {
	case ABI_RUNTIME_END_NO_STATE:
		count_up(s, ABI_COUNTER_RUNTIME_NO_STATE, 1);
		break;
	case ABI_RUNTIME_END_READ_FAILED:
	case ABI_RUNTIME_END_BAD_CHAIN:
		count_up(s, ABI_COUNTER_RUNTIME_FAILED, 1);
		break;
	case ABI_RUNTIME_END_GAP:
		count_up(s, ABI_COUNTER_RUNTIME_GAPS, 1);
		break;
	case ABI_RUNTIME_END_CHANGED:
		count_up(s, ABI_COUNTER_RUNTIME_CHANGED, 1);
		break;
	default:
		break;
	}
}

/* NULL: it has none that is known. */
static const struct remote_reader *known_reader(struct sampler_state *s, const struct remote_process *p)
{
	const struct remote_reader *reader = remote_reader_find(p->runtime);

	if (reader && !s->walkers[reader->runtime] && reader->open(&s->walkers[reader->runtime]) < 0)
		return NULL;
	return reader;
}

/* Its stack is not known yet, or never will be. */
static void take_unread(struct sampler_state *s, struct remote_process *p, struct remote_thread *t, uint64_t now_ns)
{
	struct abi_sample sample;
	bool first = !p->met_ns;

	if (first)
		p->met_ns = now_ns;
	fill_head(p, t, now_ns, &sample);
	sample.user_end = ABI_END_NO_PROCESS; /* its mappings may be others by now */
	sample.runtime_end = ABI_RUNTIME_END_NOT_READY;
	sample.flags = ABI_SAMPLE_ASK | (first ? ABI_SAMPLE_YOUNG : 0);
	send_sample(s, &sample, now_ns - p->met_ns < YOUNG_NS);
}

static void take_thread(struct sampler_state *s, struct remote_process *p, struct remote_thread *t, uint64_t now_ns)
{
	const struct remote_reader *reader = known_reader(s, p);
	struct abi_sample *sample;
	uint16_t count;
	uint8_t end;

	if (s->beside && !reader)
		return;
	remote_thread_name(&s->procs, p, t, now_ns);
	if (!reader) {
		take_unread(s, p, t, now_ns);
		return;
	}
	sample = reader->read(s->walkers[reader->runtime], p, t);
	count = sample->runtime_count;
	end = sample->runtime_end;
	fill_head(p, t, now_ns, sample);
	sample->runtime_count = count;
	sample->runtime_end = end;
	count_walk(s, sample);
	if (!t->runnable && !sample->runtime_count)
		return; /* --idle: it does not run the runtime's code, and it does not run */
	send_names(s, p, reader, sample);
	send_sample(s, sample, false);
	if (sample->runtime_end == ABI_RUNTIME_END_READ_FAILED && !sample->runtime_count)
		p->checked_ns = 0; /* perhaps it runs another program by now */
}

/* ---- one look ---- */

/* A process that has just been started runs its own program soon. */
static void check(struct sampler_state *s, struct remote_process *p, uint64_t now_ns)
{
	if (!p->since_ns)
		p->since_ns = now_ns;
	if (now_ns - p->checked_ns < (now_ns - p->since_ns < YOUNG_NS ? s->period_ns / 2 : CHECK_NS))
		return;
	if (remote_process_check(&s->procs, p, now_ns) == 1 && !s->beside)
		send_process(s, p, ABI_RECORD_EXEC, now_ns);
}

static void take_process(struct sampler_state *s, struct remote_process *p, uint64_t now_ns)
{
	bool any = false;

	remote_process_list(&s->procs, p, now_ns);
	if (p->gone)
		return;
	p->looked_ns = now_ns;
	for (size_t i = 0; i < p->thread_count; i++) {
		struct remote_thread *t = &p->threads[i];
		int runs = remote_thread_runs(p, t, now_ns);

		if (runs == -ESRCH) {
			p->listed_ns = 0;
			continue;
		}
		any |= t->runnable;
		if (!runs && !(s->idle && p->runtime && !t->runnable))
			continue;
		s->last_running++;
		take_thread(s, p, t, now_ns);
	}
	if (any)
		check(s, p, now_ns);
}

/* Copies what the sink has been told of a process. */
static void refresh(struct sampler_state *s, struct remote_process *p, uint64_t version)
{
	struct known *table = &s->known;
	const struct known_process *k = NULL;
	struct known_head head = { 0 };
	uint32_t at;

	if (p->info_version == version)
		return;
	p->info_version = version;
	p->runtime = ABI_RUNTIME_NONE;
	pthread_mutex_lock(&table->lock);
	if (u64map_get(&table->index, p->pid, &at) == 0) {
		k = &table->items[at];
		memcpy(&head, k->info, sizeof(head));
	}
	if (k && (s->beside || !head.exec_id || head.exec_id == p->exec_id) &&
	    head.start_ns / (NSEC_PER_SEC / 100) == p->start_ns / (NSEC_PER_SEC / 100)) {
		p->runtime = k->runtime;
		memcpy(p->info, k->info, sizeof(p->info));
		if (s->beside) { /* the other sampler's names for the same program */
			p->start_ns = head.start_ns;
			p->exec_id = head.exec_id;
		}
	}
	pthread_mutex_unlock(&table->lock);
}

/* Beside another sampler: looks at the processes that the sink has been told of. */
static void adopt(struct sampler_state *s, uint64_t version)
{
	struct known *table = &s->known;

	s->adopted = version;
	pthread_mutex_lock(&table->lock);
	for (size_t i = 0; i < table->count; i++) {
		struct remote_process *p;

		/* Processes that cannot be opened are gone, or keep what the other sampler sees of them. */
		if (remote_procs_add(&s->procs, table->items[i].pid, &p) == 0)
			p->wanted = true;
	}
	pthread_mutex_unlock(&table->lock);
}

static void scan(struct sampler_state *s, uint64_t now_ns)
{
	const struct remote_scan what = { .all = s->all,
					  .children = s->follow_children,
					  .self = s->include_self ? 0 : (uint32_t)getpid() };
	uint64_t cost;

	if (now_ns - s->forget_ns >= FORGET_NS) {
		s->forget_ns = now_ns;
		u64map_clear(&s->procs.refused);
	}
	ignore(remote_procs_scan(&s->procs, &what)); /* the next one may find more */
	cost = clock_monotonic_ns(&clock_system) - now_ns;
	s->scan_ns = now_ns;
	s->scan_period_ns = MIN(MAX(cost * SCAN_SHARE, SCAN_MIN_NS), SCAN_MAX_NS);
}

static void tell_gone(struct sampler_state *s, uint64_t now_ns)
{
	bool any = false;

	for (size_t i = 0; i < s->procs.count; i++) {
		if (!s->procs.items[i]->gone)
			continue;
		if (!s->beside)
			send_process(s, s->procs.items[i], ABI_RECORD_EXIT, now_ns);
		any = true;
	}
	if (any)
		remote_procs_expire(&s->procs);
}

static void forget_names(struct sampler_state *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->walkers); i++)
		if (s->walkers[i])
			remote_reader_find((enum abi_runtime)i)->forget(s->walkers[i]);
}

static void look(struct sampler_state *s, uint64_t now_ns)
{
	uint64_t version = atomic_load(&s->known.version);

	if (atomic_exchange(&s->recall, false))
		forget_names(s);
	if (s->beside && version != s->adopted)
		adopt(s, version);
	if ((s->all || (s->follow_children && !s->beside)) && now_ns - s->scan_ns >= s->scan_period_ns)
		scan(s, now_ns);
	s->last_running = 0;
	for (size_t i = 0; i < s->procs.count; i++) {
		struct remote_process *p = s->procs.items[i];

		refresh(s, p, version);
		if (!p->runtime && p->met_ns && now_ns - p->met_ns > YOUNG_NS && now_ns - p->looked_ns < OTHERS_NS)
			continue;
		take_process(s, p, now_ns);
	}
	tell_gone(s, now_ns);
}

/* Return: false when it is time to end. */
static bool wait_until(struct sampler_state *s, uint64_t at_ns)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system), left = at_ns > now_ns ? at_ns - now_ns : 0;
	struct timespec timeout = { .tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC) };
	struct pollfd stop = { .fd = s->stop_fd, .events = POLLIN };

	return ppoll(&stop, 1, &timeout, NULL) <= 0;
}

static void *run(void *self)
{
	struct sampler_state *s = self;
	uint64_t next_ns = clock_monotonic_ns(&clock_system);

	ignore(prctl(PR_SET_TIMERSLACK, 1000UL)); /* ns; without it looks come 50 us late */
	while (wait_until(s, next_ns)) {
		uint64_t now_ns = clock_monotonic_ns(&clock_system);

		look(s, now_ns);
		next_ns += s->period_ns;
		now_ns = clock_monotonic_ns(&clock_system);
		if (now_ns > next_ns + s->period_ns) {
			uint64_t missed = (now_ns - next_ns) / s->period_ns;

			count_up(s, ABI_COUNTER_LOST_LATE, missed * s->last_running);
			next_ns += missed * s->period_ns;
		}
	}
	return NULL;
}

/* ---- the sink ---- */

static struct known_head head_of(const void *info)
{
	struct known_head head;

	memcpy(&head, info, sizeof(head));
	return head;
}

/* Of a process with several runtimes the one that was there first is read. What is known of a program that the process
 * ran before, or of another process with that pid, does not count. */
static bool may_replace(const struct known_process *k, enum abi_runtime runtime, const void *info)
{
	struct known_head old = head_of(k->info), new = head_of(info);

	return k->runtime == runtime || old.start_ns != new.start_ns || old.exec_id != new.exec_id;
}

static int sink_set(void *self, enum abi_runtime runtime, uint32_t pid, const void *info, size_t size)
{
	struct known *table = self;
	bool is_new;
	uint32_t at;
	int r = 0;

	if (!remote_reader_find(runtime))
		return -ENOSYS;
	if (size < sizeof(struct known_head) || size > RUNTIME_INFO_MAX)
		return -EINVAL;
	pthread_mutex_lock(&table->lock);
	is_new = u64map_get(&table->index, pid, &at) < 0;
	if (is_new) {
		at = (uint32_t)table->count;
		r = array_grow(&table->items, &table->cap, table->count, KNOWN_MAX);
		if (r == 0)
			r = u64map_put(&table->index, pid, at);
		table->count += r == 0;
	}
	if (r == 0 && (is_new || may_replace(&table->items[at], runtime, info))) {
		table->items[at] = (struct known_process){ .pid = pid, .runtime = runtime };
		memcpy(table->items[at].info, info, size);
		atomic_fetch_add(&table->version, 1);
	}
	pthread_mutex_unlock(&table->lock);
	return r == -E2BIG ? -ENOSPC : r;
}

static void sink_forget(void *self, enum abi_runtime runtime, uint32_t pid)
{
	struct known *table = self;
	uint32_t at;

	pthread_mutex_lock(&table->lock);
	if (u64map_get(&table->index, pid, &at) == 0 && table->items[at].runtime == runtime) {
		ignore(u64map_remove(&table->index, pid)); /* it is there */
		table->items[at] = table->items[--table->count];
		if (at < table->count)
			must(u64map_put(&table->index, table->items[at].pid, at) == 0); /* replaces: takes no room */
		atomic_fetch_add(&table->version, 1);
	}
	pthread_mutex_unlock(&table->lock);
}

static void sink_recall(void *self)
{
	struct known *table = self;
	struct sampler_state *s =
		(struct sampler_state *)(void *)((char *)table - offsetof(struct sampler_state, known));

	atomic_store(&s->recall, true);
}

static int remote_runtimes(struct sampler_state *s, struct runtime_sink *out)
{
	*out = (struct runtime_sink){
		.set = sink_set, .forget = sink_forget, .recall = sink_recall, .self = &s->known
	};
	return 0;
}

/* ---- life ---- */

static void remote_close(struct sampler_state *s);

static void remote_closep(struct sampler_state **s)
{
	remote_close(*s);
}

static int remote_probe(const struct sampler_config *cfg, struct buf *why)
{
	char byte, copy = 0;
	struct iovec from = { &byte, 1 }, to = { &copy, 1 };

	byte = 0;
	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1) {
		buf_addf(why,
			 "process_vm_readv does not work here (%s): a seccomp filter of the container? allow it, or "
			 "add the capability SYS_PTRACE",
			 strerror(errno));
		return errno == ENOSYS ? -ENOTSUP : -EPERM;
	}
	if (cfg->beside)
		return 0; /* processes that the other sampler filters out are not passed to this one */
	if (cfg->event) {
		buf_adds(why, STR("knows time and no other event"));
		return -ENOTSUP;
	}
	if (cfg->cgroup_path) {
		buf_adds(why, STR("reads processes from outside and does not know cgroups: name processes with -p"));
		return -ENOTSUP;
	}
	if (cfg->off_cpu) {
		buf_adds(why, STR("cannot see how long threads wait: leave out --off-cpu"));
		return -ENOTSUP;
	}
	if (!cfg->pid_count && geteuid()) { /* a request for the whole machine must not be answered with a part of it */
		buf_adds(why, STR("sees only your own processes, and of them only Python, Ruby, PHP and Perl: name "
				  "them with -p, give a COMMAND, "
				  "or ask for it with --sampler remote"));
		return -EPERM;
	}
	for (size_t i = 0; i < cfg->pid_count; i++)
		if (remote_access(cfg->host_root, cfg->pids[i], why) == -EPERM)
			return -EPERM;
	return 0;
}

static size_t descriptor_budget(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return DESCRIPTORS_MAX / 8;
	return MIN((size_t)limit.rlim_cur / 2, (size_t)DESCRIPTORS_MAX);
}

static int remote_open(const struct sampler_config *cfg, struct buf *why, struct sampler_state **out)
{
	scoped(remote_closep) struct sampler_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->stop_fd = s->ring.wake_fd = -1;
	s->frequency_hz = cfg->frequency_hz;
	s->period_ns = NSEC_PER_SEC / cfg->frequency_hz;
	s->follow_children = cfg->follow_children;
	s->include_self = cfg->include_self;
	s->idle = cfg->idle;
	s->beside = cfg->beside;
	s->all = !cfg->pid_count && !cfg->beside;
	pthread_mutex_init(&s->known.lock, NULL);
	u64map_init(&s->known.index, KNOWN_MAX);
	remote_procs_init(&s->procs, cfg->host_root, descriptor_budget());
	r = remote_ring_init(&s->ring, cfg->ring_bytes ? MAX(cfg->ring_bytes / 2, KIB(64)) : RING_HALF);
	if (r < 0)
		return r;
	s->pids = calloc(cfg->pid_count + 1, sizeof(*s->pids));
	s->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!s->pids || s->stop_fd < 0)
		return s->pids ? -errno : -ENOMEM;
	if (cfg->pid_count)
		memcpy(s->pids, cfg->pids, cfg->pid_count * sizeof(*s->pids));
	s->pid_count = cfg->pid_count;
	for (size_t i = 0; i < s->pid_count && !cfg->beside; i++) {
		struct remote_process *p;

		r = remote_procs_add(&s->procs, (uint32_t)s->pids[i], &p);
		if (r == -EPERM)
			return remote_access(cfg->host_root, s->pids[i], why);
		if (r == 0)
			p->wanted = true;
		else if (r != -ESRCH)
			return r;
	}
	*out = s;
	s = NULL;
	return 0;
}

static int remote_start(struct sampler_state *s)
{
	int r = pthread_create(&s->thread, NULL, run, s);

	s->runs = r == 0;
	return -r;
}

static int remote_poll(struct sampler_state *s, int timeout_ms, const struct sampler_events *events)
{
	struct pollfd wake = { .fd = s->ring.wake_fd, .events = POLLIN };
	const uint8_t *bytes;
	size_t size;
	int count = 0;

	if (timeout_ms > 0)
		ignore(poll(&wake, 1, timeout_ms)); /* its result does not matter: what is there is taken */
	size = remote_ring_take(&s->ring, &bytes);
	for (size_t at = 0; at < size; count++) {
		const struct abi_header *header = (const void *)(bytes + at);

		at += header->size;
		if (abi_record_check(header, header->size) != (int)header->size)
			s->rejected++; /* frames and texts are a stranger's */
		else if (header->type == ABI_RECORD_SAMPLE)
			events->sample(events->ctx, (const void *)header);
		else if (header->type == ABI_RECORD_NAME && events->name)
			events->name(events->ctx, (const void *)header);
		else if (header->type != ABI_RECORD_NAME)
			events->process(events->ctx, (const void *)header);
	}
	return count;
}

static int remote_fd(const struct sampler_state *s)
{
	return s->ring.wake_fd;
}

static int remote_stop(struct sampler_state *s)
{
	uint64_t one = 1;
	int r;

	if (!s->runs)
		return 0;
	s->runs = false;
	ignore(write(s->stop_fd, &one, sizeof(one))); /* it cannot run over */
	r = thread_join(s->thread, END_NS);
	s->is_left = r == -ETIMEDOUT;
	if (s->is_left)
		log_warn("the memory of a process never answers: what reads it is left behind");
	return r;
}

static void remote_counters(const struct sampler_state *s, uint64_t out[ABI_COUNTER_COUNT])
{
	for (size_t i = 0; i < ABI_COUNTER_COUNT; i++)
		out[i] = atomic_load_explicit(&s->counters[i], memory_order_relaxed);
	out[ABI_COUNTER_LOST_REJECTED] += s->rejected;
}

static void remote_close(struct sampler_state *s)
{
	if (!s)
		return;
	ignore(remote_stop(s)); /* joined already, or never ran */
	if (s->is_left)
		return; /* it uses all of this when it goes on */
	for (size_t i = 0; i < ARRAY_SIZE(s->walkers); i++)
		if (s->walkers[i])
			remote_reader_find((enum abi_runtime)i)->close(s->walkers[i]);
	remote_procs_release(&s->procs);
	remote_ring_release(&s->ring);
	u64map_release(&s->known.index);
	free(s->known.items);
	closep(&s->stop_fd);
	free(s->pids);
	free(s);
}

const struct sampler sampler_remote = {
	.name = "remote",
	.only_runtimes = true,
	.help = "reads the stacks of Python, Ruby, PHP and Perl from outside of the process; needs no right on perf or "
		"BPF",
	.probe = remote_probe,
	.open = remote_open,
	.start = remote_start,
	.poll = remote_poll,
	.fd = remote_fd,
	.stop = remote_stop,
	.runtimes = remote_runtimes,
	.counters = remote_counters,
	.close = remote_close,
};
