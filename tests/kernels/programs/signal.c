/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler on a stack of its own, raised by the first instruction of a function: one byte before it is the
 * function in front, so whoever looks there names the wrong caller. */
#include <signal.h>
#include <ucontext.h>

#include "burn.h"

static char stack[65536];

NOINLINE void signal_leaf(void)
{
	burn();
	STAY;
}

NOINLINE void signal_handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)number;
	(void)info;
	signal_leaf();
#ifdef __aarch64__
	at->uc_mcontext.pc += 4;
#else
	at->uc_mcontext.gregs[REG_RIP] += 2;
#endif
	STAY;
}

NOINLINE void signal_raise(void)
{
#ifdef __aarch64__
	__asm__ volatile("udf #0" ::: "memory");
#else
	__asm__ volatile("ud2" ::: "memory");
#endif
}

NOINLINE void signal_outer(void)
{
	signal_raise();
	STAY;
}

int main(int argc, char **argv)
{
	double end = deadline(argc, argv);
	struct sigaction action = { .sa_sigaction = signal_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };

	if (sigaltstack(&own, NULL) || sigaction(SIGILL, &action, NULL))
		return 1;
	while (before(end))
		signal_outer();
	return 0;
}
