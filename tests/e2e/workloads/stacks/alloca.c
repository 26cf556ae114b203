/* SPDX-License-Identifier: Apache-2.0 */
/* A frame whose size is only known when it runs. */
#include <alloca.h>

#include "stacks.h"

NOINLINE void varying(unsigned size)
{
	char *room = alloca(size);

	memset(room, 1, size);
	KEEP(room);
	leaf();
	KEEP(room);
}

NOINLINE void caller(unsigned size)
{
	varying(size);
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (unsigned turn = 1;; turn++)
		caller(turn * 640 % 4096);
}
