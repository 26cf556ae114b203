/* SPDX-License-Identifier: Apache-2.0 */
/* One event per online CPU, each running the sampler's program; follows CPUs that come and go. */
#pragma once

#include "sampler/cpus.h"
#include "sampler/sampler.h"

struct ticks {
	int *fds; /* by CPU number; -1: none */
	size_t fd_count;
	struct cpus online, wanted;
	bool is_limited; /* to those that are wanted */
	int program_fd;  /* borrowed */
	uint32_t frequency_hz;
	const struct sampler_event *event; /* borrowed; NULL: cpu-clock */
	const char *host_root;             /* borrowed */
	uint64_t checked_ns;               /* when the online CPUs were looked up last */
	bool running;
};

/**
 * ticks_open - an event on every online CPU, not yet ticking
 * @cfg: rate, event and host root count; what it points to is borrowed
 *
 * Return: number of CPUs or -errno.
 */
int ticks_open(struct ticks *t, int program_fd, const struct sampler_config *cfg) warn_unused;
void ticks_close(struct ticks *t); /* an all-zero one is fine */

int ticks_start(struct ticks *t) warn_unused;
void ticks_stop(struct ticks *t);

/** ticks_follow - look for CPUs that came or went, every few seconds. Failures are tried again the next time. */
void ticks_follow(struct ticks *t, uint64_t now_ns);
