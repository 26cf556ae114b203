/* SPDX-License-Identifier: Apache-2.0 */
/* One program in one process: what a pid runs between two execs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct program {
	uint32_t pid, exec_id; /* exec_id: low half of the leader's self_exec_id */
	uint64_t start_ns;     /* CLOCK_BOOTTIME, of the process */
};

static inline bool program_equal(const struct program *a, const struct program *b)
{
	return a->pid == b->pid && a->exec_id == b->exec_id && a->start_ns == b->start_ns;
}

/** exec_is_before - of two exec ids of one process: was @a's program there first? They count up with each exec; they
 * may wrap. Source: self_exec_id, fs/exec.c (begin_new_exec()), Linux 6.1. */
static inline bool exec_is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}
