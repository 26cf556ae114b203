/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines whose words other programs look for. Source: gprofiler/main.py and gprofiler/profilers/profiler_base.py. */
#pragma once

#include "base/u64map.h"
#include "cli/agent_options.h"
#include "model/window.h"

/** agent_phrases_start - version, command line without the token, the machine, and in the log's file @arguments. */
void agent_phrases_start(const struct agent_options *o, const char *arguments);
/* Processes that were said to have been started. */
struct agent_seen {
	uint64_t begin_ns;  /* CLOCK_BOOTTIME */
	struct u64map said; /* start time of the process */
};

void agent_seen_init(struct agent_seen *s);    /* now is when the session begins */
void agent_seen_release(struct agent_seen *s); /* a zeroed one is fine */
/** agent_phrases_window - how many processes of language runtimes are in a cycle; with --profile-spawned-processes,
 * once for each, which of them are new. */
void agent_phrases_window(const struct agent_options *o, const struct window *w, struct agent_seen *seen);
