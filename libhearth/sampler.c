/* SPDX-License-Identifier: Apache-2.0 */
/* Signals find their way by si_value: the number of a slot and its generation. A signal that comes late, for a thread
 * that has ended or a profile that is over, finds another generation and writes nothing.
 *
 *   timer of a thread --SIGPROF--> handler: frames -> ring of its slot --> sampler_drain() on the library's thread
 *
 * The handler calls nothing but process_vm_readv(2) on its own process: memory that is not there is an error then, not
 * a fault, so a register that holds no frame pointer does no harm. */
#include "libhearth/sampler.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/random.h"
#include "base/str.h"
#include "base/u64map.h"

#define SLOTS_MAX 4096
#define RING_WORDS 16384 /* a power of two; 100 ms at 1000 Hz of stacks 100 deep */
#define RECORD_HEAD 4    /* count; end, words and frames; sp; lr; then words, then frames */
#define STACK_GUESS MIB(8)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct slot {
	_Atomic uint32_t generation; /* a timer's signals carry the one it was made with; odd: a timer is set */
	_Atomic uint32_t busy;       /* handlers at work on this slot */
	_Atomic uint64_t head, tail; /* words written by handlers; words read */
	_Atomic uint64_t lost;
	_Atomic uint64_t stack_start, stack_end;
	uint64_t *ring; /* made once, never unmapped: a late handler may look at it; its memory goes with the thread */
	/* Of the library's thread alone. */
	timer_t timer;
	pid_t tid;
	char name[16];
	bool used, seen;
	bool failed; /* got no timer: not asked for again */
};

/* Globals, because a signal handler has nothing else to start from. */
static struct slot slots[SLOTS_MAX];
static struct {
	bool claimed;
	unsigned int frequency_hz;
	pid_t pid, own_tid;
	struct u64map by_tid; /* -> slot */
	uint64_t missed_threads, lost;
} all;

/* The handler's side */

static bool read_own(uint64_t address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	return syscall(SYS_process_vm_readv, all.pid, &local, 1, &remote, 1, 0) == (long)size;
}

struct registers {
	uint64_t pc, sp, fp, lr;
};

static void get_registers(const ucontext_t *u, struct registers *out)
{
#if defined(__x86_64__)
	out->pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	out->sp = (uint64_t)u->uc_mcontext.gregs[REG_RSP];
	out->fp = (uint64_t)u->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
	out->pc = u->uc_mcontext.pc;
	out->sp = u->uc_mcontext.sp;
	out->fp = u->uc_mcontext.regs[29];
	out->lr = u->uc_mcontext.regs[30];
#else
#error "libhearth knows x86-64 and aarch64"
#endif
}

struct record {
	uint64_t *ring;
	uint64_t at; /* of the record's next word */
	uint32_t frames, words;
};

static void add_word(struct record *r, uint64_t word)
{
	r->ring[r->at++ % RING_WORDS] = word;
}

static void add_frame(struct record *r, uint64_t pc)
{
	add_word(r, pc);
	r->frames++;
}

/* The bottom of the stack may end within them. */
static void copy_words(struct record *r, uint64_t sp)
{
	uint64_t words[SAMPLE_WORDS];
	size_t count = SAMPLE_WORDS;

	if (!read_own(sp, words, sizeof(words))) {
		count = MIN((4096 - sp % 4096) / sizeof(uint64_t), (size_t)SAMPLE_WORDS);
		if (!read_own(sp, words, count * sizeof(uint64_t)))
			return;
	}
	for (size_t i = 0; i < count; i++)
		add_word(r, words[i]);
	r->words = (uint32_t)count;
}

static enum sample_end walk(struct slot *s, const struct registers *regs, struct record *r)
{
	uint64_t low = regs->sp, fp = regs->fp, frame[2];
	uint64_t end = atomic_load_explicit(&s->stack_end, memory_order_relaxed);

	if (low < atomic_load_explicit(&s->stack_start, memory_order_relaxed) || low >= end)
		end = low + STACK_GUESS; /* not told yet, or another stack */
	add_frame(r, regs->pc);
	while (fp) {
		if (fp < low || fp % sizeof(uint64_t) || fp > end - sizeof(frame))
			return SAMPLE_NO_CALLER;
		if (r->frames == SAMPLE_FRAMES_MAX)
			return SAMPLE_FRAME_LIMIT;
		if (!read_own(fp, frame, sizeof(frame)))
			return SAMPLE_UNREADABLE;
		if (!frame[1])
			return SAMPLE_ROOT;
		add_frame(r, frame[1]);
		low = fp + sizeof(frame);
		fp = frame[0];
	}
	return SAMPLE_ROOT;
}

