/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on their way to a reader that may stand still: a pipe that nobody reads, a terminal that was stopped, a disk
 * that hangs. One thread writes them and may wait for ever; nobody else does. What does not fit is dropped and counted.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/str.h"

#define LOG_QUEUE_SIZE KIB(512)
#define LOG_QUEUE_SPARE (LOG_QUEUE_SIZE / 4) /* for warnings and errors only */

/* Global in log.c: after fork() the child has no writer. */
struct log_queue {
	pthread_mutex_t lock; /* guards the rest; held for moments, never while writing */
	pthread_cond_t changed;
	char *bytes; /* LOG_QUEUE_SIZE of them; NULL: there is no writer */
	size_t first, count;
	uint64_t dropped, reported;
	bool writing; /* the writer has bytes that are not in the queue any more */
	pthread_t writer;
	char piece[KIB(16)];                                   /* the writer's */
	void (*write)(const char *bytes, size_t size);         /* in the writer's thread; whole or not at all */
	void (*report)(struct log_queue *q, uint64_t dropped); /* calls log_queue_put(); the lock is held */
	atomic_bool started; /* looked at before the lock: who never starts it may fork at any time (libhearth) */
	_Atomic uint64_t all_dropped;
};

#define LOG_QUEUE_INIT(write_, report_)                                                                    \
	{                                                                                                  \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .write = (write_), \
		.report = (report_)                                                                        \
	}

/** log_queue_start - from now on lines wait for a thread of their own. Return: 0 or -errno. */
int log_queue_start(struct log_queue *q);
/** log_queue_add - @is_urgent: may use the room kept for warnings. Return: false when there is no writer. */
bool log_queue_add(struct log_queue *q, struct str text, bool is_urgent);
/** log_queue_put - with the lock held: all of it, or nothing. */
bool log_queue_put(struct log_queue *q, struct str text, size_t room);
/** log_queue_finish - wait until all is written, but not for a reader that takes nothing for two seconds. */
void log_queue_finish(struct log_queue *q);
/* Around fork(), in this order; nobody else holds the lock then. */
void log_queue_before_fork(struct log_queue *q);
void log_queue_after_fork(struct log_queue *q, bool is_child);
