/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are jumps: tail_first and tail_second are gone when tail_leaf runs, tail_outer is its caller. */
#include "burn.h"

NOINLINE int tail_leaf(int n)
{
	burn();
	STAY;
	return n + 1;
}

NOINLINE int tail_second(int n)
{
	return tail_leaf(n + 1);
}

NOINLINE int tail_first(int n)
{
	return tail_second(n + 1);
}

NOINLINE int tail_outer(int n)
{
	int r = tail_first(n);

	STAY;
	return r;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv, 5);

	while (before(end))
		if (tail_outer(argc) != argc + 3)
			return 1;
	return 0;
}
