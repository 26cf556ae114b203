/* SPDX-License-Identifier: Apache-2.0 */
/* Logging for programs (libraries return errors): one line of key=value on stderr, foreign bytes escaped.
 *
 * A program that has called log_start() never waits for stderr: lines wait in a queue (log_queue.h). When it is full
 * they are dropped and counted, and the log says how many. */
#pragma once

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
	const char *key;
	enum { LOG_FIELD_STR, LOG_FIELD_U64, LOG_FIELD_ERR } type;
	struct str text;
	uint64_t number;
};

#define LOG_STR(k, s) ((struct log_field){ .key = (k), .type = LOG_FIELD_STR, .text = (s) })
#define LOG_CSTR(k, s) LOG_STR(k, str_of(s))
#define LOG_U64(k, n) ((struct log_field){ .key = (k), .type = LOG_FIELD_U64, .number = (uint64_t)(n) })
#define LOG_ERR(r) ((struct log_field){ .key = "error", .type = LOG_FIELD_ERR, .number = (uint64_t)(r) })

enum log_style {
	LOG_STYLE_PLAIN,     /* hearth: level: message key=value */
	LOG_STYLE_JSON,      /* an object with ts, level and msg */
	LOG_STYLE_GPROFILER, /* as that program's lines: others search them */
};

void log_set_level(enum log_level level); /* of stderr; a file gets all */
void log_set_style(enum log_style style);
enum log_style log_get_style(void);
/** log_to_stdout - in place of stderr. Before log_start(). */
void log_to_stdout(void);
/** log_set_json - every line is a JSON object with ts, level and msg from now on. */
void log_set_json(bool json);
/** log_start - lines go through the queue from now on. After rights are given up, which are each thread's own. Return:
 * 0, -errno: they are written at once as before. */
int log_start(void);
/** log_start_file - lines of all levels go to a file, too, by a thread of its own; log_file.h has the rest. Return: 0
 * or -errno. */
int log_start_file(const char *path, uint64_t max_bytes, unsigned int backups) warn_unused;
/** log_finish - before the end: wait until all is written, but not for a reader that takes nothing for two seconds. */
void log_finish(void);
/** log_dropped - lines that were dropped so far, or that the file did not take. */
uint64_t log_dropped(void);
/** log_text - bytes for stderr as they are, in line with the log's. @is_urgent: may use the room kept for warnings. */
void log_text(struct str text, bool is_urgent);
void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count);

#define log_at(level, message, ...)                                                           \
	log_write((level), (message), (const struct log_field[]){ { 0 }, ##__VA_ARGS__ } + 1, \
		  sizeof((const struct log_field[]){ { 0 }, ##__VA_ARGS__ }) / sizeof(struct log_field) - 1)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
