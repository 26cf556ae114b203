/* SPDX-License-Identifier: Apache-2.0 */
/* libhearth: a program profiles itself and sends the profiles to a collector (hearth serve, or profefe).
 *
 *   struct hearth_options options = HEARTH_OPTIONS_INIT;
 *
 *   options.service = "shop";
 *   hearth_start(&options);
 *
 * From then on, one profile of ten seconds is taken every minute: each thread gets a timer on its own CPU clock, and
 * the signal of that timer (SIGPROF) writes down the thread's stack by frame pointers. Build with
 * -fno-omit-frame-pointer. Between profiles nothing runs.
 *
 * What the library does to the program: SIGPROF gets a handler, which stays (a signal may still be under way); two
 * threads with all signals blocked; nothing else. Every function may be called from any thread, none from a signal
 * handler. A child made by fork() is not profiled until it calls hearth_start() itself. See libhearth(3). */
#ifndef HEARTH_H
#define HEARTH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXPORT __attribute__((visibility("default")))

struct hearth_label {
	const char *key, *value;
};

/** Everything may be zero but size. All of it is copied. */
struct hearth_options {
	size_t size;           /* sizeof(struct hearth_options): later versions add fields behind the last */
	const char *collector; /* its address; NULL: the environment's HEARTH_PUSH, else http://127.0.0.1:10100 */
	const char *service;   /* what the profiles belong to; NULL: the program's file name */
	const struct hearth_label *labels; /* of every profile */
	size_t label_count;
	const char *token;         /* the collector's; NULL: the environment's HEARTH_TOKEN */
	const char *ca_file;       /* certificates (PEM) that vouch for the collector; NULL: the system's */
	unsigned int frequency_hz; /* samples per second of a thread's CPU time; 0: 100; at most 1000 */
	unsigned int cpu_ms;       /* length of a profile; 0: 10000 */
	unsigned int round_ms;     /* pause behind a profile; 0: 60000 */
	unsigned int jitter_ms; /* the first profile, and every next one, comes up to this much later at random, so that
				 * a fleet does not sample in step; 0: 1000 to 9000 */
	unsigned int stop_ms;   /* hearth_stop() sends what waits for at most this long; 0: 2000 */
	int no_cpu;             /* take no profiles: only hearth_send() is wanted */
	/** Told what goes wrong, once per kind, on a thread of the library or the one that calls hearth_send(). It must
	 * not call back into the library, nor fork. NULL: nothing is said. */
	void (*say)(void *ctx, const char *message);
	void *say_ctx;
};

/* struct hearth_options options = HEARTH_OPTIONS_INIT; */
#ifdef __cplusplus
static inline struct hearth_options hearth_options_init(void)
{
	struct hearth_options options = {};

	options.size = sizeof(options);
	return options;
}
#define HEARTH_OPTIONS_INIT hearth_options_init()
#else
#define HEARTH_OPTIONS_INIT                            \
	{                                              \
		.size = sizeof(struct hearth_options), \
	}
#endif

/**
 * hearth_start - take and send profiles from now on
 * @options: NULL: all defaults
 *
 * Return: 0; -EALREADY when it runs; -EBUSY when the program has a handler for SIGPROF; -EINVAL when @options make no
 * sense; -ENOMEM, -errno.
 */
HEARTH_EXPORT int hearth_start(const struct hearth_options *options);

/** hearth_stop - end the profile under way, send what waits (options.stop_ms), and stop. Does nothing when not started.
 */
HEARTH_EXPORT void hearth_stop(void);

/**
 * hearth_send - send a profile that the program has made
 * @type: "heap", "block", "cpu" ...
 * @bytes: pprof, gzipped or not; copied
 *
 * It waits in memory (8 MiB, the oldest is dropped) until the collector takes it. Return: 0; -ENOTCONN when not
 * started; -EINVAL; -E2BIG; -ENOMEM.
 */
HEARTH_EXPORT int hearth_send(const char *type, const void *bytes, size_t size);

/** Since hearth_start(). */
struct hearth_stats {
	uint64_t profiles;         /* taken */
	uint64_t samples;          /* in them */
	uint64_t lost_samples;     /* no room in a thread's ring */
	uint64_t missed_threads;   /* that could not be given a timer */
	uint64_t sent;             /* profiles that the collector took, those of hearth_send() too */
	uint64_t refused, dropped; /* that it does not want; that there was no room for */
	uint64_t waiting;          /* now */
};

/** hearth_get_stats - @size: sizeof(*out). Return: 0, or -ENOTCONN when not started. */
HEARTH_EXPORT int hearth_get_stats(struct hearth_stats *out, size_t size);

/** hearth_version - of the library: "0.1.0". */
HEARTH_EXPORT const char *hearth_version(void);

#ifdef __cplusplus
}
#endif

#endif
