/* SPDX-License-Identifier: Apache-2.0 */
/* spin SECONDS THREADS: threads called spin-0, spin-1, ... that are always busy; 0 threads: the main thread alone. */
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static double deadline;

NOINLINE void spin_work(void)
{
	while (now_s() < deadline)
		burn(10000000);
	STAY;
}

NOINLINE void *spin_thread(void *index)
{
	char name[16];

	snprintf(name, sizeof(name), "spin-%zu", (size_t)index);
	pthread_setname_np(pthread_self(), name);
	spin_work();
	STAY;
	return NULL;
}

int main(int argc, char **argv)
{
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	pthread_t threads[256];

	deadline = now_s() + seconds_of(argc, argv, 2);
	count = count > 256 ? 256 : count;
	for (size_t i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, spin_thread, (void *)i);
	if (!count)
		spin_work();
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
