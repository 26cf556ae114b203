/* SPDX-License-Identifier: Apache-2.0 */
/* Twenty functions with falling shares of the time, for comparing profiles: hot_01 (20 parts) to hot_20 (1 part). */
#include "work.h"

/* clang-format off */ /* version 14 moves these lines each time */
#define HOT(name, parts)                \
	NOINLINE void name(void)        \
	{                               \
		burn((parts)*200000ul); \
		STAY;                   \
	}

#define ALL(X)                                                                                                         \
	X(hot_01, 20)                                                                                                  \
	X(hot_02, 19)                                                                                                  \
	X(hot_03, 18)                                                                                                  \
	X(hot_04, 17)                                                                                                  \
	X(hot_05, 16) X(hot_06, 15) X(hot_07, 14) X(hot_08, 13) X(hot_09, 12) X(hot_10, 11) X(hot_11, 10) X(hot_12, 9) \
		X(hot_13, 8) X(hot_14, 7) X(hot_15, 6) X(hot_16, 5) X(hot_17, 4) X(hot_18, 3) X(hot_19, 2)             \
			X(hot_20, 1)
/* clang-format on */

ALL(HOT)

int main(int argc, char **argv)
{
	const double deadline = now_s() + seconds_of(argc, argv, 2);

	while (now_s() < deadline) {
#define CALL(name, parts) name();
		ALL(CALL)
	}
	return 0;
}
