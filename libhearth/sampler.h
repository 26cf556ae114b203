/* SPDX-License-Identifier: Apache-2.0 */
/* A timer on the CPU clock of every thread of this process, and what its signal writes down. All functions but the
 * handler run on one thread. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

#define SAMPLE_FRAMES_MAX 254
#define SAMPLE_WORDS 48 /* of the stack, from sp up */

enum sample_end {
	SAMPLE_ROOT,      /* the chain of frame pointers ended with a zero */
	SAMPLE_NO_CALLER, /* it led out of the stack, or backwards */
	SAMPLE_UNREADABLE,
	SAMPLE_FRAME_LIMIT,
};

struct sample {
	pid_t tid;
	const char *thread_name; /* terminated */
	uint32_t count;          /* timer periods it stands for */
	enum sample_end end;
	uint64_t sp, lr;        /* lr: aarch64's x30, else 0 */
	const uint64_t *frames; /* by frame pointers, leaf first; all but the first are return addresses */
	size_t frame_count;
	const uint64_t *words; /* of the stack from sp on: where the caller of a leaf without a frame is found */
	size_t word_count;
};

struct sampler_totals {
	uint64_t lost;           /* samples: periods of timers whose ring was full */
	uint64_t missed_threads; /* no timer, no memory, or more threads than SLOTS_MAX */
};

/** sampler_claim - install the handler. Return: 0, -EBUSY when the program has one of its own, -errno. */
int sampler_claim(void) warn_unused;
/** sampler_begin - from now on every thread is sampled, the calling one left out. */
void sampler_begin(unsigned int frequency_hz);
/** sampler_watch - threads that were started meanwhile, and those that ended. To be called every 100 ms. */
void sampler_watch(void);
/** sampler_drain - what was written down since the last call. @visit's sample is borrowed. */
void sampler_drain(void (*visit)(void *ctx, const struct sample *sample), void *ctx);
/** sampler_stack - tell where the stack of @tid lies: frames outside of it are not followed. */
void sampler_stack(pid_t tid, uint64_t start, uint64_t end);
/** sampler_end - no more signals but those under way; drain once more after it. */
void sampler_end(void);
void sampler_totals(struct sampler_totals *out);
/** sampler_forked - in the child: its threads and timers are gone. */
void sampler_forked(void);
