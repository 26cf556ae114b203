/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/utf8.h"

static atomic_int log_threshold = LOG_INFO;
static atomic_bool log_json;

void log_set_level(enum log_level level)
{
	atomic_store(&log_threshold, level);
}

void log_set_json(bool json)
{
	atomic_store(&log_json, json);
}

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
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c == '"' || c == '\\')
			buf_addf(line, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_addf(line, "\\x%02x", c);
		else
			buf_addc(line, (char)c);
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

/* Bytes that are no UTF-8 become U+FFFD. */
static void add_json_text(struct buf *line, struct str s)
{
	buf_addc(line, '"');
	while (s.len) {
		int32_t code = utf8_next(&s);

		if (code == '"' || code == '\\')
			buf_addf(line, "\\%c", (char)code);
		else if (code >= 0 && (code < 0x20 || code == 0x7f))
			buf_addf(line, "\\u%04x", (unsigned int)code);
		else
			utf8_add(line, code < 0 ? 0xfffd : (uint32_t)code);
	}
	buf_addc(line, '"');
}

static void write_json(struct buf *line, const char *level, const char *message, const struct log_field *fields,
		       size_t count)
{
	buf_adds(line, STR("{\"ts\":\""));
	clock_add_iso(line, clock_wall_ns(&clock_system));
	buf_addf(line, "Z\",\"level\":\"%s\",\"msg\":", level);
	add_json_text(line, str_of(message));
	for (size_t i = 0; i < count; i++) {
		buf_addf(line, ",\"%s\":", fields[i].key);
		if (fields[i].type == LOG_FIELD_U64)
			buf_addu64(line, fields[i].number);
		else
			add_json_text(line, fields[i].type == LOG_FIELD_STR ? fields[i].text
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

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };
	scoped(buf_release) struct buf line = BUF_INIT(KIB(64));

	if ((int)level < atomic_load(&log_threshold))
		return;
	if (atomic_load(&log_json))
		write_json(&line, names[level], message, fields, count);
	else
		write_plain(&line, names[level], message, fields, count);
	line.error = 0; /* a line that was cut at the limit is still worth a line end */
	if (line.len == line.max)
		line.len--;
	buf_addc(&line, '\n');
	ignore(io_write_all(STDERR_FILENO, line.ptr, line.len)); /* nowhere left to complain */
}
