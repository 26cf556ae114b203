/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/proc_read.h"
#include "runtime/describer.h"

#define PATIENCE_MS 20000

struct child {
	struct program key;
	char exe[200];
};

/* A program called @name that sleeps: a copy of sleep(1). */
static struct child child_start(const char *dir, const char *name)
{
	struct child c = { 0 };
	char command[400];
	pid_t pid;

	(void)snprintf(c.exe, sizeof(c.exe), "%s/%s", dir, name);
	(void)snprintf(command, sizeof(command), "cp /bin/sleep '%s'", c.exe);
	assert_int_equal(system(command), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(c.exe, name, "1000", NULL);
		_exit(1);
	}
	c.key.pid = (uint32_t)pid;
	for (int i = 0; i < PATIENCE_MS; i++) { /* until exec is over */
		scoped(closep) int proc = proc_dir_open("", c.key.pid);
		scoped(buf_release) struct buf scratch = BUF_INIT(KIB(64));
		scoped(freep) char *exe = proc < 0 ? NULL : proc_link_read(proc, "exe");
		struct proc_facts facts;

		if (exe && !strcmp(exe, c.exe) && proc_facts_read(proc, 0, &scratch, &facts) == 0) {
			c.key.start_ns = facts.start_ticks * (NSEC_PER_SEC / 100);
			return c;
		}
		usleep(1000);
	}
	fail_msg("%s does not start", c.exe);
	return c;
}

static void child_end(const struct child *c)
{
	kill((pid_t)c->key.pid, SIGKILL);
	waitpid((pid_t)c->key.pid, NULL, 0);
	unlink(c->exe);
}

static void assert_described(struct describer *d, const struct child *c, const char *exe, const char *application)
{
	struct str found = STR(""), metadata = STR("");
	int r = -EAGAIN;

	for (int i = 0; i < PATIENCE_MS && r == -EAGAIN; i++) {
		r = describer_get(d, &c->key, exe, &found, &metadata);
		usleep(r == -EAGAIN ? 1000 : 0);
	}
	assert_int_equal(r, 0);
	assert_true(str_eq(found, str_of(application)));
	assert_int_equal(metadata.len, 0);
}

static void programs(void **state)
{
	const struct describer_config cfg = { 0 };
	char dir[] = "/tmp/hearth-describer-XXXXXX";
	struct describer *d = NULL;
	struct child java, plain;

	(void)state;
	assert_non_null(mkdtemp(dir));
	java = child_start(dir, "java");
	plain = child_start(dir, "plain");
	assert_int_equal(describer_open(&cfg, &d), 0);
	assert_described(d, &java, java.exe, "java: 1000");
	assert_described(d, &plain, plain.exe, "");
	describer_forget(d, &java.key);
	describer_forget(d, &java.key);                  /* of nobody */
	assert_described(d, &java, "/another/java", ""); /* what runs there now is another program */
	describer_forget(d, &java.key);
	assert_described(d, &java, java.exe, "java: 1000");
	describer_forget(d, &java.key);
	child_end(&java);
	assert_described(d, &java, java.exe, ""); /* it is gone */
	child_end(&plain);
	describer_close(d);
	describer_close(NULL);
	rmdir(dir);
}

/* Thousands come and go while the thread looks at some of them. */
static void crowd(void **state)
{
	const struct describer_config cfg = { 0 };
	struct describer *d = NULL;
	struct str application, metadata;

	(void)state;
	assert_int_equal(describer_open(&cfg, &d), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		const struct program p = { .pid = 1 + i % 3000, .exec_id = i, .start_ns = i };

		assert_int_equal(describer_get(d, &p, "/bin/x", &application, &metadata), -EAGAIN);
		if (i % 3)
			describer_forget(d, &p);
	}
	describer_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(programs), cmocka_unit_test(crowd) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
