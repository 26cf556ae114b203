/* SPDX-License-Identifier: Apache-2.0 */
/* Puts one sample into the aggregate. What its addresses mean is decided here, while the process lives. */
#pragma once

#include "agent/aggregate.h"
#include "agent/choice.h"
#include "proc/proc.h"
#include "unwind/unwind.h"

struct requests;
struct runtimes;
struct take_in;

struct take_in_config { /* all are borrowed */
	const struct clock *clock;
	const char *host_root;
	struct proc_table *processes;
	struct files *files;
	struct unwind *unwind;       /* learns which files are in use; or NULL */
	struct runtimes *runtimes;   /* names runtime frames; or NULL */
	struct describer *describer; /* tells of processes that no runtime tells of; or NULL */
	struct requests *requests;   /* what processes are busy with; or NULL */
	struct choice *choice;       /* whose runtime frames are shown; NULL: everybody's */
	bool addresses;              /* keep where files lie in processes */
	bool keep_interpreter;       /* the native frames of interpreters stay */
	bool only_runtime;           /* nothing but runtime frames: samples without them are left out */
	bool only_in_line;           /* frames of other runtimes come from another sampler: loops are native frames */
	bool thread_names;           /* what runtimes call threads is asked for */
};

int take_in_new(const struct take_in_config *cfg, struct take_in **out) warn_unused;
void take_in_free(struct take_in *t); /* NULL is fine */
/**
 * take_in_sample - count it in @a
 * @wait_ns: of trigger SWITCH: how long the thread was off its CPU
 * What is raw about it is not looked at. Return: 0; 1: left out; -ENOMEM or -E2BIG.
 */
int take_in_sample(struct take_in *t, struct proc *p, const struct abi_sample *sample, uint64_t wait_ns,
		   struct aggregate *a) warn_unused;
/** take_in_chain - the stack by frame pointers of a sample that is taken in by its copied stack, too. */
int take_in_chain(struct take_in *t, struct proc *p, const struct abi_sample *sample, struct aggregate *a) warn_unused;
/**
 * take_in_settle - ask again for names and lines of @a that were not known when their samples came
 * Return: how many are still not known, and may be.
 */
size_t take_in_settle(struct take_in *t, struct aggregate *a);
/** take_in_cut - further samples belong to another window: free what only older windows needed. */
void take_in_cut(struct take_in *t);
