/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads; the first one waits for them. */
#include <pthread.h>

#include "stacks.h"

NOINLINE void inner(void)
{
	leaf();
	STAY;
}

NOINLINE void *thread_main(void *unused)
{
	char room[100];

	KEEP(room);
	for (;;)
		inner();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	deadline(argc, argv);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread_main, NULL);
	return pthread_join(threads[0], NULL);
}
