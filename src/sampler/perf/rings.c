/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/rings.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "sampler/event.h"

#define RING_MIN KIB(64)
#define RING_MAX MIB(8)
#define RING_LEAST KIB(16)  /* where memory that may be locked is short */
#define RECORD_WORST KIB(2) /* without its stack: two call chains */
#define FOLLOW_NS (2 * NSEC_PER_SEC)
#define EVENTS_MAX 65536 /* of one CPU: a thread each */
#define TASK_TURNS 4     /* how often threads that were started meanwhile are looked for */

#if defined(__x86_64__)
/* ax to ip, r8 to r15: linux, arch/x86/include/uapi/asm/perf_regs.h */
#define REGS_MASK 0xff01ffULL
#else
#define REGS_MASK 0x1ffffffffULL
#endif

size_t perf_rings_bytes(const struct perf_rings_config *cfg, unsigned int cpu_count)
{
	size_t want = cfg->sampling->ring_bytes, bytes = RING_MIN;

	if (want) { /* of all */
		want = MIN(want / MAX(cpu_count, 1U), MIB(256));
		bytes = RING_LEAST;
	} else {
		want = (RECORD_WORST + cfg->stack_bytes) * (size_t)cfg->sampling->frequency_hz / 2; /* half a second */
		want = MIN(want, RING_MAX);
	}
	while (bytes < want)
		bytes *= 2;
	return bytes;
}

static void set_attr(const struct perf_rings *r, struct perf_event_attr *attr)
{
	event_attr(r->event, r->cfg.sampling->frequency_hz, attr);
	attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN;
	attr->exclude_callchain_user = !r->cfg.with_chain;
	if (r->cfg.stack_bytes) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = REGS_MASK;
		attr->sample_stack_user = r->cfg.stack_bytes;
	}
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->exclude_idle = 1;
	attr->task = attr->comm = attr->comm_exec = attr->mmap = attr->mmap2 = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(r->bytes / 2);
	attr->inherit = r->as_tasks;
	if (r->without_kernel)
		attr->exclude_kernel = 1;
}

/* @tid: -1: whatever runs on @cpu. Return: a descriptor or -errno. */
static int open_event(const struct perf_rings *r, pid_t tid, unsigned int cpu)
{
	struct perf_event_attr attr;
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;
	int fd;

	set_attr(r, &attr);
	if (r->cgroup >= 0) {
		tid = r->cgroup;
		flags |= PERF_FLAG_PID_CGROUP;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, (int)cpu, -1, flags);
	return fd < 0 ? -errno : fd;
}

/* ---- one ring ---- */

static void ring_close(struct perf_ring *ring)
{
	for (size_t i = 0; i < ring->other_count; i++)
		closep(&ring->others[i]);
	free(ring->others);
	if (ring->base)
		munmap(ring->base, ring->size + (size_t)sysconf(_SC_PAGESIZE));
	closep(&ring->fd);
	*ring = (struct perf_ring){ .fd = -1 };
}

/* Where less memory may be locked (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK) the rings are smaller. */
static int ring_map(struct perf_rings *r, struct perf_ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *base;

	for (;; r->bytes /= 2) {
		base = mmap(NULL, r->bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
		if (base != MAP_FAILED)
			break;
		if ((errno != EPERM && errno != ENOMEM) || r->bytes <= MAX((size_t)RING_LEAST, page))
			return errno == EPERM ? -ENOLCK : -errno;
	}
	ring->base = base;
	ring->size = r->bytes;
	ring->at = ring->end = 0;
	return 0;
}

static int ring_add_event(const struct perf_rings *r, struct perf_ring *ring, int fd)
{
	if (r->running && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	if (array_grow(&ring->others, &ring->other_cap, ring->other_count, EVENTS_MAX) < 0)
		return -ENOMEM;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
		return -errno;
	ring->others[ring->other_count++] = fd;
	return 0;
}

/* The first event of a CPU owns its ring. The descriptor is taken over. */
static int ring_take_event(struct perf_rings *r, struct perf_ring *ring, int fd)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLET }; /* one whose thread has ended hangs up for good */
	int e;

	if (ring->fd >= 0) {
		e = ring_add_event(r, ring, fd);
		if (e < 0)
			closep(&fd);
		return e;
	}
	ring->fd = fd;
	e = ring_map(r, ring);
	if (e == 0 && epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &want) < 0)
		e = -errno;
	if (e == 0 && r->running && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		e = -errno;
	if (e < 0)
		ring_close(ring);
	return e;
}

