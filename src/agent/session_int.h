/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a session (session.h), and what its parts ask of it. The parts do not include each other in circles:
 * session_runtimes, session_merge < session_beside, session_worker < session_open, session.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/aggregate.h"
#include "agent/requests.h"
#include "agent/session.h"
#include "agent/take_in.h"
#include "agent/waits.h"
#include "base/queue.h"
#include "proc/cpustat.h"
#include "runtime/runtimes.h"
#include "runtime/sources.h"
#include "symbol/debug_lines.h"
#include "symbol/source_maps.h"
#include "symbol/symbol.h"

/* One window on its way from the reader to the worker. */
struct job {
	struct aggregate *aggregate;          /* owned */
	struct aggregate *beside;             /* owned; NULL: there is no second sampler */
	uint64_t start_ns, end_ns;            /* wall clock */
	uint64_t counters[ABI_COUNTER_COUNT]; /* since the window's start */
	struct unwind_totals unwind;          /* since the window's start; bytes: at its end */
	uint64_t names_again;                 /* names that the kernel sent and that were known, since then */
	uint64_t raw_pending;                 /* samples of it that the unwinder still has */
	uint64_t undecided_ns;                /* monotonic: until then a program of it may turn out to be short */
	struct cpustat cpu_start, cpu_end;
	double memory_average; /* percent; -1: not known */
	uint64_t number;
};

struct session {
	struct session_config cfg; /* both threads, never changed after open */
	const struct sampler *sampler;
	struct files *files;        /* both threads; locked inside */
	struct sampler_event event; /* copy of *cfg.sampling.event */
	uint64_t run_id[2];
	struct unwind *unwind;     /* the reader's end of it; NULL: nothing is walked here */
	struct runtimes *runtimes; /* likewise; NULL: not wanted */
	const struct runtime
		*wanted[ABI_RUNTIME_COUNT + 1]; /* both threads, never changed after open; ends with NULL */

	/* The reader's. */
	struct sampler_state *sampling;
	struct proc_table *processes;
	struct aggregate *aggregate;
	struct take_in *take_in;
	struct choice *choice;       /* whose runtime frames are shown; NULL: everybody's */
	struct describer *describer; /* NULL: a recording is replayed */
	struct beside *beside;       /* NULL: no second sampler */
	struct waits *waits;         /* NULL: not asked for */
	struct requests *requests;   /* likewise */
	struct job *closing;  /* a window that ended but waits for samples that the unwinder still has, or for programs
			       * that may turn out to be short; or NULL */
	uint64_t raw_pending; /* samples the unwinder has, those of closing included */
	uint64_t finished_ns; /* of the last sample that came back: everything older has */
	uint64_t start_monotonic_ns, start_wall_ns, stop_monotonic_ns;
	uint64_t wall_base_ns; /* wall time at start_monotonic_ns, by the clock of the running window; the reader's */
	uint64_t window_start_ns, expired_ns; /* monotonic */
	uint64_t soon_until_ns; /* monotonic: till then it is read often, for code that may be gone soon */
	uint64_t window_number;
	uint64_t window_counters[ABI_COUNTER_COUNT]; /* at the window's start */
	struct unwind_totals window_unwind;          /* at the window's start */
	uint64_t window_names_again;                 /* likewise */
	struct cpustat cpu_window;                   /* at the window's start; all zero: unknown */
	struct {
		double sum; /* of percents */
		unsigned count;
		uint64_t next_ns; /* monotonic: when memory is looked at again */
	} memory;                 /* in this window */
	uint64_t samples, dropped, left_out;
	uint64_t waits_taken;                   /* counted in some window */
	uint64_t waits_lost, window_waits_lost; /* whose stack never came: the total at the window's start */
	uint64_t filtered, window_filtered;     /* left out by container: the total at the window's start */
	bool started, stopped, worker_runs;

	/* The worker's. */
	struct symbols *symbols;
	struct debug_lines *lines;       /* NULL: not asked for */
	struct runtime_sources *sources; /* NULL: no runtimes */
	struct source_maps *maps;        /* NULL: no runtimes */
	pthread_t worker;
	int last_result;     /* of the last window: 0, or -errno when it was lost */
	struct cloud *cloud; /* NULL: nobody is asked */
	struct queue jobs;   /* of struct job */

	/* Both threads'. */
	_Atomic uint64_t dropped_windows, dropped_window_samples;
};

struct program session_program(const struct proc *p);
/** session_wants - the reader's: is it one of the processes that were asked for? */
bool session_wants(struct session *s, struct proc *p);

/** session_new_aggregate - an empty one, for the next window, which begins at @start_ns (monotonic). */
int session_new_aggregate(const struct session *s, uint64_t start_ns, struct aggregate **out) warn_unused;

void job_free(struct job *job); /* NULL is fine */
void job_freep(struct job **job);
uint64_t job_samples(const struct job *job); /* of both samplers */
/** session_count_dropped - a window with that many samples is lost. */
void session_count_dropped(struct session *s, uint64_t samples);
/** session_counter_name - of an enum abi_counter. */
const char *session_counter_name(size_t counter);
