/* SPDX-License-Identifier: Apache-2.0 */
/* Forty frames of one function. */
#include "burn.h"

#define DEPTH 40

NOINLINE void recursion_leaf(void)
{
	burn();
	STAY;
}

NOINLINE int recursion_down(int depth)
{
	int below = 0;

	if (depth > 1)
		below = recursion_down(depth - 1);
	else
		recursion_leaf();
	STAY;
	return below + 1;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);

	while (before(end))
		if (recursion_down(DEPTH) != DEPTH)
			return 1;
	return 0;
}
