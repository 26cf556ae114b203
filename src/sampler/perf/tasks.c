/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/tasks.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/proc_read.h"

#define PROCESSES_MAX 262144
#define THREADS_MAX 262144
#define MAPS_MAX 256 /* executable mappings that wait for a first sample */
#define SWEEP_COUNT 64
#define LEAVING_MAX 65536
#define TICK_NS (NSEC_PER_SEC / 100) /* of /proc/PID/stat: USER_HZ */

static uint64_t ns_of(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

void perf_tasks_init(struct perf_tasks *t, const char *host_root)
{
	*t = (struct perf_tasks){ .host_root = host_root ? host_root : "", .scratch = BUF_INIT(KIB(64)) };
	t->boot_offset_ns = ns_of(CLOCK_BOOTTIME) - ns_of(CLOCK_MONOTONIC);
	u64map_init(&t->index, PROCESSES_MAX);
	u64map_init(&t->threads, THREADS_MAX);
}

static void clear_maps(struct perf_process *p)
{
	for (size_t i = 0; i < p->map_count; i++)
		free(p->maps[i]);
	free(p->maps);
	p->maps = NULL;
	p->map_count = p->map_cap = 0;
}

void perf_tasks_release(struct perf_tasks *t)
{
	for (size_t i = 0; i < t->count; i++) {
		clear_maps(t->items[i]);
		free(t->items[i]);
	}
	free(t->items);
	free(t->names);
	free(t->leaving);
	u64map_release(&t->index);
	u64map_release(&t->threads);
	buf_release(&t->scratch);
}

/* ---- names of threads ---- */

static void set_name(char to[ABI_COMM_SIZE], struct str name)
{
	memset(to, 0, ABI_COMM_SIZE);
	memcpy(to, name.ptr ? name.ptr : "", MIN(name.len, (size_t)ABI_COMM_SIZE - 1));
}

static struct perf_name *find_name(const struct perf_tasks *t, uint32_t tid)
{
	uint32_t at;

	return u64map_get(&t->threads, tid, &at) == 0 ? &t->names[at] : NULL;
}

static void forget_thread(struct perf_tasks *t, uint32_t tid)
{
	const struct perf_name *last;
	uint32_t at;

	if (u64map_get(&t->threads, tid, &at) < 0)
		return;
	last = &t->names[t->name_count - 1];
	ignore(u64map_remove(&t->threads, tid)); /* it is there */
	t->name_count--;
	if (&t->names[at] == last)
		return;
	t->names[at] = *last;
	ignore(u64map_put(&t->threads, last->tid, at)); /* replaces: needs no memory */
}

/* Without room the thread is called as its process is. @name: may be that of another row, which moves. */
static struct perf_name *put_name(struct perf_tasks *t, uint32_t pid, uint32_t tid, struct str name)
{
	struct perf_name *row = find_name(t, tid);
	char copy[ABI_COMM_SIZE];

	set_name(copy, name);
	if (!row) {
		if (array_grow(&t->names, &t->name_cap, t->name_count, THREADS_MAX) < 0 ||
		    u64map_put(&t->threads, tid, (uint32_t)t->name_count) < 0)
			return NULL;
		row = &t->names[t->name_count++];
		row->tid = tid;
	}
	row->pid = pid;
	memcpy(row->name, copy, sizeof(copy));
	return row;
}

const char *perf_tasks_thread_name(struct perf_tasks *t, const struct perf_process *p, uint32_t tid)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8));
	struct perf_name *row = tid == p->pid ? NULL : find_name(t, tid);
	struct str name = str_of(p->comm);

	if (tid == p->pid)
		return p->comm;
	if (row && row->pid == p->pid)
		return row->name;
	buf_addf(&path, "/proc/%u/task/%u/comm", p->pid, tid);
	buf_clear(&t->scratch);
	if (io_read_below(t->host_root, buf_cstr(&path), &t->scratch) == 0)
		name = str_trim(buf_str(&t->scratch));
	row = put_name(t, p->pid, tid, name);
	return row ? row->name : p->comm;
}

/* ---- processes ---- */

struct perf_process *perf_tasks_find(const struct perf_tasks *t, uint32_t pid)
{
	uint32_t at;

	return u64map_get(&t->index, pid, &at) == 0 ? t->items[at] : NULL;
}

static bool is_listed(const struct perf_tasks *t, uint32_t pid)
{
	size_t low = 0, high = t->pid_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->pids[middle] == pid)
			return true;
		if (t->pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return !t->pid_count;
}

