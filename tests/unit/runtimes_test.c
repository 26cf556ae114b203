/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with real processes: children of this program, which is a file of the fake runtime, and interpreters. */
#include "support.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/python.h"
#include "base/clock.h"
#include "base/io.h"
#include "fake_runtime.h"
#include "proc/mappings.h"
#include "proc/proc_read.h"
#include "runtime/registry.h"
#include "runtime/runtimes.h"
#include "runtime/runtimes_int.h"

#define PYTHON "/usr/bin/python3"
#define PATIENCE_MS 5000
#define NO_ROOM_MS 15000 /* what found no room in the sink twice is told 10 s later */

static const struct runtime *const both[] = { &fake_runtime, &runtime_python, NULL };

struct told { /* what the sink was told of one process */
	pthread_mutex_t lock;
	uint32_t pid;
	size_t sets, forgets, programs;
	size_t gone;          /* forgets of any process */
	size_t room, refused; /* room: processes that fit, 0: all */
	bool walks_none;      /* as a sampler that does not walk that runtime's frames */
	uint8_t info[RUNTIME_INFO_MAX];
	size_t size;
	struct abi_runtimes head; /* the last one; exec_id 0: none */
	int head_error;           /* what telling a head says; 0: it is taken */
	uint32_t head_pid;
};

struct fixture {
	struct files *files;
	struct buf scratch;
	struct mapping_reader reader;
	struct runtimes *runtimes;
	struct told told;
	bool only_runtimes, by_frame_pointers;
	uint64_t doubt_ns;
};

