// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "proc/proc_read.h"

#define PROCESSES_MAX 16384
#define THREADS_MAX 65536 /* of one process */
#define REFUSED_MAX 262144
#define LIST_NS (250 * NSEC_PER_MSEC)
#define NAME_NS NSEC_PER_SEC
#define ONE 65536U
#define TICK_NS (NSEC_PER_SEC / 100) /* USER_HZ */

void remote_procs_init(struct remote_procs *p, const char *host_root, size_t descriptor_max)
{
	*p = (struct remote_procs){ .host_root = host_root ? host_root : "", .descriptor_max = descriptor_max };
	p->scratch = (struct buf)BUF_INIT(KIB(64));
	u64map_init(&p->index, PROCESSES_MAX);
	u64map_init(&p->refused, REFUSED_MAX);
}

static void close_fd(struct remote_procs *p, int *fd)
{
	if (*fd >= 0)
		p->descriptors--;
	closep(fd);
}

static void release_thread(struct remote_procs *p, struct remote_thread *t)
{
	close_fd(p, &t->stat_fd);
	close_fd(p, &t->state_fd);
	remote_plan_release(&t->plan);
}

static void free_process(struct remote_procs *p, struct remote_process *process)
{
	for (size_t i = 0; i < process->thread_count; i++)
		release_thread(p, &process->threads[i]);
	free(process->threads);
	free(process->pointers);
	close_fd(p, &process->dir);
	close_fd(p, &process->task_dir);
	free(process);
}

void remote_procs_release(struct remote_procs *p)
{
	for (size_t i = 0; i < p->count; i++)
		free_process(p, p->items[i]);
	free(p->items);
	u64map_release(&p->index);
	u64map_release(&p->refused);
	buf_release(&p->scratch);
}

struct remote_process *remote_procs_find(const struct remote_procs *p, uint32_t pid)
{
	uint32_t at;

	return u64map_get(&p->index, pid, &at) == 0 ? p->items[at] : NULL;
}

/* ---- one process ---- */

/* Field 28 of /proc/PID/stat, where the stack starts: another place in every program of the process. 0: not shown. */
static uint64_t stack_start(struct str stat)
{
	struct str rest = str_skip(stat, (size_t)(str_rfind(stat, ')') + 2)), word = { 0 };
	uint64_t value;

	for (int field = 3; field <= 28; field++)
		if (!str_next(&rest, ' ', &word))
			return 0;
	return str_to_u64(word, 0, UINT64_MAX, &value) == 0 ? value : 0;
}

static int read_stat(struct remote_procs *p, struct remote_process *process, struct proc_facts *facts)
{
	int r = proc_facts_read(process->dir, process->start_ns, &p->scratch, facts);

	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return facts->is_kernel || facts->is_zombie ? -ESRCH : 0;
}

/* The same right that reading its memory takes: PTRACE_MODE_ATTACH. Source: linux 6.1, fs/proc/base.c,
 * mm/process_vm_access.c. */
static int may_read(const struct remote_process *process)
{
	scoped(closep) int fd = openat(process->dir, "syscall", O_RDONLY | O_CLOEXEC);
	char text[256];

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return pread(fd, text, sizeof(text), 0) < 0 ? -errno : 0;
}

static int open_process(struct remote_procs *p, struct remote_process *process)
{
	struct proc_facts facts;
	int r;

	if (p->descriptors + 2 > p->descriptor_max)
		return -EMFILE;
	process->dir = proc_dir_open(p->host_root, process->pid);
	if (process->dir < 0)
		return process->dir == -ENOENT ? -ESRCH : process->dir;
	p->descriptors++;
	r = read_stat(p, process, &facts);
	if (r < 0)
		return r;
	process->start_ns = facts.start_ticks * TICK_NS;
	process->parent_pid = facts.parent_pid;
	process->exec_id = 1;
	memcpy(process->comm, facts.comm, sizeof(process->comm));
	process->stack_start = stack_start(buf_str(&p->scratch));
	r = may_read(process);
	if (r < 0)
		return r == -EACCES ? -EPERM : r;
	process->task_dir = openat(process->dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process->task_dir < 0)
		return -errno;
	p->descriptors++;
	return 0;
}

