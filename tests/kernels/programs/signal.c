/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler on a stack of its own, raised by the first instruction of a function: one byte before it is the
 * function in front, so a walker that looks there names the wrong caller. Begins with that some time after SIGUSR1:
 * samples of files whose rows are not loaded yet travel with a copy of the stack they were taken on, and what was
 * interrupted lies on another one. So first the program and then, in the handler of SIGUSR1, the vDSO are met on the
 * usual stack.
 */
#include <signal.h>
#include <ucontext.h>

#include "burn.h"

static char stack[65536];
static volatile sig_atomic_t begun;

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

NOINLINE void signal_quiet(void)
{
	burn();
	STAY;
}

static void begin(int number)
{
	double end = deadline(0, NULL, 3);

	(void)number;
	while (before(end))
		signal_quiet();
	begun = 1;
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
	double end = deadline(argc, argv, 5);
	struct sigaction action = { .sa_sigaction = signal_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };

	if (sigaltstack(&own, NULL) || sigaction(SIGILL, &action, NULL) || signal(SIGUSR1, begin) == SIG_ERR)
		return 1;
	while (before(end)) {
		if (begun)
			signal_outer();
		else
			signal_quiet();
	}
	return 0;
}