static int told_set(void *self, enum abi_runtime runtime, uint32_t pid, const void *info, size_t size)
{
	struct told *t = self;

	(void)runtime;
	if (t->walks_none)
		return -ENOSYS;
	pthread_mutex_lock(&t->lock);
	if (t->room && t->sets - t->gone >= t->room) {
		t->refused++;
		pthread_mutex_unlock(&t->lock);
		return -ENOSPC;
	}
	t->pid = pid;
	t->sets++;
	t->size = size;
	memcpy(t->info, info, size);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static void told_forget(void *self, enum abi_runtime runtime, uint32_t pid)
{
	struct told *t = self;

	(void)runtime;
	pthread_mutex_lock(&t->lock);
	t->forgets += pid == t->pid;
	t->gone++;
	pthread_mutex_unlock(&t->lock);
}

/* Behind what it refers to. */
static int told_head(void *self, uint32_t pid, const struct abi_runtimes *head)
{
	struct told *t = self;
	int result;

	pthread_mutex_lock(&t->lock);
	if (!head || !t->head_error) {
		t->head = head ? *head : (struct abi_runtimes){ 0 };
		t->head_pid = pid;
		if (head)
			assert_int_equal(t->pid, pid);
	}
	result = head ? t->head_error : 0;
	pthread_mutex_unlock(&t->lock);
	return result;
}

static int told_program(void *self, uint64_t device, uint64_t inode)
{
	struct told *t = self;

	(void)device;
	pthread_mutex_lock(&t->lock);
	t->programs += inode != 0;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static size_t told_count(struct told *t, const size_t *which)
{
	size_t count;

	pthread_mutex_lock(&t->lock);
	count = *which;
	pthread_mutex_unlock(&t->lock);
	return count;
}

static void set_room(struct told *t, size_t room)
{
	pthread_mutex_lock(&t->lock);
	t->room = room;
	pthread_mutex_unlock(&t->lock);
}

static void fixture_open_with(struct fixture *f, const struct runtime *const *runtimes)
{
	const struct runtime_sink sink = {
		.set = told_set, .forget = told_forget, .head = told_head, .set_program = told_program, .self = &f->told
	};
	const struct runtimes_config cfg = {
		.runtimes = runtimes,
		.host_root = "",
		.sink = &sink,
		.clock = &clock_system,
		.want_application = true,
		.only_runtimes = f->only_runtimes,
		.by_frame_pointers = f->by_frame_pointers,
		.doubt_ns = f->doubt_ns,
	};

	pthread_mutex_init(&f->told.lock, NULL);
	assert_int_equal(files_open(256, &f->files), 0);
	f->scratch = (struct buf)BUF_INIT(MIB(4));
	mapping_reader_init(&f->reader, f->files, &f->scratch, 1000);
	assert_int_equal(runtimes_open(&cfg, f->files, &f->runtimes), 0);
}

static void fixture_open(struct fixture *f)
{
	fixture_open_with(f, both);
}

static void fixture_close(struct fixture *f)
{
	runtimes_close(f->runtimes);
	mapping_reader_release(&f->reader);
	buf_release(&f->scratch);
	files_close(f->files);
	pthread_mutex_destroy(&f->told.lock);
}

static struct program program_of(struct fixture *f, pid_t pid, uint32_t exec_id)
{
	struct proc_facts facts;
	int dir = proc_dir_open("", (uint32_t)pid);

	assert_true(dir >= 0);
	assert_int_equal(proc_facts_read(dir, 0, &f->scratch, &facts), 0);
	close(dir);
	return (struct program){ .pid = (uint32_t)pid,
				 .exec_id = exec_id,
				 .start_ns = facts.start_ticks * (NSEC_PER_SEC / 100) + 12345 };
}

/* The caller releases them. */
static void read_mappings(struct fixture *f, const struct program *p, struct mappings *out)
{
	int dir = proc_dir_open("", p->pid);

	assert_true(dir >= 0);
	assert_int_equal(mappings_read(&f->reader, dir, p->pid, out), 0);
	close(dir);
}

static void see(struct fixture *f, const struct program *p)
{
	struct mappings maps = { 0 };

	read_mappings(f, p, &maps);
	runtimes_see(f->runtimes, p, &maps);
	mappings_release(&maps);
}

static enum runtimes_state state_of(struct fixture *f, const struct program *p)
{
	struct runtimes_process out;

	runtimes_process(f->runtimes, p, &out);
	return out.state;
}

/* Return: milliseconds until it was so. */
static uint64_t wait_long(struct fixture *f, const struct program *p, enum runtimes_state wanted, uint64_t most_ms)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	uint64_t start = clock_monotonic_ns(&clock_system), now = start;

	while (state_of(f, p) != wanted && now - start < most_ms * NSEC_PER_MSEC) {
		nanosleep(&pause, NULL);
		now = clock_monotonic_ns(&clock_system);
	}
	assert_int_equal(state_of(f, p), wanted);
	return (now - start + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC;
}

static uint64_t wait_for(struct fixture *f, const struct program *p, enum runtimes_state wanted)
{
	return wait_long(f, p, wanted, PATIENCE_MS);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define NO_VERSION 99

/* A child of this program, in which the fake runtime starts up after @delay_ms; what is in its place for @wrong_ms more
 * is of no version. */
static pid_t start_wrong_fake(unsigned int delay_ms, unsigned int wrong_ms, uint64_t version)
{
	static struct fake_frame frames[3] = { { 0, 1 }, { 0, 2 }, { 0, 3 } };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion leaves nothing behind */
	frames[0].caller = (uint64_t)(uintptr_t)&frames[1];
	frames[1].caller = (uint64_t)(uintptr_t)&frames[2];
	usleep(delay_ms * 1000);
	fake_runtime_state.version = version;
	fake_runtime_state.top = (uint64_t)(uintptr_t)&frames[0];
	if (wrong_ms) {
		fake_runtime_state.version = NO_VERSION;
		__atomic_store_n(&fake_runtime_state.ready, 1, __ATOMIC_RELEASE);
		usleep(wrong_ms * 1000);
		__atomic_store_n(&fake_runtime_state.version, version, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&fake_runtime_state.ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static pid_t start_fake(unsigned int delay_ms, uint64_t version)
{
	return start_wrong_fake(delay_ms, 0, version);
}

/* A look while the loader is at work sees something else. @delay_ms: for so long the process has been known by then. */
static void passes(unsigned int delay_ms)
{
	struct runtime_stats stats;
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	fixture_open(&f);
	pid = start_wrong_fake(delay_ms, 300, 1);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.failed, 0);
	end(pid);
	fixture_close(&f);
}

static void what_passes_is_no_refusal(void **state)
{
	(void)state;
	passes(0);
	passes(1500);
}

#define SHORT_DOUBT_NS (300 * NSEC_PER_MSEC)

/* A child in which the fake runtime is as tell_child() says, and not ready until then. */
static pid_t start_unready(uint64_t version)
{
	static struct fake_frame frame = { 0, 1 };
	const struct fake_state before = fake_runtime_state;
	pid_t pid;

	fake_runtime_state = (struct fake_state){ .version = version, .top = (uint64_t)(uintptr_t)&frame };
	pid = fork();
	if (pid) {
		fake_runtime_state = before;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* @word: of fake_runtime_state, which lies in a child where it lies here. */
static void tell_child(pid_t pid, uint64_t *word, uint64_t value)
{
	const struct iovec from = { &value, sizeof(value) }, to = { word, sizeof(*word) };

	assert_int_equal(process_vm_writev(pid, &from, 1, &to, 1, 0), sizeof(value));
}

/* Two looks more: the first one may have begun before the child was told. */
static void wait_for_looks(struct fixture *f)
{
	struct runtime_stats before, now;

	runtimes_stats(f->runtimes, FAKE_RUNTIME, &before);
	now = before;
	for (int turn = 0; turn < PATIENCE_MS && now.retries < before.retries + 2; turn++) {
		usleep(1000);
		runtimes_stats(f->runtimes, FAKE_RUNTIME, &now);
	}
	assert_true(now.retries >= before.retries + 2);
}

/* It looks wrong twice and is not ready in between; the two are further apart than a doubt may last. */
static void doubts_do_not_add_up(void **state)
{
	struct fixture f = { .doubt_ns = 2 * NSEC_PER_SEC };
	struct runtime_stats stats;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_unready(NO_VERSION);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	tell_child(pid, &fake_runtime_state.ready, 1);
	wait_for_looks(&f);
	tell_child(pid, &fake_runtime_state.ready, 0);
	usleep((useconds_t)(f.doubt_ns / 1000));
	wait_for_looks(&f);
	tell_child(pid, &fake_runtime_state.ready, 1);
	wait_for_looks(&f);
	tell_child(pid, &fake_runtime_state.version, 1);
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.failed, 0);
	end(pid);
	fixture_close(&f);
}

static void asks_until_ready(void **state)
{
	struct runtimes_process process;
	struct runtime_stats stats;
	struct fixture f = { 0 };
	struct fake_info info;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(500, 1); /* so late that it is met before, however busy the machine is */
	p = program_of(&f, pid, 7);
	assert_int_equal(state_of(&f, &p), RUNTIMES_NONE);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	wait_for(&f, &p, RUNTIMES_READY);
	memcpy(&info, f.told.info, sizeof(info));
	assert_int_equal(f.told.size, sizeof(info));
	assert_int_equal(info.exec_id, 7);
	assert_int_equal(info.start_ns, p.start_ns);
	assert_int_equal(f.told.head_pid, pid);
	assert_int_equal(f.told.head.exec_id, 7);
	assert_int_equal(f.told.head.start_ns, p.start_ns);
	assert_int_equal(f.told.head.behind, 1U << FAKE_RUNTIME);
	assert_int_equal(f.told.head.range_count, 0);
	for (int turn = 0; turn < 1000; turn++) { /* it comes behind what is more urgent */
		runtimes_process(f.runtimes, &p, &process);
		if (process.application.len)
			break;
		usleep(1000);
	}
	assert_ptr_equal(process.binary->runtime, &fake_runtime);
	assert_int_equal(str_search(process.application, STR("fake: pid ")), 0);
	assert_true(str_eq(process.metadata_json, STR("{\"fake_version\":\"1\"}")));
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.binaries, 1);
	assert_int_equal(stats.attached, 1);
	assert_true(stats.retries >= 2 && stats.retries < 60);
	see(&f, &p); /* nothing new */
	runtimes_forget(f.runtimes, &p);
	wait_for(&f, &p, RUNTIMES_NONE);
	assert_int_equal(told_count(&f.told, &f.told.forgets), 1);
	assert_int_equal(told_count(&f.told, &f.told.programs), 1);
	assert_int_equal(f.told.head_pid, pid);
	assert_int_equal(f.told.head.exec_id, 0);
	end(pid);
	fixture_close(&f);
}

/* ---- a runtime whose files take long to look at, as on a slow disk ---- */

#define SLOW_PROGRAM "/usr/bin/sleep" /* is its file, which a quick look does not tell */

static struct {
	_Atomic bool opened;          /* until then looks do not end */
	_Atomic bool holds_libraries; /* quick ones at libraries neither */
	_Atomic size_t long_looks;    /* that have begun */
	_Atomic uint32_t too_early;   /* tries that find nothing mapped */
} gate;

static void wait_at_gate(void)
{
	for (int turn = 0; turn < 4 * PATIENCE_MS && !gate.opened; turn++)
		usleep(1000);
}

static int slow_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	if (!file->is_program && gate.holds_libraries)
		wait_at_gate();
	if (!str_eq(file->path, STR(SLOW_PROGRAM)))
		return 0;
	if (file->be_quick)
		return -EAGAIN;
	gate.long_looks++;
	wait_at_gate();
	*out = calloc(1, sizeof(**out));
	return *out ? 1 : -ENOMEM;
}

static void slow_release(struct runtime_binary *binary)
{
	free(binary);
}

static int slow_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	struct fake_info out = { .start_ns = target->start_ns, .exec_id = target->exec_id };

	(void)binary;
	if (gate.too_early) {
		gate.too_early--;
		return -EFAULT;
	}
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}

static const struct runtime slow_runtime = {
	.name = "slow",
	.title = "Slow",
	.id = FAKE_INLINE,
	.kind = MODEL_KIND_PYTHON,
	.error_kind = MODEL_KIND_PYTHON_ERROR,
	.probe = slow_probe,
	.release = slow_release,
	.attach = slow_attach,
};

static const struct runtime *const with_slow[] = { &fake_runtime, &slow_runtime, NULL };

/* Its exec is over, and the loader has mapped what it is made of. */
static bool is_of_slow(pid_t pid)
{
	scoped(buf_release) struct buf maps = BUF_INIT(MIB(1));
	scoped(closep) int dir = proc_dir_open("", (uint32_t)pid);

	return dir >= 0 && io_read_file_at(dir, "maps", &maps) == 0 &&
	       str_search(buf_str(&maps), STR(SLOW_PROGRAM)) >= 0 && str_search(buf_str(&maps), STR("/libc")) >= 0;
}

static pid_t start_slow(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(SLOW_PROGRAM, "sleep", "100", NULL);
		_exit(1);
	}
	for (int turn = 0; turn < PATIENCE_MS && !is_of_slow(pid); turn++)
		usleep(1000);
	assert_true(is_of_slow(pid));
	return pid;
}

static void a_long_look_holds_nobody_up(void **state)
{
	struct fixture f = { 0 };
	struct program p[3];
	pid_t pids[3];

	(void)state;
	gate.opened = gate.holds_libraries = false;
	fixture_open_with(&f, with_slow);
	for (int i = 0; i < 2; i++) {
		pids[i] = start_slow();
		p[i] = program_of(&f, pids[i], 1);
		see(&f, &p[i]); /* the second one while the first one's file is looked at */
		for (int turn = 0; turn < PATIENCE_MS && !gate.long_looks; turn++)
			usleep(1000);
	}
	assert_int_equal(gate.long_looks, 1);
	pids[2] = start_fake(0, 1);
	p[2] = program_of(&f, pids[2], 1);
	see(&f, &p[2]);
	wait_for(&f, &p[2], RUNTIMES_READY);
	assert_int_equal(state_of(&f, &p[0]), RUNTIMES_NONE);
	gate.opened = true;
	wait_for(&f, &p[0], RUNTIMES_READY);
	wait_for(&f, &p[1], RUNTIMES_READY);
	assert_int_equal(gate.long_looks, 1);
	for (int i = 0; i < 3; i++)
		end(pids[i]);
	fixture_close(&f);
}

/* ---- the order of long looks ---- */

/* The first two may hide a runtime, the others are one: a quick look tells no more. */
static const char *const long_files[] = { "/usr/bin/sleep", "/usr/bin/tail", "/usr/bin/cat",
					  "/usr/bin/head",  "/usr/bin/wc",   "/usr/bin/sort" };
enum { MAY_BE, MAY_BE_TOO, SURE, LAST_SURE = SURE + 3 };

static struct {
	char order[8]; /* of the long looks that have begun: a digit for each file */
	_Atomic size_t count;
	size_t waits_at; /* this one waits for the gate */
} queue;

static int queue_probe(const struct runtime_file *file, struct runtime_binary **out)
{
	size_t which = 0;

	while (which < ARRAY_SIZE(long_files) && !str_eq(file->path, str_of(long_files[which])))
		which++;
	if (which == ARRAY_SIZE(long_files))
		return 0;
	if (file->be_quick)
		return which >= SURE ? -EINPROGRESS : -EAGAIN;
	if (queue.count + 1 < sizeof(queue.order))
		queue.order[queue.count] = (char)('0' + which);
	queue.count++;
	if (which == queue.waits_at)
		wait_at_gate();
	if (which < SURE)
		return 0;
	*out = calloc(1, sizeof(**out));
	return *out ? 1 : -ENOMEM;
}

static void queue_open(struct fixture *f, size_t waits_at)
{
	static struct runtime queued;
	static const struct runtime *const only[] = { &queued, NULL };

	queued = slow_runtime;
	queued.probe = queue_probe;
	gate.opened = false;
	gate.too_early = 0;
	memset(&queue, 0, sizeof(queue));
	queue.waits_at = waits_at;
	fixture_open_with(f, only);
}

/* As if this process had mapped files @first to @last, in its program @exec_id. Return: that program. */
static struct program see_files(struct fixture *f, uint32_t exec_id, size_t first, size_t last)
{
	struct program p = program_of(f, getpid(), exec_id);
	struct mapping items[ARRAY_SIZE(long_files)] = { 0 };
	size_t count = 0;

	for (size_t i = first; i <= last; i++) {
		int fd = open(long_files[i], O_RDONLY | O_CLOEXEC);
		struct mapping *m = &items[count++];
		struct file_key key;
		struct stat st;

		assert_int_equal(fstat(fd, &st), 0);
		file_key_of(&st, &key);
		assert_int_equal(files_add(f->files, fd, &key, str_of(long_files[i]), &m->file_id), 0);
		m->start = MIB(1) * (1 + i);
		m->kind = PROC_PLACE_FILE;
		m->device = st.st_dev;
		m->inode = st.st_ino;
	}
	assert_true(runtimes_see(f->runtimes, &p, &(struct mappings){ .items = items, .count = count }));
	return p;
}

static bool has_work(struct fixture *f)
{
	bool has;

	pthread_mutex_lock(&f->runtimes->lock);
	has = f->runtimes->work.done < f->runtimes->work.added;
	pthread_mutex_unlock(&f->runtimes->lock);
	return has;
}

static void finish_work(struct fixture *f)
{
	for (int turn = 0; turn < PATIENCE_MS && has_work(f); turn++)
		usleep(1000);
	assert_false(has_work(f));
}

static void wait_for_long_look(size_t count)
{
	for (int turn = 0; turn < PATIENCE_MS && queue.count < count; turn++)
		usleep(1000);
	assert_int_equal(queue.count, count);
}

static void sure_runtimes_are_looked_at_first(void **state)
{
	struct fixture f = { 0 };
	struct program p;

	(void)state;
	queue_open(&f, MAY_BE);
	see_files(&f, 1, MAY_BE, MAY_BE);
	wait_for_long_look(1);
	for (int turn = 0; turn < 3; turn++) /* its mappings are read again: it waits already */
		see_files(&f, 2, MAY_BE_TOO, MAY_BE_TOO);
	p = see_files(&f, 3, SURE, SURE);
	finish_work(&f);
	assert_int_equal(f.runtimes->looks.added, 3);
	gate.opened = true;
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_string_equal(queue.order, "021");
	fixture_close(&f);
}

/* A library went, another came: as many mappings as the message that waits has, and a file that it lacks. */
static void another_file_is_another_message(void **state)
{
	struct fixture f = { 0 };

	(void)state;
	queue_open(&f, MAY_BE);
	see_files(&f, 1, MAY_BE, MAY_BE);
	wait_for_long_look(1);
	see_files(&f, 2, MAY_BE_TOO, MAY_BE_TOO);
	see_files(&f, 2, MAY_BE, MAY_BE);
	see_files(&f, 2, MAY_BE, MAY_BE); /* this one waits already */
	finish_work(&f);
	assert_int_equal(f.runtimes->looks.added, 3);
	gate.opened = true;
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	fixture_close(&f);
}

/* Whoever makes files that look like a runtime does not keep the others waiting for ever. */
static void each_fourth_look_is_at_another_file(void **state)
{
	struct fixture f = { 0 };

	(void)state;
	queue_open(&f, MAY_BE);
	see_files(&f, 1, MAY_BE, MAY_BE);
	wait_for_long_look(1);
	see_files(&f, 2, MAY_BE_TOO, MAY_BE_TOO);
	for (uint32_t i = SURE; i <= LAST_SURE; i++)
		see_files(&f, 1 + i, i, i);
	finish_work(&f);
	assert_int_equal(f.runtimes->looks.added, 6);
	gate.opened = true;
	wait_for_long_look(6);
	assert_string_equal(queue.order, "023145");
	see_files(&f, 9, MAY_BE, MAY_BE_TOO); /* both are known */
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(queue.count, 6);
	fixture_close(&f);
}

/* Its other files wait behind those of others. */
static void a_runtime_that_is_found_is_told_at_once(void **state)
{
	struct fixture f = { 0 };
	struct program p;

	(void)state;
	queue_open(&f, MAY_BE_TOO);
	p = see_files(&f, 1, MAY_BE, SURE);
	wait_for(&f, &p, RUNTIMES_READY);
	wait_for_long_look(3);
	assert_string_equal(queue.order, "201");
	gate.opened = true;
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(queue.count, 3);
	fixture_close(&f);
}

/* HotSpot's pointers lead to what its loader has not relocated yet. */
static void what_is_not_mapped_yet_is_no_refusal(void **state)
{
	struct runtime_stats stats;
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	gate.opened = true;
	gate.holds_libraries = false;
	gate.too_early = 3;
	fixture_open_with(&f, with_slow);
	pid = start_slow();
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_stats(f.runtimes, FAKE_INLINE, &stats);
	assert_int_equal(stats.failed, 0);
	assert_int_equal(stats.retries, 3);
	end(pid);
	fixture_close(&f);
}

static void wait_until_started(pid_t pid)
{
	struct fake_state fake = { 0 };
	const struct iovec to = { &fake, sizeof(fake) }, from = { &fake_runtime_state, sizeof(fake) };

	for (int turn = 0; turn < PATIENCE_MS && !fake.ready; turn++) {
		usleep(1000);
		assert_int_equal(process_vm_readv(pid, &to, 1, &from, 1, 0), sizeof(fake));
	}
	assert_true(fake.ready);
}

static void a_runtime_does_not_wait_for_its_libraries(void **state)
{
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	gate.opened = false;
	gate.holds_libraries = true;
	fixture_open_with(&f, with_slow);
	pid = start_fake(0, 1);
	wait_until_started(pid);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	gate.opened = true;
	end(pid);
	fixture_close(&f);
}

static int read_own(void *self, void *dst, __u32 size, __u64 at)
{
	(void)self;
	memcpy(dst, (const void *)(uintptr_t)at, size);
	return 0;
}

/* The frames stand behind a native one, in a record that the host takes. */
static void walks(void **state)
{
	static const struct walk_world world = { .read = read_own };
	const struct fake_frame caller = { 0, 22 }, top = { (uint64_t)(uintptr_t)&caller, 11 };
	const uint64_t place = (uint64_t)(uintptr_t)&top, nowhere = 0;
	struct fake_info info = { .top = (uint64_t)(uintptr_t)&place };
	struct walk *w = calloc(1, sizeof(*w));
	enum walk_next next;

	(void)state;
	assert_non_null(w);
	w->world = &world;
	assert_int_equal(walk_push(w, ABI_FRAME_NATIVE, 0, 1), 0);
	for (next = fake_walk_start(w, &info); next == WALK_MORE;)
		next = fake_walk_step(w, &info);
	assert_int_equal(w->count, 1);
	assert_int_equal(w->runtime_count, 2);
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_WHOLE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->frames[1 + i].kind, ABI_FRAME_RUNTIME);
		assert_int_equal(w->frames[1 + i].runtime, FAKE_RUNTIME);
		assert_int_equal(w->frames[1 + i].flags, ABI_FRAME_ENTRY);
		assert_int_equal(w->frames[1 + i].a, i ? 22 : 11);
		assert_int_equal(w->frames[1 + i].b, FAKE_BEHIND_COOKIE);
	}
	info.top = (uint64_t)(uintptr_t)&nowhere;
	assert_int_equal(fake_walk_start(w, &info), WALK_DONE);
	assert_int_equal(w->runtime_end, ABI_RUNTIME_END_NO_STATE);
	free(w);
}

