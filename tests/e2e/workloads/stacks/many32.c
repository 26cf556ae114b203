/* SPDX-License-Identifier: Apache-2.0 */
/* Thirty-two functions deep, each with a frame of its own size (8 to 264 bytes). */
#include "stacks.h"

#define DEEP(n, next)                   \
	NOINLINE void deep_##n(void)    \
	{                               \
		char room[8 * (n) + 8]; \
		KEEP(room);             \
		next();                 \
		KEEP(room);             \
	}

DEEP(30, leaf)
DEEP(29, deep_30)
DEEP(28, deep_29)
DEEP(27, deep_28)
DEEP(26, deep_27)
DEEP(25, deep_26)
DEEP(24, deep_25)
DEEP(23, deep_24)
DEEP(22, deep_23)
DEEP(21, deep_22)
DEEP(20, deep_21)
DEEP(19, deep_20)
DEEP(18, deep_19)
DEEP(17, deep_18)
DEEP(16, deep_17)
DEEP(15, deep_16)
DEEP(14, deep_15)
DEEP(13, deep_14)
DEEP(12, deep_13)
DEEP(11, deep_12)
DEEP(10, deep_11)
DEEP(9, deep_10)
DEEP(8, deep_9)
DEEP(7, deep_8)
DEEP(6, deep_7)
DEEP(5, deep_6)
DEEP(4, deep_5)
DEEP(3, deep_4)
DEEP(2, deep_3)
DEEP(1, deep_2)

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		deep_1();
}
