/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of one runtime's frames in the kernel (*_seed.bpf.c) beside the same on the host, over memory of this process.
 * Shared by the *_run_test.c. */
#pragma once

#include "support.h"

#include <linux/types.h>

#include "walk/walk.h"

struct ring_buffer;

struct seed_run {
	struct walk host; /* reads this process */
	struct walk_world world;
	uint8_t *kernel; /* one struct walk per possible CPU */
	int program, walks;
	struct ring_buffer *ring;
	uint64_t random;
};

struct seed_maps { /* descriptors */
	int program, walks, ring;
};

/** seed_run_open - @take: gets what the kernel side sends, with @ctx */
void seed_run_open(struct seed_run *run, const struct seed_maps *maps, int (*take)(void *, void *, size_t), void *ctx);
void seed_run_close(struct seed_run *run);

/** seed_random - xorshift64 */
uint64_t seed_random(struct seed_run *run);

/** seed_run_kernel - one walk of the thread @tp. Return: that CPU's struct walk, as bytes. */
const uint8_t *seed_run_kernel(struct seed_run *run, uint64_t tp);

/** seed_compare - the end and each frame of the runtime are those of run->host. */
void seed_compare(const struct seed_run *run, const uint8_t *kernel);

/** seed_say_times - prints median and least; sorts @times */
void seed_say_times(const char *what, size_t frames, uint64_t *times, size_t count);

/** seed_stay_on_one_cpu - what the kernel side has sent is known per CPU. */
void seed_stay_on_one_cpu(void);