/* What commands take for granted of each row: options are made of it. */
static void rows_are_whole(void **state)
{
#define X(name, ...) runtime_modes_##name,
	const char *const *const modes[] = { RUNTIMES(X) };
#undef X

	(void)state;
	for (size_t i = 0; i < RUNTIME_COUNT; i++) {
		const struct runtime *r = runtime_at(i);

		assert_ptr_equal(runtime_find(r->id), r);
		assert_true(r->id > ABI_RUNTIME_NONE && r->id < ABI_RUNTIME_COUNT);
		assert_true(model_kind_is_runtime(r->kind) && model_kind_is_runtime(r->error_kind));
		assert_string_equal(modes[i][0], "auto");
		assert_non_null(r->ways);
		assert_int_equal(r->ways[0], RUNTIME_WAY_AUTO);
		for (size_t j = 0; modes[i][j]; j++)
			assert_int_equal(r->ways[j] == RUNTIME_WAY_OFF,
					 !strcmp(modes[i][j], "disabled") || !strcmp(modes[i][j], "none"));
	}
	assert_null(runtime_at(RUNTIME_COUNT));
}

#define LONG_NAME KIB(512)
#define LONG_NAMES 1000

static int read_long_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			  struct buf *room, struct runtime_function *out)
{
	char *bytes = buf_reserve(room, LONG_NAME);

	(void)target;
	(void)info;
	(void)key;
	(void)cookie;
	if (!bytes)
		return room->error;
	memset(bytes, 'x', LONG_NAME);
	buf_commit(room, LONG_NAME);
	*out = (struct runtime_function){ .name = buf_str(room), .first_line = 1 };
	return 0;
}

static size_t find_long_names(struct fixture *f, const struct program *p)
{
	size_t found = 0;

	for (uint64_t i = 1; i <= LONG_NAMES; i++) {
		const struct abi_frame frame = { .runtime = FAKE_RUNTIME, .a = i, .b = 1 };
		struct runtimes_frame out;

		runtimes_frame(f->runtimes, p, &frame, &out);
		found += out.function != 0;
	}
	return found;
}

static int read_short_name(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
			   struct buf *room, struct runtime_function *out)
{
	(void)target;
	(void)info;
	(void)key;
	(void)cookie;
	buf_adds(room, STR("short"));
	*out = (struct runtime_function){ .name = buf_str(room), .first_line = 1 };
	return room->error;
}

/* The kernel walks it by what it was told before; the worker is not attached to it just now. */
static void a_name_that_is_asked_too_early_comes(void **state)
{
	static const struct abi_frame frame = { .runtime = FAKE_RUNTIME, .a = 1, .b = 1 };
	static struct runtime with_names;
	static const struct runtime *const only[] = { &with_names, NULL };
	struct runtimes_frame out = { 0 };
	struct runtime_stats stats = { 0 };
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	with_names = fake_runtime;
	with_names.read_name = read_short_name;
	fixture_open_with(&f, only);
	pid = start_unready(1);
	p = program_of(&f, pid, 7);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	runtimes_frame(f.runtimes, &p, &frame, &out);
	for (int turn = 0; turn < PATIENCE_MS && !stats.names_unreadable; turn++) {
		usleep(1000);
		runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	}
	assert_int_equal(stats.names_unreadable, 1);
	tell_child(pid, &fake_runtime_state.ready, 1);
	wait_for(&f, &p, RUNTIMES_READY);
	for (int turn = 0; turn < PATIENCE_MS && !out.function; turn++) {
		runtimes_frame(f.runtimes, &p, &frame, &out);
		usleep(1000);
	}
	assert_true(out.function != 0);
	end(pid);
	fixture_close(&f);
}

/* A process has the names that it likes, and stops when they have been asked for: nobody takes the answers. */
static void answers_are_bounded(void **state)
{
	static struct runtime with_names;
	static const struct runtime *const only[] = { &with_names, NULL };
	const struct runtimes_config cfg = { .runtimes = only, .host_root = "", .clock = &clock_system };
	struct runtime_stats before = { 0 }, stats = { 0 };
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;
	int turn;

	(void)state;
	with_names = fake_runtime;
	with_names.read_name = read_long_name;
	fixture_open(&f);
	runtimes_close(f.runtimes);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 7);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	assert_false(runtimes_has_asked(f.runtimes));
	ignore(find_long_names(&f, &p) == 0); /* the worker may be as fast */
	assert_true(runtimes_has_asked(f.runtimes));
	assert_false(runtimes_has_asked(f.runtimes)); /* since the last call */
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &before);
	usleep(300000);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_in_range(stats.names_read - before.names_read, 0, LONG_NAMES / 10);
	for (turn = 0; turn < PATIENCE_MS && find_long_names(&f, &p) < LONG_NAMES; turn++)
		usleep(1000);
	assert_true(turn < PATIENCE_MS); /* asked for again, they are there */
	end(pid);
	fixture_close(&f);
}

static struct { /* of the reads of one runtime */
	_Atomic int within, without, files, processes;
	_Atomic bool moves; /* memory is freed while it is read in an epoch */
} looks;

static int look_file(const struct runtime_binary *binary, const struct runtime_target *target, void **out)
{
	looks.files++;
	return fake_inline.learn_file(binary, target, out);
}

static int look_process(const struct runtime_target *target, const void *info, void **out)
{
	assert_non_null(target->of_file);
	assert_non_null(target->remark);
	snprintf(target->remark, RUNTIME_WHY_MAX, "is looked at");
	looks.processes++;
	return fake_inline.learn_process(target, info, out);
}

static int look_code(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		     struct buf *room, struct runtime_function *out)
{
	if (target->in_epoch && looks.moves)
		fake_inline_state.epoch++; /* the process is this one */
	looks.within += target->in_epoch;
	looks.without += !target->in_epoch;
	buf_adds(room, STR("made"));
	(void)info;
	(void)key;
	(void)cookie;
	*out = (struct runtime_function){ .name = buf_str(room) };
	return 0;
}

