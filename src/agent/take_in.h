/* SPDX-License-Identifier: Apache-2.0 */
/* One sample -> the aggregate: what its addresses mean is decided here, while the process lives. */
#pragma once

#include "agent/aggregate.h"
#include "proc/proc.h"
#include "unwind/unwind.h"

struct take_in;

/** take_in_new - all are borrowed; @unwind: is told which files are in use; or NULL. */
int take_in_new(const struct clock *clock, struct proc_table *processes, struct files *files, struct unwind *unwind,
		struct take_in **out) warn_unused;
void take_in_free(struct take_in *t); /* NULL is fine */
/**
 * take_in_sample - count it in @a
 * @wait_ns: of trigger SWITCH: how long the thread was off its CPU
 * What is raw about it is not looked at. Return: 0, -ENOMEM or -E2BIG.
 */
int take_in_sample(struct take_in *t, struct proc *p, const struct abi_sample *sample, uint64_t wait_ns,
		   struct aggregate *a) warn_unused;
