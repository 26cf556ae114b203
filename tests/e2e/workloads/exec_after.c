/* SPDX-License-Identifier: Apache-2.0 */
/* What exec_before becomes. */
#include "work.h"

NOINLINE void after_exec(double until)
{
	while (now_s() < until)
		burn(1000000);
	STAY;
}

int main(int argc, char **argv)
{
	after_exec(now_s() + seconds_of(argc, argv, 1));
	return 0;
}
