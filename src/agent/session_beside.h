/* SPDX-License-Identifier: Apache-2.0 */
/* The second sampler of a session. All of these do nothing without one. */
#pragma once

#include "agent/session_int.h"

int session_open_beside(struct session *s, struct buf *why) warn_unused;
void session_close_beside(struct session *s);
int session_start_beside(struct session *s) warn_unused;
void session_stop_beside(struct session *s);
void session_poll_beside(struct session *s);
/** session_settle_beside - take_in_settle() of the second sampler's frames. */
size_t session_settle_beside(struct session *s);
/** session_runtime_sink - where the runtimes put what walkers must know; the first sampler's when there is no second.
 * Return: 0: filled; 1: there is none; -errno. */
int session_runtime_sink(struct session *s, struct runtime_sink *out) warn_unused;
/** session_cut_beside - make a new aggregate for the next window; the job owns the old one. Return: 0 or -ENOMEM. */
int session_cut_beside(struct session *s, struct job *job) warn_unused;
void session_beside_counters(const struct session *s, uint64_t counters[ABI_COUNTER_COUNT]);
