/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the reader of debug information (lines_child.h) and takes its answers: starts it, sends a file's descriptors and
 * what is wanted of it, judges the form of every answer. A child that dies, hangs or breaks the form costs what was
 * asked of one file; it is started anew LINES_RESTARTS_MAX times, or as often as only the time was over. Used by one
 * thread, but for opening. */
#pragma once

#include "symbol/lines_process.h"
#include "symbol/lines_wire.h"

#define LINES_RESTARTS_MAX 3

struct lines_asker_config {
	uint64_t reply_patience_ns; /* for one packet of an answer; 0: a little more than the child gives itself */
	bool needs_libdw;           /* without libdw the child is of no use */
	const char *file_lost,
		*is_off; /* what people are told: one file has nothing, nothing comes any more; borrowed */
};

struct lines_asker {
	struct lines_asker_config cfg;
	struct lines_process process;
	uint64_t end_ns; /* CLOCK_MONOTONIC: nothing is waited for later */
	uint64_t deaths; /* of the child, by itself or by us */
	uint64_t faults; /* those of them that were its own: not those where end_ns came */
	bool is_off;     /* no more restarts */
	uint8_t *packet; /* LINES_MESSAGE_MAX bytes */
	struct lines_answer answer;
};

struct lines_question {            /* about one file */
	const uint64_t *addresses; /* ascending */
	size_t count;
	uint32_t flags; /* enum lines_request */
	int fds[2];     /* of the file, and of what flags say of a second one; borrowed */
	size_t fd_count;
};

/** lines_asker_init - nothing is started yet. Return: 0 or -ENOMEM. */
int lines_asker_init(struct lines_asker *a, const struct lines_asker_config *cfg) warn_unused;
void lines_asker_release(struct lines_asker *a);
/** lines_asker_start - for the first time. Return: 0; -ENOTSUP without libdw; -errno. */
int lines_asker_start(struct lines_asker *a) warn_unused;
/** lines_asker_ready - start the child if none runs. Return: 0; -EPIPE: no more restarts; -errno, which counts as a
 * death. */
int lines_asker_ready(struct lines_asker *a) warn_unused;
/** lines_asker_rest - end the child until it is needed again: what it has read takes memory. */
void lines_asker_rest(struct lines_asker *a);
/** lines_asker_has_time - may there be an answer before a->end_ns? */
bool lines_asker_has_time(const struct lines_asker *a);

/** Called for each address, in order; the text is borrowed. Return: 0, or -ENOMEM, which ends it. */
typedef int lines_asker_fn(void *ctx, size_t index, const struct lines_answer *answer);

/**
 * lines_asker_ask - everything that is wanted of one file, in as many packets as it takes; the child runs
 * *done: how many addresses have their answers for certain
 * Return: 0; -ENOENT: the file is of no use; -ENOMEM; -ETIME: a->end_ns came; otherwise how the child failed. In the
 * last two cases it is gone.
 */
int lines_asker_ask(struct lines_asker *a, const struct lines_question *question, lines_asker_fn *take, void *ctx,
		    size_t *done) warn_unused;
