/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/targets.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int targets_add(struct targets *t, pid_t pid)
{
	int fd;

	if (t->count == TARGETS_MAX)
		return -E2BIG;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	t->pids[t->count] = pid;
	t->fds[t->count++] = fd;
	t->watched++;
	return 0;
}

static int add(struct targets *t, const struct command *c, pid_t pid)
{
	int r = targets_add(t, pid);

	if (r == -E2BIG) {
		command_fail(c, "more than %d processes", TARGETS_MAX);
		return EXIT_USAGE;
	}
	if (r == -ESRCH)
		return command_fail(c, "there is no process %d", (int)pid);
	if (r < 0)
		return command_fail(c, "cannot watch process %d: %s", (int)pid,
				    r == -EINVAL ? "that is a thread, not a process" : strerror(-r));
	return EXIT_DONE;
}

int targets_parse(struct targets *t, const struct command *c, const struct opt_list *texts)
{
	int e = EXIT_DONE;

	for (size_t i = 0; i < texts->count && e == EXIT_DONE; i++) {
		struct str rest = str_of(texts->items[i]), piece;

		while (e == EXIT_DONE && str_next(&rest, ',', &piece)) {
			uint64_t pid;

			if (str_to_u64(piece, 1, INT32_MAX, &pid) == 0) {
				e = add(t, c, (pid_t)pid);
				continue;
			}
			command_fail(c, "--pid: '" STR_FMT "' is not a process id", STR_ARG(piece));
			e = EXIT_USAGE;
		}
	}
	return e;
}

void targets_add_child(struct targets *t, pid_t pid)
{
	must(t->count < TARGETS_MAX);
	t->pids[t->count] = pid;
	t->fds[t->count++] = -1;
}

bool targets_ended(struct targets *t)
{
	bool any = false;

	for (size_t i = 0; i < t->count; i++) {
		struct pollfd ended = { .fd = t->fds[i], .events = POLLIN };

		if (t->fds[i] < 0)
			continue;
		if (poll(&ended, 1, 0) == 1)
			closep(&t->fds[i]);
		else
			any = true;
	}
	return t->watched && !any;
}

void targets_release(struct targets *t)
{
	for (size_t i = 0; i < t->count; i++)
		closep(&t->fds[i]);
	t->count = 0;
}
