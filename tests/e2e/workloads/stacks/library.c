/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded while its user runs, and calls back. SECOND: as it looks after an update. */
#include "stacks.h"

#ifdef SECOND
#define library_inner library_second
#define ROOM 3000

NOINLINE void more_code(long x)
{
	char room[80];

	KEEP(room);
	KEEP(x * 3);
}
#else
#define ROOM 48
#endif

NOINLINE void library_inner(void (*back)(void))
{
	char room[ROOM];

	KEEP(room);
	back();
	KEEP(room);
}

NOINLINE void library_entry(void (*back)(void))
{
	library_inner(back);
	STAY;
}