/* Until it has the name of code @key. */
static void read_code(struct fixture *f, const struct program *p, uint64_t key)
{
	const struct abi_frame frame = { .runtime = FAKE_INLINE, .flags = ABI_FRAME_COMPILED, .a = key, .b = 1 };
	struct runtime_function what;
	struct runtimes_frame out = { 0 };

	for (int turn = 0; turn < PATIENCE_MS && !out.function; turn++) {
		runtimes_frame(f->runtimes, p, &frame, &out);
		usleep(1000);
	}
	assert_int_equal(runtimes_function(f->runtimes, out.function, &what), 0);
	assert_true(str_eq(what.name, STR("made"))); /* not what was read while memory was freed, and again */
	assert_true(what.is_code);
}

/* In this process: tables are read once for the file and once for the process; what is read in one epoch is read
 * once. */
static void what_is_learnt_stays(void **state)
{
	static struct runtime looked;
	static const struct runtime *const only[] = { &looked, NULL };
	const struct runtimes_config cfg = { .runtimes = only, .host_root = "", .clock = &clock_system };
	scoped(buf_release) struct buf said = BUF_INIT(KIB(4)), wanted = BUF_INIT(KIB(1));
	struct fixture f = { 0 };
	struct program p;

	(void)state;
	looked = fake_inline;
	looked.learn_file = look_file;
	looked.learn_process = look_process;
	looked.read_code = look_code;
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1 };
	fixture_open(&f);
	runtimes_close(f.runtimes);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	p = program_of(&f, getpid(), 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	read_code(&f, &p, 1);
	read_code(&f, &p, 2);
	assert_int_equal(looks.within, 2);
	assert_int_equal(looks.without, 0);
	looks.moves = true;
	read_code(&f, &p, 3);
	assert_int_equal(looks.within, 3);
	assert_int_equal(looks.without, 1);
	assert_int_equal(looks.files, 1);
	assert_int_equal(looks.processes, 1);
	runtimes_notices(f.runtimes, &said); /* once */
	buf_addf(&wanted, "process %d: %s is looked at\n", getpid(), looked.title);
	assert_string_equal(buf_cstr(&said), buf_cstr(&wanted));
	p.exec_id = 2; /* another process of the file */
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	looks.moves = false;
	read_code(&f, &p, 1);
	assert_int_equal(looks.files, 1);
	assert_int_equal(looks.processes, 2);
	fixture_close(&f);
}

static unsigned threads_asked;

static int names_later(const struct runtime_target *target, const void *info, runtime_thread_fn *each, void *ctx)
{
	if (!threads_asked++)
		return -EAGAIN;
	return fake_inline.thread_names(target, info, each, ctx);
}

/* A runtime that has not started up so far is asked for its threads again soon. */
static void threads_get_names_later(void **state)
{
	static struct runtime later;
	static const struct runtime *const only[] = { &later, NULL };
	const struct runtimes_config cfg = {
		.runtimes = only, .host_root = "", .clock = &clock_system, .want_threads = true
	};
	scoped(buf_release) struct buf name = BUF_INIT(KIB(1)), comm = BUF_INIT(64);
	struct fixture f = { 0 };
	struct program p;

	(void)state;
	later = fake_inline;
	later.thread_names = names_later;
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1 };
	fixture_open(&f);
	runtimes_close(f.runtimes);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	p = program_of(&f, getpid(), 1);
	assert_int_equal(io_read_file("/proc/self/comm", &comm), 0);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	for (int turn = 0; turn < PATIENCE_MS && !name.len; turn++) {
		struct str own = str_n(comm.ptr, comm.len - 1);

		runtimes_thread(f.runtimes, &p, p.pid, own);
		ignore(runtimes_thread_name(f.runtimes, &p, p.pid, own, &name) < 0);
		usleep(1000);
	}
	assert_string_equal(buf_cstr(&name), FAKE_THREAD_NAME);
	fixture_close(&f);
	assert_int_equal(threads_asked, 2);
}

/* ---- two runtimes in one process ---- */

static int probe_libraries(const struct runtime_file *file, struct runtime_binary **out)
{
	return file->is_program ? 0 : fake_inline.probe(file, out);
}

static int read_self(void *self, void *dst, size_t size, uint64_t offset)
{
	return io_pread_all(*(int *)self, dst, size, offset);
}

static int other_application(const struct runtime_target *target, struct buf *out)
{
	(void)target;
	buf_adds(out, STR("other: application"));
	return 0;
}

static int other_metadata(const struct runtime_binary *binary, const struct runtime_target *target, struct buf *json)
{
	(void)target;
	buf_addf(json, "{\"other_version\":\"%s\",\"fake_version\":\"not mine\"}", binary->version);
	return 0;
}

/* A child with the fake runtime that loads a library of another one after a byte came. */
static pid_t start_two(int go, uint64_t ready)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fake_runtime_state = (struct fake_state){ .ready = ready, .version = 1 };
	if (read(go, &byte, 1) != 1 || !dlopen(getenv("HEARTH_FAKE_LIBRARY"), RTLD_NOW))
		_exit(1);
	for (;;)
		pause();
}

/* Tells of what is mapped, as samples do, until the metadata are @wanted. */
static void wait_for_metadata(struct fixture *f, const struct program *p, struct str wanted, struct str application)
{
	struct runtimes_process out = { 0 };

	for (int turn = 0; turn < PATIENCE_MS && !str_eq(out.metadata_json, wanted); turn++) {
		see(f, p);
		runtimes_process(f->runtimes, p, &out);
		usleep(1000);
	}
	if (!str_eq(out.metadata_json, wanted))
		fail_msg("metadata: " STR_FMT, STR_ARG(out.metadata_json));
	assert_int_equal(str_search(out.application, application), 0);
}

/* A program of Python that loads libjvm stays one; what it has more is told when it is there. */
static void the_main_program_gives_the_application(void **state)
{
	static struct runtime other;
	static const struct runtime *const two[] = { &other, &fake_runtime, NULL };
	const struct runtimes_config cfg = {
		.runtimes = two, .host_root = "", .clock = &clock_system, .want_application = true
	};
	struct fixture f = { 0 };
	struct program p;
	int go[2];
	pid_t pid;

	(void)state;
	other = fake_inline;
	other.application = other_application;
	other.metadata = other_metadata;
	/* This program has the symbols of both: it is a file of the one that is asked last. */
	other.probe = probe_libraries;
	fixture_open(&f);
	runtimes_close(f.runtimes);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_two(go[0], 1);
	p = program_of(&f, pid, 1);
	wait_for_metadata(&f, &p, STR("{\"fake_version\":\"1\"}"), STR("fake: pid "));
	assert_int_equal(write(go[1], "x", 1), 1);
	wait_for_metadata(&f, &p, STR("{\"fake_version\": \"1\", \"other_version\": \"1\"}"), STR("fake: pid "));
	end(pid);
	close(go[0]);
	close(go[1]);
	fixture_close(&f);
}

/* As if it had been known for so long: then it is asked once a minute. */
static void make_old(struct fixture *f, const struct program *p)
{
	struct runtimes_entry *e;

	pthread_mutex_lock(&f->runtimes->lock);
	e = runtimes_entry_find(f->runtimes, p);
	assert_non_null(e);
	e->since_ns -= 1000 * NSEC_PER_SEC;
	pthread_mutex_unlock(&f->runtimes->lock);
}

static _Atomic unsigned int attach_tries;

static int attach_late(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	(void)binary;
	(void)target;
	(void)info;
	return attach_tries++ < 20 ? -EAGAIN : -ENOTSUP;
}

/* A JVM in an old process of Python starts up in milliseconds, as any other does. @ready: whether the first runtime was
 * attached to by then, or is still asked. */
static void look_at_late(uint64_t ready)
{
	static struct runtime other;
	static const struct runtime *const two[] = { &other, &fake_runtime, NULL };
	struct fixture f = { 0 };
	struct program p;
	int go[2];
	pid_t pid;

	other = fake_inline;
	other.attach = attach_late;
	other.probe = probe_libraries;
	attach_tries = 0;
	fixture_open_with(&f, two);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_two(go[0], ready);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, ready ? RUNTIMES_READY : RUNTIMES_PENDING);
	make_old(&f, &p);
	usleep(300000); /* its next look is in a minute */
	assert_int_equal(write(go[1], "x", 1), 1);
	for (int turn = 0; turn < PATIENCE_MS && !attach_tries; turn++) {
		see(&f, &p);
		usleep(1000);
	}
	for (int turn = 0; turn < PATIENCE_MS && attach_tries < 20; turn++)
		usleep(1000);
	assert_true(attach_tries >= 20);
	end(pid);
	close(go[0]);
	close(go[1]);
	fixture_close(&f);
}

static void a_late_runtime_is_asked_as_a_new_one(void **state)
{
	(void)state;
	look_at_late(1);
	look_at_late(0);
}

