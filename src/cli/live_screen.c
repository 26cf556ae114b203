/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/live_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/terminal_size.h"
#include "render/terminal.h"

#define DRAIN_BYTES KIB(64) /* at once: a flood of log lines does not keep the caller */
#define CLOSE_PATIENCE_NS NSEC_PER_SEC

bool live_screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Log lines and text share lines only if both are one terminal. */
static bool same_terminal(void)
{
	struct stat out, err;

	return isatty(STDERR_FILENO) && fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
	       out.st_rdev == err.st_rdev && out.st_dev == err.st_dev;
}

static int open_pipe(struct live_screen *s)
{
	int ends[2], r = 0;

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

int live_screen_open(struct live_screen *s)
{
	int r;

	/* An open file of its own: not to wait is no business of others who have this terminal. */
	s->terminal = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->terminal < 0)
		return -errno;
	r = same_terminal() ? open_pipe(s) : 0;
	if (r < 0)
		closep(&s->terminal);
	return r;
}

void live_screen_forked(struct live_screen *s)
{
	closep(&s->terminal);
	closep(&s->pipe);
	closep(&s->errors);
}

/* Return: whether the terminal has taken everything. */
static bool send_waiting(struct live_screen *s)
{
	size_t sent = 0;
	ssize_t n = 0;

	while (sent < s->unsent.len && (n = write(s->terminal, s->unsent.ptr + sent, s->unsent.len - sent)) > 0)
		sent += (size_t)n;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		sent = s->unsent.len; /* a terminal that is gone: the session goes on */
	if (sent == s->unsent.len) {
		buf_clear(&s->unsent);
		return true;
	}
	s->unsent.len -= sent;
	memmove(s->unsent.ptr, s->unsent.ptr + sent, s->unsent.len);
	return false;
}

/* Whole lines; one without an end waits for it, until it is too long. Return: false once nobody can write any more. */
static bool read_errors(struct live_screen *s, struct buf *out)
{
	char bytes[2048];
	ssize_t n = 0;

	while (out->len < DRAIN_BYTES && (n = read(s->pipe, bytes, sizeof(bytes))) > 0) {
		struct str rest = str_n(bytes, (size_t)n);
		ptrdiff_t end = str_rfind(rest, '\n');

		buf_adds(&s->partial, str_first(rest, (size_t)(end + 1)));
		if (end >= 0 || s->partial.len > KIB(4)) {
			buf_add(out, s->partial.ptr, s->partial.len);
			if (end < 0)
				buf_addf(out, "\n");
			buf_clear(&s->partial);
		}
		buf_adds(&s->partial, str_skip(rest, (size_t)(end + 1)));
	}
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

static bool in_background(void)
{
	pid_t group = tcgetpgrp(STDOUT_FILENO);

	return group >= 0 && group != getpgrp();
}

void live_screen_show(struct live_screen *s, const struct buf *text)
{
	scoped(buf_release) struct buf errors = BUF_INIT(KIB(128));
	bool is_away = in_background();
	size_t lines;

	if (is_away)
		live_screen_forget(s);
	if (!send_waiting(s))
		return;
	if (s->pipe >= 0)
		(void)read_errors(s, &errors);
	if (!errors.len && (is_away || str_eq(buf_str(text), buf_str(&s->drawn))))
		return;
	lines = lines_now(s);
	if (lines)
		buf_addf(&s->unsent, "\033[%zuA\r\033[J", lines);
	buf_add(&s->unsent, errors.ptr, errors.len);
	buf_clear(&s->drawn);
	if (!is_away && !text->error) {
		buf_add(&s->unsent, text->ptr, text->len);
		buf_add(&s->drawn, text->ptr, text->len);
	}
	(void)send_waiting(s);
}

void live_screen_forget(struct live_screen *s)
{
	buf_clear(&s->drawn);
}

/* Return: false when the time is over. */
static bool wait_until(int fd, short events, uint64_t until_ns)
{
	uint64_t now = clock_monotonic_ns(&clock_system);
	struct pollfd p = { .fd = fd, .events = events };

	return now < until_ns && poll(&p, 1, (int)((until_ns - now) / NSEC_PER_MSEC) + 1) > 0;
}

void live_screen_close(struct live_screen *s)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + CLOSE_PATIENCE_NS;
	bool more = s->pipe >= 0 && dup2(s->errors, STDERR_FILENO) >= 0;

	while (more && wait_until(s->pipe, POLLIN, until_ns)) {
		more = read_errors(s, &s->unsent);
		(void)send_waiting(s);
	}
	buf_add(&s->unsent, s->partial.ptr, s->partial.len);
	while (s->terminal >= 0 && !send_waiting(s) && wait_until(s->terminal, POLLOUT, until_ns))
		;
	closep(&s->pipe);
	closep(&s->errors);
	closep(&s->terminal);
	buf_release(&s->drawn);
	buf_release(&s->partial);
	buf_release(&s->unsent);
}