int remote_procs_add(struct remote_procs *p, uint32_t pid, struct remote_process **out)
{
	struct remote_process *process;
	int r;

	*out = remote_procs_find(p, pid);
	if (*out)
		return 0;
	r = array_grow(&p->items, &p->cap, p->count, PROCESSES_MAX);
	if (r < 0)
		return r;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->dir = process->task_dir = -1;
	r = open_process(p, process);
	if (r == 0)
		r = u64map_put(&p->index, pid, (uint32_t)p->count);
	if (r < 0) {
		free_process(p, process);
		return r;
	}
	p->items[p->count++] = process;
	*out = process;
	return 0;
}

void remote_procs_expire(struct remote_procs *p)
{
	for (size_t i = 0; i < p->count;) {
		struct remote_process *process = p->items[i];

		if (!process->gone) {
			i++;
			continue;
		}
		ignore(u64map_remove(&p->index, process->pid)); /* it is there */
		free_process(p, process);
		p->items[i] = p->items[--p->count];
		if (i < p->count)
			must(u64map_put(&p->index, p->items[i]->pid, (uint32_t)i) == 0); /* replaces: takes no room */
	}
}

int remote_process_check(struct remote_procs *p, struct remote_process *process, uint64_t now_ns)
{
	struct proc_facts facts;
	uint64_t start;
	int r = read_stat(p, process, &facts);

	process->checked_ns = now_ns;
	if (r == -ESRCH)
		process->gone = true;
	if (r < 0)
		return r;
	memcpy(process->comm, facts.comm, sizeof(process->comm));
	start = stack_start(buf_str(&p->scratch));
	if (start == process->stack_start)
		return 0;
	process->stack_start = start;
	process->exec_id++;
	process->info_version = 0;
	process->since_ns = now_ns;
	process->runtime = ABI_RUNTIME_NONE;
	process->pointer_count = 0;
	process->met_ns = process->code_type = 0;
	memset(process->roots, 0, sizeof(process->roots));
	for (size_t i = 0; i < process->thread_count; i++)
		process->threads[i].tp = process->threads[i].strange = process->threads[i].root_votes = 0;
	return 1;
}

/* ---- which processes there are ---- */

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Remembered as not to be looked at, so that it is not opened at every scan. */
static void refuse(struct remote_procs *p, uint32_t pid)
{
	ignore(u64map_put(&p->refused, pid, 1)); /* without memory: it is opened again */
}

static bool child_is_wanted(struct remote_procs *p, uint32_t pid)
{
	const struct remote_process *parent;
	struct proc_facts facts;
	scoped(closep) int dir = proc_dir_open(p->host_root, pid);

	if (dir < 0 || proc_facts_read(dir, 0, &p->scratch, &facts) < 0)
		return false;
	parent = remote_procs_find(p, facts.parent_pid);
	return parent && parent->wanted;
}

static int scan_one(struct remote_procs *p, const struct remote_scan *scan, uint32_t pid)
{
	struct remote_process *process = remote_procs_find(p, pid);
	uint32_t value;
	int r;

	if (process) {
		process->listed = true;
		return 0;
	}
	if (pid == scan->self || u64map_get(&p->refused, pid, &value) == 0)
		return 0;
	if (!scan->all && !child_is_wanted(p, pid)) {
		refuse(p, pid);
		return 0;
	}
	r = remote_procs_add(p, pid, &process);
	if (r < 0) {
		refuse(p, pid);
		return r == -ENOMEM ? r : 0;
	}
	process->wanted = process->listed = true;
	return 0;
}

/* A pid that is refused may be taken by another process later: once a table's worth of them have come and gone, or in
 * half a minute, all are looked at again. */