/* Return: 0 when /proc knows it; @start_ns is kept otherwise. */
static int read_facts(struct perf_tasks *t, struct perf_process *p)
{
	scoped(closep) int dir = proc_dir_open(t->host_root, p->pid);
	struct proc_facts facts;
	int r = dir < 0 ? dir : proc_facts_read(dir, 0, &t->scratch, &facts);
	uint64_t start_ns;

	if (r < 0)
		return r;
	start_ns = facts.start_ticks * TICK_NS;
	/* A process that was told of by a record began when the record says. */
	if (p->start_ns && (start_ns > p->start_ns + TICK_NS || start_ns + 2 * TICK_NS < p->start_ns))
		return -ESRCH; /* another one that has this pid by now */
	p->start_ns = start_ns;
	p->is_kernel = facts.is_kernel;
	if (!p->parent_pid)
		p->parent_pid = facts.parent_pid;
	if (!p->comm[0])
		memcpy(p->comm, facts.comm, sizeof(p->comm));
	return 0;
}

static struct perf_process *add(struct perf_tasks *t, uint32_t pid)
{
	struct perf_process *p;

	if (array_grow(&t->items, &t->cap, t->count, PROCESSES_MAX) < 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || u64map_put(&t->index, pid, (uint32_t)t->count) < 0) {
		free(p);
		return NULL;
	}
	p->pid = pid;
	p->exec_id = 1;
	t->items[t->count++] = p;
	return p;
}

struct perf_process *perf_tasks_get(struct perf_tasks *t, uint32_t pid)
{
	struct perf_process *p = perf_tasks_find(t, pid);

	if (p)
		return p;
	p = add(t, pid);
	if (!p)
		return NULL;
	if (read_facts(t, p) < 0) { /* gone, and its fork was before us: named as perf does */
		p->start_ns = TICK_NS;
		(void)snprintf(p->comm, sizeof(p->comm), ":%u", pid);
	}
	p->is_wanted = is_listed(t, pid);
	if (!p->is_wanted && t->follow_children) { /* its fork record was lost */
		const struct perf_process *parent = perf_tasks_find(t, p->parent_pid);

		p->is_wanted = parent && parent->is_wanted;
	}
	return p;
}

void perf_tasks_drop(struct perf_tasks *t, struct perf_process *p)
{
	uint32_t at, last = (uint32_t)t->count - 1;

	forget_thread(t, p->pid);
	if (u64map_get(&t->index, p->pid, &at) == 0) {
		ignore(u64map_remove(&t->index, p->pid)); /* it is there */
		t->items[at] = t->items[last];
		if (at != last)
			ignore(u64map_put(&t->index, t->items[at]->pid, at)); /* replaces: needs no memory */
		t->count--;
	}
	clear_maps(p);
	free(p);
}

struct perf_process *perf_tasks_fork(struct perf_tasks *t, const struct perf_record *r)
{
	const struct perf_process *parent = perf_tasks_find(t, r->parent_pid);
	const struct perf_name *row = find_name(t, r->parent_tid);
	struct perf_process *p;

	if (r->pid == r->parent_pid) { /* a thread: called as the one that made it */
		if (parent && parent->is_sampled)
			put_name(t, r->pid, r->tid,
				 str_of(row && row->pid == r->parent_pid ? row->name : parent->comm));
		return NULL;
	}
	p = add(t, r->pid);
	if (!p)
		return NULL;
	p->parent_pid = r->parent_pid;
	p->start_ns = (r->time_ns + t->boot_offset_ns) / TICK_NS * TICK_NS;
	p->is_new = true;
	ignore(read_facts(t, p)); /* it may be gone */
	p->is_wanted = is_listed(t, r->pid) ||
		       (t->follow_children && (parent ? parent->is_wanted : is_listed(t, r->parent_pid)));
	if (parent)
		set_name(p->comm, str_of(row && r->parent_tid != r->parent_pid ? row->name : parent->comm));
	return p;
}

struct perf_process *perf_tasks_comm(struct perf_tasks *t, const struct perf_record *r)
{
	struct perf_process *p = perf_tasks_find(t, r->pid);

	if (!p && r->is_exec)
		p = perf_tasks_get(t, r->pid);
	if (!p)
		return NULL;
	if (r->tid == r->pid)
		set_name(p->comm, r->comm);
	else if (find_name(t, r->tid))
		put_name(t, r->pid, r->tid, r->comm);
	if (!r->is_exec)
		return NULL;
	p->exec_id++;
	p->is_new = true;
	p->is_sampled = false;
	clear_maps(p);
	return p;
}

