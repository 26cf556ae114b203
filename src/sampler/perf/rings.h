/* SPDX-License-Identifier: Apache-2.0 */
/* perf events of every CPU, or of chosen threads on every CPU, and the rings their records come in: one per CPU.
 * Follows CPUs that come and go. */
#pragma once

#include "sampler/cpus.h"
#include "sampler/perf/record.h"
#include "sampler/sampler.h"

struct perf_rings_config {
	const struct sampler_config *sampling; /* what it points to is borrowed for good */
	bool with_chain;                       /* user frames by frame pointers */
	uint32_t stack_bytes;                  /* of each copy of a user stack; 0: none */
};

struct perf_ring {
	uint8_t *base; /* NULL: this CPU is not online */
	size_t size;   /* of the data: a power of two */
	int fd;        /* of the event that owns the ring */
	int *others;   /* descriptors of further events whose records come here */
	size_t other_count, other_cap;
	uint64_t at, end; /* what was seen of it and is not handed over yet */
};

struct perf_rings {
	struct perf_rings_config cfg;
	const struct sampler_event *event;
	const char *host_root;
	struct perf_ring *items; /* by CPU */
	size_t count;            /* CPUs that there may be */
	size_t used;             /* that had an event so far, and those before them */
	struct perf_ring *last;  /* the one that the record handed over last lies in */
	struct cpus online;
	int epoll;
	int cgroup; /* descriptor of its directory; -1: not asked for */
	uint64_t checked_ns;
	size_t bytes;        /* of each ring */
	bool without_kernel; /* its frames, and time in it, are not permitted */
	bool running, as_tasks;
	uint8_t *scratch; /* a record that goes over the end of its ring, in one piece */
};

/**
 * perf_rings_open - open and map all, but take nothing yet
 * @why: one line on failure, and a warning on success: kernel code is left out where it is not permitted
 *
 * Return: number of CPUs; -EPERM, -ENOTSUP, -ESRCH (none of the processes lives), -errno.
 */
int perf_rings_open(struct perf_rings *r, const struct perf_rings_config *cfg, struct buf *why) warn_unused;
void perf_rings_close(struct perf_rings *r); /* one of zeros is fine */
int perf_rings_start(struct perf_rings *r) warn_unused;
void perf_rings_stop(struct perf_rings *r);
/** perf_rings_follow - look for CPUs that came or went, every few seconds. */
void perf_rings_follow(struct perf_rings *r, uint64_t now_ns);
/** perf_rings_wait - until a ring is half full, or @timeout_ms. Return: 0 or -errno. */
int perf_rings_wait(struct perf_rings *r, int timeout_ms);

/** perf_rings_look - see what is there now. */
void perf_rings_look(struct perf_rings *r);
/**
 * perf_rings_next - the oldest record of all that perf_rings_look() has seen
 * @before_ns: later ones stay: an older one of another ring may not have been seen
 * @out: borrowed until the next call
 *
 * Return: its size, or 0 when there is none; -EBADMSG when a ring made no sense: what was in it is lost.
 */
int perf_rings_next(struct perf_rings *r, uint64_t before_ns, const void **out);

/** perf_rings_bytes - the size of each ring. Pure. */
size_t perf_rings_bytes(const struct perf_rings_config *cfg, unsigned int cpu_count);
