/* SPDX-License-Identifier: Apache-2.0 */
/* main, one, two, three, leaf: frames of different sizes, a value kept over each call. Built in many ways. */
#include "stacks.h"

NOINLINE long three(long x)
{
	char room[24];

	KEEP(room);
	leaf();
	STAY;
	return x * 3;
}

NOINLINE long two(long x, long y)
{
	long room[33];

	KEEP(room);
	y += three(x);
	STAY;
	return x + y;
}

NOINLINE long one(long x)
{
	long y = two(x, x + 1);

	STAY;
	return y + two(y, x);
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (long x = argc;; x++)
		KEEP(one(x));
}
