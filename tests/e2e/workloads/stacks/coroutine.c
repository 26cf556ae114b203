/* SPDX-License-Identifier: Apache-2.0 */
/* Four coroutines in turn, each on a stack of its own: those of the C library, or Boost's (-DBOOST). */
#include <stdint.h>
#include <ucontext.h>

#include "stacks.h"

#define COUNT 4
#define STACK_SIZE 65536

NOINLINE void inner(void)
{
	leaf();
	STAY;
}

#ifdef BOOST
/* libboost_context exports these two; boost/context/detail/fcontext.hpp declares them for C++. */
typedef struct {
	void *from, *data;
} transfer;
void *make_fcontext(void *top, size_t size, void (*function)(transfer));
transfer jump_fcontext(void *to, void *data);

static void *contexts[COUNT];

NOINLINE void coroutine(transfer t)
{
	char room[100];

	KEEP(room);
	for (;;) {
		inner();
		t = jump_fcontext(t.from, NULL);
	}
}

static void make(int i)
{
	char *stack = malloc(STACK_SIZE);

	contexts[i] = make_fcontext(stack + STACK_SIZE, STACK_SIZE, coroutine);
}

static void turn(int i)
{
	contexts[i] = jump_fcontext(contexts[i], NULL).from;
}
#else
static ucontext_t home, contexts[COUNT];

NOINLINE void coroutine(int i)
{
	char room[100];

	KEEP(room);
	for (;;) {
		inner();
		swapcontext(&contexts[i], &home);
	}
}

static void make(int i)
{
	getcontext(&contexts[i]);
	contexts[i].uc_stack.ss_sp = malloc(STACK_SIZE);
	contexts[i].uc_stack.ss_size = STACK_SIZE;
	contexts[i].uc_link = i & 1 ? &home : NULL;
	makecontext(&contexts[i], (void (*)(void))(uintptr_t)coroutine, 1, i);
}

static void turn(int i)
{
	swapcontext(&home, &contexts[i]);
}
#endif

int main(int argc, char **argv)
{
	deadline(argc, argv);
	for (int i = 0; i < COUNT; i++)
		make(i);
	for (int i = 0;; i = (i + 1) % COUNT)
		turn(i);
}
