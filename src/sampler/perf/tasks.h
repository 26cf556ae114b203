/* SPDX-License-Identifier: Apache-2.0 */
/* Whose samples these are: processes and the names of threads, from perf's records and, what was there before, from
 * /proc. Also what a process that was started meanwhile has mapped, until its first sample: a short one is gone
 * before /proc could be read. */
#pragma once

#include "base/buf.h"
#include "base/u64map.h"
#include "sampler/perf/record.h"

struct perf_process {
	uint32_t pid, parent_pid;
	uint64_t start_ns; /* CLOCK_BOOTTIME, as /proc/PID/stat has it */
	uint32_t exec_id;  /* counts execs that were seen, from 1 on */
	char comm[ABI_COMM_SIZE];
	bool is_kernel;
	bool is_wanted;   /* passes the filter of pids */
	bool is_sampled;  /* its program had a sample: mappings are told at once */
	bool is_new;      /* its program was started meanwhile */
	uint64_t left_ns; /* CLOCK_MONOTONIC: when its first thread ended; with the last one it is gone. 0: it runs */
	struct abi_mapping **maps;
	size_t map_count, map_cap;
};

struct perf_tasks {
	const char *host_root;
	uint64_t boot_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	struct u64map index;     /* pid -> position in items */
	struct perf_process **items;
	size_t count, cap, sweep_at;
	uint32_t *leaving; /* pids of those whose first thread has ended */
	size_t leaving_count, leaving_cap;
	struct u64map threads; /* tid -> position in names */
	struct perf_name {
		uint32_t tid, pid;
		char name[ABI_COMM_SIZE];
	} * names;
	size_t name_count, name_cap;
	struct buf scratch;
	/* the filter */
	const uint32_t *pids; /* borrowed; sorted; pid_count 0: every process */
	size_t pid_count;
	bool follow_children;
};

void perf_tasks_init(struct perf_tasks *t, const char *host_root);
void perf_tasks_release(struct perf_tasks *t);

/** perf_tasks_get - the process of a sample; reads /proc at first sight. Return: NULL when there is no room. */
struct perf_process *perf_tasks_get(struct perf_tasks *t, uint32_t pid);
struct perf_process *perf_tasks_find(const struct perf_tasks *t, uint32_t pid);
/** perf_tasks_thread_name - ABI_COMM_SIZE bytes, valid until the next call. */
const char *perf_tasks_thread_name(struct perf_tasks *t, const struct perf_process *p, uint32_t tid);

/** perf_tasks_fork - Return: the new process; NULL: a thread, or no room. */
struct perf_process *perf_tasks_fork(struct perf_tasks *t, const struct perf_record *r);
/** perf_tasks_comm - Return: the process when this was an exec, otherwise NULL. */
struct perf_process *perf_tasks_comm(struct perf_tasks *t, const struct perf_record *r);
/** perf_tasks_exit - of a thread; perf_tasks_left() tells when the whole process is gone. */
void perf_tasks_exit(struct perf_tasks *t, const struct perf_record *r);
/** perf_tasks_left - one that is gone since perf_tasks_exit(), or NULL. The caller drops it. */
struct perf_process *perf_tasks_left(struct perf_tasks *t);
/**
 * perf_tasks_map - Return: 1 when it is to be told at once (*out, owned by the caller), 0 when it waits for the first
 * sample or nobody wants it, -ENOMEM.
 */
int perf_tasks_map(struct perf_tasks *t, const struct perf_record *r, struct abi_mapping **out);
/** perf_tasks_drop - @p is gone; freed. */
void perf_tasks_drop(struct perf_tasks *t, struct perf_process *p);
/** perf_tasks_sweep - the next few processes: one that is gone without a record, or NULL. The caller drops it. */
struct perf_process *perf_tasks_sweep(struct perf_tasks *t);
/** perf_tasks_event - a record of abi.h about @p. Pure. */
struct abi_process perf_tasks_event(const struct perf_process *p, uint16_t type, uint64_t time_ns);
