/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a session share; see session.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/aggregate.h"
#include "agent/session.h"
#include "agent/take_in.h"
#include "agent/waits.h"
#include "base/queue.h"
#include "proc/cpustat.h"
#include "symbol/debug_lines.h"
#include "symbol/symbol.h"

/* One window on its way from the reader to the worker. */
struct job {
	struct aggregate *aggregate;          /* owned */
	uint64_t start_ns, end_ns;            /* wall clock */
	uint64_t counters[ABI_COUNTER_COUNT]; /* since the window's start */
	struct unwind_totals unwind;          /* since the window's start; bytes: at its end */
	uint64_t raw_pending;                 /* samples of it that the unwinder still has */
	struct cpustat cpu_start, cpu_end;
	uint64_t number;
};

struct session {
	struct session_config cfg; /* both threads, never changed after open */
	const struct sampler *sampler;
	struct files *files; /* both threads; locked inside */
	uint64_t run_id[2];
	char *container;       /* copy of cfg.container */
	struct unwind *unwind; /* the reader's end of it; NULL: nothing is walked here */

	/* The reader's. */
	struct sampler_state *sampling;
	struct proc_table *processes;
	struct aggregate *aggregate;
	struct take_in *take_in;
	struct waits *waits;  /* NULL: not asked for */
	struct job *closing;  /* a window that ended but waits for samples that the unwinder still has; or NULL */
	uint64_t raw_pending; /* samples the unwinder has, those of closing included */
	uint64_t finished_ns; /* of the last sample that came back: everything older has */
	uint64_t start_monotonic_ns, start_wall_ns, stop_monotonic_ns;
	uint64_t window_start_ns, expired_ns; /* monotonic */
	uint64_t window_number;
	uint64_t window_counters[ABI_COUNTER_COUNT]; /* at the window's start */
	struct unwind_totals window_unwind;          /* at the window's start */
	struct cpustat cpu_window;                   /* at the window's start; all zero: unknown */
	uint64_t samples, dropped;
	uint64_t waits_taken;                   /* counted in some window */
	uint64_t waits_lost, window_waits_lost; /* whose stack never came: in all, up to the window's start */
	uint64_t filtered, window_filtered;     /* by container, here: in all, up to the window's start */
	bool started, stopped, worker_runs;

	/* The worker's. */
	struct symbols *symbols;
	struct debug_lines *lines; /* NULL: not asked for */
	pthread_t worker;
	struct queue jobs; /* of struct job */

	/* Both threads'. */
	_Atomic uint64_t dropped_windows, dropped_window_samples;
};

void job_free(struct job *job); /* NULL is fine */
void job_freep(struct job **job);
/** session_count_dropped - the samples of @a are in no window. */
void session_count_dropped(struct session *s, const struct aggregate *a);
/** session_counter_name - of an enum abi_counter. */
const char *session_counter_name(size_t counter);
/** session_worker - the thread that names the frames of finished windows; ends when s->jobs is closed and empty. */
void *session_worker(void *session);