/* The rule: the program itself, then what it is linked with, then nobody. */
static void which_is_the_main_one(void **state)
{
	static struct elf_segment segment = { .address = 0x1000, .memory_size = 0x1000 };
	struct runtimes_probed files[] = {
		{ .segments = { .segments = &segment, .segment_count = 1 },
		  .path = (char *)(uintptr_t) "/opt/libjvm.so" },
		{ .segments = { .segments = &segment, .segment_count = 1 },
		  .path = (char *)(uintptr_t) "/lib/libc.so.6" },
		{ .segments = { .segments = &segment, .segment_count = 1 },
		  .path = (char *)(uintptr_t) "/usr/bin/python3" },
	};
	struct runtimes_attached attached[] = {
		{ .probed = &files[0], .bias = 0x7f0000000000 },
		{ .probed = &files[1], .bias = 0x7f8000000000 },
		{ .probed = &files[2], .bias = 0x550000000000 },
	};
	scoped(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct reader in = { .read = read_self, .self = &fd, .size = MIB(1024) };
	scoped(elf_release) struct elf program = { 0 };

	(void)state;
	assert_int_equal(elf_parse(&in, &program), 0);
	assert_ptr_equal(runtimes_main_of(attached, 3, 0x550000001fff, &program), &attached[2]);
	assert_ptr_equal(runtimes_main_of(attached, 3, 0x550000002000, &program), &attached[1]); /* outside */
	assert_ptr_equal(runtimes_main_of(attached, 3, 0x550000000fff, NULL), NULL);
	assert_ptr_equal(runtimes_main_of(attached, 2, 0x550000001000, &program), &attached[1]); /* as with libpython */
	assert_ptr_equal(runtimes_main_of(attached, 1, 0x550000001000, &program), NULL);
	assert_ptr_equal(runtimes_main_of(attached, 3, 0, NULL), NULL);
	assert_ptr_equal(runtimes_main_of(attached, 0, 0x1000, &program), NULL);
}

/* All of them together; a process that is described again gives back what it had. */
static void metadata_are_bounded(void **state)
{
	scoped(freep) struct runtimes *r = calloc(1, sizeof(*r));
	scoped(freep) char *text = malloc(KIB(50) + 1);
	struct runtimes_entry one = { 0 }, other = { 0 };

	(void)state;
	assert_true(r && text);
	memset(text, ' ', KIB(50));
	text[KIB(50)] = 0;
	assert_int_equal(runtimes_metadata_room(r, &one), RUNTIMES_METADATA_MAX);
	r->metadata_bytes = RUNTIMES_METADATA_ALL - KIB(100);
	assert_int_equal(runtimes_metadata_room(r, &one), KIB(100));
	runtimes_set_metadata(r, &one, text);
	text = NULL;
	assert_int_equal(runtimes_metadata_room(r, &one), KIB(100));
	assert_int_equal(runtimes_metadata_room(r, &other), KIB(50));
	r->metadata_bytes += KIB(50);
	assert_int_equal(runtimes_metadata_room(r, &other), RUNTIMES_TEXT_MAX);
	runtimes_set_metadata(r, &one, NULL);
	assert_int_equal(r->metadata_bytes, RUNTIMES_METADATA_ALL - KIB(50));
	assert_null(one.metadata);
}

static void metadata_are_joined(void **state)
{
	static const struct {
		const char *first, *second, *want;
		int result;
	} cases[] = {
		{ "", "", "", 0 },
		{ "{\"a\":1}", "", "{\"a\":1}", 0 },
		{ "", "{\"b\": null}", "{\"b\": null}", 0 },
		{ "{\"a\":1,\"b\":[{}]}", "{\"b\":2, \"c\": \"}\"}", "{\"a\": 1, \"b\": [{}], \"c\": \"}\"}", 0 },
		{ "{}", "{\"c\":3}", "{\"c\": 3}", 0 },
		{ "{\"c\":3}", " {} ", "{\"c\": 3}", 0 },
		{ "{\"a\":1}", "[1]", "", -EBADMSG },
		{ "{\"a\":1", "{}", "", -EBADMSG },
		{ "{\"a\":1} x", "{}", "", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		scoped(buf_release) struct buf out = BUF_INIT(64);

		print_message("  %s %s\n", cases[i].first, cases[i].second);
		assert_int_equal(runtimes_join_metadata(str_of(cases[i].first), str_of(cases[i].second), &out),
				 cases[i].result);
		assert_string_equal(buf_cstr(&out), cases[i].want);
	}
}

static void refuses(void **state)
{
	scoped(buf_release) struct buf notices = BUF_INIT(4096);
	struct fixture f = { .doubt_ns = SHORT_DOUBT_NS };
	struct runtime_stats stats;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, NO_VERSION);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_REFUSED);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(told_count(&f.told, &f.told.sets), 0);
	runtimes_notices(f.runtimes, &notices);
	assert_true(str_search(buf_str(&notices), STR(": fake is not laid out as its version should be; ")) > 0);
	buf_clear(&notices);
	runtimes_notices(f.runtimes, &notices);
	assert_int_equal(notices.len, 0);
	end(pid);
	fixture_close(&f);
}

/* A process stood still while it started, and looked wrong for longer than a doubt lasts. */
static void refused_is_looked_at_again(void **state)
{
	struct fixture f = { .doubt_ns = SHORT_DOUBT_NS };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_unready(NO_VERSION);
	tell_child(pid, &fake_runtime_state.ready, 1);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_REFUSED);
	tell_child(pid, &fake_runtime_state.version, 1);
	see(&f, &p);
	usleep(50000);
	wait_for(&f, &p, RUNTIMES_REFUSED); /* not so soon */
	usleep((useconds_t)(SHORT_DOUBT_NS * 10 / 1000));
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	end(pid);
	fixture_close(&f);
}

/* Another runtime's frames are all that this sampler takes: nothing is wrong with the process, and nothing of it is
 * seen. */
static void another_runtimes_sampler(void **state)
{
	static const struct runtime *const only[] = { &fake_runtime, NULL };
	scoped(buf_release) struct buf notices = BUF_INIT(4096);
	struct fixture f = { .told.walks_none = true, .only_runtimes = true };
	struct runtime_stats stats;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open_with(&f, only);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_REFUSED);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.failed, 1);
	runtimes_notices(f.runtimes, &notices);
	assert_true(str_search(buf_str(&notices),
			       STR(": fake is not read by this sampler; its samples are left out\n")) > 0);
	end(pid);
	fixture_close(&f);
}

/* The sink is full. One that has ended without anybody saying so makes room, else it is said and asked seldom. */
static void without_room_it_waits(void **state)
{
	scoped(buf_release) struct buf notices = BUF_INIT(4096);
	struct fixture f = { 0 };
	struct program p[3];
	pid_t pids[3];

	(void)state;
	fixture_open(&f);
	set_room(&f.told, 1);
	for (uint32_t i = 0; i < 3; i++) {
		pids[i] = start_fake(0, 1);
		p[i] = program_of(&f, pids[i], 1);
	}
	see(&f, &p[0]);
	wait_for(&f, &p[0], RUNTIMES_READY);
	end(pids[0]);
	see(&f, &p[1]); /* takes the place of the first */
	wait_for(&f, &p[1], RUNTIMES_READY);
	assert_int_equal(told_count(&f.told, &f.told.refused), 1);
	see(&f, &p[2]);
	wait_for(&f, &p[2], RUNTIMES_PENDING);
	usleep(300000);
	assert_in_range(told_count(&f.told, &f.told.refused), 2, 4);
	runtimes_notices(f.runtimes, &notices);
	assert_true(str_search(buf_str(&notices),
			       STR("more processes with a language runtime than there is room for")) >= 0);
	end(pids[1]);
	end(pids[2]);
	fixture_close(&f);
}

static void a_gone_process_is_forgotten(void **state)
{
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(60000, 1);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	end(pid);
	wait_for(&f, &p, RUNTIMES_NONE);
	fixture_close(&f);
}

/* Sets how many descriptors more this program may open. Return: what it was allowed. */
static struct rlimit leave_descriptors(size_t count)
{
	struct rlimit before, now;
	int last = -1, fds[16];

