/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of a thread, and the dump of a process whose stacks are known: this one's children. */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/dump_process.h"

static void registers(void **state)
{
	static const struct {
		const char *text;
		int want;
		struct dump_registers out;
	} cases[] = {
		{ "running\n", 0, { .runs = true } },
		{ "230 0x0 0x1 0x2 0x3 0x4 0x5 0x7ffe10 0x401000\n",
		  0,
		  { .in_syscall = true, .sp = 0x7ffe10, .pc = 0x401000 } },
		{ "-1 0x7ffe10 0x401000\n", 0, { .sp = 0x7ffe10, .pc = 0x401000 } },
		{ "", -EBADMSG, { 0 } },
		{ "run", -EBADMSG, { 0 } },
		{ "230 0x0 0x1", -EBADMSG, { 0 } },
		{ "-1 0x7ffe10", -EBADMSG, { 0 } },
		{ "-1 0x7ffe10 0x401000 0x1", -EBADMSG, { 0 } },
		{ "-1 7ffe10 401000", -EBADMSG, { 0 } },
		{ "-1 0x 0x401000", -EBADMSG, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dump_registers out = { .sp = 7 };

		print_message("  %s\n", cases[i].text);
		assert_int_equal(dump_registers_parse(str_of(cases[i].text), &out), cases[i].want);
		if (cases[i].want < 0) {
			assert_int_equal(out.sp, 7);
			continue;
		}
		assert_int_equal(out.runs, cases[i].out.runs);
		assert_int_equal(out.in_syscall, cases[i].out.in_syscall);
		assert_int_equal(out.sp, cases[i].out.sp);
		assert_int_equal(out.pc, cases[i].out.pc);
	}
}

static void kernel_lines(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "[<0>] do_poll+0x1/0x2", "do_poll" },
		{ "[<0>] f [ext4]", "f [ext4]" },
		{ "[<ffffffff81000000>] x.isra.0+0x1/0x2", "x.isra.0" },
		{ "[<0>]", NULL },
		{ "do_poll+0x1/0x2", NULL },
		{ "[<0>] ", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str name = { 0 };

		assert_int_equal(dump_kernel_line(str_of(cases[i].text), &name), cases[i].want != NULL);
		if (cases[i].want)
			assert_true(str_eq(name, str_of(cases[i].want)));
	}
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* A child with a second thread; both wait. @leader_ends: only the second one does; the first is a zombie. */
static pid_t start(bool leader_ends, const char *name)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */

		(void)prctl(PR_SET_NAME, name);
		if (pthread_create(&thread, NULL, wait_for_ever, NULL) || write(ready[1], "x", 1) != 1)
			_exit(1);
		if (leader_ends)
			pthread_exit(NULL);
		wait_for_ever(NULL);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static pid_t start_child(void)
{
	return start(false, "dumped");
}

static bool has_frame(const struct dump *d, const struct dump_thread *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_search(intern_get(&d->strings, d->frames[t->first + i].name), str_of(name)) >= 0)
			return true;
	return false;
}

