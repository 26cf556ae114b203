/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

/* As shells have them. */
#define STATUS_NOT_RUN 126
#define STATUS_NOT_FOUND 127

_Noreturn static void child(char **argv, int go, int error)
{
	sigset_t none;
	char byte;
	int e;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(STATUS_NOT_RUN); /* the parent gave up */
	execvp(argv[0], argv);
	e = errno;
	ignore(write(error, &e, sizeof(e)) < 0); /* the parent sees the exit status as well */
	_exit(STATUS_NOT_FOUND);
}

int launch_fork(char **argv, struct launch *out)
{
	scoped(closep) int go_read = -1;
	scoped(closep) int error_write = -1;
	int go[2], error[2];
	pid_t pid;

	signal(SIGCHLD, SIG_DFL); /* whoever ignores it (and we inherit that) never gets a status */
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	go_read = go[0];
	out->go_fd = go[1];
	if (pipe2(error, O_CLOEXEC) < 0)
		return -errno;
	out->error_fd = error[0];
	error_write = error[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(out->go_fd); /* or the read below would wait for ourselves */
		child(argv, go_read, error_write);
	}
	out->pid = pid;
	out->program = argv[0];
	return 0;
}

void launch_go(struct launch *l)
{
	if (l->go_fd < 0)
		return;
	ignore(write(l->go_fd, "g", 1) < 0); /* a child that is gone is noticed by launch_ended() */
	closep(&l->go_fd);
	if (read(l->error_fd, &l->exec_errno, sizeof(l->exec_errno)) != (ssize_t)sizeof(l->exec_errno))
		l->exec_errno = 0;
	closep(&l->error_fd);
	if (l->exec_errno)
		l->status = l->exec_errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
}

bool launch_ended(struct launch *l)
{
	int how = 0;

	if (l->pid <= 0 || waitpid(l->pid, &how, WNOHANG) == 0)
		return false;
	l->pid = 0;
	l->ended = true;
	l->status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
	return true;
}

bool launch_wait(struct launch *l, int signal, int timeout_ms)
{
	scoped(closep) int fd = -1;
	struct pollfd end = { .events = POLLIN };

	if (l->pid <= 0 || launch_ended(l))
		return l->ended;
	if (signal)
		ignore(kill(l->pid, signal)); /* ours until launch_ended() has waited for it */
	end.fd = fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	if (fd >= 0)
		ignore(poll(&end, 1, timeout_ms));
	return launch_ended(l);
}

void launch_release(struct launch *l)
{
	closep(&l->go_fd);
	closep(&l->error_fd);
}

char *launch_command_line(int count, char **words)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(64));
	size_t len;

	for (int i = 0; i < count; i++)
		buf_addf(&text, "%s%s", i ? " " : "", words[i]);
	text.error = 0; /* a command line that was cut at the limit is still worth showing */
	buf_addc(&text, 0);
	return text.error ? NULL : buf_take(&text, &len);
}
