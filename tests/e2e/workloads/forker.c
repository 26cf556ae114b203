/* SPDX-License-Identifier: Apache-2.0 */
/* forker COUNT PROGRAM: fork and exec PROGRAM that often, one after the other. */
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

extern char **environ;

int main(int argc, char **argv)
{
	const unsigned long count = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;

	for (unsigned long i = 0; i < count; i++) {
		char *const args[] = { argv[2], NULL };
		const pid_t pid = fork();
		int status;

		if (pid == 0) {
			execv(argv[2], args);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "forker: child %lu failed\n", i);
			return 1;
		}
	}
	return 0;
}
