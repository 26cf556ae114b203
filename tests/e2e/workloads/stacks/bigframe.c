/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of 200 KB. */
#include "stacks.h"

NOINLINE void big(void)
{
	char room[200000];

	KEEP(room);
	leaf();
	KEEP(room);
}

NOINLINE void caller(void)
{
	big();
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		caller();
}
