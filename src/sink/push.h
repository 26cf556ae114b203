/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles on their way to a collector. Whoever makes them hands them over and goes on; one thread sends them, oldest
 * first, and tries again while the collector does not take them. What waits is on disk when there is a spool, and
 * bounded in any case: the oldest is dropped and counted.
 *
 *   push_put() -> file in the spool -> sender thread -> acknowledged: file removed
 *                 (or memory)              |
 *                                          +-- nobody answers, 5xx, 429: again, later and later
 *                                          +-- we are denied (401, 403, 404, a redirect): the same, said once
 *                                          +-- any other status: given up, counted, said once
 */
#pragma once

#include "sink/upload.h"

struct push_config {
	const char *url;       /* of the collector */
	struct str token;      /* or empty; copied */
	const char *ca_file;   /* PEM; NULL: the system's */
	bool no_verify;        /* take any certificate */
	const char *spool_dir; /* NULL: what waits is in memory only */
	uint64_t spool_max;    /* bytes; 0: 256 MiB */
	uint64_t memory_max;   /* bytes that wait without a place on disk; 0: 32 MiB */
	uint64_t jitter_ns;    /* the first of what waits goes after a random part of this */
	/** Told once per kind what goes wrong, on any thread. NULL: it is logged. */
	void (*say)(void *ctx, const char *what, const char *why);
	void *say_ctx;
	uint64_t retry_min_ns; /* first pause after a failure, doubled with each, at most 2 minutes; 0: 1 s */
};

struct push_stats {
	uint64_t sent;                       /* acknowledged */
	uint64_t refused;                    /* given up: the collector does not want them */
	uint64_t dropped;                    /* over a bound, oldest first; or no memory */
	uint64_t damaged;                    /* files of the spool that could not be read */
	uint64_t retries;                    /* attempts that failed for now */
	bool denied;                         /* the last attempt: a token or an address has to be mended */
	uint64_t waiting, waiting_in_memory; /* now */
	uint64_t found;                      /* left by earlier runs */
	char last_error[256];                /* of the last attempt that failed; "" when none did */
};

struct push;

/** push_open - @why: one line on failure. Return: 0, -EINVAL (no URL), -ENOMEM, -errno. */
int push_open(const struct push_config *cfg, struct buf *why, struct push **out) warn_unused;
/**
 * push_put - hand over a copy of @u; never waits for the network, but for the disk
 *
 * Return: 0; -ENOMEM or -E2BIG when it is lost, which is counted.
 */
int push_put(struct push *p, const struct upload *u) warn_unused;
/** push_flush - wait until nothing waits any more, or for @timeout_ns. Return: 0, -ETIMEDOUT, -EACCES (we are denied).
 */
int push_flush(struct push *p, uint64_t timeout_ns) warn_unused;
void push_stats(struct push *p, struct push_stats *out);
/** push_close - ends an attempt under way; what waits on disk stays there. NULL is fine. */
void push_close(struct push *p);

/** push_pause - the pause after failure number @failures (1, 2, ...): half of it is certain, half is @random. Pure. */
uint64_t push_pause_ns(uint64_t retry_min_ns, uint32_t failures, uint64_t random);
