/* SPDX-License-Identifier: Apache-2.0 */
/* The time is spent in the child of a vfork, which runs on its parent's stack. */
#include <sys/wait.h>

#include "stacks.h"

NOINLINE void child(int seconds)
{
	alarm((unsigned)seconds); /* not inherited */
	for (;;)
		leaf();
}

NOINLINE int spawner(int seconds)
{
	int status = 0;

	if (!vfork()) {
		child(seconds);
		_exit(0);
	}
	wait(&status);
	STAY;
	return status;
}

int main(int argc, char **argv)
{
	return !spawner(argc > 1 ? atoi(argv[1]) : 2);
}