/* ---- what is sampled ---- */

/* Return: 0, -ESRCH when it has ended, -ENODEV when the CPU is just going, -errno. */
static int open_thread(struct perf_rings *r, pid_t tid, unsigned int cpu)
{
	int fd = open_event(r, tid, cpu);

	r->used = MAX(r->used, (size_t)cpu + 1);
	return fd < 0 ? fd : ring_take_event(r, &r->items[cpu], fd);
}

static int open_thread_everywhere(struct perf_rings *r, pid_t tid, const struct cpus *on)
{
	int e = 0;

	for (unsigned int cpu = 0; cpu < r->count && (e == 0 || e == -ENODEV); cpu++)
		if (cpus_has(on, cpu))
			e = open_thread(r, tid, cpu);
	return e == -ENODEV ? 0 : e;
}

struct tids {
	pid_t *items;
	size_t count, cap;
};

static void tids_release(struct tids *t)
{
	free(t->items);
}

static bool has_tid(const struct tids *t, pid_t tid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i] == tid)
			return true;
	return false;
}

/* Those of @pid that @known does not have, and there they are then. Return: how many, or -errno. */
static int open_threads(struct perf_rings *r, pid_t pid, const struct cpus *on, struct tids *known)
{
	char path[64];
	struct dirent *entry;
	int opened = 0, e = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (e >= 0 && (entry = readdir(dir))) {
		uint64_t tid;

		if (str_to_u64(str_of(entry->d_name), 1, INT32_MAX, &tid) < 0 || has_tid(known, (pid_t)tid))
			continue;
		e = array_grow(&known->items, &known->cap, known->count, EVENTS_MAX);
		if (e < 0)
			break;
		known->items[known->count++] = (pid_t)tid;
		e = open_thread_everywhere(r, (pid_t)tid, on);
		opened += e == 0;
		e = e == -ESRCH ? 0 : e; /* it has ended since */
	}
	closedir(dir);
	return e < 0 ? e : opened;
}

/* A thread that is started while its process is looked at is inherited, or met in the next turn. */
static int open_process(struct perf_rings *r, pid_t pid, const struct cpus *on)
{
	scoped(tids_release) struct tids known = { 0 };
	int opened = 1, all = 0;

	for (int turn = 0; turn < TASK_TURNS && opened > 0; turn++) {
		opened = open_threads(r, pid, on, &known);
		all += MAX(opened, 0);
	}
	return opened < 0 && opened != -ESRCH ? opened : all ? 0 : -ESRCH;
}

/* On the CPUs of @on, which have none yet. */
static int open_all(struct perf_rings *r, const struct cpus *on)
{
	const struct sampler_config *cfg = r->cfg.sampling;
	int e = r->as_tasks ? -ESRCH : 0, one;

	for (size_t i = 0; r->as_tasks && i < cfg->pid_count; i++) {
		one = open_process(r, cfg->pids[i], on);
		if (one < 0 && one != -ESRCH)
			return one;
		e = one == 0 ? 0 : e;
	}
	for (unsigned int cpu = 0; !r->as_tasks && cpu < r->count; cpu++) {
		one = cpus_has(on, cpu) ? open_thread(r, -1, cpu) : 0;
		if (one < 0 && one != -ENODEV) /* ENODEV: went offline just now */
			return one;
	}
	return e;
}

static void close_all(struct perf_rings *r)
{
	for (size_t i = 0; i < r->count; i++)
		ring_close(&r->items[i]);
}

