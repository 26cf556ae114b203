/* SPDX-License-Identifier: Apache-2.0 */
/* A busy program that profiles itself: hotapp [SECONDS [COLLECTOR]].
 *
 *   cc -O1 -g -fno-omit-frame-pointer hotapp.c $(pkg-config --cflags --libs libhearth) -pthread
 */
#include <hearth.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool done;

__attribute__((noinline)) double sum_of_roots(unsigned int count)
{
	double sum = 0;

	for (unsigned int i = 1; i < count; i++)
		sum += 1.0 / (i * (double)i);
	return sum;
}

__attribute__((noinline)) double collatz(unsigned int count)
{
	double steps = 0;

	for (unsigned int i = 1; i < count; i++)
		for (unsigned long n = i; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
			steps++;
	return steps;
}

/* About three quarters of the time in one of its callees. */
__attribute__((noinline)) double work(void)
{
	double result = sum_of_roots(1000000);

	for (int i = 0; i < 3; i++)
		result += collatz(4000);
	return result;
}

static void *worker(void *arg)
{
	volatile double sink = 0;

	(void)arg;
	while (!done)
		sink += work();
	return NULL;
}

static void say(void *ctx, const char *message)
{
	(void)ctx;
	fprintf(stderr, "hotapp: %s\n", message);
}

int main(int argc, char **argv)
{
	struct hearth_options options = HEARTH_OPTIONS_INIT;
	const struct hearth_label labels[] = { { "example", "yes" } };
	unsigned int seconds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 30;
	struct hearth_stats stats;
	pthread_t threads[2];
	int error;

	options.service = "hotapp";
	options.collector = argc > 2 ? argv[2] : NULL;
	options.labels = labels;
	options.label_count = 1;
	options.say = say;
	if (getenv("HOTAPP_QUICK")) { /* for tests: no waiting */
		options.jitter_ms = 1;
		options.cpu_ms = 1000;
		options.round_ms = 100;
	}
	error = hearth_start(&options);
	if (error) {
		fprintf(stderr, "hotapp: hearth_start: %s\n", strerror(-error));
		return 1;
	}
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		if (pthread_create(&threads[i], NULL, worker, NULL))
			return 1;
	sleep(seconds);
	done = 1;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		pthread_join(threads[i], NULL);
	hearth_get_stats(&stats, sizeof(stats));
	hearth_stop();
	printf("%llu profiles with %llu samples, %llu lost\n", (unsigned long long)stats.profiles,
	       (unsigned long long)stats.samples, (unsigned long long)stats.lost_samples);
	return 0;
}
