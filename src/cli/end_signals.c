/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/end_signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t all_of_them(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

int end_signals_open(struct end_signals *s)
{
	sigset_t set = all_of_them();

	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return s->fd < 0 ? -errno : 0;
}

bool end_signals_came(struct end_signals *s)
{
	struct signalfd_siginfo info;

	if (read(s->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	if (!s->signal) {
		s->signal = (int)info.ssi_signo;
		s->is_from_terminal = info.ssi_code == SI_KERNEL;
	}
	return true;
}

void end_signals_close(struct end_signals *s)
{
	sigset_t set = all_of_them();

	while (end_signals_came(s))
		;
	closep(&s->fd);
	ignore(signal(SIGHUP, SIG_IGN) == SIG_ERR);
	ignore(sigprocmask(SIG_UNBLOCK, &set, NULL)); /* cannot fail with these arguments */
}

void end_signals_release(struct end_signals *s)
{
	closep(&s->fd);
}