static int explain(const struct perf_rings *r, int error, struct buf *why)
{
	const struct sampler_config *cfg = r->cfg.sampling;

	if (error == -ESRCH) {
		buf_adds(why, STR("none of these processes runs"));
	} else if (error == -ENOLCK) {
		buf_adds(why, STR("too little memory may be locked for the rings of perf: raise "
				  "kernel.perf_event_mlock_kb or ulimit -l"));
		return -EPERM;
	} else if (error == -EMFILE) {
		buf_adds(why,
			 STR("too many threads: each needs an open file for every CPU; raise ulimit -n, or leave out "
			     "-p"));
	} else if ((error == -EACCES || error == -EPERM) && !r->as_tasks && geteuid()) {
		buf_adds(why, STR("without rights perf samples only processes that are named, by -p or a COMMAND, or "
				  "kernel.perf_event_paranoid would have to be 0 or less"));
		return -EPERM;
	} else if (cfg->cgroup_path && (error == -EINVAL || error == -EBADF)) {
		buf_addf(why,
			 "perf cannot sample the cgroup %s: the kernel has no CONFIG_CGROUP_PERF, or perf_event is a "
			 "hierarchy of cgroup v1 here",
			 cfg->cgroup_path);
		return -ENOTSUP;
	} else {
		return event_explain(r->event, error, why);
	}
	return error;
}

/* Code of the kernel is shown to those with CAP_PERFMON, or where kernel.perf_event_paranoid is 1 or less. */
static int open_permitted(struct perf_rings *r, const struct cpus *online, struct buf *why)
{
	int e = open_all(r, online);

	if ((e != -EACCES && e != -EPERM) || !r->as_tasks || (r->event && r->event->without_user))
		return e;
	close_all(r);
	r->without_kernel = true;
	e = open_all(r, online);
	if (e == 0)
		buf_adds(why,
			 STR("time in the kernel is left out: kernel.perf_event_paranoid is above 1 and there is no "
			     "CAP_PERFMON"));
	return e;
}

static int open_cgroup(struct perf_rings *r, struct buf *why)
{
	const char *path = r->cfg.sampling->cgroup_path;

	if (!path)
		return 0;
	r->cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->cgroup >= 0)
		return 0;
	buf_addf(why, "%s: %s", path, strerror(errno));
	return -errno;
}

int perf_rings_open(struct perf_rings *r, const struct perf_rings_config *cfg, struct buf *why)
{
	struct cpus online;
	int cpus = cpus_online(cfg->sampling->host_root, &online), e;

	*r = (struct perf_rings){ .epoll = -1, .cgroup = -1 };
	if (cpus < 0)
		return cpus;
	r->cfg = *cfg;
	r->event = cfg->sampling->event;
	r->host_root = cfg->sampling->host_root;
	r->as_tasks = cfg->sampling->pid_count && !cfg->sampling->cgroup_path;
	r->bytes = perf_rings_bytes(cfg, (unsigned int)cpus);
	r->items = malloc(CPUS_MAX * sizeof(*r->items));
	r->scratch = malloc(PERF_RECORD_SIZE_MAX);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!r->items || !r->scratch || r->epoll < 0) {
		e = r->epoll < 0 ? -errno : -ENOMEM;
		perf_rings_close(r);
		return e;
	}
	r->count = CPUS_MAX;
	for (size_t i = 0; i < r->count; i++)
		r->items[i] = (struct perf_ring){ .fd = -1 };
	e = open_cgroup(r, why);
	if (e == 0) {
		e = open_permitted(r, &online, why);
		if (e < 0)
			e = explain(r, e, why);
	}
	if (e < 0) {
		perf_rings_close(r);
		return e;
	}
	r->online = online;
	return cpus;
}

void perf_rings_close(struct perf_rings *r)
{
	if (!r->items && !r->scratch) /* all zero */
		return;
	if (r->items)
		close_all(r);
	free(r->items);
	free(r->scratch);
	closep(&r->epoll);
	closep(&r->cgroup);
	*r = (struct perf_rings){ .epoll = -1, .cgroup = -1 };
}

/* ---- while it runs ---- */

static int all_ioctl(struct perf_rings *r, unsigned long request)
{
	int failed = 0;

	for (size_t cpu = 0; cpu < r->used; cpu++) {
		struct perf_ring *ring = &r->items[cpu];

		if (ring->fd >= 0 && ioctl(ring->fd, request, 0) < 0)
			failed = -errno;
		for (size_t i = 0; i < ring->other_count; i++)
			if (ioctl(ring->others[i], request, 0) < 0)
				failed = -errno;
	}
	return failed;
}

int perf_rings_start(struct perf_rings *r)
{
	int e = all_ioctl(r, PERF_EVENT_IOC_ENABLE);

	r->running = e == 0;
	return e;
}

