/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers of the window format, shared by its two directions. Fields come in ascending order. */
#pragma once

#include <stddef.h>

#include "codec/window_codec.h"

#define WINDOW_MAGIC "hearth-window"
#define WINDOW_VERSION 1

enum window_field {
	WINDOW_FIELD_MAGIC = 1,
	WINDOW_FIELD_VERSION = 2,
	WINDOW_FIELD_NUMBERS = 3, /* 3..10, one field each, in the order of add_scalars() and read_number() */
	WINDOW_FIELD_TEXTS = 11,  /* 11..18, in the order of window_text_at() */
	WINDOW_FIELD_CPU_AVERAGE = 19,
	WINDOW_FIELD_MEMORY_AVERAGE = 20,
	WINDOW_FIELD_LABEL = 21,
	WINDOW_FIELD_COUNTER = 22,
	WINDOW_FIELD_STRING = 30,
	WINDOW_FIELD_MAPPINGS = 31,
	WINDOW_FIELD_FUNCTIONS = 32,
	WINDOW_FIELD_LOCATIONS = 33,
	WINDOW_FIELD_STACKS = 34,
	WINDOW_FIELD_APP_METADATA = 35,
	WINDOW_FIELD_PROCESSES = 36,
	WINDOW_FIELD_THREADS = 37,
	WINDOW_FIELD_LABEL_SETS = 38,
	WINDOW_FIELD_HEADER = 39,
	WINDOW_FIELD_COMMENTS = 40,
	WINDOW_FIELD_SAMPLES = 41,
	WINDOW_FIELD_WORKLOADS = 42,
	WINDOW_FIELD_SERVICE_KINDS = 43,
};

#define WINDOW_NUMBERS 8
#define WINDOW_TEXTS 8

static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

/* Address of the i-th owned text. */
static inline char **window_text_at(struct window *w, size_t i)
{
	char **const texts[WINDOW_TEXTS] = { &w->host,           &w->agent_version, &w->sampler, &w->unwinder,
					     &w->kernel_release, &w->os_name,       &w->command, &w->metadata_json };

	return texts[i];
}

int window_encode(const struct window *w, struct buf *out) warn_unused;
