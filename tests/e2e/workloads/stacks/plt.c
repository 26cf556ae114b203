/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through the PLT, to a function so short that many samples lie in the PLT itself. */
#include "stacks.h"

long tiny(long x);

NOINLINE void caller(void)
{
	long room[7], x = 1;

	KEEP(room);
	for (long i = 0; i < 4000000; i++)
		x = tiny(x);
	KEEP(x);
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		caller();
}
