/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of one runtime's frames in the kernel (*_seed.bpf.c) beside the same on the host, over memory of this process.
 * Shared by the *_run_test.c. */
#pragma once

#include "support.h"

#include <linux/types.h>

#include "runtime/runtime.h"
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

#define SEED_NAMES 8

struct seed_names { /* that the kernel side sent */
	size_t count;
	struct seed_name { /* the first ones */
		uint64_t key, cookie;
		char name[512], file[512]; /* empty: it could not be decoded */
	} first[SEED_NAMES];
};

struct seed_maps { /* descriptors */
	int program, walks, ring;
};

/** seed_run_open - @take: gets what the kernel side sends, with @ctx */
void seed_run_open(struct seed_run *run, const struct seed_maps *maps, int (*take)(void *, void *, size_t), void *ctx);
void seed_run_close(struct seed_run *run);

/**
 * seed_take_name - a record of @runtime (enum abi_runtime), which must be one of a name
 * @decode: struct runtime's decode_name()
 */
void seed_take_name(struct seed_names *names, const void *data, size_t size, uint8_t runtime,
		    int (*decode)(const uint8_t *, size_t, struct buf *, struct runtime_function *));

/** seed_map - memory at @at that can be written; around it nothing can be read. Up to seed_unmap(). */
uint8_t *seed_map(uint64_t at, size_t size);
void seed_unmap(uint8_t *memory, size_t size);

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
