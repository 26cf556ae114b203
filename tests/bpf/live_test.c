/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler on this machine: real ticks, real processes. */
#include "bpf_support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/sampler.h"
#include "walk/walk.h"

/* ---- programs with a known call tree; each function has a section of its own, so that its bounds are known ---- */

#define PLACED(name) __attribute__((noinline, section(#name "_text")))
#define BOUNDS(name) extern const char __start_##name##_text[], __stop_##name##_text[]
BOUNDS(spin_leaf);
BOUNDS(spin_middle);
BOUNDS(spin_top);

static volatile uint64_t sink;

PLACED(spin_leaf) static void spin_leaf(void)
{
	for (int i = 0; i < 20; i++)
		sink += (uint64_t)i;
}

PLACED(spin_middle) static void spin_middle(void)
{
	for (int i = 0; i < 100; i++)
		spin_leaf();
	sink++;
}

PLACED(spin_top) static void spin_top(bool (*more)(void))
{
	while (more())
		spin_middle();
}

static bool forever(void)
{
	return true;
}

static long raw_syscall(long number)
{
#ifdef __x86_64__
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
	return result;
#else
	register long result asm("x0");
	register long call asm("x8") = number;

	asm volatile("svc 0" : "=r"(result) : "r"(call) : "memory");
	return result;
#endif
}

static bool in_system_calls(void)
{
	for (int i = 0; i < 1000; i++)
		sink += (uint64_t)raw_syscall(SYS_getppid);
	return true;
}

static void on_signal(int number)
{
	(void)number;
	spin_top(forever);
}

static bool in_a_handler(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return true;
}

static pid_t start_spinning(const char *comm, bool (*more)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, comm);
	alarm(60);
	spin_top(more);
	_exit(0);
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* ---- a session ---- */

struct session {
	struct sampler_state *state;
	struct sampler_events events;
	pid_t pid; /* of interest; 0: all */
	int samples, others, exact, kernel, syscalls, named;
	int signals; /* samples with an exact address behind the leaf, followed by another frame */
	int execs, forks, exits;
	uint64_t first_ns, start_ns, exec_start_ns, exit_start_ns;
	uint32_t fork_parent;
	char exec_comm[ABI_COMM_SIZE], thread[ABI_COMM_SIZE];
	const char *comm;
};

static bool within(uint64_t address, const char *start, const char *stop)
{
	return address >= (uintptr_t)start && address < (uintptr_t)stop;
}

