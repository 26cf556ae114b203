/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of threads that wait, by the number the kernel side gave them, until the waits that refer to them have
 * come in. Used by one thread: the ring reader. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "base/base.h"

#define WAITS_BYTES_MAX MIB(16) /* of stacks; the one used longest ago goes first */
#define WAITS_HELD_MAX 4096     /* waits whose stack is still being walked */

struct waits;

int waits_new(struct waits **out) warn_unused;
void waits_free(struct waits *w); /* NULL is fine */

/** waits_define - keep the stack of a sample of trigger SWITCH; copied. Return: 0 or -ENOMEM. */
int waits_define(struct waits *w, const struct abi_sample *sample) warn_unused;
/** waits_find - the sample of a stack id, borrowed until the next waits_define(), or NULL. */
const struct abi_sample *waits_find(struct waits *w, uint64_t stack_id);

/** waits_hold - keep a wait whose stack is not there yet. Return: false when there is no room: it is lost. */
bool waits_hold(struct waits *w, const struct abi_wait *wait);
/**
 * waits_take_held - the next held wait whose stack has come, or that is older than @before_ns (CLOCK_MONOTONIC) and
 * will not get one: waits_find() tells which. Return: false when there is none.
 */
bool waits_take_held(struct waits *w, uint64_t before_ns, struct abi_wait *out);
