/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a session early and keeps what was gathered: SIGINT, SIGTERM, SIGHUP. */
#pragma once

#include "base/base.h"

struct end_signals {
	int fd;                /* -1: not open */
	int signal;            /* the first one that came, or 0 */
	bool is_from_terminal; /* of that: the kernel sent it to all programs of the terminal */
};

#define END_SIGNALS_INIT  \
	{                 \
		.fd = -1, \
	}

/** end_signals_open - from here on they wait to be asked for. Return: 0 or -errno. */
int end_signals_open(struct end_signals *s) warn_unused;
/** end_signals_came - Return: whether one did since the last question. Never blocks. */
bool end_signals_came(struct end_signals *s);
/**
 * end_signals_close - from here on a second Ctrl-C ends the program at once
 *
 * What came together with the first (a terminal that closes and systemd send two kinds) does not; and the terminal's
 * end is told once by the kernel and once by the shell.
 */
void end_signals_close(struct end_signals *s);
void end_signals_release(struct end_signals *s);
