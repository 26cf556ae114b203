/* SPDX-License-Identifier: Apache-2.0 */
/* One function sixty times on top of itself. */
#include "stacks.h"

NOINLINE int recurse(int depth)
{
	int below;

	if (!depth) {
		leaf();
		STAY;
		return 1;
	}
	below = recurse(depth - 1);
	STAY;
	return below + depth;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		KEEP(recurse(59));
}
