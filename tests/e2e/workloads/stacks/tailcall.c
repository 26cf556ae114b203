/* SPDX-License-Identifier: Apache-2.0 */
/* first and second leave by a jump: their frames are gone when third runs. */
#include "stacks.h"

NOINLINE void third(long x)
{
	KEEP(x);
	leaf();
	STAY;
}

NOINLINE void step(long x)
{
	KEEP(x);
}

NOINLINE void second(long x)
{
	step(x); /* x lives in a saved register meanwhile: there is a frame to take down before the jump */
	third(x + 1);
}

NOINLINE void first(long x)
{
	KEEP(x);
	second(x + 1);
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (long x = 1;; x++)
		first(x);
}
