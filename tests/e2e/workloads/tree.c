/* SPDX-License-Identifier: Apache-2.0 */
/* A known call tree with known weights: of main's thread a/b/c 50 %, a/b 20 %, d/e 30 %; beside it two threads that
 * spend everything in thread_main/outer/inner. */
#include <pthread.h>

#include "work.h"

#define TURNS 1000000ul

static double deadline;

NOINLINE void c(void)
{
	burn(50 * TURNS);
	STAY;
}

NOINLINE void b(void)
{
	burn(20 * TURNS);
	c();
	STAY;
}

NOINLINE void a(void)
{
	b();
	STAY;
}

NOINLINE void e(void)
{
	burn(30 * TURNS);
	STAY;
}

NOINLINE void d(void)
{
	e();
	STAY;
}

NOINLINE void inner(void)
{
	burn(50 * TURNS);
	STAY;
}

NOINLINE void outer(void)
{
	inner();
	STAY;
}

NOINLINE void *thread_main(void *name)
{
	pthread_setname_np(pthread_self(), name);
	while (now_s() < deadline)
		outer();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	deadline = now_s() + seconds_of(argc, argv, 2);
	pthread_create(&threads[0], NULL, thread_main, "tree-one");
	pthread_create(&threads[1], NULL, thread_main, "tree-two");
	while (now_s() < deadline) {
		a();
		d();
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
