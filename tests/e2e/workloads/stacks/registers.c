/* SPDX-License-Identifier: Apache-2.0 */
/* The user of registers.S. */
#include "stacks.h"

void by_rax(void);
void by_rbx(void);
void by_expression(void);
void by_lie(void);

NOINLINE void caller(void)
{
#ifdef LIE
	by_lie();
#else
	by_rax();
	STAY;
	by_rbx();
	STAY;
	by_expression();
#endif
	STAY;
}

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (;;)
		caller();
}