static void take(struct slot *s, uint32_t count, const ucontext_t *u)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	uint64_t used = head - atomic_load_explicit(&s->tail, memory_order_acquire);
	struct record r = { .ring = s->ring, .at = head + RECORD_HEAD };
	struct registers regs = { 0 };
	enum sample_end end;

	if (used + RECORD_HEAD + SAMPLE_WORDS + SAMPLE_FRAMES_MAX > RING_WORDS) {
		atomic_fetch_add_explicit(&s->lost, count, memory_order_relaxed);
		return;
	}
	get_registers(u, &regs);
	copy_words(&r, regs.sp);
	end = walk(s, &regs, &r);
	s->ring[head % RING_WORDS] = count;
	s->ring[(head + 1) % RING_WORDS] = (uint64_t)end << 32 | r.words << 16 | r.frames;
	s->ring[(head + 2) % RING_WORDS] = regs.sp;
	s->ring[(head + 3) % RING_WORDS] = regs.lr;
	atomic_store_explicit(&s->head, r.at, memory_order_release);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	uint64_t value = (uintptr_t)info->si_value.sival_ptr;
	struct slot *s = &slots[value >> 32 < SLOTS_MAX ? value >> 32 : 0];

	(void)number;
	if (info->si_code == SI_TIMER && value >> 32 < SLOTS_MAX) {
		atomic_fetch_add(&s->busy, 1);
		if (atomic_load(&s->generation) == (uint32_t)value && s->ring)
			take(s, 1 + (uint32_t)MAX(info->si_overrun, 0), context);
		atomic_fetch_sub(&s->busy, 1);
	}
	errno = saved;
}

/* The library's side */

int sampler_claim(void)
{
	struct sigaction now, ours = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

	if (sigaction(SIGPROF, NULL, &now) < 0)
		return -errno;
	if (now.sa_flags & SA_SIGINFO ? now.sa_sigaction == on_signal : false)
		return 0;
	if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
		return -EBUSY;
	sigfillset(&ours.sa_mask); /* the handler is short; nobody's longjmp leaves it half done */
	return sigaction(SIGPROF, &ours, NULL) < 0 ? -errno : 0;
}

/* The clock of another thread of this process. Source: linux 6.1, include/linux/posix-timers.h,
 * make_thread_cpuclock(): CPUCLOCK_SCHED (2) and CPUCLOCK_PERTHREAD_MASK (4). */
static clockid_t cpu_clock_of(pid_t tid)
{
	return (clockid_t)(~(uint32_t)tid << 3 | 6);
}

static int arm(struct slot *s)
{
	uint64_t period_ns = NSEC_PER_SEC / all.frequency_hz;
	uint64_t index = (uint64_t)(s - slots), first_ns = random_u64() % period_ns + 1;
	uint32_t generation = atomic_load(&s->generation) + 1;
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGPROF,
				  .sigev_value.sival_ptr = (void *)(uintptr_t)(index << 32 | generation) };
	struct itimerspec times = { .it_interval = { .tv_sec = (time_t)(period_ns / NSEC_PER_SEC),
						     .tv_nsec = (long)(period_ns % NSEC_PER_SEC) },
				    .it_value = { .tv_sec = (time_t)(first_ns / NSEC_PER_SEC),
						  .tv_nsec = (long)(first_ns % NSEC_PER_SEC) } };

	event.sigev_notify_thread_id = s->tid;
	if (timer_create(cpu_clock_of(s->tid), &event, &s->timer) < 0)
		return -errno;
	atomic_store(&s->generation, generation);
	if (timer_settime(s->timer, 0, &times, NULL) == 0)
		return 0;
	atomic_store(&s->generation, generation + 1);
	timer_delete(s->timer);
	return -errno;
}

/* Late signals find another generation from here on; handlers that looked before are waited for. */
static void disarm(struct slot *s)
{
	if (!(atomic_load(&s->generation) & 1))
		return;
	atomic_fetch_add(&s->generation, 1);
	timer_delete(s->timer);
	while (atomic_load(&s->busy))
		sched_yield();
}

static struct slot *free_slot(void)
{
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		if (slots[i].used)
			continue;
		if (!slots[i].ring) {
			void *ring = mmap(NULL, RING_WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (ring == MAP_FAILED)
				return NULL;
			slots[i].ring = ring;
		}
		return &slots[i];
	}
	return NULL;
}

static void read_name(struct slot *s)
{
	char path[64];
	ssize_t size = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)s->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		size = read(fd, s->name, sizeof(s->name) - 1);
	closep(&fd);
	s->name[size > 0 ? size - (s->name[size - 1] == '\n') : 0] = '\0';
}

static void add_thread(pid_t tid)
{
	struct slot *s = free_slot();

	if (!s || u64map_put(&all.by_tid, (uint64_t)tid, (uint32_t)(s - slots)) < 0) {
		all.missed_threads++;
		return;
	}
	s->tid = tid;
	s->used = s->seen = true;
	atomic_store(&s->stack_start, 0);
	atomic_store(&s->stack_end, 0);
	read_name(s);
	s->failed = arm(s) < 0;
	all.missed_threads += s->failed;
}

/* Whether the thread that the timer was made for is gone: another one may have its number by now. The timer of a thread
 * that lives always has time left; that of one that ended has none. Source: linux 6.1,
 * kernel/time/posix-cpu-timers.c, posix_cpu_timer_get(). */
