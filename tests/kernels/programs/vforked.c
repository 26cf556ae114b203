/* SPDX-License-Identifier: Apache-2.0 */
/* Children that run in their parent's memory, on its stack, each long enough to be sampled. */
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

NOINLINE void vfork_leaf(void)
{
	for (int i = 0; i < 40; i++)
		burn();
	STAY;
}

NOINLINE int vfork_outer(void)
{
	int status = 1;
	pid_t child = vfork();

	if (child == 0) {
		vfork_leaf();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	return status;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);

	while (before(end))
		if (vfork_outer())
			return 1;
	return 0;
}
