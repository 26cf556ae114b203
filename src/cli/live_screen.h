/* SPDX-License-Identifier: Apache-2.0 */
/* Text that stays at the bottom of a terminal and is written anew, while log lines pass above it.
 *
 * Standard error of this process, and of those it forks from now on, becomes a pipe when it is the same terminal: what
 * arrives there is written above the text. Whoever opened the screen has to call live_screen_show() at least some times
 * a second. Not for several threads. */
#pragma once

#include "base/buf.h"

struct live_screen {
	int errors;       /* the terminal's descriptor that standard error had; -1: standard error was left as it was */
	int pipe;         /* what is written to standard error arrives here; -1: as above */
	struct buf drawn; /* the text on the terminal */
};

#define LIVE_SCREEN_INIT                                             \
	{                                                            \
		.errors = -1, .pipe = -1, .drawn = BUF_INIT(KIB(64)) \
	}

/** live_screen_possible - is standard output a terminal that can move its cursor? */
bool live_screen_possible(void);
/** live_screen_open - Return: 0 or -errno, and then nothing has changed. */
int live_screen_open(struct live_screen *s) warn_unused;
/** live_screen_forked - in a child: it writes to standard error as before, and does not hold the reading end. */
void live_screen_forked(struct live_screen *s);
/** live_screen_show - write waiting log lines and, when something changed, @text below them; lines end in \n and are no
 * wider than the terminal. */
void live_screen_show(struct live_screen *s, const struct buf *text);
/** live_screen_close - standard error is the terminal again; the text stays. What others still write is passed on until
 * they have ended, but for no longer than a second. Twice is fine. */
void live_screen_close(struct live_screen *s);