	assert_true(count < ARRAY_SIZE(fds));
	for (size_t i = 0; i < count; i++)
		fds[i] = last = dup(STDERR_FILENO);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = (struct rlimit){ .rlim_cur = (rlim_t)(last + 1), .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

/* Only a process that is gone is forgotten. */
static void without_descriptors_nothing_is_forgotten(void **state)
{
	struct fixture f = { 0 };
	struct rlimit before;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_unready(1);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	before = leave_descriptors(0);
	usleep(500000); /* it is looked at each 100 ms */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(state_of(&f, &p), RUNTIMES_PENDING);
	tell_child(pid, &fake_runtime_state.ready, 1);
	wait_for(&f, &p, RUNTIMES_READY);
	end(pid);
	fixture_close(&f);
}

/* Those that are swept because there is no room in the sink: there are descriptors for a look at one process, and not
 * for a look at another one while that lasts. */
static void a_sweep_without_descriptors_forgets_nobody(void **state)
{
	struct fixture f = { .told.room = 1 };
	struct mappings maps = { 0 };
	struct program p[2];
	struct rlimit before;
	pid_t pids[2];

	(void)state;
	fixture_open(&f);
	for (uint32_t i = 0; i < 2; i++) {
		pids[i] = start_fake(0, 1);
		p[i] = program_of(&f, pids[i], 1);
	}
	see(&f, &p[0]);
	wait_for(&f, &p[0], RUNTIMES_READY);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	read_mappings(&f, &p[1], &maps);
	before = leave_descriptors(3);
	assert_true(runtimes_see(f.runtimes, &p[1], &maps));
	for (int turn = 0; turn < PATIENCE_MS && !told_count(&f.told, &f.told.refused); turn++)
		usleep(1000);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(told_count(&f.told, &f.told.refused) >= 1);
	assert_int_equal(state_of(&f, &p[0]), RUNTIMES_READY);
	assert_int_equal(state_of(&f, &p[1]), RUNTIMES_PENDING);
	mappings_release(&maps);
	end(pids[0]);
	end(pids[1]);
	fixture_close(&f);
}

/* Another process got its pid: the start time tells. */
static void another_start_time_is_another_process(void **state)
{
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 1);
	p.start_ns -= NSEC_PER_SEC;
	see(&f, &p);
	usleep(50000);
	assert_int_equal(state_of(&f, &p), RUNTIMES_NONE);
	assert_int_equal(told_count(&f.told, &f.told.sets), 0);
	end(pid);
	fixture_close(&f);
}

static void a_child_has_its_parents(void **state)
{
	struct fixture f = { 0 };
	struct program parent, child;
	struct fake_info info;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	parent = program_of(&f, pid, 3);
	child = (struct program){ .pid = (uint32_t)getpid(), .exec_id = 4, .start_ns = 55 };
	see(&f, &parent);
	wait_for(&f, &parent, RUNTIMES_READY);
	runtimes_share(f.runtimes, &child, &parent);
	wait_for(&f, &child, RUNTIMES_READY);
	memcpy(&info, f.told.info, sizeof(info));
	assert_int_equal(f.told.pid, getpid());
	assert_int_equal(info.start_ns, 55);
	assert_int_equal(info.exec_id, 4);
	assert_true(info.top != 0);
	assert_int_equal(f.told.head_pid, getpid());
	assert_int_equal(f.told.head.start_ns, 55);
	assert_int_equal(f.told.head.exec_id, 4);
	end(pid);
	fixture_close(&f);
}

/* After an exec the old program's end does not take what the new one has. */
static void an_exec_stays(void **state)
{
	struct fixture f = { 0 };
	struct program old, new;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	old = program_of(&f, pid, 1);
	new = program_of(&f, pid, 2);
	see(&f, &old);
	wait_for(&f, &old, RUNTIMES_READY);
	see(&f, &new);
	wait_for(&f, &new, RUNTIMES_READY);
	runtimes_forget(f.runtimes, &old);
	wait_for(&f, &old, RUNTIMES_NONE);
	assert_int_equal(told_count(&f.told, &f.told.forgets), 0);
	assert_int_equal(f.told.head.exec_id, 2);
	end(pid);
	fixture_close(&f);
}

/* The end of the old program was lost: what it had does not keep what the new one had. */
static void an_old_program_is_no_successor(void **state)
{
	struct fixture f = { 0 };
	struct program old, new;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	old = program_of(&f, pid, 1);
	new = program_of(&f, pid, 2);
	see(&f, &old);
	wait_for(&f, &old, RUNTIMES_READY);
	see(&f, &new);
	wait_for(&f, &new, RUNTIMES_READY);
	runtimes_forget(f.runtimes, &new);
	wait_for(&f, &new, RUNTIMES_NONE);
	assert_int_equal(told_count(&f.told, &f.told.forgets), 1);
	assert_int_equal(f.told.head.exec_id, 0);
	end(pid);
	fixture_close(&f);
}

/* The reader met the old program, whose files took a long look: what is told of it then is told too late. */
static void an_old_program_comes_late(void **state)
{
	struct fixture f = { 0 };
	struct program old, new;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	old = program_of(&f, pid, UINT32_MAX); /* they wrap */
	new = program_of(&f, pid, 1);
	see(&f, &new);
	wait_for(&f, &new, RUNTIMES_READY);
	see(&f, &old);
	runtimes_settle(f.runtimes, NSEC_PER_SEC);
	assert_int_equal(state_of(&f, &old), RUNTIMES_NONE);
	assert_int_equal(state_of(&f, &new), RUNTIMES_READY);
	assert_int_equal(told_count(&f.told, &f.told.sets), 1);
	assert_int_equal(f.told.head.exec_id, 1);
	end(pid);
	fixture_close(&f);
}

/* A child that becomes another program when it may run again. */
static pid_t start_forked(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		execl(SLOW_PROGRAM, SLOW_PROGRAM, "60", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static void wait_for_program(pid_t pid, const char *program)
{
	struct stat wanted, now = { 0 };
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	assert_int_equal(stat(program, &wanted), 0);
	for (int turn = 0; now.st_ino != wanted.st_ino && turn < PATIENCE_MS * 10; turn++) {
		assert_int_equal(stat(link, &now), 0);
		usleep(100);
	}
	assert_int_equal(now.st_ino, wanted.st_ino);
}

/* It was sampled before its exec, and the worker hears of it behind that: what it is now has no runtime. */
static void what_a_child_becomes_has_no_runtime(void **state)
{
	struct runtime_stats stats;
	struct mappings maps = { 0 };
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_forked();
	p = program_of(&f, pid, 1);
	read_mappings(&f, &p, &maps);
	kill(pid, SIGCONT);
	wait_for_program(pid, SLOW_PROGRAM);
	assert_true(runtimes_see(f.runtimes, &p, &maps));
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	runtimes_stats(f.runtimes, FAKE_RUNTIME, &stats);
	assert_int_equal(stats.binaries, 1); /* it was told of */
	assert_false(f.runtimes->has_programs);
	assert_int_equal(told_count(&f.told, &f.told.programs), 0);
	mappings_release(&maps);
	end(pid);
	fixture_close(&f);
}

#define CROWD 40
#define LOOK_MS 5

static _Atomic size_t crowd_looks, crowd_turns[CROWD + 1];

static int look_slowly(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	(void)binary;
	(void)info;
	usleep(LOOK_MS * 1000);
	crowd_looks++;
	crowd_turns[target->exec_id]++;
	return -EAGAIN;
}

static void wait_for_turns(size_t process, size_t wanted)
{
	for (int ms = 0; crowd_turns[process] < wanted; ms++) {
		assert_true(ms < 2 * PATIENCE_MS);
		usleep(1000);
	}
}

/* However many processes are not ready, looks at them leave the worker time for others, and each has its turn. */
static void a_crowd_is_looked_at_in_turns(void **state)
{
	static struct runtime never;
	static const struct runtime *const only[] = { &never, NULL };
	struct fixture f = { 0 };
	struct program newcomer;
	uint64_t start, ms;
	size_t turns;
	pid_t pid;

	(void)state;
	never = fake_runtime;
	never.attach = look_slowly;
	fixture_open_with(&f, only);
	pid = start_fake(600000, 1);
	for (uint32_t i = 0; i < CROWD; i++) { /* one process is as good as many */
		struct program p = program_of(&f, pid, i);

		see(&f, &p);
		wait_for(&f, &p, RUNTIMES_PENDING);
	}
	start = clock_monotonic_ns(&clock_system);
	turns = crowd_looks;
	usleep(1000000);
	turns = crowd_looks - turns;
	ms = (clock_monotonic_ns(&clock_system) - start) / NSEC_PER_MSEC;
	print_message("  %zu looks of %d ms in %" PRIu64 " ms\n", turns, LOOK_MS, ms);
	assert_true(turns * LOOK_MS <= ms / 2); /* a quarter, and 50 ms at once; without turns all of it */
	for (size_t i = 0; i < CROWD; i++)
		wait_for_turns(i, 3);
	newcomer = program_of(&f, pid, CROWD);
	see(&f, &newcomer);
	wait_for(&f, &newcomer, RUNTIMES_PENDING);
	turns = crowd_looks;
	wait_for_turns(CROWD, 3);
	print_message("  a newcomer's second and third turn were among %zu\n", crowd_looks - turns);
	assert_true(crowd_looks - turns < CROWD); /* in their order: 80 */
	end(pid);
	fixture_close(&f);
}

/* The kernel's side forgets it at the end of the exec. */
static void what_is_told_within_an_exec_is_told_again(void **state)
{
	struct fixture f = { 0 };
	struct abi_runtimes head;
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 2);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	assert_int_equal(told_head(&f.told, p.pid, NULL), 0);
	runtimes_started(f.runtimes, &p);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(told_count(&f.told, &f.told.sets), 2);
	assert_int_equal(f.told.size, sizeof(struct fake_info));
	assert_int_equal(runtimes_head(f.runtimes, &p, &head), 0);
	assert_memory_equal(&f.told.head, &head, sizeof(head));
	set_room(&f.told, 1); /* none is left: it is told later */
	runtimes_started(f.runtimes, &p);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(state_of(&f, &p), RUNTIMES_PENDING);
	set_room(&f.told, 0);
	wait_long(&f, &p, RUNTIMES_READY, NO_ROOM_MS);
	end(pid);
	fixture_close(&f);
}

static void set_head_error(struct told *t, int error)
{
	pthread_mutex_lock(&t->lock);
	t->head_error = error;
	pthread_mutex_unlock(&t->lock);
}

/* Nobody is ready of whom the sink has no head. */
static void a_head_that_finds_no_room_is_told_later(void **state)
{
	struct fixture f = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 2);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	set_head_error(&f.told, -ENOMEM);
	runtimes_started(f.runtimes, &p);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(state_of(&f, &p), RUNTIMES_PENDING);
	assert_true(told_count(&f.told, &f.told.forgets) >= 1);
	set_head_error(&f.told, 0);
	wait_for(&f, &p, RUNTIMES_READY);
	assert_int_equal(f.told.head.exec_id, 2);
	end(pid);
	fixture_close(&f);
}

/* Returns when it has just been executed, as an exec record comes. */
static pid_t start_python(const char *python)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(python, python, "-c", "import time; time.sleep(60)", (char *)NULL);
		_exit(127);
	}
	wait_for_program(pid, python);
	return pid;
}

/* Nobody has looked at its files yet: what is mapped is told again and again, as samples would. Return: ms until ready.
 */
static uint64_t find_first(struct fixture *f, pid_t pid)
{
	uint64_t start = clock_monotonic_ns(&clock_system), now = start;
	struct program p = program_of(f, pid, 1);

	while (state_of(f, &p) != RUNTIMES_READY && now - start < PATIENCE_MS * NSEC_PER_MSEC) {
		see(f, &p);
		usleep(1000);
		now = clock_monotonic_ns(&clock_system);
	}
	assert_int_equal(state_of(f, &p), RUNTIMES_READY);
	return (now - start) / NSEC_PER_MSEC;
}

/* By its exec alone: nobody tells of its mappings. */
static void find_started(const char *python)
{
	struct fixture f = { 0 };
	struct abi_python info;
	uint64_t took = 0, first;
	struct program p;
	pid_t pid;

	fixture_open(&f);
	pid = start_python(python);
	first = find_first(&f, pid);
	assert_int_equal(f.told.size, sizeof(info));
	memcpy(&info, f.told.info, sizeof(info));
	assert_true(info.interpreters && info.layout.version_major >= 2);
	end(pid);
	for (uint32_t i = 0; i < 10; i++) {
		pid = start_python(python);
		p = program_of(&f, pid, 2 + i);
		runtimes_started(f.runtimes, &p);
		took += wait_for(&f, &p, RUNTIMES_READY);
		end(pid);
		runtimes_forget(f.runtimes, &p);
	}
	print_message("  %u.%u ready %.1f ms after its exec in the mean of 10; the first one of its file %" PRIu64
		      " ms\n",
		      info.layout.version_major, info.layout.version_minor, (double)took / 10, first);
	assert_true(took / 10 < 1000); /* a slow machine is not an error */
	fixture_close(&f);
}