/* Is no thread of it left? */
static bool is_gone(struct perf_tasks *t, const struct perf_process *p)
{
	scoped(closep) int dir = proc_dir_open(t->host_root, p->pid), living = -1;
	struct proc_facts facts;

	if (dir < 0)
		return dir == -ENOENT;
	if (proc_facts_read(dir, p->start_ns, &t->scratch, &facts) < 0)
		return true;
	if (!facts.is_zombie)
		return false;
	living = proc_living_dir(t->host_root, dir, p->pid, NULL);
	return living == -ESRCH;
}

void perf_tasks_exit(struct perf_tasks *t, const struct perf_record *r)
{
	struct perf_process *p = perf_tasks_find(t, r->pid);

	if (r->tid != r->pid) {
		forget_thread(t, r->tid);
		return;
	}
	if (!p || p->left_ns)
		return;
	p->left_ns = MAX(r->time_ns, UINT64_C(1));
	if (array_grow(&t->leaving, &t->leaving_cap, t->leaving_count, LEAVING_MAX) == 0)
		t->leaving[t->leaving_count++] = r->pid; /* without room perf_tasks_sweep() finds it */
}

/* From the end on, so that one that was found is taken off the list. */
struct perf_process *perf_tasks_left(struct perf_tasks *t)
{
	for (size_t i = t->leaving_count; i-- > 0;) {
		struct perf_process *p = perf_tasks_find(t, t->leaving[i]);

		if (p && p->left_ns && !is_gone(t, p))
			continue; /* other threads of it live, or it is just being taken apart */
		t->leaving[i] = t->leaving[--t->leaving_count];
		if (p && p->left_ns)
			return p;
	}
	return NULL;
}

struct perf_process *perf_tasks_sweep(struct perf_tasks *t)
{
	for (size_t i = 0; i < MIN(t->count, (size_t)SWEEP_COUNT); i++) {
		struct perf_process *p = t->items[t->sweep_at++ % t->count];

		if (is_gone(t, p))
			return p;
	}
	return NULL;
}

/* ---- mappings ---- */

static struct abi_mapping *mapping_of(const struct perf_process *p, const struct perf_record *r)
{
	size_t size = align_up(sizeof(struct abi_mapping) + r->path.len, 8);
	struct abi_mapping *m = calloc(1, size);

	if (!m)
		return NULL;
	*m = (struct abi_mapping){
		.header = { .type = ABI_RECORD_MAPPING,
			    .version = ABI_VERSION,
			    .size = (uint32_t)size,
			    .time_ns = r->time_ns },
		.process_start_ns = p->start_ns,
		.start = r->start,
		.end = r->end,
		.file_offset = r->file_offset,
		.inode = r->inode,
		.device_major = r->device_major,
		.device_minor = r->device_minor,
		.pid = p->pid,
		.path_size = (uint32_t)r->path.len,
	};
	memcpy(m->path, r->path.ptr, r->path.len);
	return m;
}

int perf_tasks_map(struct perf_tasks *t, const struct perf_record *r, struct abi_mapping **out)
{
	struct perf_process *p = perf_tasks_find(t, r->pid);
	struct abi_mapping *m;

	if (!r->path.len || r->path.ptr[0] != '/') /* the vDSO and its like: /proc has them */
		return 0;
	if (!p || !p->is_wanted || (!p->is_sampled && (!p->is_new || p->map_count == MAPS_MAX)))
		return 0;
	m = mapping_of(p, r);
	if (!m)
		return -ENOMEM;
	if (p->is_sampled) {
		*out = m;
		return 1;
	}
	if (array_grow(&p->maps, &p->map_cap, p->map_count, MAPS_MAX) < 0) {
		free(m);
		return -ENOMEM;
	}
	p->maps[p->map_count++] = m;
	return 0;
}

struct abi_process perf_tasks_event(const struct perf_process *p, uint16_t type, uint64_t time_ns)
{
	struct abi_process event = {
		.header = { .type = type, .version = ABI_VERSION, .size = sizeof(event), .time_ns = time_ns },
		.process_start_ns = p->start_ns,
		.pid = p->pid,
		.parent_pid = type == ABI_RECORD_FORK ? p->parent_pid : 0,
		.exec_id = p->exec_id,
	};

	memcpy(event.comm, p->comm, sizeof(event.comm));
	return event;
}
