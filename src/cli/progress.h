/* SPDX-License-Identifier: Apache-2.0 */
/* A line on the terminal that says how far a long command is. Nobody sees it where standard error is no terminal. */
#pragma once

#include "base/base.h"

struct progress {
	bool on;
	uint64_t begin_ns, shown_ns;
};

/** progress_begin - @quiet: never show anything. */
void progress_begin(struct progress *p, bool quiet);
/**
 * progress_show - write the line anew, at most twice a second
 * @done, @total: of the work, in any unit; total 0: unknown. Remaining time is told after the first second
 * @what: a few words, such as a file's name, whose control characters are made visible
 */
void progress_show(struct progress *p, uint64_t done, uint64_t total, const char *what);
/** progress_end - take the line away. */
void progress_end(const struct progress *p);
/** progress_time - "45 s", "3 min 20 s", "2 h 5 min". */
void progress_time(uint64_t ns, char out[32]);
