/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/live_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/terminal_size.h"
#include "render/terminal.h"

#define DRAIN_BYTES KIB(64) /* at once: a flood of log lines does not keep the caller */
#define CLOSE_PATIENCE_MS 1000

bool live_screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Only then do the two share lines. */
static bool same_terminal(void)
{
	struct stat out, err;

	return isatty(STDERR_FILENO) && fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
	       out.st_rdev == err.st_rdev;
}

int live_screen_open(struct live_screen *s)
{
	int ends[2], r = 0;

	if (!same_terminal())
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	s->errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (s->errors < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
		r = -errno;
	closep(&ends[1]);
	if (r < 0) {
		closep(&ends[0]);
		closep(&s->errors);
		return r;
	}
	s->pipe = ends[0];
	return 0;
}

void live_screen_forked(struct live_screen *s)
{
	closep(&s->pipe);
	closep(&s->errors);
}

static void put(const struct buf *text)
{
	ignore(io_write_all(STDOUT_FILENO, text->ptr, text->len)); /* a terminal that is gone: the session goes on */
}

/* Return: false once nobody can write any more. */
static bool read_errors(const struct live_screen *s, struct buf *out)
{
	char bytes[2048];
	ssize_t n = 0;

	while (out->len < DRAIN_BYTES && (n = read(s->pipe, bytes, sizeof(bytes))) > 0)
		buf_add(out, bytes, (size_t)n);
	return n != 0;
}

/* A terminal that became narrower has broken the lines into more. */
static size_t lines_now(const struct live_screen *s)
{
	size_t width = terminal_width(STDOUT_FILENO), count = 0;
	struct str rest = buf_str(&s->drawn), line;

	while (rest.len && str_next(&rest, '\n', &line))
		count += width ? (MAX(terminal_columns(line), 1) + width - 1) / width : 1;
	return count;
}

static void erase(const struct live_screen *s, struct buf *out)
{
	size_t lines = lines_now(s);

	if (lines)
		buf_addf(out, "\033[%zuA\r\033[J", lines);
}

void live_screen_show(struct live_screen *s, const struct buf *text)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1)), errors = BUF_INIT(KIB(256));

	if (s->pipe >= 0)
		(void)read_errors(s, &errors);
	if (!errors.len && str_eq(buf_str(text), buf_str(&s->drawn)))
		return;
	erase(s, &out);
	if (errors.len)
		buf_add(&out, errors.ptr, errors.len);
	if (errors.len && errors.ptr[errors.len - 1] != '\n')
		buf_addf(&out, "\n");
	buf_add(&out, text->ptr, text->len);
	if (out.error || text->error)
		return;
	buf_clear(&s->drawn);
	buf_add(&s->drawn, text->ptr, text->len);
	put(&out);
}

void live_screen_close(struct live_screen *s)
{
	struct pollfd p = { .fd = s->pipe, .events = POLLIN };
	bool more = s->pipe >= 0;

	if (more && dup2(s->errors, STDERR_FILENO) < 0)
		more = false;
	while (more) {
		scoped(buf_release) struct buf errors = BUF_INIT(KIB(256));

		if (poll(&p, 1, CLOSE_PATIENCE_MS) <= 0)
			break;
		more = read_errors(s, &errors);
		put(&errors);
	}
	closep(&s->pipe);
	closep(&s->errors);
	buf_release(&s->drawn);
}
