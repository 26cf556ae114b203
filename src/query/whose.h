/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes and threads a request means: the parameters process, program, thread and thread-name of the viewer's
 * API (docs/api.yaml). Pure; all of it comes from strangers. */
#pragma once

#include "net/http_parse.h"
#include "store/store.h"

struct query_whose {
	bool has_pid, has_start, has_tid;
	uint32_t pid, tid;
	uint64_t start_ns;
	struct str program, thread; /* comm, name of the thread; borrowed from the query; empty: any */
};

/**
 * query_whose_read - @out: everybody where the query names nobody
 * @why: on -EBADMSG the reason
 *
 * A process is "PID", or "PID-START" with the nanoseconds since boot at which it began, as query_whose_process() writes
 * it. Return: 0 or -EBADMSG.
 */
int query_whose_read(const struct http_query *query, struct query_whose *out, struct buf *why) warn_unused;

/** query_whose_process - append the name of one process. */
void query_whose_process(struct buf *out, uint32_t pid, uint64_t start_ns);

/** query_whose_all - whether everybody is meant. */
bool query_whose_all(const struct query_whose *w);

/** query_whose_fits - whether @owner is meant. Bytes that are no UTF-8 are what JSON makes of them. */
bool query_whose_fits(const struct query_whose *w, const struct store_owner *owner);

/** query_whose_pick - keep the samples of those who are meant. Return: 0 or -ENOMEM. */
int query_whose_pick(const struct query_whose *w, struct model *m) warn_unused;
