/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

static atomic_int log_threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
	atomic_store(&log_threshold, level);
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

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };
	scoped(buf_release) struct buf line = BUF_INIT(KIB(16));

	if ((int)level < atomic_load(&log_threshold))
		return;
	buf_addf(&line, "hearth: %s: %s", names[level], message);
	for (size_t i = 0; i < count; i++)
		add_field(&line, &fields[i]);
	line.error = 0; /* a line that was cut at the limit is still worth a line end */
	if (line.len == line.max)
		line.len--;
	buf_addc(&line, '\n');
	ignore(io_write_all(STDERR_FILENO, line.ptr, line.len)); /* nowhere left to complain */
}