#define IN(frame, name) \
	within((frame).a - ((frame).flags & ABI_FRAME_RETURN), __start_##name##_text, __stop_##name##_text)

static void on_sample(void *ctx, const struct abi_sample *sample)
{
	struct session *s = ctx;
	const struct abi_frame *user = sample->frames + sample->kernel_count;
	size_t count = sample->frame_count - sample->kernel_count;

	if (s->pid && sample->pid != (uint32_t)s->pid) {
		s->others++;
		return;
	}
	if (!s->samples++)
		s->first_ns = clock_monotonic_ns(&clock_system);
	s->start_ns = sample->process_start_ns;
	s->kernel += sample->kernel_count > 0;
	s->syscalls += (sample->flags & ABI_SAMPLE_IN_SYSCALL) && count > 1 && user[0].flags == ABI_FRAME_RETURN;
	s->named += s->comm && !strcmp(sample->comm, s->comm);
	memcpy(s->thread, sample->thread_name, sizeof(s->thread));
	for (size_t i = 1; i + 2 < count; i++)
		s->signals += !(user[i].flags & ABI_FRAME_RETURN) && !(user[i + 1].flags & ABI_FRAME_RETURN);
	if (count >= 3 && IN(user[0], spin_leaf))
		s->exact += IN(user[1], spin_middle) && IN(user[2], spin_top);
	else if (count >= 2 && IN(user[0], spin_middle))
		s->exact += IN(user[1], spin_top);
	else if (count >= 1)
		s->exact += IN(user[0], spin_top);
}

static void on_process(void *ctx, const struct abi_process *event)
{
	struct session *s = ctx;

	if (event->pid != (uint32_t)s->pid)
		return;
	switch (event->header.type) {
	case ABI_RECORD_EXEC:
		s->execs++;
		s->exec_start_ns = event->process_start_ns;
		memcpy(s->exec_comm, event->comm, sizeof(s->exec_comm));
		break;
	case ABI_RECORD_FORK:
		s->forks++;
		s->fork_parent = event->parent_pid;
		break;
	case ABI_RECORD_EXIT:
		s->exits++;
		s->exit_start_ns = event->process_start_ns;
		break;
	}
}

static void open_session(struct session *s, const struct sampler_config *cfg)
{
	struct buf why = BUF_INIT(KIB(64));
	int r;

	s->events = (struct sampler_events){ on_sample, on_process, NULL, s };
	r = sampler_find(STR("bpf"))->open(cfg, &why, &s->state);
	if (r < 0)
		fail_msg("open: %s", buf_cstr(&why));
	buf_release(&why);
	assert_int_equal(sampler_find(STR("bpf"))->start(s->state), 0);
}

static void poll_for(struct session *s, uint64_t ms)
{
	uint64_t until = clock_monotonic_ns(&clock_system) + ms * NSEC_PER_MSEC, now;

	while ((now = clock_monotonic_ns(&clock_system)) < until) {
		int wait = (int)MIN((until - now) / NSEC_PER_MSEC + 1, 100U);

		assert_true(sampler_find(STR("bpf"))->poll(s->state, wait, &s->events) >= 0);
	}
}

static void close_session(struct session *s, uint64_t counters[ABI_COUNTER_COUNT])
{
	const struct sampler *bpf = sampler_find(STR("bpf"));

	assert_int_equal(bpf->stop(s->state), 0);
	assert_true(bpf->poll(s->state, 0, &s->events) >= 0);
	bpf->counters(s->state, counters);
	bpf->close(s->state);
	assert_int_equal(counters[ABI_COUNTER_LOST_REJECTED], 0);
	assert_int_equal(counters[ABI_COUNTER_LOST_NO_STATE], 0);
}

#define CONFIG(...)                                                                                                   \
	{                                                                                                             \
		.frequency_hz = 199, .poll_interval_ms = 100, .host_root = "", .include_self = true, .mode = WALK_FP, \
		__VA_ARGS__                                                                                           \
	}

/* ---- tests ---- */

static void known_call_tree(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	pid_t pid = start_spinning("hearth-spin", forever);
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1);
	struct session s = { .pid = pid, .comm = "hearth-spin" };

	(void)state;
	open_session(&s, &cfg);
	poll_for(&s, 3000);
	end(pid);
	close_session(&s, counters);
	print_message("  %d samples, %d exact\n", s.samples, s.exact);
	assert_true(s.samples > 60); /* of 597; other work may have most of the CPU */
	assert_int_equal(s.others, 0);
	assert_int_equal(s.named, s.samples);
	assert_string_equal(s.thread, "hearth-spin");
	assert_true(s.exact * 100 >= s.samples * 98); /* a tick between two instructions of a prologue can be missed */
	assert_int_equal(counters[ABI_COUNTER_TICKS], counters[ABI_COUNTER_IDLE] + counters[ABI_COUNTER_FILTERED] +
							      counters[ABI_COUNTER_SAMPLES] +
							      counters[ABI_COUNTER_LOST_RING_FULL]);
	assert_int_equal(counters[ABI_COUNTER_SAMPLES], s.samples);
}

static void system_calls(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	pid_t pid = start_spinning("hearth-call", in_system_calls);
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1);
	struct session s = { .pid = pid };

	(void)state;
	open_session(&s, &cfg);
	poll_for(&s, 2000);
	end(pid);
	close_session(&s, counters);
	print_message("  %d samples, %d with kernel frames, %d in a system call\n", s.samples, s.kernel, s.syscalls);
	assert_true(s.samples > 40);
	assert_true(s.kernel * 10 > s.samples);
	assert_true(s.syscalls > 0);
}

/* spin_top -> raise -> handler -> spin_top: the chain goes on behind the handler's return point. */
static void signal_handler(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	pid_t pid = start_spinning("hearth-sig", in_a_handler);
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1);
	struct session s = { .pid = pid };

	(void)state;
	open_session(&s, &cfg);
	poll_for(&s, 1000);
	end(pid);
	close_session(&s, counters);
	print_message("  %d samples, %d with frames behind the handler\n", s.samples, s.signals);
	assert_true(s.samples > 20);
#ifdef __x86_64__
	assert_true(s.signals * 100 >= s.samples * 95);
#endif
}

