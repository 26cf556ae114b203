/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that were asked for by id, and whether they still live. */
#pragma once

#include <sys/types.h>

#include "cli/command.h"

#define TARGETS_MAX 1024

struct targets {
	pid_t pids[TARGETS_MAX];
	int fds[TARGETS_MAX]; /* pidfd, readable when the process has ended; -1: it has, or is not watched here */
	size_t count, watched;
};

/** targets_parse - "1,2"; each process must live. Return: EXIT_DONE, or another status after saying why. */
int targets_parse(struct targets *t, const struct command *c, const struct opt_list *texts);
/** targets_add - one more. Return: 0, -ESRCH, -EINVAL (a thread, or no id), -E2BIG (TARGETS_MAX), -errno. */
int targets_add(struct targets *t, pid_t pid) warn_unused;
/** targets_add_child - one that its launcher watches. */
void targets_add_child(struct targets *t, pid_t pid);
/** targets_ended - were some watched, and have all of them ended? Never blocks. */
bool targets_ended(struct targets *t);
void targets_release(struct targets *t); /* a zeroed struct is fine */
