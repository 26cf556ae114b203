/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime stack of one thread of a running process: the steps of walk/ over remote memory, twice. */
#pragma once

#include <linux/types.h>

#include "abi/abi.h"
#include "sampler/remote/proc.h"

struct remote_walker;
struct remote_names;

int remote_walker_new(struct remote_walker **out) warn_unused;
void remote_walker_free(struct remote_walker *w); /* NULL is fine */
/** remote_walker_sample - the record that the next walk fills: its frames lie behind it. */
struct abi_sample *remote_walker_sample(struct remote_walker *w);
/** remote_walker_names - which names were sent. */
struct remote_names *remote_walker_names(struct remote_walker *w);
/**
 * remote_walk_thread - fill frames, runtime_count and runtime_end of the walker's sample
 *
 * A stack is clean when it is the same, positions included, in both passes of a round (remote/memory.h) and in those of
 * REMOTE_CONFIRMATIONS more. One that is the same in one round, but for the position in the innermost frame, is whole:
 * that frame is marked ABI_FRAME_GUESSED and runtime_end says CHANGED. Where no round agrees, only the frames on the
 * root's side that both passes have stay, and runtime_end says GAP: what they called is not known. Frames that only
 * one pass has seen are never combined.
 */
void remote_walk_thread(struct remote_walker *w, struct remote_process *p, struct remote_thread *t);

#define REMOTE_TRIES 3         /* calls until that, of 1, 4 and 8 rounds */
#define REMOTE_CONFIRMATIONS 3 /* rounds; 1 for a thread that waits */
