/* SPDX-License-Identifier: Apache-2.0 */
/* Text that stays at the bottom of a terminal and is written anew, while log lines pass above it.
 *
 * Standard error of this process, and of those it forks from now on, becomes a pipe when it is the same terminal: what
 * arrives there is written above the text. Whoever opened the screen has to call live_screen_show() at least some times
 * a second, from one thread. It never waits for the terminal: while that takes nothing, there is no new text, log lines
 * wait, and the log drops and counts what finds no room. What a process says while it is killed by its own fault stays
 * in the pipe: with standard error in a file it is seen. */
#pragma once

#include "base/buf.h"

struct live_screen {
	int terminal;     /* standard output once more, without waiting; -1: the screen is not open */
	int errors;       /* the terminal's descriptor that standard error had; -1: standard error was left as it was */
	int pipe;         /* what is written to standard error arrives here; -1: as above */
	struct buf drawn; /* the text on the terminal */
	struct buf partial; /* of a log line, whose end has not arrived */
	struct buf unsent;  /* what the terminal has not taken yet */
};

#define LIVE_SCREEN_INIT                                                                                           \
	{                                                                                                          \
		.terminal = -1, .errors = -1, .pipe = -1, .drawn = BUF_INIT(KIB(64)), .partial = BUF_INIT(KIB(8)), \
		.unsent = BUF_INIT(KIB(512))                                                                       \
	}

/** live_screen_possible - is standard output a terminal that can move its cursor? */
bool live_screen_possible(void);
/** live_screen_open - Return: 0 or -errno, and then nothing has changed. */
int live_screen_open(struct live_screen *s) warn_unused;
/** live_screen_forked - in a child: it writes to standard error as before, and does not hold the reading end. */
void live_screen_forked(struct live_screen *s);
/**
 * live_screen_show - write waiting log lines and, when something changed, @text below them
 * @text: lines that end in \n and are no wider than the terminal
 *
 * In the background of a shell only log lines are written.
 */
void live_screen_show(struct live_screen *s, const struct buf *text);
/** live_screen_forget - others have written since: what is drawn stays as it is, and is drawn anew below. */
void live_screen_forget(struct live_screen *s);
/** live_screen_close - standard error is the terminal again; the text stays. What others still write is passed on until
 * they have ended, but for no longer than a second in all. Twice is fine. */
void live_screen_close(struct live_screen *s);
