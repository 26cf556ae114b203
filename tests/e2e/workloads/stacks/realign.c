/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that begin at a multiple of 64: the way back to the caller is a register or a word of the frame. */
#include "stacks.h"

struct wide {
	long values[8];
} __attribute__((aligned(64)));

NOINLINE void inner(struct wide *w)
{
	struct wide own = *w;

	KEEP(&own);
	leaf();
	KEEP(&own);
}

NOINLINE void outer(long x, long room_size)
{
	struct wide w;
	char room[room_size];

	w.values[0] = x;
	KEEP(room);
	inner(&w);
	KEEP(&w);
}

NOINLINE void caller(long x)
{
	long room[3];

	KEEP(room);
	outer(x, x % 512 + 1);
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (long x = 1;; x++)
		caller(x);
}
