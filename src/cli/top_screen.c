/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define PATIENCE_MS 300 /* for a terminal that takes nothing (Ctrl-S) */

#define ENTER "\033[?1049h\033[?25l\033[2J" /* the other screen, no cursor, empty */
#define LEAVE "\033[?25h\033[?1049l"

/* Both are one terminal. */
static bool shares_terminal(void)
{
	struct stat out, err;

	return isatty(STDERR_FILENO) && fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
	       out.st_rdev == err.st_rdev && out.st_dev == err.st_dev;
}

/* Nobody ever waits to write there: what finds no room is lost. */
static int open_pipe(struct top_screen *s)
{
	int ends[2], r = 0;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	s->errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (s->errors < 0 || dup2(ends[1], STDERR_FILENO) < 0)
		r = -errno;
	closep(&ends[1]);
	s->pipe = ends[0];
	return r;
}

int top_screen_open(struct top_screen *s)
{
	int r;

	/* Open files of their own: not to wait is no business of others who have this terminal. */
	s->terminal = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->terminal < 0)
		return -errno;
	s->keys = open(isatty(STDIN_FILENO) ? "/proc/self/fd/0" : "/dev/tty",
		       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	r = s->keys < 0 ? -errno : 0;
	return r ? r : shares_terminal() ? open_pipe(s) : 0;
}

/* Return: 0 or -errno; after PATIENCE_MS -ETIMEDOUT: a part is written. */
static int write_out(const struct top_screen *s, struct str text)
{
	while (text.len) {
		ssize_t n = write(s->terminal, text.ptr, text.len);
		struct pollfd p = { .fd = s->terminal, .events = POLLOUT };

		if (n > 0)
			text = str_skip(text, (size_t)n);
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (n < 0 && errno == EAGAIN && poll(&p, 1, PATIENCE_MS) == 0)
			return -ETIMEDOUT;
	}
	return 0;
}

static bool in_background(const struct top_screen *s)
{
	pid_t group = tcgetpgrp(s->keys);

	return group >= 0 && group != getpgrp();
}

bool top_screen_take(struct top_screen *s)
{
	struct termios now;

	if (s->terminal < 0 || in_background(s))
		return false;
	if (s->is_taken)
		return true;
	if (tcgetattr(s->keys, &now) < 0)
		return false;
	/* Continued by somebody who left it as we had it: what was before stays known. */
	if (!s->is_known || now.c_lflag != s->ours.c_lflag)
		s->before = now;
	s->is_known = true;
	s->ours = s->before;
	s->ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	s->ours.c_cc[VMIN] = 1;
	s->ours.c_cc[VTIME] = 0;
	if (tcsetattr(s->keys, TCSADRAIN, &s->ours) < 0)
		return false;
	s->is_taken = true;
	ignore(write_out(s, STR(ENTER))); /* drawn anew every second */
	return true;
}

void top_screen_give_back(struct top_screen *s)
{
	if (!s->is_taken)
		return;
	s->is_taken = false;
	ignore(write_out(s, STR(LEAVE))); /* a terminal that takes nothing keeps what it has */
	if (!in_background(s))
		ignore(tcsetattr(s->keys, TCSAFLUSH, &s->before) < 0); /* it may be gone */
}

void top_screen_again(struct top_screen *s)
{
	s->is_taken = false;
}

int top_screen_show(struct top_screen *s, const struct buf *text)
{
	scoped(buf_release) struct buf out = BUF_INIT(MIB(1));
	struct str rest = buf_str(text), line;
	bool is_first = true;
	int r;

	if (!s->is_taken || text->error)
		return 0;
	buf_adds(&out, STR("\033[H"));
	while (rest.len && str_next(&rest, '\n', &line)) { /* the last line has no end: nothing scrolls */
		if (!is_first)
			buf_adds(&out, STR("\r\n"));
		is_first = false;
		buf_adds(&out, line);
		buf_adds(&out, STR("\033[K"));
	}
	buf_adds(&out, STR("\033[J"));
	r = out.error ? 0 : write_out(s, buf_str(&out));
	return r == -ETIMEDOUT ? 0 : r;
}

void top_screen_hear(struct top_screen *s)
{
	char bytes[2048];
	ssize_t n;

	while (s->pipe >= 0 && (n = read(s->pipe, bytes, sizeof(bytes))) > 0) {
		buf_add(&s->said, bytes, (size_t)n);
		if (s->said.len > TOP_SCREEN_SAID) {
			size_t gone = s->said.len - TOP_SCREEN_SAID;

			memmove(s->said.ptr, s->said.ptr + gone, TOP_SCREEN_SAID);
			s->said.len = TOP_SCREEN_SAID;
		}
	}
}

void top_screen_close(struct top_screen *s)
{
	top_screen_give_back(s);
	if (s->errors >= 0) {
		ignore(dup2(s->errors, STDERR_FILENO) < 0); /* there is nowhere else to say it */
		top_screen_hear(s);
		ignore(io_write_all(s->errors, s->said.ptr, s->said.len));
	}
	closep(&s->errors);
	closep(&s->pipe);
	closep(&s->keys);
	closep(&s->terminal);
	buf_release(&s->said);
}
