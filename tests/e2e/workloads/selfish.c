/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does to libhearth: selfish COLLECTOR PROFILE-TO-SEND. Prints "ok WHAT" or "not ok WHAT". */
#include <errno.h>
#include <hearth.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *collector;
static atomic_bool done;
static atomic_int alarms;

/* A name of the library's own inside: must not be taken for it. */
int buf_add(int n);
__attribute__((noinline)) int buf_add(int n)
{
	return n + 1;
}

static void say(int good, const char *what)
{
	printf("%s %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
}

__attribute__((noinline)) double burn(unsigned int n)
{
	volatile double sum = 0;

	for (unsigned int i = 1; i < n; i++)
		sum += 1.0 / i;
	return sum;
}

__attribute__((noinline)) double burn_early(void)
{
	double r = burn(100000);

	__asm__ volatile("" ::: "memory");
	return r + 1;
}

__attribute__((noinline)) double burn_late(void)
{
	double r = burn(100000);

	__asm__ volatile("" ::: "memory");
	return r + 2;
}

__attribute__((noinline)) double burn_deep(int depth)
{
	double r = depth ? burn_deep(depth - 1) : burn(100000);

	__asm__ volatile("" ::: "memory");
	return r + 1;
}

static void *early(void *arg)
{
	while (!done)
		burn_early();
	return arg;
}

static void *late(void *arg)
{
	while (!done)
		burn_late();
	return arg;
}

static void *deep(void *arg)
{
	while (!done)
		burn_deep(600);
	return arg;
}

static void *brief(void *arg)
{
	burn(20000);
	return arg;
}

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

static void on_prof(int number)
{
	(void)number;
}

static struct hearth_options options(const char *service)
{
	struct hearth_options o = HEARTH_OPTIONS_INIT;

	o.collector = collector;
	o.service = service;
	o.jitter_ms = 1;
	o.cpu_ms = 500;
	o.round_ms = 1;
	return o;
}

static void refusals(void)
{
	struct hearth_options o = options("never");
	struct hearth_stats stats;
	struct sigaction action = { .sa_handler = on_prof }, before;

	say(hearth_send("cpu", "x", 1) == -ENOTCONN, "hearth_send when not started");
	say(hearth_get_stats(&stats, sizeof(stats)) == -ENOTCONN, "hearth_get_stats when not started");
	hearth_stop();
	o.frequency_hz = 100000;
	say(hearth_start(&o) == -EINVAL, "a frequency without sense");
	o = options("never");
	o.label_count = 1;
	say(hearth_start(&o) == -EINVAL, "labels that are not there");
	o = options("never");
	sigaction(SIGPROF, &action, &before);
	say(hearth_start(&o) == -EBUSY, "a program with its own SIGPROF");
	sigaction(SIGPROF, &before, NULL);
}

static void children(void)
{
	struct hearth_options o = options("child");
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		burn(3000000); /* no timers here: nothing happens */
		if (hearth_send("cpu", "x", 1) != -ENOTCONN || hearth_start(&o) != 0)
			_exit(1);
		for (int i = 0; i < 600; i++)
			burn(300000);
		hearth_stop();
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	say(pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child after fork is not profiled, and can be");
}

static void restarts(void)
{
	struct hearth_options o = options("restarts");
	int bad = 0;

	o.stop_ms = 100;
	for (int i = 0; i < 20; i++) {
		bad += hearth_start(&o) != 0;
		bad += hearth_start(&o) != -EALREADY;
		usleep(10000);
		hearth_stop();
	}
	say(!bad, "started and stopped twenty times");
}

static void send_file(const char *path)
{
	static char bytes[1 << 20];
	FILE *file = fopen(path, "r");
	size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

	say(size && hearth_send("heap", bytes, size) == 0, "a profile of the program's own making is taken");
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	struct hearth_options o;
	struct hearth_stats stats;
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerspec every = { { 0, 10000000 }, { 0, 10000000 } };
	struct timespec begin, end;
	pthread_t threads[3], short_lived;
	timer_t timer;

	collector = argc > 1 ? argv[1] : "http://127.0.0.1:1";
	refusals();
	sigaction(SIGALRM, &action, NULL);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	timer_settime(timer, 0, &every, NULL);
	pthread_create(&threads[0], NULL, early, NULL);
	o = options("selfish");
	say(hearth_start(&o) == 0, "hearth_start");
	pthread_create(&threads[1], NULL, late, NULL);
	pthread_create(&threads[2], NULL, deep, NULL);
	for (int i = 0; i < 300; i++)
		if (pthread_create(&short_lived, NULL, brief, NULL) == 0)
			pthread_join(short_lived, NULL);
	if (argc > 2)
		send_file(argv[2]);
	children();
	for (int i = 0;
	     i < 6000 && hearth_get_stats(&stats, sizeof(stats)) == 0 && (stats.profiles < 4 || stats.samples < 100);
	     i++)
		usleep(10000);
	say(hearth_get_stats(&stats, sizeof(stats)) == 0 && stats.profiles >= 4 && stats.samples >= 100,
	    "profiles are taken");
	hearth_stop();
	restarts();
	done = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say(alarms > 100, "the program's own timers go on");
	o = options("down");
	o.collector = "http://127.0.0.1:1";
	clock_gettime(CLOCK_MONOTONIC, &begin);
	say(hearth_start(&o) == 0 && hearth_send("cpu", "x", 1) == 0, "started without a collector");
	hearth_stop();
	clock_gettime(CLOCK_MONOTONIC, &end);
	say(end.tv_sec - begin.tv_sec <= 4, "hearth_stop waits for two seconds at most");
	say(buf_add(1) == 2 && strcmp(hearth_version(), ""), "names of the program's own");
	return 0;
}
