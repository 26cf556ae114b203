/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes see the same files. */
#include "support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/origins.h"
#include "proc/proc_read.h"

static struct proc proc_of(pid_t pid)
{
	struct buf scratch = BUF_INIT(KIB(64));
	struct proc p = { .pid = (uint32_t)pid };
	struct proc_facts facts;
	int dir = proc_dir_open("", p.pid);

	assert_true(dir >= 0);
	assert_int_equal(proc_facts_read(dir, 0, &scratch, &facts), 0);
	p.start_ns = facts.start_ticks * (NSEC_PER_SEC / 100) + 1;
	close(dir);
	buf_release(&scratch);
	return p;
}

/* A child that waits, below @root. */
static pid_t child_below(const char *root)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (root && chroot(root) < 0)
			byte = 1;
		ignore(write(ready[1], &byte, 1) != 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(byte, 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void one_number_for_one_file_system(void **state)
{
	struct proc self = proc_of(getpid()), other, kernel = { .is_kernel = true };
	struct stat root, seen;
	struct origins *o;
	int fd, again;
	pid_t pid = child_below(NULL);

	(void)state;
	other = proc_of(pid);
	assert_int_equal(origins_new("", &o), 0);
	assert_int_equal(origins_of(o, &self, &fd), 1);
	assert_int_equal(fstat(fd, &seen), 0);
	assert_int_equal(stat("/", &root), 0);
	assert_true(root.st_ino == seen.st_ino && root.st_dev == seen.st_dev);
	assert_int_equal(origins_of(o, &other, &again), 1);
	assert_int_equal(fstat(again, &seen), 0);
	assert_true(root.st_ino == seen.st_ino && root.st_dev == seen.st_dev);
	assert_int_equal(origins_of(o, &kernel, &fd), 0);
	assert_int_equal(fd, -1);
	end(pid);
	assert_int_equal(origins_of(o, &other, &fd), 1); /* gone: what the others of its container have */
	assert_int_equal(fd, again);
	snprintf(other.container_id, sizeof(other.container_id), "0123");
	assert_int_equal(origins_of(o, &other, &fd), 0); /* of that nothing is known */
	assert_int_equal(fd, -1);
	self.start_ns += NSEC_PER_SEC; /* another process that had this pid */
	snprintf(self.container_id, sizeof(self.container_id), "0123");
	assert_int_equal(origins_of(o, &self, &fd), 0);
	origins_free(o);
	origins_free(NULL);
}

static void another_root_is_another(void **state)
{
	char folder[] = "/tmp/hearth-origin-XXXXXX";
	struct proc self = proc_of(getpid()), below;
	struct origins *o;
	int fd, own;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip_because("chroot needs root");
	assert_non_null(mkdtemp(folder));
	pid = child_below(folder);
	below = proc_of(pid);
	assert_int_equal(origins_new("", &o), 0);
	assert_int_equal(origins_of(o, &self, &own), 1);
	assert_int_equal(origins_of(o, &below, &fd), 2);
	assert_int_equal(faccessat(own, "tmp", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "tmp", F_OK, 0), -1);
	end(pid);
	assert_int_equal(origins_of(o, &below, &fd), 0); /* gone: below which of the two was it? */
	assert_int_equal(fd, -1);
	snprintf(self.container_id, sizeof(self.container_id), "4567");
	assert_int_equal(origins_of(o, &self, &own), 3);
	snprintf(below.container_id, sizeof(below.container_id), "4567");
	assert_int_equal(origins_of(o, &below, &fd), 3); /* all of its container see the same */
	assert_int_equal(fd, own);
	origins_free(o);
	rmdir(folder);
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* A root of a process that has ended is not held for long; its number stays. */
static void what_nobody_uses_is_closed(void **state)
{
	struct proc self = proc_of(getpid()), other;
	pid_t pid = child_below(NULL);
	struct origins *o;
	struct stat st;
	int fd, held;

	(void)state;
	other = proc_of(pid);
	assert_int_equal(origins_new("", &o), 0);
	assert_int_equal(origins_of(o, &self, &held), 1);
	origins_cut(o);
	assert_int_equal(fstat(held, &st), 0); /* used in the window that has ended */
	assert_int_equal(origins_of(o, &self, &held), 1);
	origins_cut(o);
	assert_int_equal(fstat(held, &st), 0);
	origins_cut(o);
	assert_int_equal(fcntl(held, F_GETFD), -1);
	end(pid);
	assert_int_equal(origins_of(o, &other, &fd), 1); /* of one that is gone: the number alone */
	assert_int_equal(fd, -1);
	assert_int_equal(origins_of(o, &self, &fd), 1);
	assert_int_equal(stat("/", &st), 0);
	assert_int_equal(inode_of(fd), st.st_ino);
	origins_free(o);
}

/* The number of a mount namespace is another one's later: what is lent is the root of the process that asks. */
static void the_root_is_the_newest(void **state)
{
	struct proc self = proc_of(getpid()), other;
	pid_t pid = child_below(NULL);
	struct origins *o;
	int first, second;

	(void)state;
	other = proc_of(pid);
	assert_int_equal(origins_new("", &o), 0);
	assert_int_equal(origins_of(o, &self, &first), 1);
	assert_int_equal(origins_of(o, &other, &second), 1);
	assert_int_not_equal(first, second); /* opened before the old one was closed */
	assert_int_equal(fcntl(first, F_GETFD), -1);
	end(pid);
	origins_free(o);
}

static void few_descriptors_are_held(void **state)
{
	char base[] = "/tmp/hearth-origin-XXXXXX", folder[64];
	struct origins *o;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip_because("chroot needs root");
	assert_non_null(mkdtemp(base));
	assert_int_equal(origins_new("", &o), 0);
	for (unsigned i = 1; i <= ORIGINS_MAX + 3; i++) {
		struct proc p;
		pid_t pid;

		snprintf(folder, sizeof(folder), "%s/%u", base, i);
		assert_int_equal(mkdir(folder, 0700), 0);
		pid = child_below(folder);
		p = proc_of(pid);
		assert_int_equal(origins_of(o, &p, &fd), i); /* never used again */
		assert_true(fd >= 0 && fd < 2 * ORIGINS_MAX);
		end(pid);
	}
	origins_free(o);
	for (unsigned i = 1; i <= ORIGINS_MAX + 3; i++) {
		snprintf(folder, sizeof(folder), "%s/%u", base, i);
		rmdir(folder);
	}
	rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_number_for_one_file_system), cmocka_unit_test(another_root_is_another),
		cmocka_unit_test(what_nobody_uses_is_closed),     cmocka_unit_test(the_root_is_the_newest),
		cmocka_unit_test(few_descriptors_are_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
