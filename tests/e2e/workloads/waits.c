/* SPDX-License-Identifier: Apache-2.0 */
/* waits KIND SECONDS: one thread blocks again and again in the function wait_in_KIND, KIND being sleep, lock or pipe.
 * Prints how many nanoseconds it waited by its own clock, and how often by the kernel's count of its voluntary
 * switches: on a busy machine a thread that gets a lock may find it taken again, or free before it looked. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int ends[2];
static int running = 1;
static double waited;
static long times;

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static long switches(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw;
}

NOINLINE static void wait_in_sleep(void)
{
	const struct timespec t = { 0, 20 * 1000000 };
	long before = switches();
	double start = now_s();

	nanosleep(&t, NULL);
	waited += now_s() - start;
	times += switches() - before;
	STAY;
}

NOINLINE static void wait_in_lock(void)
{
	long before = switches();
	double start = now_s();

	pthread_mutex_lock(&lock);
	waited += now_s() - start;
	times += switches() - before;
	pthread_mutex_unlock(&lock);
	STAY;
}

/* The waits at the barriers are none of those that are counted. */
static void turn_at_lock(void)
{
	pthread_barrier_wait(&both); /* the other thread has the lock now */
	wait_in_lock();
	pthread_barrier_wait(&both);
}

NOINLINE static void wait_in_pipe(void)
{
	long before = switches();
	double start = now_s();
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		running = 0;
	waited += now_s() - start;
	times += switches() - before;
	STAY;
}

/* Holds the lock for 15 ms a turn. Looks for the end where the other thread waits for it: it must not be left alone in
 * a turn that it has begun. */
static void *hold(void *unused)
{
	int more;

	(void)unused;
	do {
		pthread_mutex_lock(&lock);
		pthread_barrier_wait(&both);
		sleep_ms(15);
		more = __atomic_load_n(&running, __ATOMIC_ACQUIRE);
		pthread_mutex_unlock(&lock);
		pthread_barrier_wait(&both);
	} while (more);
	return NULL;
}

/* A byte every 10 ms, and one behind the end: the last turn waits for it. */
static void *feed(void *unused)
{
	int more;

	(void)unused;
	do {
		sleep_ms(10);
		more = __atomic_load_n(&running, __ATOMIC_ACQUIRE);
	} while (write(ends[1], "x", 1) == 1 && more);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "sleep";
	double end = now_s() + (argc > 2 ? strtod(argv[2], NULL) : 2);
	pthread_t helper;
	int is_lock = !strcmp(kind, "lock"), is_pipe = !strcmp(kind, "pipe");

	if (pipe(ends) || pthread_barrier_init(&both, NULL, 2))
		return 1;
	if ((is_lock || is_pipe) && pthread_create(&helper, NULL, is_lock ? hold : feed, NULL))
		return 1;
	while (now_s() < end) {
		if (now_s() + 0.05 > end) /* the last turn: the helper leaves behind it */
			__atomic_store_n(&running, 0, __ATOMIC_RELEASE);
		if (is_lock)
			turn_at_lock();
		else if (is_pipe)
			wait_in_pipe();
		else
			wait_in_sleep();
		if (!__atomic_load_n(&running, __ATOMIC_ACQUIRE))
			break;
	}
	printf("%.0f %ld\n", waited * 1e9, times);
	return 0;
}
