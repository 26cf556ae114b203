/* SPDX-License-Identifier: Apache-2.0 */
/* One profiling session: sampler -> processes -> aggregate -> (symbol worker) names -> window -> callback. Several can
 * run in one process: nothing is shared.
 *
 * Threads: the caller's thread reads the ring and aggregates (session_step); one worker names frames and calls
 * on_window; one loads unwind rows and finishes the walks that the kernel had to leave (unwind/unwind.h). Windows wait
 * in a bounded queue; when it is full the oldest one is dropped and counted. */
#pragma once

#include "base/clock.h"
#include "model/window.h"
#include "proc/selection.h"
#include "proc/service_rules.h"
#include "runtime/runtime.h"
#include "sampler/sampler.h"

struct session_config {
	const struct sampler *sampler; /* NULL: the first that works */
	struct sampler_config sampling;
	uint64_t window_ns; /* 0: one window for the whole session. Windows end at multiples of it from the start on */
	/* When the caller means to stop; 0: not known. A window that would end there is cut by session_stop(). */
	uint64_t duration_ns;
	size_t unwind_bytes; /* for the unwind rows of all files; 0: 64 MiB. sampling.mode says how stacks are walked */
	const struct clock *clock;
	const struct service_rules *service_rules; /* borrowed; NULL: none */

	const char *host_root;         /* "" on the host */
	const char *container_socket;  /* NULL: Docker's usual one */
	const char *default_value;     /* the sample type that viewers show first; NULL: cpu */
	struct selection selection;    /* of processes; what it refers to is borrowed */
	const char *service_name;      /* becomes the label group; may be NULL */
	const char *command;           /* what was asked for, for people; may be NULL */
	bool sample_times;             /* samples have times, in steps of 20 ms (agent/build_window.h); not of a
					* recording, and not with beside_hz */
	bool lines;                    /* inlined frames and lines from debug information */
	bool addresses;                /* the same of where files lie in processes: window.bases */
	bool codes;                    /* windows say where in its function an address is: window.codes */
	bool want_metadata;            /* fill window.metadata_json */
	bool want_cloud;               /* ask which cloud the machine is of, for want_metadata */
	const char *external_metadata; /* a JSON object that becomes a part of that; NULL: none */
	const char *run_arguments;     /* another: how the program was started; NULL: the rate alone is told */
	uint32_t without_runtimes;     /* bits of enum abi_runtime: their frames stay native */
	bool keep_interpreter;         /* the native frames of interpreters stay beside the functions they run */
	/* Not 0: stacks of runtimes are read from outside at this rate, beside the sampler, and take the place of what
	 * the sampler saw of those processes (agent/merge_runtime.h). Without meaning for a sampler that does that. */
	uint32_t beside_hz;
	/* Frames of these runtimes (bits of enum abi_runtime) only of processes that are so old, and of each runtime of
	 * so many processes, of those with the most samples in the window before (agent/choice.h). 0: of all. */
	uint32_t runtimes_chosen;
	uint64_t runtime_age_min_ns;
	size_t runtime_process_max;
	/* Each window begins by the wall clock of then. Otherwise the clock is read at the start alone, and a clock
	 * that is set, or a machine that sleeps, has all later times wrong, though without gaps. */
	bool follows_clock;
	bool thread_names;  /* threads are called what their runtime calls them, where one does */
	bool thread_frames; /* and stacks of such processes begin with a frame for the thread */
	bool only_runtime;  /* only frames of runtimes; samples without them are left out and counted */
	/** Is this argument of a JVM a part of its application id? Called by a thread of its own. NULL: none is. */
	bool (*wants_argument)(void *ctx, struct str argument);
	bool with_spark; /* executors of Spark have the name of their application in that id */
	/** Called on the worker before on_window(): may change what a window says of its processes. NULL: nobody. */
	void (*on_built)(void *ctx, struct window *w);
	/**
	 * Called on the worker for every finished window, in order; @w is borrowed. It reports its own errors; the
	 * session goes on.
	 */
	void (*on_window)(void *ctx, const struct window *w);
	void *ctx;
};

struct session_stats {
	const struct sampler *sampler;        /* the one that was taken */
	uint64_t counters[ABI_COUNTER_COUNT]; /* FILTERED: those of other containers, too */
	uint64_t samples;                     /* aggregated so far */
	uint64_t lost; /* samples in no window: of all counters called lost_..., without memory, in a lost window */
	uint64_t dropped_windows; /* windows that the worker could not keep up with, or failed on */
	uint64_t left_out;        /* samples without the frames that were asked for */
	uint64_t elapsed_ns;      /* since start, up to stop */
	bool off_cpu;             /* waits were asked for */
};

struct session;

/** session_open - load everything, sample nothing. @why: one line on failure. Return: 0, -EPERM, -ENOTSUP, -errno. */
int session_open(const struct session_config *cfg, struct buf *why, struct session **out) warn_unused;
/** session_start - from now on samples are taken. */
int session_start(struct session *s) warn_unused;
/**
 * session_step - wait up to @timeout_ms for records, take them in, cut the window when it is due
 * Return: number of records; -ENODATA when the source is used up; -errno.
 */
int session_step(struct session *s, int timeout_ms) warn_unused;
/** session_stop - no more ticks, take in the rest, finish the last window, wait for the worker. Idempotent. Return: 0;
 * -errno: of the sampler, or the last window is lost. */
int session_stop(struct session *s);
void session_stats(const struct session *s, struct session_stats *out);
/** session_notices - append one line for each runtime that was refused since the last call, and for each process of
 * which there is something to say; for people. */
void session_notices(struct session *s, struct buf *out);
/** session_log_notices - the same into the log: of who runs until somebody ends it. */
void session_log_notices(struct session *s);
void session_close(struct session *s); /* stops first; NULL is fine */
