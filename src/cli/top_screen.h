/* SPDX-License-Identifier: Apache-2.0 */
/* The whole terminal for a program that draws pictures of text and reads keys, and back to what it was.
 *
 * While it is taken, what is written to standard error (when that is the same terminal) is kept, at most
 * TOP_SCREEN_SAID bytes of it, and shown once the terminal is given back. One thread uses a screen. */
#pragma once

#include <termios.h>

#include "base/buf.h"

#define TOP_SCREEN_SAID KIB(64)

struct top_screen {
	int terminal, keys;      /* open files of our own; -1: not open */
	int errors, pipe;        /* what standard error was; its reading end. -1: left as it was */
	bool is_taken, is_known; /* is_known: `before` is how the terminal was */
	struct termios before, ours;
	struct buf said; /* the last of what was written to standard error */
};

#define TOP_SCREEN_INIT                                                                                     \
	{                                                                                                   \
		.terminal = -1, .keys = -1, .errors = -1, .pipe = -1, .said = BUF_INIT(2 * TOP_SCREEN_SAID) \
	}

/** top_screen_open - prepare; the terminal stays as it is. Return: 0 or -errno. */
int top_screen_open(struct top_screen *s) warn_unused;
/** top_screen_take - take the terminal, unless another program is in the foreground. Twice is fine. Return: is it ours?
 */
bool top_screen_take(struct top_screen *s);
/** top_screen_give_back - as it was before. Twice is fine. */
void top_screen_give_back(struct top_screen *s);
/** top_screen_again - another program had the terminal: top_screen_take() begins anew. */
void top_screen_again(struct top_screen *s);
/** top_screen_show - @text: lines that end in \n and fit the terminal. Return: 0; -errno: the terminal is gone. */
int top_screen_show(struct top_screen *s, const struct buf *text);
/** top_screen_hear - take in what was written to standard error. */
void top_screen_hear(struct top_screen *s);
/** top_screen_close - give it back, say what was written to standard error. Twice is fine. */
void top_screen_close(struct top_screen *s);
