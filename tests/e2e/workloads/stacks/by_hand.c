/* SPDX-License-Identifier: Apache-2.0 */
/* The user of assembly.S. */
#include "stacks.h"

void by_hand(int odd);

NOINLINE void caller(int odd)
{
	by_hand(odd);
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (int turn = 0;; turn++)
		caller(turn);
}
