/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by cost over the last windows of a session, as hearth top shows them. A window's stacks are kept until the
 * window leaves the range, so that the callers of a function can be told; what nothing refers to any more goes.
 *
 * Threads: the owner locks. */
#pragma once

#include "base/intern.h"
#include "base/u64map.h"
#include "model/window.h"

#define TOP_SLOTS_MAX 600 /* windows of the range */

/* What rows are apart by besides the function: programs of one name in one container are one. */
struct top_group {
	uint32_t comm, container; /* names */
	uint32_t pid, pid_count;  /* top_counts_processes(): one of them, and how many there are in the range */
};

struct top_row {
	uint32_t name, group;
	int64_t self, total; /* total counts recursion once; 0: the row is not in use */
};

struct top_node { /* node 0 is the root */
	uint32_t parent, name;
};

struct top_sample {
	uint32_t node, group;
	int64_t value;
};

struct top_owner {
	uint32_t pid, group;
};

/* One window. */
struct top_slot {
	struct top_node *nodes;
	struct top_sample *samples;
	struct top_owner *owners;
	size_t node_count, node_cap, sample_count, owner_count;
	int64_t total;
	uint64_t took_ns, busy_ns, lost, count; /* count: of samples */
};

struct top_counts {
	struct intern names; /* functions, programs, containers */
	struct top_group *groups;
	size_t group_count, group_cap;
	struct u64map group_index, row_index;
	struct top_row *rows;
	size_t row_count, row_cap;
	uint32_t *free_rows;
	size_t free_count, free_cap;
	uint32_t *seen, turn; /* by name: the turn that met it */
	size_t seen_cap;
	struct top_slot *slots; /* a ring */
	size_t slot_count, slot_at, used;
	size_t names_kept; /* after the last tidying */
	uint64_t tidied;   /* how often: numbers of names and groups change */
	/* Sums over the slots */
	int64_t total;
	uint64_t took_ns, busy_ns, lost, count;
	uint32_t cpu_count, frequency_hz;
	bool is_short; /* memory ran out: some windows are missing */
};

/** top_counts_init - @slots: windows of the range, 1 to TOP_SLOTS_MAX. Return: 0 or -ENOMEM. */
int top_counts_init(struct top_counts *t, size_t slots) warn_unused;
void top_counts_release(struct top_counts *t); /* a zeroed one is fine */
/** top_counts_add - @w enters the range, the oldest window leaves. Without memory @w is left out, and t->is_short. */
void top_counts_add(struct top_counts *t, const struct window *w);
/** top_counts_processes - fill in the groups' pid and pid_count. Without memory the counts stay 0. */
void top_counts_processes(struct top_counts *t);

/* Who called a function, as a tree that begins with it. Preorder, the costliest first. */
struct top_caller {
	uint32_t name, depth;
	int64_t value;
};

/**
 * top_counts_callers - of @name in @group; where it is several times in a stack, from the innermost on
 * @out: the caller's to free; the first one is the function itself. @max: most that are made
 * Return: 0 or -ENOMEM.
 */
int top_counts_callers(const struct top_counts *t, uint32_t name, uint32_t group, size_t max, struct top_caller **out,
		       size_t *count) warn_unused;

static inline struct str top_name(const struct top_counts *t, uint32_t name)
{
	return intern_get(&t->names, name);
}