int remote_procs_scan(struct remote_procs *p, const struct remote_scan *scan)
{
	char path[KIB(2)];
	int size = snprintf(path, sizeof(path), "%s/proc", p->host_root), count = 0;
	scoped(closedirp) DIR *dir = (size_t)size < sizeof(path) ? opendir(path) : NULL;
	uint64_t pid;

	if (!dir)
		return -errno;
	for (size_t i = 0; i < p->count; i++)
		p->items[i]->listed = false;
	for (struct dirent *entry; (entry = readdir(dir));) {
		int r;

		if (str_to_u64(str_of(entry->d_name), 1, UINT32_MAX, &pid) < 0)
			continue;
		r = scan_one(p, scan, (uint32_t)pid);
		if (r < 0)
			return r;
		count++;
	}
	for (size_t i = 0; i < p->count; i++)
		p->items[i]->gone |= !p->items[i]->listed;
	return count;
}

/* ---- threads ---- */

static int open_thread_file(const struct remote_process *process, uint32_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%u/%s", tid, name);
	return openat(process->task_dir, path, O_RDONLY | O_CLOEXEC);
}

static int hold_file(struct remote_procs *p, const struct remote_process *process, uint32_t tid, const char *name)
{
	int fd = -1;

	if (p->descriptors < p->descriptor_max / 2) /* the other half is for processes */
		fd = open_thread_file(process, tid, name);
	p->descriptors += fd >= 0;
	return fd;
}

/* Threads keep their place while they live; a listing mostly shows them in the same order. */
static struct remote_thread *find_thread(struct remote_process *process, uint32_t tid, size_t hint)
{
	if (hint < process->thread_count && process->threads[hint].tid == tid)
		return &process->threads[hint];
	for (size_t i = 0; i < process->thread_count; i++)
		if (process->threads[i].tid == tid)
			return &process->threads[i];
	return NULL;
}

static int add_thread(struct remote_procs *p, struct remote_process *process, uint32_t tid)
{
	int r = array_grow(&process->threads, &process->thread_cap, process->thread_count, THREADS_MAX);

	if (r < 0)
		return r;
	process->threads[process->thread_count++] = (struct remote_thread){
		.tid = tid,
		.stat_fd = hold_file(p, process, tid, "schedstat"),
		.state_fd = hold_file(p, process, tid, "syscall"),
		.share = ONE,
		.credit = ONE / 2,
		.listed = true,
	};
	return 0;
}

static void drop_threads(struct remote_procs *p, struct remote_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->thread_count; i++) {
		if (process->threads[i].listed)
			process->threads[kept++] = process->threads[i];
		else
			release_thread(p, &process->threads[i]);
	}
	process->thread_count = kept;
}

static void list_threads(struct remote_procs *p, struct remote_process *process)
{
	int fd = openat(process->task_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t at = 0;
	uint64_t tid;

	if (!dir) {
		closep(&fd);
		return;
	}
	for (size_t i = 0; i < process->thread_count; i++)
		process->threads[i].listed = false;
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct remote_thread *t;

		if (str_to_u64(str_of(entry->d_name), 1, UINT32_MAX, &tid) < 0)
			continue;
		t = find_thread(process, (uint32_t)tid, at);
		if (t) {
			t->listed = true;
			at = (size_t)(t - process->threads) + 1;
		} else if (add_thread(p, process, (uint32_t)tid) < 0) {
			return; /* those that are there stay */
		}
	}
	drop_threads(p, process);
}

void remote_process_list(struct remote_procs *p, struct remote_process *process, uint64_t now_ns)
{
	struct stat st;

	/* The number of threads is the number of links. Source: linux 6.1, fs/proc/base.c, proc_task_getattr(). */
	if (fstat(process->task_dir, &st) < 0 || st.st_nlink <= 2) {
		process->gone = true;
		return;
	}
	if (st.st_nlink == process->links && now_ns - process->listed_ns < LIST_NS)
		return;
	process->links = st.st_nlink;
	process->listed_ns = now_ns;
	list_threads(p, process);
}

int remote_times_parse(struct str text, struct remote_times *out)
{
	struct remote_times times;
	struct str rest = str_trim(text), word;

	if (!str_next(&rest, ' ', &word) || str_to_u64(word, 0, UINT64_MAX, &times.run_ns) < 0)
		return -EBADMSG;
	if (!str_next(&rest, ' ', &word) || str_to_u64(word, 0, UINT64_MAX, &times.delay_ns) < 0)
		return -EBADMSG;
	if (!str_next(&rest, ' ', &word) || str_to_u64(word, 0, UINT64_MAX, &times.slices) < 0 || rest.ptr)
		return -EBADMSG;
	*out = times;
	return 0;
}

