/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/safe.h"

#define LINE_MAX KIB(64)
#define QUEUE_SIZE KIB(512)
#define QUEUE_SPARE (QUEUE_SIZE / 4)   /* for warnings and errors only */
#define PIECE_MAX KIB(16)              /* of one write */
#define PATIENCE_NS (2 * NSEC_PER_SEC) /* at the end, without a byte taken */
#define PATIENCE_ALL_NS (10 * NSEC_PER_SEC)

static atomic_int log_threshold = LOG_INFO;
static atomic_bool log_json;

/* Lines on their way to stderr, which may be a pipe that nobody reads or a terminal that stands. One thread writes them
 * and may wait for ever; nobody else does.
 *
 *   log_write() -> bytes[], or dropped++ -> writer thread -> stderr
 *
 * Global as the level is: there is one stderr. After fork() the child has no writer and writes by itself. */
static struct {
	pthread_mutex_t lock; /* guards the rest; held for moments, never while writing */
	pthread_cond_t changed;
	char *bytes; /* QUEUE_SIZE of them; NULL: log_write() writes by itself */
	size_t first, count;
	uint64_t dropped, reported;
	bool writing; /* the writer has bytes that are not in the queue any more */
	pthread_t writer;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static atomic_bool started; /* looked at before the lock: who never starts it may fork at any time (libhearth) */
static _Atomic uint64_t all_dropped;

void log_set_level(enum log_level level)
{
	atomic_store(&log_threshold, level);
}

void log_set_json(bool json)
{
	atomic_store(&log_json, json);
}

uint64_t log_dropped(void)
{
	return atomic_load(&all_dropped);
}

/* Lines */

static void add_escaped(struct buf *line, struct str s)
{
	bool plain = s.len > 0;

	for (size_t i = 0; i < s.len && plain; i++)
		plain = s.ptr[i] > ' ' && s.ptr[i] < 0x7f && s.ptr[i] != '"' && s.ptr[i] != '=' && s.ptr[i] != '\\';
	if (plain) {
		buf_adds(line, s);
		return;
	}
	buf_addc(line, '"');
	while (s.len) {
		struct safe_piece piece = safe_next(&s);

		if (piece.code == '"' || piece.code == '\\')
			buf_addc(line, '\\');
		buf_add(line, piece.text, piece.size);
	}
	buf_addc(line, '"');
}

static void add_field(struct buf *line, const struct log_field *field)
{
	buf_addf(line, " %s=", field->key);
	switch (field->type) {
	case LOG_FIELD_STR:
		add_escaped(line, field->text);
		break;
	case LOG_FIELD_U64:
		buf_addu64(line, field->number);
		break;
	case LOG_FIELD_ERR:
		add_escaped(line, str_of(strerror(-(int)field->number)));
		break;
	}
}

static void write_json(struct buf *line, const char *level, const char *message, const struct log_field *fields,
		       size_t count)
{
	buf_adds(line, STR("{\"ts\":\""));
	clock_add_iso(line, clock_wall_ns(&clock_system));
	buf_addf(line, "Z\",\"level\":\"%s\",\"msg\":", level);
	safe_add_json(line, str_of(message));
	for (size_t i = 0; i < count; i++) {
		buf_addf(line, ",\"%s\":", fields[i].key);
		if (fields[i].type == LOG_FIELD_U64)
			buf_addu64(line, fields[i].number);
		else
			safe_add_json(line, fields[i].type == LOG_FIELD_STR ? fields[i].text
									    : str_of(strerror(-(int)fields[i].number)));
	}
	buf_addc(line, '}');
}

static void write_plain(struct buf *line, const char *level, const char *message, const struct log_field *fields,
			size_t count)
{
	buf_addf(line, "hearth: %s: %s", level, message);
	for (size_t i = 0; i < count; i++)
		add_field(line, &fields[i]);
}

static void format(struct buf *line, enum log_level level, const char *message, const struct log_field *fields,
		   size_t count)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };

	if (atomic_load(&log_json))
		write_json(line, names[level], message, fields, count);
	else
		write_plain(line, names[level], message, fields, count);
	line->error = 0; /* a line that was cut at the limit is still worth a line end */
	if (line->len == line->max)
		line->len--;
	buf_addc(line, '\n');
}

/* The queue. These have the lock held. */

static bool put(const char *bytes, size_t size, size_t room)
{
	size_t at = (queue.first + queue.count) % QUEUE_SIZE, whole = MIN(size, QUEUE_SIZE - at);

	if (size > room - MIN(queue.count, room))
		return false;
	memcpy(queue.bytes + at, bytes, whole);
	memcpy(queue.bytes, bytes + whole, size - whole);
	queue.count += size;
	(void)pthread_cond_signal(&queue.changed);
	return true;
}

/* What was dropped stands where it is missing. */
static void report_dropped(void)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));

	if (queue.dropped == queue.reported)
		return;
	format(&line, LOG_WARN, "lines of this log were dropped: nobody took them",
	       &LOG_U64("count", queue.dropped - queue.reported), 1);
	if (put(line.ptr, line.len, QUEUE_SIZE))
		queue.reported = queue.dropped;
}

