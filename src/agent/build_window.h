/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate of raw stacks -> profile with names. Runs on the symbol worker; each distinct frame is resolved once. */
#pragma once

#include "agent/aggregate.h"
#include "model/window.h"
#include "symbol/debug_lines.h"
#include "symbol/symbol.h"

struct runtime_sources;
struct runtimes;
struct source_maps;
struct sampler_event;

struct build_config { /* all are borrowed */
	struct symbols *symbols;
	struct debug_lines *lines;       /* NULL, or what gives inlined frames and lines of native code */
	struct runtime_sources *sources; /* import paths and distributions; NULL: functions go without */
	struct source_maps *maps;        /* NULL: scripts are shown as they run */
	struct runtimes *runtimes;       /* which files are runtimes; NULL: their frames were not asked for */
	const char *default_value;       /* the sample type that viewers show first; NULL: cpu */
	bool codes;                      /* window.codes, too */
	/* Stacks of processes whose runtime names threads begin with a frame for the thread, "[main tid=4711]", as
	 * async-profiler writes it (its src/frameName.cpp, BCI_THREAD_ID). */
	bool thread_frames;
	/* Columns are samples/count and, of a clock, cpu/nanoseconds, with the period that @frequency_hz or the event
	 * gives; of another event with a period NAME/count; of one that is sampled by rate none, as nobody knows what a
	 * sample stands for. The period's type says what was counted: cpu, or the event's name. */
	uint32_t frequency_hz;
	const struct sampler_event *event; /* NULL: the CPU's clock by frequency_hz */
};

/**
 * build_window - name the frames of @a and add them to a new model in @out
 * @out: metadata already there is kept; model and counters are set here
 *
 * A function of a runtime has its import path before its name ("json.decoder.JSONDecoder.decode"), the name that the
 * runtime says as system name, its file and first line; its location is in a mapping "[RUNTIME]" or
 * "[RUNTIME:DISTRIBUTION]", at address 0, on the executing line.
 *
 * Where the aggregate has times, a stack is a row for each 20 ms that it was sampled in, and time_offset_ns says where
 * these begin, from the window's start on. A sample from outside of the window, which is read where windows meet,
 * counts to the nearest end of it. Waits have no times: a wait is as long as its value says, and ends anywhere.
 *
 * Counters set: samples, user_samples, complete, guessed, cut_REASON (these three add up to user_samples), frames,
 * unnamed_frames, guessed_frames (the last three count frames of samples, so a share over them is a share of what is
 * shown); unnamed_jit_KIND (samples with code of a JIT compiler that has no name, of processes without a perf map, by
 * model/jit_kind.h); left_out; with
 * times: untimed_samples; with frames of runtimes:
 * runtime_samples, runtime_complete (of them), runtime_frames, runtime_unnamed_frames, runtime_unlined_frames (named,
 * without an executing line), runtime_gap_frames, runtime_vague_frames (their line is that of the next place that
 * compiled code describes), and the same of each runtime, with _NAME behind them: a sample may have frames of several;
 * with @lines: lines_asked, lines_found, lines_failed (distinct addresses that were not known before this window).
 * Return: 0 or -ENOMEM, -E2BIG.
 */
int build_window(const struct aggregate *a, const struct build_config *cfg, struct window *out) warn_unused;
