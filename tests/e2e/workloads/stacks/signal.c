/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler that never returns, above the very first instruction of the function that faulted: one byte before
 * it lies another function. With ALTERNATE the handler has a stack of its own. */
#include <signal.h>

#include "stacks.h"

NOINLINE void handler(int number)
{
	(void)number;
	for (;;)
		leaf();
}

void faulting(void);
__asm__(".text\n"
	".type before_faulting, @function\n"
	"before_faulting:\n"
	".cfi_startproc\n"
	"nop\n"
	"ret\n"
	".cfi_endproc\n"
	".size before_faulting, . - before_faulting\n"
	".globl faulting\n"
	".type faulting, @function\n"
	"faulting:\n"
	".cfi_startproc\n"
	"ud2\n"
	"ret\n"
	".cfi_endproc\n"
	".size faulting, . - faulting\n");

NOINLINE void caller(void)
{
	long room[5];

	KEEP(room);
	faulting();
	STAY;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler };
#ifdef ALTERNATE
	static char other[65536];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };

	sigaltstack(&stack, NULL);
	action.sa_flags = SA_ONSTACK;
#endif
	sigaction(SIGILL, &action, NULL);
	deadline(argc, argv);
	caller();
	return 0;
}
