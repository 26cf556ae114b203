/* SPDX-License-Identifier: Apache-2.0 */
/* Counts samples by raw stack until the window ends. Frames are kept as what the ring reader made of them while the
 * process lived (file id and offset, kernel address, JIT address); names come later, once per distinct frame.
 * An aggregate is filled by one thread and then moved whole to the symbol worker. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/intern.h"
#include "base/u64map.h"

struct aggregate_frame {
	uint8_t kind;   /* enum abi_frame_kind; USER: nothing mapped there that we know of */
	uint8_t flags;  /* enum abi_frame_flags */
	uint32_t owner; /* NATIVE: file id; JIT and USER: index into processes; KERNEL: 0 */
	uint64_t at;    /* NATIVE: file offset; otherwise address */
};

struct aggregate_stack { /* a path in a tree: node 0 is the empty stack */
	uint32_t parent, frame;
};

struct aggregate_process {
	uint32_t pid, generation;
	uint64_t start_ns;
	uint32_t comm, container; /* strings of the aggregate */
	int perf_map_fd;          /* owned, or -1 */
	bool is_kernel;
};

struct aggregate_sample {
	uint32_t stack, process, tid, thread_name; /* thread_name: string of the aggregate */
	uint8_t user_end;                          /* enum abi_end */
	uint8_t has_user;                          /* there is a user part: root_frame and user_end mean something */
	uint8_t kernel_cut;                        /* kernel frames are missing */
	uint8_t is_wait;                           /* the thread was off its CPU, for wait_ns */
	uint32_t root_frame; /* outermost user frame, index into frames; valid when has_user and user frames exist */
	uint32_t count;
	uint64_t wait_ns; /* of all that were counted */
};

struct aggregate {
	struct intern strings;
	struct aggregate_frame *frames;
	size_t frame_count, frame_cap;
	struct aggregate_stack *stacks;
	size_t stack_count, stack_cap;
	struct aggregate_process *processes;
	size_t process_count, process_cap;
	struct aggregate_sample *samples;
	size_t sample_count, sample_cap;
	struct u64map frame_index, stack_index, process_index, sample_index;
	uint64_t total;     /* samples counted; waits are not samples */
	uint64_t waits;     /* counted */
	bool with_waits;    /* the window says what threads waited for, if only that they did not */
	double wait_weight; /* a wait that was counted stands for that many */
	uint64_t dropped;   /* samples that found no room or memory */
};

#define AGGREGATE_NO_FRAME UINT32_MAX

int aggregate_new(struct aggregate **out) warn_unused;
void aggregate_free(struct aggregate *a); /* NULL is fine; closes the perf map descriptors */
void aggregate_freep(struct aggregate **a);

/* Return: 0 and *out, -ENOMEM, -E2BIG. Equal rows get equal indexes. */
int aggregate_add_process(struct aggregate *a, const struct aggregate_process *row, uint32_t *out) warn_unused;
int aggregate_add_frame(struct aggregate *a, const struct aggregate_frame *row, uint32_t *out) warn_unused;
int aggregate_add_stack(struct aggregate *a, uint32_t parent, uint32_t frame, uint32_t *out) warn_unused;
/** aggregate_add_sample - count one; row->count is ignored, row->wait_ns is added. */
int aggregate_add_sample(struct aggregate *a, const struct aggregate_sample *row) warn_unused;
