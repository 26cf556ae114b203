/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads at work, the first one waits. */
#include <pthread.h>

#include "burn.h"

static double end;

NOINLINE void thread_leaf(void)
{
	burn();
	STAY;
}

NOINLINE void thread_inner(void)
{
	thread_leaf();
	STAY;
}

NOINLINE void *thread_body(void *unused)
{
	while (before(end))
		thread_inner();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	end = deadline(argc, argv, 5);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, thread_body, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