static void two_threads(void **state)
{
	pid_t pid;
	int status;

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("SKIP: ThreadSanitizer has threads of its own\n");
	skip();
#endif
	pid = start_child();
	for (int freeze = 0; freeze < 2; freeze++) {
		const struct dump_config cfg = { .pid = (uint32_t)pid, .freeze = freeze, .host_root = "" };
		struct buf why = BUF_INIT(KIB(4)), text = BUF_INIT(MIB(1)), json = BUF_INIT(MIB(1));
		struct dump d = { 0 };

		assert_int_equal(dump_process(&cfg, &why, &d), 0);
		assert_int_equal(d.thread_count, 2);
		assert_true(has_frame(&d, &d.threads[0], "pause"));
		assert_true(has_frame(&d, &d.threads[1], "pause"));
		assert_int_equal(d.stopped_ns != 0, freeze);
		assert_int_equal(d.threads[0].state, 'S');
		dump_text(&d, &text);
		dump_json(&d, &json);
		assert_true(str_search(buf_str(&text), STR("Thread ")) > 0 && !json.error);
		assert_int_equal(kill(pid, 0), 0);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		dump_release(&d);
		buf_release(&why);
		buf_release(&text);
		buf_release(&json);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	assert_int_equal(fclose(file), 0);
	return strrchr(text, ')')[2];
}

static int end_with_parent(void *arg)
{
	(void)arg;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	wait_for_ever(NULL);
	return 0;
}

/* As posix_spawn() does: the caller waits inside of clone() until its child runs a program. */
static __attribute__((noinline)) int wait_in_clone(void)
{
	static _Alignas(16) char stack[KIB(64)];
	int r = clone(end_with_parent, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	return r + getppid(); /* not a tail call */
}

/* Without its registers a thread in clone() could be the parent or the child. It waits: it is the parent. */
static void parent_in_clone(void **state)
{
	struct dump_config cfg = { .host_root = "" };
	struct buf why = BUF_INIT(KIB(4));
	struct dump d = { 0 };
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(wait_in_clone() == 0);
	}
	for (int i = 0; i < 1000 && state_of(pid) != 'D'; i++)
		usleep(1000);
	assert_int_equal(state_of(pid), 'D');
	cfg.pid = (uint32_t)pid;
	assert_int_equal(dump_process(&cfg, &why, &d), 0);
	assert_true(d.threads[0].count > 0);
	assert_true(has_frame(&d, &d.threads[0], "wait_in_clone"));
	dump_release(&d);
	buf_release(&why);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A process goes on when its first thread has ended. */
static void first_thread_has_ended(void **state)
{
	pid_t pid;

	(void)state;
#if defined(__SANITIZE_THREAD__)
	print_message("SKIP: ThreadSanitizer has threads of its own\n");
	skip();
#endif
	pid = start(true, "headless");
	for (int i = 0; i < 1000 && state_of(pid) != 'Z'; i++)
		usleep(1000);
	for (int freeze = 0; freeze < 2; freeze++) {
		const struct dump_config cfg = { .pid = (uint32_t)pid, .freeze = freeze, .host_root = "" };
		struct buf why = BUF_INIT(KIB(4)), text = BUF_INIT(MIB(1));
		struct dump d = { 0 };

		assert_int_equal(dump_process(&cfg, &why, &d), 0);
		assert_int_equal(d.pid, pid);
		assert_int_equal(d.thread_count, 2);
		assert_int_equal(d.threads[0].state, 'Z');
		assert_int_equal(d.threads[0].count, 0);
		assert_true(has_frame(&d, &d.threads[1], "pause"));
		assert_true(has_frame(&d, &d.threads[1], "wait_for_ever"));
		dump_text(&d, &text);
		assert_true(str_search(buf_str(&text), STR("it has ended")) > 0);
		dump_release(&d);
		buf_release(&why);
		buf_release(&text);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A name that would act on the terminal, or hide what is around it, is only shown. */
static void names_cannot_act(void **state)
{
	pid_t pid = start(false, "\x1b[2J\xe2\x80\xae\xc2\x85\xff");
	const struct dump_config cfg = { .pid = (uint32_t)pid, .host_root = "" };
	struct buf why = BUF_INIT(KIB(4)), text = BUF_INIT(MIB(1));
	struct dump d = { 0 };

	(void)state;
	assert_int_equal(dump_process(&cfg, &why, &d), 0);
	dump_text(&d, &text);
	assert_true(str_search(buf_str(&text), STR("\"\\x1b[2J\\u202e\\u0085\\xff\" (S)")) > 0);
	dump_release(&d);
	buf_release(&why);
	buf_release(&text);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void nobody_there(void **state)
{
	const struct dump_config cfg = { .pid = 1U << 22, .host_root = "" };
	struct buf why = BUF_INIT(KIB(4));
	struct dump d = { 0 };

	(void)state;
	assert_int_equal(dump_process(&cfg, &why, &d), -ESRCH);
	assert_true(str_search(buf_str(&why), STR("there is no process")) >= 0);
	dump_release(&d);
	buf_release(&why);
}

/* Another user's process, asked by nobody: the remedy is told. */
static void not_permitted(void **state)
{
	pid_t target, asking;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root to become nobody");
	target = start_child();
	asking = fork();
	if (asking == 0) {
		const struct dump_config cfg = { .pid = (uint32_t)target, .host_root = "" };
		struct buf why = BUF_INIT(KIB(4));
		struct dump d = { 0 };

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(77);
		_exit(dump_process(&cfg, &why, &d) == -EPERM && str_search(buf_str(&why), STR("as root")) > 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(asking, &status, 0), asking);
	kill(target, SIGKILL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(waitpid(target, &status, 0), target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers),        cmocka_unit_test(kernel_lines),
		cmocka_unit_test(two_threads),      cmocka_unit_test(nobody_there),
		cmocka_unit_test(not_permitted),    cmocka_unit_test(first_thread_has_ended),
		cmocka_unit_test(names_cannot_act), cmocka_unit_test(parent_in_clone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
