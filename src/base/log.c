/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log_file.h"
#include "base/log_queue.h"
#include "base/reason.h"
#include "base/safe.h"

#define LINE_MAX KIB(64)

static atomic_int log_threshold = LOG_INFO, log_style = LOG_STYLE_PLAIN, log_fd = STDERR_FILENO;
static struct log_file log_file = { .fd = -1 }; /* the file's writer's, as is the next one */
static uint64_t file_lost;                      /* lines that the file did not take, since it was said last */

static void write_out(const char *bytes, size_t size);
static void write_file(const char *bytes, size_t size);
static void report(struct log_queue *q, uint64_t dropped);

/* log_write() -> queue -> writer -> stderr or stdout
 *            `-> queue -> writer -> file
 *
 * Global as the level is: there is one stderr. */
static struct log_queue out_queue = LOG_QUEUE_INIT(write_out, report), file_queue = LOG_QUEUE_INIT(write_file, report);

void log_set_level(enum log_level level)
{
	atomic_store(&log_threshold, level);
}

void log_set_style(enum log_style style)
{
	atomic_store(&log_style, style);
}

enum log_style log_get_style(void)
{
	return (enum log_style)atomic_load(&log_style);
}

void log_set_json(bool json)
{
	log_set_style(json ? LOG_STYLE_JSON : LOG_STYLE_PLAIN);
}

void log_to_stdout(void)
{
	atomic_store(&log_fd, STDOUT_FILENO);
}

uint64_t log_dropped(void)
{
	return atomic_load(&out_queue.all_dropped) + atomic_load(&file_queue.all_dropped);
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

static void add_field(struct buf *line, const struct log_field *field, bool blank)
{
	buf_addf(line, "%s%s=", blank ? " " : "", field->key);
	switch (field->type) {
	case LOG_FIELD_STR:
		add_escaped(line, field->text);
		break;
	case LOG_FIELD_U64:
		buf_addu64(line, field->number);
		break;
	case LOG_FIELD_ERR:
		add_escaped(line, str_of(reason_of((int)field->number)));
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
									    : str_of(reason_of((int)fields[i].number)));
	}
	buf_addc(line, '}');
}

static void write_plain(struct buf *line, const char *level, const char *message, const struct log_field *fields,
			size_t count)
{
	buf_addf(line, "hearth: %s: %s", level, message);
	for (size_t i = 0; i < count; i++)
		add_field(line, &fields[i], true);
}

/* gprofiler/log.py: "[2026-08-03 21:29:25,123] INFO: gprofiler: message (key=value, key2=value)", in UTC. */
static void write_gprofiler(struct buf *line, enum log_level level, const char *message, const struct log_field *fields,
			    size_t count)
{
	static const char *const names[] = { "DEBUG", "INFO", "WARNING", "ERROR" };
	uint64_t now = clock_wall_ns(&clock_system);
	struct buf time = BUF_INIT(64);

	clock_add_iso(&time, now);
	buf_addf(line, "[%.10s %.8s,%03u] %s: gprofiler: %s", buf_cstr(&time), buf_cstr(&time) + 11,
		 (unsigned int)(now / NSEC_PER_MSEC % 1000), names[level], message);
	buf_release(&time);
	for (size_t i = 0; i < count; i++) {
		buf_adds(line, i ? STR(",") : STR(" ("));
		add_field(line, &fields[i], i > 0);
	}
	if (count)
		buf_addc(line, ')');
}

static void format(struct buf *line, enum log_level level, const char *message, const struct log_field *fields,
		   size_t count)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };

	switch (log_get_style()) {
	case LOG_STYLE_JSON:
		write_json(line, names[level], message, fields, count);
		break;
	case LOG_STYLE_PLAIN:
		write_plain(line, names[level], message, fields, count);
		break;
	case LOG_STYLE_GPROFILER:
		write_gprofiler(line, level, message, fields, count);
		break;
	}
	line->error = 0; /* a line that was cut at the limit is still worth a line end */
	if (line->len == line->max)
		line->len--;
	buf_addc(line, '\n');
}

static void report(struct log_queue *q, uint64_t dropped)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));

	format(&line, LOG_WARN, "lines of this log were dropped: nobody took them", &LOG_U64("count", dropped), 1);
	ignore(log_queue_put(q, buf_str(&line), LOG_QUEUE_SIZE)); /* said later, when there is room */
}

/* Writers */

/* A descriptor that somebody else made non-blocking is waited for. */
static void write_out(const char *bytes, size_t size)
{
	int fd = atomic_load(&log_fd);

	while (size) {
		ssize_t n = write(fd, bytes, size);
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (n < 0 && errno == EAGAIN)
			ignore(poll(&p, 1, 1000)); /* looked at again in any case */
		else if (n < 0 && errno != EINTR)
			return; /* nowhere left to complain */
		bytes += MAX(n, (ssize_t)0);
		size -= (size_t)MAX(n, (ssize_t)0);
	}
}

/* A full disk: said when there is room again. */
static bool say_lost(void)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(1));

	format(&line, LOG_WARN, "lines of this log were lost: the file could not be written",
	       &LOG_U64("count", file_lost), 1);
	return log_file_write(&log_file, line.ptr, line.len);
}

static void write_file(const char *bytes, size_t size)
{
	uint64_t lines = 0;

	if (file_lost && say_lost())
		file_lost = 0;
	if (log_file_write(&log_file, bytes, size))
		return;
	for (size_t i = 0; i < size; i++)
		lines += bytes[i] == '\n';
	file_lost += lines;
	atomic_fetch_add(&file_queue.all_dropped, lines);
}

static void before_fork(void)
{
	log_queue_before_fork(&out_queue);
	log_queue_before_fork(&file_queue);
}

static void parent_after_fork(void)
{
	log_queue_after_fork(&file_queue, false);
	log_queue_after_fork(&out_queue, false);
}

static void child_after_fork(void)
{
	log_queue_after_fork(&file_queue, true);
	log_queue_after_fork(&out_queue, true);
}

static void watch_forks(void)
{
	ignore(pthread_atfork(before_fork, parent_after_fork, child_after_fork)); /* no memory: such a child blocks */
}

static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

int log_start(void)
{
	(void)pthread_once(&forks_watched, watch_forks);
	return log_queue_start(&out_queue);
}

int log_start_file(const char *path, uint64_t max_bytes, unsigned int backups)
{
	int r = log_file_open(path, max_bytes, backups, &log_file);

	(void)pthread_once(&forks_watched, watch_forks);
	return r ? r : log_queue_start(&file_queue);
}

void log_finish(void)
{
	log_queue_finish(&out_queue);
	log_queue_finish(&file_queue);
}

void log_text(struct str text, bool is_urgent)
{
	if (!log_queue_add(&out_queue, text, is_urgent))
		ignore(io_write_all(atomic_load(&log_fd), text.ptr, text.len)); /* nowhere left to complain */
}

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	scoped(buf_release) struct buf line = BUF_INIT(LINE_MAX);
	bool shown = (int)level >= atomic_load(&log_threshold), kept = atomic_load(&file_queue.started);

	if (!shown && !kept)
		return;
	format(&line, level, message, fields, count);
	if (shown)
		log_text(buf_str(&line), level >= LOG_WARN);
	if (kept)
		ignore(log_queue_add(&file_queue, buf_str(&line), level >= LOG_WARN)); /* it is there */
}
