/* SPDX-License-Identifier: Apache-2.0 */
/* exec_before SECONDS PROGRAM: burns, then becomes PROGRAM, which has other functions at the same addresses. */
#include <unistd.h>

#include "work.h"

NOINLINE void before_exec(double until)
{
	while (now_s() < until)
		burn(1000000);
	STAY;
}

int main(int argc, char **argv)
{
	char *const args[] = { argc > 2 ? argv[2] : NULL, argc > 1 ? argv[1] : NULL, NULL };

	before_exec(now_s() + seconds_of(argc, argv, 1));
	if (argc > 2)
		execv(argv[2], args);
	return 1;
}
