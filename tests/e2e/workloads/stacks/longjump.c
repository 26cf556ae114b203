/* SPDX-License-Identifier: Apache-2.0 */
/* Deep down and back by longjmp; the time is spent after the second return of setjmp. */
#include <setjmp.h>

#include "stacks.h"

static jmp_buf back;

NOINLINE void down(int depth)
{
	char room[72];

	KEEP(room);
	if (!depth)
		longjmp(back, 1);
	down(depth - 1);
	KEEP(room);
}

NOINLINE void jumper(void)
{
	if (!setjmp(back))
		down(20);
	leaf();
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		jumper();
}