static void started_pythons_are_found(void **state)
{
	const char *home = getenv("HOME");
	char pattern[512];
	glob_t found = { 0 };

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/*/bin/python", home ? home : "");
	if (access(PYTHON, X_OK) != 0 && glob(pattern, 0, NULL, &found) != 0)
		skip_because("no " PYTHON ", no ~/.pyenv/versions");
	if (access(PYTHON, X_OK) == 0)
		find_started(PYTHON);
	globfree(&found);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			find_started(found.gl_pathv[i]);
	globfree(&found);
}

#define STALE_MAX 4096 /* RUNTIMES_PROGRAMS_MAX: so many are remembered */

/* Our own program, and others that cannot be opened from here, as files of containers whose descriptors were given up
 * for others': their paths lead to another file. */
static void a_stale_file_is_looked_at_again(void **state)
{
	struct mapping *items = calloc(STALE_MAX + 1, sizeof(*items));
	struct program p = { .pid = (uint32_t)getpid(), .exec_id = 1, .start_ns = 1 };
	struct fixture f = { 0 };
	struct file_key key;
	struct stat st;
	uint32_t id, again;
	int fd;

	(void)state;
	assert_non_null(items);
	fixture_open(&f);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	file_key_of(&st, &key);
	for (size_t i = 0; i <= STALE_MAX; i++) {
		struct file_key other = key;

		other.inode += i;
		assert_int_equal(files_add(f.files, -1, &other, STR("/proc/self/status"), &items[i].file_id), 0);
		items[i].start = i * KIB(4);
		items[i].kind = PROC_PLACE_FILE;
	}
	id = items[0].file_id;
	runtimes_see(f.runtimes, &p, &(struct mappings){ .items = items + 1, .count = STALE_MAX });
	runtimes_see(f.runtimes, &p, &(struct mappings){ .items = items, .count = 1 });
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_null(runtimes_file(f.runtimes, id));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* another process has it */
	assert_int_equal(files_add(f.files, fd, &key, STR("/proc/self/status"), &again), 0);
	assert_int_equal(again, id);
	runtimes_see(f.runtimes, &p, &(struct mappings){ .items = items, .count = 1 });
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_non_null(runtimes_file(f.runtimes, id));
	fixture_close(&f);
	free(items);
}

static int probe_slowly(const struct runtime_file *file, struct runtime_binary **out)
{
	return file->be_quick ? -EAGAIN : fake_runtime.probe(file, out);
}

/* A file that could not be opened for long is no file without a runtime. */
static void open_late(const struct runtime *const *runtimes)
{
	struct mapping item = { .start = KIB(4), .kind = PROC_PLACE_FILE };
	const struct mappings maps = { .items = &item, .count = 1 };
	struct fixture f = { 0 };
	struct file_key key;
	struct program p;
	struct stat st;
	uint32_t again;
	int fd, sights = 0;

	fixture_open_with(&f, runtimes);
	p = program_of(&f, getpid(), 1); /* long looks are at those that are there */
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	file_key_of(&st, &key);
	assert_int_equal(files_add(f.files, -1, &key, STR("/nonexistent/container/program"), &item.file_id), 0);
	for (int i = 0; i < 30; i++) {
		runtimes_see(f.runtimes, &p, &maps);
		runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
		assert_null(runtimes_file(f.runtimes, item.file_id));
	}
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(files_add(f.files, fd, &key, STR("/nonexistent/container/program"), &again), 0);
	assert_int_equal(again, item.file_id);
	for (; sights < 10 && !runtimes_file(f.runtimes, item.file_id); sights++) {
		runtimes_see(f.runtimes, &p, &maps);
		runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	}
	assert_non_null(runtimes_file(f.runtimes, item.file_id));
	fixture_close(&f);
}

static void a_file_is_not_given_up(void **state)
{
	static struct runtime slow;
	static const struct runtime *const only[] = { &slow, NULL };

	(void)state;
	open_late(both);
	slow = fake_runtime;
	slow.probe = probe_slowly; /* a quick look tells only that it can be opened */
	open_late(only);
}

/* As if @bytes waited for the worker. */
static void fill_queue(struct fixture *f, size_t bytes)
{
	pthread_mutex_lock(&f->runtimes->lock);
	f->runtimes->bytes += bytes;
	pthread_mutex_unlock(&f->runtimes->lock);
}

static void says_what_found_no_room(void **state)
{
	struct fixture f = { 0 };
	struct mappings maps = { 0 };
	struct program p;
	pid_t pid;

	(void)state;
	fixture_open(&f);
	pid = start_fake(0, 1);
	p = program_of(&f, pid, 1);
	read_mappings(&f, &p, &maps);
	fill_queue(&f, RUNTIMES_QUEUE_BYTES);
	assert_false(runtimes_see(f.runtimes, &p, &maps));
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC);
	assert_int_equal(state_of(&f, &p), RUNTIMES_NONE);
	fill_queue(&f, -(size_t)RUNTIMES_QUEUE_BYTES);
	assert_true(runtimes_see(f.runtimes, &p, &maps));
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_settle(f.runtimes, PATIENCE_MS * NSEC_PER_MSEC); /* it is ready before its other files are known */
	fill_queue(&f, RUNTIMES_QUEUE_BYTES);
	assert_true(runtimes_see(f.runtimes, &p, &maps)); /* there is nothing to tell */
	fill_queue(&f, -(size_t)RUNTIMES_QUEUE_BYTES);
	mappings_release(&maps);
	end(pid);
	fixture_close(&f);
}

/* Puts a page that nobody ever fills under the state that attaching reads, as a file system that does not answer would.
 */
static bool silence(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	uintptr_t start = (uintptr_t)&fake_runtime_state & ~(uintptr_t)4095;
	size_t size = (uintptr_t)(&fake_runtime_state + 1) - start;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	size = (size + 4095) & ~(size_t)4095;
	all.range = (struct uffdio_range){ .start = start, .len = size };
	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
	       mmap((void *)start, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		       MAP_FAILED &&
	       !ioctl(fd, UFFDIO_REGISTER, &all);
}

static void does_not_wait_for_silent_memory(void **state)
{
	static struct fixture f; /* left to the worker, which goes on when the process has ended */
	const struct runtimes_config cfg = {
		.runtimes = both, .host_root = "", .clock = &clock_system, .end_ns = 200 * NSEC_PER_MSEC
	};
	struct program p;
	char is_silent = 0;
	int ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		is_silent = silence() ? 'y' : 'n';
		ignore(write(ends[1], &is_silent, 1) != 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &is_silent, 1), 1);
	close(ends[0]);
	close(ends[1]);
	if (is_silent != 'y') {
		end(pid);
		skip_because("needs userfaultfd");
	}
	fixture_open(&f);
	assert_int_equal(runtimes_close(f.runtimes), 0);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	p = program_of(&f, pid, 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_PENDING);
	usleep(200000);
	assert_int_equal(runtimes_close(f.runtimes), -ETIMEDOUT);
	end(pid);
}

static int open_and_close(void *ctx)
{
	const struct runtimes_config cfg = { .runtimes = both, .host_root = "" };
	struct runtimes *r = NULL;
	int result = runtimes_open(&cfg, ctx, &r);

	runtimes_close(r);
	return result;
}

static void out_of_memory(void **state)
{
	struct files *files;

	(void)state;
	assert_int_equal(files_open(16, &files), 0);
	for_each_failing_allocation(open_and_close, files);
	files_close(files);
}

/* fake_inline alone, ready in this process, with code at 0x10000000. */
static struct program open_in_line(struct fixture *f)
{
	static const struct runtime *const only[] = { &fake_inline, NULL };
	static const struct runtimes_config cfg = { .runtimes = only, .host_root = "", .clock = &clock_system };
	struct program p;

	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1, .low = 0x10000000, .size = 4096 };
	fixture_open(f);
	runtimes_close(f->runtimes);
	assert_int_equal(runtimes_open(&cfg, f->files, &f->runtimes), 0);
	p = program_of(f, getpid(), 1);
	see(f, &p);
	wait_for(f, &p, RUNTIMES_READY);
	return p;
}

static void wait_for_range(struct fixture *f, const struct program *p, uint64_t low)
{
	struct abi_runtimes head = { 0 };

	for (int turn = 0; turn < PATIENCE_MS && (!head.range_count || head.ranges[0].low != low); turn++) {
		usleep(1000);
		assert_int_equal(runtimes_head(f->runtimes, p, &head), 0);
	}
	assert_int_equal(head.range_count, 1);
	assert_int_equal(head.ranges[0].low, low);
}

/* A process that is known and has no new file: its code may lie elsewhere when its mappings have changed. */
static void ranges_follow(void **state)
{
	struct fixture f = { 0 };
	union {
		struct abi_fake fake;
		uint8_t bytes[RUNTIME_INFO_MAX];
	} info;
	struct program p;

	(void)state;
	p = open_in_line(&f);
	for (uint64_t low = 0x10000000; low <= 0x30000000; low += 0x10000000) {
		fake_inline_state.low = low;
		see(&f, &p);
		wait_for_range(&f, &p, low);
		assert_int_equal(runtimes_info(f.runtimes, &p, fake_inline.id, info.bytes), 0);
		assert_int_equal(info.fake.low, low); /* it is told before */
	}
	fake_inline_state = (struct fake_inline_state){ 0 };
	fixture_close(&f);
}

/* Code that cannot be seen just now: what was known of it stays, and it is looked for again a moment later, though not
 * for ever. */
static void hidden_code_is_looked_for_again(void **state)
{
	struct abi_runtimes head = { 0 };
	struct fixture f = { 0 };
	struct program p;

	(void)state;
	p = open_in_line(&f);
	fake_inline_state.hides = 1;
	fake_inline_state.low = 0x20000000;
	see(&f, &p);
	usleep(50000);
	assert_int_equal(runtimes_head(f.runtimes, &p, &head), 0);
	assert_int_equal(head.range_count, 1);
	assert_int_equal(head.ranges[0].low, 0x10000000);
	fake_inline_state.hides = 0;
	wait_for_range(&f, &p, 0x20000000);
	fake_inline_state.hides = 1;
	see(&f, &p);
	usleep(2000000); /* half a second is enough */
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1, .low = 0x30000000, .size = 4096 };
	usleep(600000);
	assert_int_equal(runtimes_head(f.runtimes, &p, &head), 0);
	assert_int_equal(head.ranges[0].low, 0x20000000);
	fake_inline_state.hides = 1; /* the next time it is told of it has its eight looks again */
	see(&f, &p);
	usleep(20000);
	fake_inline_state.hides = 0;
	wait_for_range(&f, &p, 0x30000000);
	fake_inline_state = (struct fake_inline_state){ 0 };
	fixture_close(&f);
}

/* A child that comes while its parent's code is hidden: that is hidden in it, too, and it is looked for as in the
 * parent. */