static void fork_exec_exit(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct sampler_config cfg = CONFIG(.pid_count = 0);
	struct session s = { 0 };
	int gate[2], status;

	(void)state;
	open_session(&s, &cfg);
	assert_int_equal(pipe(gate), 0);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (!s.pid) {
		char byte;

		ignore(read(gate[0], &byte, 1) < 0);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_int_equal(status, 0);
	poll_for(&s, 150);
	close_session(&s, counters);
	close(gate[0]);
	close(gate[1]);
	assert_int_equal(s.forks, 1);
	assert_int_equal(s.execs, 1);
	assert_int_equal(s.exits, 1);
	assert_int_equal(s.fork_parent, getpid());
	assert_string_equal(s.exec_comm, "true");
	assert_true(s.exec_start_ns && s.exec_start_ns == s.exit_start_ns);
}

static void *spin_thread(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "worker");
	spin_top(forever);
	return NULL;
}

static void leader_leaves_first(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	struct sampler_config cfg = CONFIG(.pid_count = 0);
	struct session s = { .comm = "hearth-lead" };

	(void)state;
	open_session(&s, &cfg);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (!s.pid) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "hearth-lead");
		alarm(60);
		if (pthread_create(&thread, NULL, spin_thread, NULL) == 0)
			syscall(SYS_exit, 0); /* the leader's thread only */
		_exit(1);
	}
	poll_for(&s, 1500);
	assert_int_equal(s.exits, 0);
	assert_int_equal(s.forks, 1);
	assert_true(s.samples > 10 && s.named >= s.samples - 5);
	assert_string_equal(s.thread, "worker");
	end(s.pid);
	poll_for(&s, 150);
	close_session(&s, counters);
	assert_true(s.exits >= 1);
	assert_int_equal(s.start_ns, s.exit_start_ns);
}

static void two_sessions(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT], until;
	pid_t pids[2] = { start_spinning("hearth-one", forever), start_spinning("hearth-two", forever) };
	struct sampler_config first = CONFIG(.pids = &pids[0], .pid_count = 1);
	struct sampler_config second = CONFIG(.pids = &pids[1], .pid_count = 1);
	struct session a = { .pid = pids[0], .comm = "hearth-one" }, b = { .pid = pids[1], .comm = "hearth-two" };

	(void)state;
	first.frequency_hz = 29;
	second.frequency_hz = 499;
	open_session(&a, &first);
	open_session(&b, &second);
	until = clock_monotonic_ns(&clock_system) + 3 * NSEC_PER_SEC;
	while (clock_monotonic_ns(&clock_system) < until) {
		poll_for(&a, 50);
		poll_for(&b, 50);
	}
	end(pids[0]);
	end(pids[1]);
	close_session(&a, counters);
	close_session(&b, counters);
	print_message("  %d samples at 29 Hz, %d at 499 Hz\n", a.samples, b.samples);
	assert_true(a.samples > 5 && b.samples > 5 * a.samples);
	assert_int_equal(a.others + b.others, 0);
	assert_int_equal(a.named, a.samples);
	assert_int_equal(b.named, b.samples);
}

static void children_follow(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	pid_t self = getpid(), stranger = start_spinning("hearth-none", forever), child;
	struct sampler_config cfg = CONFIG(.pids = &self, .pid_count = 1, .follow_children = true);
	struct session s = { 0 };

	(void)state;
	open_session(&s, &cfg);
	child = start_spinning("hearth-kid", forever);
	s.pid = child;
	s.comm = "hearth-kid";
	poll_for(&s, 1500);
	s.pid = stranger;
	s.samples = 0;
	poll_for(&s, 300);
	assert_int_equal(s.samples, 0);
	assert_true(s.named > 10);
	end(child);
	end(stranger);
	close_session(&s, counters);
}

static void move_to_cgroup(const char *dir, pid_t pid)
{
	char path[160], text[16];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	snprintf(text, sizeof(text), "%d", pid);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void cgroup_filter(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	char dir[128];
	struct sampler_config cfg = CONFIG(.cgroup_path = dir);
	struct session s = { 0 };
	pid_t stranger;

	(void)state;
	snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s/hearth-test-%d",
		 access("/sys/fs/cgroup/cgroup.procs", F_OK) ? "/unified" : "", getpid());
	if (mkdir(dir, 0755) < 0)
		skip_because("cannot make a cgroup v2");
	stranger = start_spinning("hearth-out", forever);
	s.pid = start_spinning("hearth-in", forever);
	move_to_cgroup(dir, s.pid);
	open_session(&s, &cfg);
	poll_for(&s, 1500);
	close_session(&s, counters);
	end(s.pid);
	end(stranger);
	assert_int_equal(rmdir(dir), 0);
	assert_true(s.samples > 10);
	assert_int_equal(s.others, 0);
	assert_true(counters[ABI_COUNTER_FILTERED] > 0);
}

