/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows for all walkers: keeps the tables of files under a byte budget, tells the kernel which address space
 * has which mappings, and finishes the walks that the kernel had to leave (raw samples). One worker thread at low
 * priority does all of it; the ring reader hands work over and fetches finished samples, and never waits.
 *
 *	reader --- mappings of a process, raw samples ---> worker --- rows, mappings, spaces ---> table_sink
 *	       <-- samples with all their frames --------
 *
 * Rows are loaded when a walk first meets their file, not when a process maps it. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "proc/files.h"
#include "proc/mappings.h"
#include "proc/program.h"
#include "unwind/in_line.h"
#include "unwind/table_sink.h"

struct unwind_config {
	size_t budget_bytes;            /* of all tables; never passed; 0: 64 MiB */
	const char *host_root;          /* debug files are looked for below it */
	uint8_t mode;                   /* enum walk_mode */
	const struct table_sink *sink;  /* NULL: memory only */
	const struct in_line *runtimes; /* copied; NULL: frames of runtimes are walked as native ones */
	const struct clock *clock;
	int wake_fd; /* eventfd written when a finished sample waits; or -1 */
};

struct unwind_totals {
	uint64_t tables_loaded, tables_evicted, tables_failed, tables_refused; /* refused: larger than the budget */
	uint64_t load_ns;                                                      /* thread CPU time of loading */
	uint64_t raw_walked;                                                   /* samples finished here */
	uint64_t raw_dropped;  /* the queue was full: they went out as they were */
	uint64_t spaces, maps; /* now */
	size_t bytes;          /* of all tables, now */
	size_t bytes_peak;
};

struct unwind;

/** unwind_open - starts the worker. @files is shared and outlives it. */
int unwind_open(const struct unwind_config *cfg, struct files *files, struct unwind **out) warn_unused;
void unwind_close(struct unwind *u); /* NULL is fine */

/**
 * unwind_set_process - these are its mappings now: the kernel's walkers are told of them
 * @maps: borrowed. Same mappings as before: nothing is done.
 * Return: false: there was no room to tell them; they must be told again.
 */
bool unwind_set_process(struct unwind *u, const struct program *process, const struct mappings *maps);
/** unwind_share - a forked child runs in its parent's address space (a copy of it) until it is told otherwise. */
void unwind_share(struct unwind *u, const struct program *child, const struct program *parent);
/** unwind_forget - it has gone, or another program took its place. */
void unwind_forget(struct unwind *u, const struct program *process);

/**
 * unwind_raw - finish the walk of a raw sample
 * @sample: checked; copied. @maps: borrowed; copied when they differ from the last ones of this process.
 * Return: 0, or -EAGAIN when the queue is full or out of memory: the caller takes the sample in as it is.
 */
int unwind_raw(struct unwind *u, const struct abi_sample *sample, const struct mappings *maps) warn_unused;

/**
 * unwind_take - the next finished sample, in the order they came. NULL: none now. The caller frees it.
 *
 * With RAW still set the walk stands in front of a frame whose mapping is not known: when it is by now, unwind_raw()
 * goes on with it; otherwise unwind_strip() makes the best of it.
 */
struct abi_sample *unwind_take(struct unwind *u);
/** unwind_raw_state - where the walk of a raw sample stands. Pure. */
struct abi_raw unwind_raw_state(const struct abi_sample *sample);
/** unwind_strip - a raw sample as it is, with the address where its walk stands as last frame; in place. Pure. */
void unwind_strip(struct abi_sample *sample);
/** unwind_drain - wait until all that was handed over is finished. */
void unwind_drain(struct unwind *u);

/** unwind_touch - a walk went through this file just now: its rows are worth keeping. Cheap; any frame may call it. */
void unwind_touch(struct unwind *u, uint32_t file_id);

void unwind_totals(struct unwind *u, struct unwind_totals *out);
