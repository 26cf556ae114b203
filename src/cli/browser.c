/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRAM "xdg-open"

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

bool browser_possible(void)
{
	return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

/* A session of its own: Ctrl-C ends us, not the browser, and its chatter is nobody's. */
static void leave_terminal(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	for (int i = 0; i < 3; i++)
		ignore(dup2(fd, i)); /* then it keeps ours */
}

_Noreturn static void child(const char *url, const struct rlimit *data, int go)
{
	char *const argv[] = { (char *)PROGRAM, (char *)url, NULL };
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;
	char byte;

	(void)sigemptyset(&none); /* these cannot fail with constant numbers */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)sigaction(SIGCHLD, &usual, NULL);
	(void)sigaction(SIGPIPE, &usual, NULL);
	(void)sigaction(SIGXFSZ, &usual, NULL);
	leave_terminal();
	if (read(go, &byte, 1) != 1)
		_exit(0);                     /* no page is to be opened */
	ignore(setrlimit(RLIMIT_DATA, data)); /* back to what it was: cannot fail */
	execvp(PROGRAM, argv);
	_exit(127);
}

int browser_prepare(const char *url, const struct rlimit *data, struct browser *out)
{
	struct sigaction reaped = { .sa_handler = SIG_IGN };
	int go[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	(void)sigaction(SIGCHLD, &reaped, NULL); /* nobody waits for it */
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		(void)close(go[0]);
		(void)close(go[1]);
		return r;
	}
	if (pid == 0) {
		(void)close(go[1]); /* or the read would wait for ourselves */
		child(url, data, go[0]);
	}
	(void)close(go[0]);
	out->go_fd = go[1];
	return 0;
}

void browser_go(struct browser *b)
{
	if (b->go_fd >= 0)
		ignore(write(b->go_fd, "g", 1) < 0); /* a child that is gone opens nothing */
	closep(&b->go_fd);
}

void browser_release(struct browser *b)
{
	closep(&b->go_fd);
}