static void full_ring_is_counted(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT];
	pid_t pid = start_spinning("hearth-full", forever);
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1, .ring_bytes = 4096);
	struct session s = { .pid = pid };
	struct timespec nap = { .tv_sec = 1 };

	(void)state;
	cfg.frequency_hz = 999;
	open_session(&s, &cfg);
	nanosleep(&nap, NULL);
	end(pid);
	close_session(&s, counters);
	print_message("  %d samples, %llu lost\n", s.samples, (unsigned long long)counters[ABI_COUNTER_LOST_RING_FULL]);
	assert_true(counters[ABI_COUNTER_LOST_RING_FULL] > 0);
	assert_true(s.samples > 0);
	assert_int_equal(counters[ABI_COUNTER_SAMPLES], s.samples);
	assert_int_equal(counters[ABI_COUNTER_TICKS], counters[ABI_COUNTER_IDLE] + counters[ABI_COUNTER_FILTERED] +
							      counters[ABI_COUNTER_SAMPLES] +
							      counters[ABI_COUNTER_LOST_RING_FULL]);
}

/* The reader sleeps for ten seconds at most, yet the first sample of a process wakes it. */
static void first_sample_wakes(void **state)
{
	uint64_t counters[ABI_COUNTER_COUNT], begin = clock_monotonic_ns(&clock_system), waited;
	pid_t pid = start_spinning("hearth-wake", forever);
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1);
	struct session s = { .pid = pid };

	(void)state;
	open_session(&s, &cfg);
	assert_true(sampler_find(STR("bpf"))->poll(s.state, 10000, &s.events) > 0);
	waited = clock_monotonic_ns(&clock_system) - begin;
	end(pid);
	close_session(&s, counters);
	print_message("  first sample %llu ms after open began\n", (unsigned long long)(waited / NSEC_PER_MSEC));
	assert_true(waited < 3 * NSEC_PER_SEC);
	assert_true(s.samples > 0);
}

/* Ctrl-Z and fg: the wait ends early, the session does not. */
static void stopped_and_continued(void **state)
{
	pid_t pid = start_spinning("hearth-spin", forever), waker;
	struct sampler_config cfg = CONFIG(.pids = &pid, .pid_count = 1);
	uint64_t counters[ABI_COUNTER_COUNT];
	struct session s = { .pid = pid };
	int status;

	(void)state;
	open_session(&s, &cfg);
	waker = fork();
	assert_true(waker >= 0);
	if (!waker) {
		for (int i = 0; i < 20; i++) {
			usleep(50000);
			kill(getppid(), SIGSTOP);
			usleep(10000);
			kill(getppid(), SIGCONT);
		}
		_exit(0);
	}
	poll_for(&s, 2000);
	end(pid);
	close_session(&s, counters);
	assert_int_equal(waitpid(waker, &status, 0), waker);
	assert_true(s.samples > 20);
}

static void bad_filters_fail(void **state)
{
	struct sampler_config cfg = CONFIG(.cgroup_path = "/no/such/cgroup");
	struct buf why = BUF_INIT(KIB(64));
	struct sampler_state *s = NULL;

	(void)state;
	assert_int_equal(sampler_find(STR("bpf"))->open(&cfg, &why, &s), -ENOENT);
	assert_true(str_search(buf_str(&why), STR("/no/such/cgroup")) >= 0);
	buf_clear(&why);
	cfg.cgroup_path = "/tmp";
	assert_int_equal(sampler_find(STR("bpf"))->open(&cfg, &why, &s), -EINVAL);
	assert_true(str_search(buf_str(&why), STR("not a cgroup v2")) >= 0);
	assert_null(s);
	buf_release(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_call_tree),       cmocka_unit_test(system_calls),
		cmocka_unit_test(signal_handler),        cmocka_unit_test(fork_exec_exit),
		cmocka_unit_test(leader_leaves_first),   cmocka_unit_test(two_sessions),
		cmocka_unit_test(children_follow),       cmocka_unit_test(cgroup_filter),
		cmocka_unit_test(full_ring_is_counted),  cmocka_unit_test(first_sample_wakes),
		cmocka_unit_test(stopped_and_continued), cmocka_unit_test(bad_filters_fail),
	};

	bpf_tests_skip();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