/* Return: bytes read, or -errno. */
static ssize_t read_thread_file(const struct remote_process *process, uint32_t tid, int fd, const char *name,
				char *text, size_t size)
{
	scoped(closep) int own = fd < 0 ? open_thread_file(process, tid, name) : -1;
	ssize_t got;

	if (fd < 0 && own < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	got = pread(fd < 0 ? own : fd, text, size, 0);
	return got < 0 ? -errno : got;
}

/* The kernel updates both times late: run time at ticks of the scheduler, 1 to 10 ms apart, waiting time when the
 * thread runs again. So the share is a mean over several changes, in which the newest counts most; it stays the same
 * between changes. */
static void judge_share(struct remote_thread *t, const struct remote_times *now)
{
	uint64_t run = now->run_ns - t->run_ns, delay = now->delay_ns - t->delay_ns;

	if (!t->met || run >> 40 || delay >> 40 || (!run && !delay))
		return;
	t->recent_run_ns = t->recent_run_ns / 8 * 7 + run;
	t->recent_delay_ns = t->recent_delay_ns / 8 * 7 + delay;
	t->share = (uint32_t)(t->recent_run_ns * ONE / (t->recent_run_ns + t->recent_delay_ns + 1));
	if (!t->recent_delay_ns)
		t->share = ONE;
}

bool remote_thread_judge(struct remote_thread *t, const struct remote_times *now, bool runnable)
{
	judge_share(t, now);
	t->run_ns = now->run_ns;
	t->delay_ns = now->delay_ns;
	t->slices = now->slices;
	t->met = true;
	t->runnable = runnable;
	if (!runnable)
		return false;
	t->credit += t->share;
	if (t->credit < ONE)
		return false;
	t->credit -= ONE;
	return true;
}

static bool unchanged(const struct remote_thread *t, const struct remote_times *now)
{
	return t->met && t->run_ns == now->run_ns && t->slices == now->slices;
}

int remote_thread_runs(struct remote_process *process, struct remote_thread *t, uint64_t now_ns)
{
	char text[256];
	struct remote_times now;
	ssize_t got = read_thread_file(process, t->tid, t->stat_fd, "schedstat", text, sizeof(text));

	if (got < 0)
		return got == -ESRCH ? -ESRCH : 0;
	if (remote_times_parse(str_n(text, (size_t)got), &now) < 0)
		return 0;
	if (unchanged(t, &now) && !t->runnable && now.slices)
		return 0; /* it has not been on a CPU since it was seen asleep */
	got = read_thread_file(process, t->tid, t->state_fd, "syscall", text, sizeof(text));
	if (got < 0)
		return got == -ESRCH ? -ESRCH : 0;
	if (text[0] != 'r' && !t->idle_since_ns)
		t->idle_since_ns = now_ns;
	else if (text[0] == 'r')
		t->idle_since_ns = 0;
	return remote_thread_judge(t, &now, got > 0 && text[0] == 'r');
}

void remote_thread_name(struct remote_procs *p, struct remote_process *process, struct remote_thread *t,
			uint64_t now_ns)
{
	char text[64];
	ssize_t got;

	if (t->named_ns && now_ns - t->named_ns < NAME_NS)
		return;
	got = read_thread_file(process, t->tid, -1, "comm", text, sizeof(text));
	if (got > 0) {
		size_t size = MIN((size_t)got - (text[got - 1] == '\n'), sizeof(t->name) - 1);

		memset(t->name, 0, sizeof(t->name));
		memcpy(t->name, text, size);
	}
	if (!t->inner_tid) {
		struct proc_facts facts = { 0 };
		char path[64];

		snprintf(path, sizeof(path), "%u/status", t->tid);
		buf_clear(&p->scratch);
		if (io_read_file_at(process->task_dir, path, &p->scratch) == 0)
			proc_status_parse(buf_str(&p->scratch), &facts);
		t->inner_tid = facts.inner_pid ? facts.inner_pid : t->tid;
	}
	t->named_ns = now_ns;
}