static bool is_gone(const struct slot *s)
{
	struct itimerspec left;

	if (s->failed || !(atomic_load(&s->generation) & 1) || timer_gettime(s->timer, &left) < 0)
		return false;
	return !left.it_value.tv_sec && !left.it_value.tv_nsec;
}

static void look_at_thread(pid_t tid)
{
	uint32_t index;

	if (tid == all.own_tid)
		return;
	if (u64map_get(&all.by_tid, (uint64_t)tid, &index) == 0)
		slots[index].seen = !is_gone(&slots[index]);
	else
		add_thread(tid);
}

void sampler_watch(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t tid;

	if (!dir)
		return;
	for (size_t i = 0; i < SLOTS_MAX; i++)
		slots[i].seen = false;
	for (const struct dirent *e; (e = readdir(dir));)
		if (str_to_u64(str_of(e->d_name), 1, INT32_MAX, &tid) == 0)
			look_at_thread((pid_t)tid);
	closedir(dir);
	for (size_t i = 0; i < SLOTS_MAX; i++)
		if (slots[i].used && !slots[i].seen)
			disarm(&slots[i]); /* the slot is free once it is drained */
}

void sampler_begin(unsigned int frequency_hz)
{
	all.frequency_hz = frequency_hz;
	all.pid = getpid();
	all.own_tid = (pid_t)syscall(SYS_gettid);
	if (!all.claimed)
		u64map_init(&all.by_tid, SLOTS_MAX);
	all.claimed = true;
	sampler_watch();
}

/* What the handler has written is judged all the same: it lies in the program's memory. */
static bool read_record(const struct slot *s, uint64_t *at, uint64_t words[SAMPLE_WORDS],
			uint64_t frames[SAMPLE_FRAMES_MAX], struct sample *out)
{
	uint64_t how = s->ring[(*at + 1) % RING_WORDS];

	out->count = (uint32_t)s->ring[*at % RING_WORDS];
	out->end = (enum sample_end)(how >> 32);
	out->sp = s->ring[(*at + 2) % RING_WORDS];
	out->lr = s->ring[(*at + 3) % RING_WORDS];
	out->word_count = how >> 16 & 0xffff;
	out->frame_count = how & 0xffff;
	*at += RECORD_HEAD;
	if (out->word_count > SAMPLE_WORDS || out->frame_count > SAMPLE_FRAMES_MAX || out->end > SAMPLE_FRAME_LIMIT)
		return false;
	for (size_t i = 0; i < out->word_count; i++)
		words[i] = s->ring[(*at)++ % RING_WORDS];
	for (size_t i = 0; i < out->frame_count; i++)
		frames[i] = s->ring[(*at)++ % RING_WORDS];
	return true;
}

static void drain_slot(struct slot *s, void (*visit)(void *ctx, const struct sample *sample), void *ctx)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed), frames[SAMPLE_FRAMES_MAX];
	uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire), words[SAMPLE_WORDS];

	while (tail < head) {
		struct sample sample = { .tid = s->tid, .thread_name = s->name, .frames = frames, .words = words };
		bool good = read_record(s, &tail, words, frames, &sample);

		if (!good)
			tail = head; /* overwritten by the program: nothing behind can be found */
		atomic_store_explicit(&s->tail, tail, memory_order_release);
		if (good)
			visit(ctx, &sample);
		else
			all.lost++;
	}
}

void sampler_drain(void (*visit)(void *ctx, const struct sample *sample), void *ctx)
{
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *s = &slots[i];
		bool ended = !(atomic_load(&s->generation) & 1) && !(s->failed && s->seen);

		if (!s->used)
			continue;
		drain_slot(s, visit, ctx);
		all.lost += atomic_exchange(&s->lost, 0);
		if (!ended)
			continue;
		s->used = false;
		ignore(madvise(s->ring, RING_WORDS * sizeof(uint64_t), MADV_DONTNEED)); /* it stays ours, that is all */
		ignore(u64map_remove(&all.by_tid, (uint64_t)s->tid));                   /* it is there */
	}
}

void sampler_stack(pid_t tid, uint64_t start, uint64_t end)
{
	uint32_t index;

	if (u64map_get(&all.by_tid, (uint64_t)tid, &index) < 0)
		return;
	atomic_store(&slots[index].stack_end, end);
	atomic_store(&slots[index].stack_start, start);
}

void sampler_end(void)
{
	for (size_t i = 0; i < SLOTS_MAX; i++)
		if (slots[i].used)
			disarm(&slots[i]);
}

void sampler_totals(struct sampler_totals *out)
{
	*out = (struct sampler_totals){ .lost = all.lost, .missed_threads = all.missed_threads };
}

void sampler_forked(void)
{
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *s = &slots[i];

		if (!s->used && !s->ring)
			continue;
		if (atomic_load(&s->generation) & 1)
			atomic_fetch_add(&s->generation, 1);
		atomic_store(&s->busy, 0);
		atomic_store(&s->head, 0);
		atomic_store(&s->tail, 0);
		s->used = false;
	}
	if (all.claimed)
		u64map_clear(&all.by_tid); /* allocates nothing */
}
