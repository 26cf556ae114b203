/* SPDX-License-Identifier: Apache-2.0 */
/* A call that is its function's last instruction: the return address belongs to the function behind it. */
#include "stacks.h"

NOINLINE __attribute__((noreturn)) void endless(void)
{
	for (;;)
		leaf();
}

NOINLINE __attribute__((noreturn)) void caller(long x)
{
	char room[24];

	KEEP(room);
	KEEP(x);
	endless();
}

NOINLINE void follower(void)
{
	long room[40];

	KEEP(room);
	leaf();
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	if (argc > 9)
		follower();
	caller(argc);
}