void perf_rings_stop(struct perf_rings *r)
{
	r->running = false;
	ignore(all_ioctl(r, PERF_EVENT_IOC_DISABLE)); /* the events end with their descriptors at the latest */
}

/* A CPU that is gone takes its events with it for good: when it returns it needs new ones. What its ring still holds
 * was read before. */
void perf_rings_follow(struct perf_rings *r, uint64_t now_ns)
{
	struct cpus online, come = { 0 };
	bool any = false;

	if (!r->running || now_ns - r->checked_ns < FOLLOW_NS)
		return;
	r->checked_ns = now_ns;
	if (cpus_online(r->host_root, &online) < 0)
		return; /* asked again the next time */
	for (unsigned int cpu = 0; cpu < r->count; cpu++) {
		if (!cpus_has(&online, cpu) && r->items[cpu].fd >= 0)
			ring_close(&r->items[cpu]);
		if (cpus_has(&online, cpu) && !cpus_has(&r->online, cpu)) {
			come.bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
			any = true;
		}
	}
	r->online = online;
	if (any)
		ignore(open_all(r,
				&come)); /* the CPU stays without, and the counters of the window say nothing of it */
}

int perf_rings_wait(struct perf_rings *r, int timeout_ms)
{
	struct epoll_event events[16];

	/* being stopped and continued interrupts the wait even without a signal handler: signal(7) */
	if (epoll_wait(r->epoll, events, ARRAY_SIZE(events), timeout_ms) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* ---- records ---- */

static struct perf_event_mmap_page *head_of(const struct perf_ring *ring)
{
	return (struct perf_event_mmap_page *)(void *)ring->base;
}

void perf_rings_look(struct perf_rings *r)
{
	for (size_t cpu = 0; cpu < r->used; cpu++)
		if (r->items[cpu].base)
			r->items[cpu].end = __atomic_load_n(&head_of(&r->items[cpu])->data_head, __ATOMIC_ACQUIRE);
}

static const uint8_t *data_at(const struct perf_ring *ring, uint64_t at)
{
	return ring->base + sysconf(_SC_PAGESIZE) + (at & (ring->size - 1));
}

static void give_back(struct perf_ring *ring)
{
	__atomic_store_n(&head_of(ring)->data_tail, ring->at, __ATOMIC_RELEASE);
}

/* Records and the rings' sizes are multiples of eight: a header is always in one piece. Return: the whole record's
 * size, 0 when there is none, -EBADMSG. */
static int peek(const struct perf_ring *ring)
{
	struct perf_event_header header;

	if (!ring->base || ring->at == ring->end)
		return 0;
	memcpy(&header, data_at(ring, ring->at), sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > ring->end - ring->at)
		return -EBADMSG;
	return header.size;
}

/* In one piece. */
static const void *record_at(struct perf_rings *r, const struct perf_ring *ring, size_t size)
{
	const uint8_t *from = data_at(ring, ring->at);
	size_t left = ring->size - (ring->at & (ring->size - 1));

	if (size <= left)
		return from;
	memcpy(r->scratch, from, left);
	memcpy(r->scratch + left, data_at(ring, 0), size - left);
	return r->scratch;
}

int perf_rings_next(struct perf_rings *r, uint64_t before_ns, const void **out)
{
	struct perf_ring *oldest = NULL;
	uint64_t oldest_ns = 0;
	int size = 0;

	if (r->last && r->last->base)
		give_back(r->last);
	r->last = NULL;
	for (size_t cpu = 0; cpu < r->used; cpu++) {
		struct perf_ring *ring = &r->items[cpu];
		int one = peek(ring);
		uint64_t time_ns;

		if (one < 0) {
			ring->at = ring->end;
			give_back(ring);
			return one;
		}
		if (!one)
			continue;
		time_ns = perf_record_time(record_at(r, ring, (size_t)one), (size_t)one);
		if (time_ns >= before_ns || (oldest && time_ns >= oldest_ns))
			continue;
		oldest = ring;
		oldest_ns = time_ns;
		size = one;
	}
	if (!oldest)
		return 0;
	*out = record_at(r, oldest, (size_t)size);
	oldest->at += (uint64_t)size;
	r->last = oldest;
	return size;
}
