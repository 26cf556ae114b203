/* SPDX-License-Identifier: Apache-2.0 */
/* Application ids and metadata of processes that no runtime of ours tells of: by a thread of its own, once for each
 * program. All calls are the reader's; none of them waits. */
#pragma once

#include "base/str.h"
#include "proc/program.h"

struct describer_config {
	const char *host_root; /* NULL: "" */
	/** As launched.h has them; called by the thread. */
	bool (*wants_argument)(void *ctx, struct str argument);
	void *ctx;
	bool with_spark;
};

struct describer;

int describer_open(const struct describer_config *cfg, struct describer **out) warn_unused;
void describer_close(struct describer *d); /* NULL is fine; waits two seconds at most */

/**
 * describer_get - what is known of a program; asks for it the first time
 * @exe: its path: of a program that was replaced meanwhile by exec nothing is told
 * @application, @metadata_json: borrowed until describer_forget(); empty: nothing
 * Return: 0; -EAGAIN: later; -ENOSPC, -ENOMEM: never.
 */
int describer_get(struct describer *d, const struct program *p, const char *exe, struct str *application,
		  struct str *metadata_json) warn_unused;
void describer_forget(struct describer *d, const struct program *p);
