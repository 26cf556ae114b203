/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a thread are the same before and after the instant at which its innermost frame was read: what
 * decides about a round of reads (remote/memory.h), before anything is walked. Pure: looks at copies only. */
#pragma once

#include <linux/types.h>

#include "abi/python.h"
#include "sampler/remote/memory.h"

#define REMOTE_CHAIN_MAX 512

struct remote_link { /* what of a frame has to be the same */
	uint64_t at;
	uint64_t back, code, last; /* last: the position */
	uint8_t entry;
	bool alive; /* it says that it is running, or has no such field */
	uint8_t reserved[6];
};

struct remote_chain {
	uint32_t count;
	struct remote_link links[REMOTE_CHAIN_MAX]; /* the innermost first */
};

enum remote_verdict {
	REMOTE_CLEAN, /* all of several rounds agree */
	REMOTE_AGREE, /* both passes of a round do */
	REMOTE_MOVED, /* they agree except for the innermost frame, which one of them saw running: it runs bytecode */
	REMOTE_DISAGREE, /* in one of its callers, too */
	REMOTE_MISSED,   /* pieces are not there */
};

struct remote_finding {
	enum remote_verdict verdict; /* AGREE, MOVED, DISAGREE or MISSED */
	bool after;                  /* the pass whose chain it is */
	bool is_odd;                 /* AGREE: but a frame of it cannot be alive */
	uint32_t sure;               /* frames on the root's side that both passes have */
	const struct remote_chain *chain;
};

struct remote_chains { /* of one round */
	struct remote_chain after, before;
};

/**
 * remote_chain_judge - of round @round
 * @thread: where the thread state is. @chains: scratch, what out->chain points into
 */
void remote_chain_judge(struct remote_memory *m, const struct abi_python_layout *l, uint64_t thread, unsigned round,
			struct remote_chains *chains, struct remote_finding *out);
/** remote_chain_equal - the same frames with the same positions. */
bool remote_chain_equal(const struct remote_chain *a, const struct remote_chain *b);
/** remote_frame_state - bytes of a frame that say whether it runs. Return: where they end; 0: nothing says so. */
uint32_t remote_frame_bytes(const struct abi_python_layout *l);
