/* SPDX-License-Identifier: Apache-2.0 */
/* The time is spent in a catch block, or with CLEANUP in a destructor while the stack unwinds. */
#define TURNS 100000000ul /* so that the time of the throw itself is little */
#include "stacks.h"

NOINLINE void thrower(int x)
{
	throw x;
}

extern "C" NOINLINE void clean_up()
{
	leaf();
	STAY;
}

struct guard {
	~guard()
	{
#ifdef CLEANUP
		clean_up();
#endif
	}
};

extern "C" NOINLINE void middle(int x)
{
	guard g;
	char room[56];

	KEEP(room);
	thrower(x);
	KEEP(room);
}

extern "C" NOINLINE void handle()
{
	leaf();
	STAY;
}

extern "C" NOINLINE void catcher(int x)
{
	try {
		middle(x);
	} catch (int &caught) {
		KEEP(caught);
#ifndef CLEANUP
		handle();
#endif
	}
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (int x = 1;; x++)
		catcher(x);
}
