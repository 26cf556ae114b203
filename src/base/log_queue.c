/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_queue.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

#define PATIENCE_NS (2 * NSEC_PER_SEC) /* at the end, without a byte taken */
#define PATIENCE_ALL_NS (10 * NSEC_PER_SEC)

bool log_queue_put(struct log_queue *q, struct str text, size_t room)
{
	size_t at = (q->first + q->count) % LOG_QUEUE_SIZE, whole = MIN(text.len, LOG_QUEUE_SIZE - at);

	if (text.len > room - MIN(q->count, room))
		return false;
	memcpy(q->bytes + at, text.ptr, whole);
	memcpy(q->bytes, text.ptr + whole, text.len - whole);
	q->count += text.len;
	(void)pthread_cond_signal(&q->changed);
	return true;
}

/* What was dropped is said where it is missing. */
static void report_dropped(struct log_queue *q)
{
	size_t before = q->count;

	if (q->dropped == q->reported)
		return;
	q->report(q, q->dropped - q->reported);
	if (q->count != before)
		q->reported = q->dropped;
}

bool log_queue_add(struct log_queue *q, struct str text, bool is_urgent)
{
	size_t room = is_urgent ? LOG_QUEUE_SIZE : LOG_QUEUE_SIZE - LOG_QUEUE_SPARE;

	if (!atomic_load(&q->started))
		return false;
	(void)pthread_mutex_lock(&q->lock);
	if (q->dropped != q->reported && q->count + text.len + KIB(1) <= room)
		report_dropped(q);
	if (!log_queue_put(q, text, room)) {
		q->dropped++;
		atomic_fetch_add(&q->all_dropped, 1);
	}
	(void)pthread_mutex_unlock(&q->lock);
	return true;
}

/* As many whole lines as there are, where that is possible: a file changes between two of them. */
static size_t take(struct log_queue *q)
{
	char *out = q->piece;
	size_t size = MIN(q->count, sizeof(q->piece)), whole = MIN(size, LOG_QUEUE_SIZE - q->first);
	const char *end;

	memcpy(out, q->bytes + q->first, whole);
	memcpy(out + whole, q->bytes, size - whole);
	end = memrchr(out, '\n', size);
	size = end ? (size_t)(end - out) + 1 : size;
	q->first = (q->first + size) % LOG_QUEUE_SIZE;
	q->count -= size;
	return size;
}

static void *run(void *queue)
{
	struct log_queue *q = queue;

	(void)pthread_mutex_lock(&q->lock);
	for (;;) {
		size_t size;

		while (!q->count)
			(void)pthread_cond_wait(&q->changed, &q->lock);
		size = take(q);
		q->writing = true;
		(void)pthread_mutex_unlock(&q->lock);
		q->write(q->piece, size);
		(void)pthread_mutex_lock(&q->lock);
		q->writing = false;
		report_dropped(q);
	}
	return NULL;
}

int log_queue_start(struct log_queue *q)
{
	char *bytes = malloc(LOG_QUEUE_SIZE);
	sigset_t all, before;
	int r = 0;

	if (!bytes)
		return -ENOMEM;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
	(void)pthread_mutex_lock(&q->lock);
	if (!q->bytes) {
		q->bytes = bytes;
		r = pthread_create(&q->writer, NULL, run, q);
		q->bytes = r ? NULL : bytes;
		atomic_store(&q->started, !r);
		if (!r)
			(void)pthread_detach(q->writer);
		bytes = r ? bytes : NULL;
	}
	(void)pthread_mutex_unlock(&q->lock);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(bytes);
	return -r;
}

void log_queue_finish(struct log_queue *q)
{
	uint64_t begin_ns = clock_monotonic_ns(&clock_system), moved_ns = begin_ns, now_ns = begin_ns;
	size_t left = SIZE_MAX;
	bool waits = atomic_load(&q->started);

	while (waits && now_ns - moved_ns < PATIENCE_NS && now_ns - begin_ns < PATIENCE_ALL_NS) {
		const struct timespec pause = { 0, (long)NSEC_PER_MSEC };
		size_t before = left;

		(void)pthread_mutex_lock(&q->lock);
		left = q->count;
		waits = q->bytes && (q->count || q->writing);
		(void)pthread_mutex_unlock(&q->lock);
		now_ns = clock_monotonic_ns(&clock_system);
		if (left < before)
			moved_ns = now_ns;
		if (waits)
			(void)nanosleep(&pause, NULL);
	}
}

void log_queue_before_fork(struct log_queue *q)
{
	(void)pthread_mutex_lock(&q->lock);
}

void log_queue_after_fork(struct log_queue *q, bool is_child)
{
	char *bytes = q->bytes;

	if (is_child) {
		atomic_store(&q->started, false);
		q->bytes = NULL;
		q->first = q->count = 0;
		q->dropped = q->reported = 0;
		q->writing = false;
		(void)pthread_cond_init(&q->changed, NULL); /* the parent's waiters are not here */
	}
	(void)pthread_mutex_unlock(&q->lock);
	if (is_child)
		free(bytes);
}
