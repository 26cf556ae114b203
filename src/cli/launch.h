/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that waits for the word to start its program. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct launch {
	pid_t pid;      /* 0: nothing was launched, or it has been waited for */
	int go_fd;      /* writing a byte starts the program */
	int error_fd;   /* the child's errno when exec fails; end of file when it worked */
	int exec_errno; /* 0, or why the program could not be started */
	int status;     /* of its end, as a shell has it: 0..255, or 128 + signal */
	bool ended;     /* status is known */
	const char *program;
};

#define LAUNCH_INIT                         \
	{                                   \
		.go_fd = -1, .error_fd = -1 \
	}

/** launch_fork - make the child; it blocks before exec. Return: 0 or -errno. */
int launch_fork(char **argv, struct launch *out);
/** launch_go - start the program. On failure exec_errno is set, and status is 127 for a program that is not there, else
 * 126. */
void launch_go(struct launch *l);
/** launch_ended - has the child ended? Never blocks; false when nothing was launched. */
bool launch_ended(struct launch *l);
/**
 * launch_wait - wait for the child's end
 * @signal: sent to it first; 0: none
 *
 * Return: whether it has ended; false after @timeout_ms.
 */
bool launch_wait(struct launch *l, int signal, int timeout_ms);
/** launch_release - a child that was never told to start ends by itself, since its pipe closes. */
void launch_release(struct launch *l);
/** launch_command_line - the words with blanks between them, for people; the caller frees it; NULL without memory. */
char *launch_command_line(int count, char **words);