static void a_child_whose_code_is_hidden(void **state)
{
	struct fixture f = { 0 };
	struct program parent, child;
	pid_t pid;

	(void)state;
	parent = open_in_line(&f);
	fake_inline_state.hides = 1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(100000);
		fake_inline_state.low = 0x20000000;
		fake_inline_state.hides = 0;
		for (;;)
			pause();
	}
	child = program_of(&f, pid, 1);
	see(&f, &parent);
	runtimes_share(f.runtimes, &child, &parent);
	wait_for(&f, &child, RUNTIMES_READY);
	wait_for_range(&f, &child, 0x20000000);
	end(pid);
	fake_inline_state = (struct fake_inline_state){ 0 };
	fixture_close(&f);
}

/* The sampler walks nothing of it, beside one that copies stacks: where frames are in line the host walks them. */
static void the_host_walks_in_line(void **state)
{
	static const struct runtime *const only[] = { &fake_inline, NULL };
	struct fixture f = { .told = { .walks_none = true, .pid = (uint32_t)getpid() } };
	struct abi_runtimes head;
	struct program p;

	(void)state;
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1, .low = 0x10000000, .size = 4096 };
	fixture_open_with(&f, only);
	p = program_of(&f, getpid(), 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	assert_int_equal(runtimes_head(f.runtimes, &p, &head), 0);
	assert_int_equal(head.range_count, 1);
	fixture_close(&f);
}

/* It is ready all the same: its threads have names, and it is known what runs there. */
static void by_frame_pointers_it_is_said(void **state)
{
	static const struct runtime *const only[] = { &fake_inline, NULL };
	scoped(buf_release) struct buf notices = BUF_INIT(KIB(4));
	struct fixture f = { .by_frame_pointers = true };
	struct program p;

	(void)state;
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1, .low = 0x10000000, .size = 4096 };
	fixture_open_with(&f, only);
	p = program_of(&f, getpid(), 1);
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	runtimes_notices(f.runtimes, &notices);
	assert_true(str_search(buf_str(&notices), STR(" is not walked by frame pointers; its stacks stay native")) > 0);
	fixture_close(&f);
}

static bool is_named(struct fixture *f, const struct program *p, uint32_t tid, const char *comm)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(4));
	int r = runtimes_thread_name(f->runtimes, p, tid, str_of(comm), &text);

	if (r == 0)
		assert_true(str_eq(buf_str(&text), STR(FAKE_THREAD_NAME)));
	else
		assert_int_equal(r, -ENOENT);
	return r == 0;
}

/* The first thread, by the kernel's name that it had when it was sampled. */
static void threads_have_their_runtimes_names(void **state)
{
	static const struct runtime *const only[] = { &fake_inline, NULL };
	const struct runtimes_config cfg = {
		.runtimes = only, .host_root = "", .clock = &clock_system, .want_threads = true
	};
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };
	uint32_t self = (uint32_t)getpid();
	struct fixture f = { 0 };
	struct program p, stranger;
	char comm[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, comm), 0);
	fake_inline_state = (struct fake_inline_state){ .ready = 1, .version = 1, .low = 0x10000000, .size = 4096 };
	fixture_open(&f);
	runtimes_close(f.runtimes);
	assert_int_equal(runtimes_open(&cfg, f.files, &f.runtimes), 0);
	p = program_of(&f, getpid(), 1);
	stranger = (struct program){ .pid = p.pid, .exec_id = 2, .start_ns = p.start_ns };
	assert_false(runtimes_thread(f.runtimes, &p, self, str_of(comm))); /* nobody knows of it */
	see(&f, &p);
	wait_for(&f, &p, RUNTIMES_READY);
	assert_true(runtimes_thread(f.runtimes, &p, self, str_of(comm)));
	for (int turn = 0; turn < PATIENCE_MS && !is_named(&f, &p, self, comm); turn++)
		nanosleep(&pause, NULL);
	assert_true(is_named(&f, &p, self, comm));
	assert_false(is_named(&f, &p, self, "another"));
	assert_false(is_named(&f, &p, self + 1, comm));
	assert_false(is_named(&f, &stranger, self, comm));
	/* Called another way by the time it is asked, so it may be another one. */
	assert_true(runtimes_thread(f.runtimes, &p, self, STR("another")));
	usleep(1100000);
	assert_true(runtimes_thread(f.runtimes, &p, self, STR("another"))); /* a second later: now it is read */
	usleep(100000);
	assert_false(is_named(&f, &p, self, "another"));
	runtimes_forget(f.runtimes, &p);
	assert_true(is_named(&f, &p, self, comm)); /* windows are built later */
	fake_inline_state = (struct fake_inline_state){ 0 };
	fixture_close(&f);
}

/* What a hostile process says of its code. */
static void ranges_are_judged(void **state)
{
	static const struct {
		const char *name;
		uint64_t low, size;
		int want;
	} cases[] = {
		{ "the first", 0x10000000, 0x1000, 0 },
		{ "empty", 0x20000000, 0, -EBADMSG },
		{ "wraps", UINT64_MAX - 10, 4096, -EBADMSG },
		{ "as long as can be", 4096, UINT64_MAX - 4096, -EBADMSG },
		{ "the first page", 0, 8192, -EBADMSG },
		{ "addresses of the kernel", 0xffffffff80000000, 4096, -EBADMSG },
		{ "the same", 0x10000000, 0x1000, -EBADMSG },
		{ "one byte of it", 0x10000fff, 1, -EBADMSG },
		{ "around it", 0xfffffff, 0x1002, -EBADMSG },
		{ "in front of it", 0xffff000, 0x1000, 0 },
		{ "behind it", 0x10001000, 0x1000, 0 },
		{ "up to the end", 0x20000000, (1ULL << 56) - 0x20000000, 0 },
		{ "one too many", 0x18000000, 0x1000, -ENOSPC },
	};
	struct abi_runtimes head = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct abi_code_range range = { .low = cases[i].low, .size = cases[i].size };
		uint16_t before = head.range_count;

		print_message("  %s\n", cases[i].name);
		assert_int_equal(runtimes_add_range(&head, FAKE_RUNTIME, &range), cases[i].want);
		assert_int_equal(head.range_count, before + (cases[i].want == 0));
	}
	assert_int_equal(head.ranges[3].runtime, FAKE_RUNTIME);
}

/* What files and pages say of it is found by the same name. */
static bool shown_by_model(const struct runtime *r)
{
	const struct model_runtime *m;

	for (size_t i = 0; (m = model_runtime_at(i)); i++)
		if (str_eq(m->name, str_of(r->name)))
			return str_eq(m->title, str_of(r->title)) && m->functions == r->kind &&
			       m->errors == r->error_kind;
	return false;
}

static void the_registry(void **state)
{
#define X(name, title, ...) { #name, title, runtime_modes_##name },
	static const struct {
		const char *name, *title, *const *modes;
	} rows[] = { RUNTIMES(X) };
#undef X

	(void)state;
	assert_int_equal(ARRAY_SIZE(rows), RUNTIME_COUNT);
	for (size_t i = 0; runtime_at(i); i++) {
		const struct runtime *r = runtime_at(i);

		assert_ptr_equal(runtime_find(r->id), r);
		assert_true(r->id > ABI_RUNTIME_NONE && r->id < ABI_RUNTIME_COUNT);
		assert_true(r->probe && r->release && r->attach);
		assert_string_equal(r->name, rows[i].name);
		assert_string_equal(r->title, rows[i].title);
		assert_string_equal(rows[i].modes[0], "auto"); /* the default */
		assert_int_equal(r->ways[0], RUNTIME_WAY_AUTO);
		assert_true(shown_by_model(r));
	}
	assert_null(runtime_at(RUNTIME_COUNT));
	assert_ptr_equal(runtime_find(ABI_RUNTIME_PYTHON), &runtime_python);
	assert_null(runtime_find(FAKE_RUNTIME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_until_ready),
		cmocka_unit_test(a_long_look_holds_nobody_up),
		cmocka_unit_test(sure_runtimes_are_looked_at_first),
		cmocka_unit_test(another_file_is_another_message),
		cmocka_unit_test(each_fourth_look_is_at_another_file),
		cmocka_unit_test(a_runtime_that_is_found_is_told_at_once),
		cmocka_unit_test(what_is_not_mapped_yet_is_no_refusal),
		cmocka_unit_test(a_runtime_does_not_wait_for_its_libraries),
		cmocka_unit_test(walks),
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(a_name_that_is_asked_too_early_comes),
		cmocka_unit_test(answers_are_bounded),
		cmocka_unit_test(the_main_program_gives_the_application),
		cmocka_unit_test(a_late_runtime_is_asked_as_a_new_one),
		cmocka_unit_test(which_is_the_main_one),
		cmocka_unit_test(metadata_are_joined),
		cmocka_unit_test(metadata_are_bounded),
		cmocka_unit_test(what_passes_is_no_refusal),
		cmocka_unit_test(doubts_do_not_add_up),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refused_is_looked_at_again),
		cmocka_unit_test(another_runtimes_sampler),
		cmocka_unit_test(what_is_learnt_stays),
		cmocka_unit_test(threads_get_names_later),
		cmocka_unit_test(without_room_it_waits),
		cmocka_unit_test(a_gone_process_is_forgotten),
		cmocka_unit_test(without_descriptors_nothing_is_forgotten),
		cmocka_unit_test(a_sweep_without_descriptors_forgets_nobody),
		cmocka_unit_test(another_start_time_is_another_process),
		cmocka_unit_test(a_child_has_its_parents),
		cmocka_unit_test(an_exec_stays),
		cmocka_unit_test(an_old_program_is_no_successor),
		cmocka_unit_test(an_old_program_comes_late),
		cmocka_unit_test(what_a_child_becomes_has_no_runtime),
		cmocka_unit_test(a_crowd_is_looked_at_in_turns),
		cmocka_unit_test(what_is_told_within_an_exec_is_told_again),
		cmocka_unit_test(a_head_that_finds_no_room_is_told_later),
		cmocka_unit_test(started_pythons_are_found),
		cmocka_unit_test(a_stale_file_is_looked_at_again),
		cmocka_unit_test(a_file_is_not_given_up),
		cmocka_unit_test(says_what_found_no_room),
		cmocka_unit_test(does_not_wait_for_silent_memory),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(ranges_are_judged),
		cmocka_unit_test(ranges_follow),
		cmocka_unit_test(hidden_code_is_looked_for_again),
		cmocka_unit_test(a_child_whose_code_is_hidden),
		cmocka_unit_test(the_host_walks_in_line),
		cmocka_unit_test(by_frame_pointers_it_is_said),
		cmocka_unit_test(threads_have_their_runtimes_names),
		cmocka_unit_test(the_registry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
