/* SPDX-License-Identifier: Apache-2.0 */
/* How fast one sender may upload: a bucket of bytes for each that fills with time. An upload is let in while its
 * sender's bucket is not empty, and taken out once its size is known, so the bucket may go below zero for a while. */
#pragma once

#include "base/base.h"

#define RATE_SENDERS 4096 /* known at a time; a full bucket need not be known */

struct rate;

/** rate_new - @per_second: bytes; twice as many at once. 0: no limit. */
int rate_new(uint64_t per_second, struct rate **out) warn_unused;
void rate_free(struct rate *r); /* NULL is fine */
/** rate_wait_s - 0: @sender may send at @now_ns (monotonic); otherwise seconds until it may. Any thread. */
uint64_t rate_wait_s(struct rate *r, uint64_t sender, uint64_t now_ns);
void rate_spend(struct rate *r, uint64_t sender, uint64_t now_ns, uint64_t bytes);