static void put_or_drop(struct str text, bool is_urgent)
{
	size_t room = is_urgent ? QUEUE_SIZE : QUEUE_SIZE - QUEUE_SPARE;

	if (queue.dropped != queue.reported && queue.count + text.len + KIB(1) <= room)
		report_dropped();
	if (put(text.ptr, text.len, room))
		return;
	queue.dropped++;
	atomic_fetch_add(&all_dropped, 1);
}

static size_t take(char *out)
{
	size_t size = MIN(MIN(queue.count, (size_t)PIECE_MAX), QUEUE_SIZE - queue.first);

	memcpy(out, queue.bytes + queue.first, size);
	queue.first = (queue.first + size) % QUEUE_SIZE;
	queue.count -= size;
	return size;
}

/* The writer, without the lock. A descriptor that somebody else made non-blocking is waited for. */
static void write_out(const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(STDERR_FILENO, bytes, size);
		struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

		if (n < 0 && errno == EAGAIN)
			ignore(poll(&p, 1, 1000)); /* looked at again in any case */
		else if (n < 0 && errno != EINTR)
			return; /* nowhere left to complain */
		bytes += MAX(n, (ssize_t)0);
		size -= (size_t)MAX(n, (ssize_t)0);
	}
}

static void *run(void *arg)
{
	static char piece[PIECE_MAX]; /* of the one writer */

	(void)arg;
	(void)pthread_mutex_lock(&queue.lock);
	for (;;) {
		size_t size;

		while (!queue.count)
			(void)pthread_cond_wait(&queue.changed, &queue.lock);
		size = take(piece);
		queue.writing = true;
		(void)pthread_mutex_unlock(&queue.lock);
		write_out(piece, size);
		(void)pthread_mutex_lock(&queue.lock);
		queue.writing = false;
		report_dropped();
	}
	return NULL;
}

/* fork(): nobody else holds the lock then, and the child has an empty queue without a writer. */

static void before_fork(void)
{
	(void)pthread_mutex_lock(&queue.lock);
}

static void parent_after_fork(void)
{
	(void)pthread_mutex_unlock(&queue.lock);
}

static void child_after_fork(void)
{
	char *bytes = queue.bytes;

	atomic_store(&started, false);
	queue.bytes = NULL;
	queue.first = queue.count = 0;
	queue.dropped = queue.reported = 0;
	queue.writing = false;
	(void)pthread_cond_init(&queue.changed, NULL); /* the parent's waiters are not here */
	(void)pthread_mutex_unlock(&queue.lock);
	free(bytes);
}

static void watch_forks(void)
{
	ignore(pthread_atfork(before_fork, parent_after_fork, child_after_fork)); /* no memory: such a child blocks */
}

int log_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *bytes = malloc(QUEUE_SIZE);
	sigset_t all, before;
	int r = 0;

	if (!bytes)
		return -ENOMEM;
	(void)pthread_once(&once, watch_forks);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
	(void)pthread_mutex_lock(&queue.lock);
	if (!queue.bytes) {
		queue.bytes = bytes;
		r = pthread_create(&queue.writer, NULL, run, NULL);
		queue.bytes = r ? NULL : bytes;
		atomic_store(&started, !r);
		if (!r)
			(void)pthread_detach(queue.writer);
		bytes = r ? bytes : NULL;
	}
	(void)pthread_mutex_unlock(&queue.lock);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(bytes);
	return -r;
}

void log_finish(void)
{
	uint64_t begin_ns = clock_monotonic_ns(&clock_system), moved_ns = begin_ns, now_ns = begin_ns;
	size_t left = SIZE_MAX;
	bool waits = atomic_load(&started);

	while (waits && now_ns - moved_ns < PATIENCE_NS && now_ns - begin_ns < PATIENCE_ALL_NS) {
		const struct timespec pause = { 0, (long)NSEC_PER_MSEC };
		size_t before = left;

		(void)pthread_mutex_lock(&queue.lock);
		left = queue.count;
		waits = queue.bytes && (queue.count || queue.writing);
		(void)pthread_mutex_unlock(&queue.lock);
		now_ns = clock_monotonic_ns(&clock_system);
		if (left < before)
			moved_ns = now_ns;
		if (waits)
			(void)nanosleep(&pause, NULL);
	}
}

void log_text(struct str text, bool is_urgent)
{
	if (!atomic_load(&started)) {
		ignore(io_write_all(STDERR_FILENO, text.ptr, text.len)); /* nowhere left to complain */
		return;
	}
	(void)pthread_mutex_lock(&queue.lock);
	put_or_drop(text, is_urgent);
	(void)pthread_mutex_unlock(&queue.lock);
}

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	scoped(buf_release) struct buf line = BUF_INIT(LINE_MAX);

	if ((int)level < atomic_load(&log_threshold))
		return;
	format(&line, level, message, fields, count);
	log_text(buf_str(&line), level >= LOG_WARN);
}
