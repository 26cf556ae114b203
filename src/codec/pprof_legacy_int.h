/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the legacy reader: the samples as read, before addresses have mappings. */
#pragma once

#include "base/u64map.h"
#include "codec/pprof_legacy.h"

#define LEGACY_LINE_MAX KIB(64)
#define LEGACY_VALUES_MAX 4
#define LEGACY_MAPPINGS_MAX 4096
#define LEGACY_TEXT_MAX MIB(4) /* names of mappings, after variables were put in */

struct legacy_line {
	struct str text; /* without its end */
	struct str rest; /* what follows */
	uint64_t number; /* from 1 */
};

struct legacy_place { /* a distinct address, in order of first appearance */
	uint64_t address;
	uint32_t mapping;  /* index + 1 into mappings; 0: none */
	uint32_t location; /* row of the model once it is there */
	bool seen;         /* by the search for mappings */
};

struct legacy_sample {
	size_t first_frame, frame_count; /* in frames, leaf first */
	int64_t values[LEGACY_VALUES_MAX];
	int64_t block_size; /* label "bytes"; 0: none */
	bool is_cut;        /* frames beyond limits->depth_max were left out */
};

struct legacy_text {
	size_t at, len; /* in text */
};

struct legacy_mapping {
	uint64_t start, limit, offset;
	struct legacy_text file, build_id;
};

struct legacy {
	struct str bytes;
	struct codec_error *error;
	const struct codec_limits *limits;
	size_t steps;
	struct model *m;
	struct u64map places_by_address;
	struct legacy_place *places;
	size_t places_count, places_cap;
	uint32_t *frames; /* indexes of places, all samples end to end */
	size_t frames_count, frames_cap;
	struct legacy_sample *samples;
	size_t samples_count, samples_cap;
	struct legacy_mapping *mappings;
	size_t mappings_count, mappings_cap;
	struct buf text;
};

static inline struct str legacy_str(const struct legacy *in, struct legacy_text t)
{
	return t.len ? str_n(in->text.ptr + t.at, t.len) : STR(""); /* no text yet: ptr is NULL */
}

/* Fill @in->error. Return: the error given. */
int legacy_bad_line(const struct legacy *in, const struct legacy_line *line, const char *reason);
int legacy_failed(const struct legacy *in, int r); /* 0, -ENOMEM or -E2BIG */

/** legacy_next_line - Return: 1 and line->text, 0 at the end, -E2BIG. */
int legacy_next_line(const struct legacy *in, struct legacy_line *line);
bool legacy_is_map_start(struct str line);

/* A sample is begun, gets its frames leaf first, and is complete when the next one begins. */
int legacy_begin_sample(struct legacy *in, const struct legacy_sample *row) warn_unused;
int legacy_add_frame(struct legacy *in, uint64_t address) warn_unused;
/** legacy_drop_second - take the frame after the leaf out of a sample that has one. */
void legacy_drop_second(struct legacy *in, struct legacy_sample *s);
/** legacy_drop_doubled_leaves - the leaf may stand twice: from the registers, and from the stack, less 1. */
void legacy_drop_doubled_leaves(struct legacy *in);

/** legacy_read_map - lines of a memory map up to the end of @rest; lines that are none are passed over. */
int legacy_read_map(struct legacy *in, struct legacy_line *line) warn_unused;
/** legacy_place_all - give every place a mapping. */
int legacy_place_all(struct legacy *in) warn_unused;

/* Readers: 0, or -errno with the reason given. */
bool legacy_cpu_is(struct str bytes);
int legacy_cpu_read(struct legacy *in) warn_unused;
bool legacy_text_is(struct str bytes);
int legacy_text_read(struct legacy *in) warn_unused;
