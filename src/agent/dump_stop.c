/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dump_stop.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "proc/proc_read.h"

#define THREADS_MAX 65536
#define TIME_MAX_NS (NSEC_PER_SEC / 4)
#define ROUNDS_MAX 8 /* threads make threads while they are being stopped */

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* A first thread that has ended stays as a zombie while the others run: it may not be traced, nor need it. */
static bool has_ended(int task_dir, pid_t tid)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	scoped(closep) int dir = -1;
	struct proc_facts facts;
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)tid);
	dir = openat(task_dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || proc_facts_read(dir, 0, &text, &facts) < 0 || facts.is_zombie;
}

static bool is_known(const struct dump_stop *s, pid_t tid)
{
	uint32_t at;

	return u64map_get(&s->index, (uint64_t)tid, &at) == 0 && s->threads[at].tid == tid;
}

/* Return: 1; 0: it has ended; -errno. */
static int seize(struct dump_stop *s, int task_dir, pid_t tid)
{
	int r = array_grow(&s->threads, &s->cap, s->count, THREADS_MAX);

	if (r == 0)
		r = u64map_put(&s->index, (uint64_t)tid, (uint32_t)s->count);
	if (r < 0)
		return r;
	s->threads[s->count] = (struct stopped_thread){ 0 }; /* in the index, but nobody yet */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		r = -errno;
		return r == -ESRCH || (r == -EPERM && has_ended(task_dir, tid)) ? 0 : r;
	}
	s->threads[s->count++].tid = tid;
	ignore(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0); /* gone since, or stopped already: waiting tells */
	return 1;
}

/* Return: how many new threads there were, or -errno. */
static int seize_new(struct dump_stop *s, int task_dir)
{
	int fd = openat(task_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
	scoped(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t tid;

	if (!dir) {
		closep(&fd);
		return -ESRCH;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		int r;

		if (str_to_u64(str_of(entry->d_name), 1, INT32_MAX, &tid) < 0 || is_known(s, (pid_t)tid))
			continue;
		r = seize(s, task_dir, (pid_t)tid);
		if (r < 0)
			return r;
		found += r;
	}
	return found;
}

/* Return: how many still run. */
static size_t wait_once(struct dump_stop *s)
{
	size_t running = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct stopped_thread *t = &s->threads[i];
		int status;

		if (t->is_stopped || !t->tid)
			continue;
		if (waitpid(t->tid, &status, __WALL | WNOHANG) != t->tid) {
			running++;
			continue;
		}
		t->is_stopped = WIFSTOPPED(status);
		if (!t->is_stopped)
			t->tid = 0; /* it has ended */
		else if (status >> 16 == 0)
			t->signal = WSTOPSIG(status); /* it came before our interruption */
	}
	return running;
}

static void wait_all(struct dump_stop *s, uint64_t until_ns)
{
	while (wait_once(s) && clock_monotonic_ns(&clock_system) < until_ns)
		ignore(poll(NULL, 0, 1)); /* at most a quarter of a second of this, once */
}

static void hold_signals(struct dump_stop *s)
{
	sigset_t set;

	sigfillset(&set);
	s->held = sigprocmask(SIG_BLOCK, &set, &s->signals) == 0;
}

int dump_stop_all(struct dump_stop *s, pid_t pid, int task_dir)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + TIME_MAX_NS;
	int r = 1;

	*s = (struct dump_stop){ .pid = pid, .since_ns = until_ns - TIME_MAX_NS };
	u64map_init(&s->index, THREADS_MAX);
	hold_signals(s);
	for (int round = 0; round < ROUNDS_MAX && r > 0 && clock_monotonic_ns(&clock_system) < until_ns; round++) {
		r = seize_new(s, task_dir);
		wait_all(s, until_ns);
	}
	if (r < 0)
		dump_stop_release(s);
	return r < 0 ? r : 0;
}

#ifdef WALK_X86_64
#define CODE_SEGMENT_64 0x33 /* linux, arch/x86/include/asm/segment.h: __USER_CS */

static int fill(struct walk *w, const struct user_regs_struct *r, size_t size, bool *is_return)
{
	const uint64_t regs[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
				  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	if (size != sizeof(*r) || r->cs != CODE_SEGMENT_64)
		return -ENOTSUP;
	memcpy(w->leaf, regs, sizeof(regs));
	*is_return = (int64_t)r->orig_rax >= 0;
	return 0;
}
#else
static int fill(struct walk *w, const struct user_regs_struct *r, size_t size, bool *is_return)
{
	if (size != sizeof(*r))
		return -ENOTSUP;
	memcpy(w->leaf, r->regs, sizeof(r->regs));
	w->leaf[WALK_REG_SP] = r->sp;
	w->leaf[WALK_REG_PC] = r->pc;
	*is_return = false; /* the walk begins at the instruction behind the system call: its row holds there, too */
	return 0;
}
#endif

int dump_stop_registers(const struct dump_stop *s, pid_t tid, struct walk *w, bool *is_return)
{
	struct user_regs_struct regs = { 0 };
	struct iovec io = { &regs, sizeof(regs) };
	uint32_t at;

	if (u64map_get(&s->index, (uint64_t)tid, &at) < 0 || s->threads[at].tid != tid || !s->threads[at].is_stopped)
		return -ESRCH;
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) < 0)
		return -ESRCH;
	return fill(w, &regs, io.iov_len, is_return);
}

void dump_stop_release(struct dump_stop *s)
{
	if (s->count)
		ignore(wait_once(s) >
		       0); /* some may have stopped since; the others are let go when this program ends */
	for (size_t i = 0; i < s->count; i++) {
		struct stopped_thread *t = &s->threads[i];

		if (!t->tid)
			continue;
		ignore(ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->signal) < 0); /* gone: let go already */
	}
	free(s->threads);
	u64map_release(&s->index);
	if (s->held)
		ignore(sigprocmask(SIG_SETMASK, &s->signals, NULL));
	*s = (struct dump_stop){ 0 };
}
