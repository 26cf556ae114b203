/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder's parts: pprof_decode.c (what comes in, what goes out), pprof_decode_scan.c (first pass),
 * pprof_decode_tables.c (ids, strings, tables), pprof_decode_samples.c (second pass). */
#pragma once

#include "base/array.h"
#include "base/u64map.h"
#include "base/wire.h"
#include "codec/pprof_int.h"

#define ROWS_MAX ((size_t)UINT32_MAX - 1)
#define PPROF_STEPS 4096 /* between two looks at the limits */
#define SAMPLES_BATCH 64 /* whose stacks are added together */

struct span {
	uint32_t at, size; /* in the expanded bytes, which are below 4 GiB */
};

struct span_list {
	struct span *items;
	size_t count, cap;
};

struct function_in {
	uint64_t id, name, system_name, filename; /* string indexes, checked */
	int64_t start_line;
	uint64_t kind;   /* 0: what the mapping says; else enum model_kind + 1 */
	uint32_t native; /* row in the model when used as a native function, or 0 */
};

/* Ids of a table to rows of it: an array for ids up to the number of rows, a hash for the rest. Values are row + 1. */
struct id_table {
	uint32_t *dense;
	size_t dense_count;
	struct u64map sparse;
};

struct pprof_in {
	struct str bytes;
	struct window *window;
	struct model *m;
	struct codec_error *error;
	const struct codec_limits *limits;
	size_t steps;                      /* of work; now and then the limits are looked at */
	uint64_t done;                     /* bytes of strings and of the messages that are read */
	size_t samples;                    /* met by the first pass */
	uint64_t samples_from, samples_to; /* where they all lie; mostly nothing else lies between them */
	uint32_t cut;                      /* string: CODEC_STACK_CUT */
	struct span_list strings, mappings, locations, functions, types;
	uint32_t *string_ids; /* model ids + 1, 0: not looked up yet */
	uint64_t *comments;
	size_t comments_count, comments_cap;
	struct span period_type;
	uint64_t drop_frames, keep_frames, default_type, doc_url;
	struct function_in *function_rows;
	size_t function_rows_count, function_rows_cap;
	struct id_table mapping_ids, location_ids, function_ids;
	uint32_t kind_of; /* mapping row whose kind this is; 0, no mapping, is native */
	enum model_kind kind;
	uint32_t label_keys[PPROF_LABEL_COUNT];
	/* Scratch of the row being read */
	struct model_line *lines;
	size_t lines_count, lines_cap;
	uint32_t *frames, *nodes; /* of the batch's samples: location rows, leaf first; stack rows, root first */
	size_t frames_count, frames_cap, nodes_cap;
	size_t sample_first;                           /* the current sample's frames begin here */
	bool is_cut;                                   /* and some were left out */
	size_t batch_ends[SAMPLES_BATCH], batch_count; /* the batch's samples are the model's last ones */
	struct model_label *labels;                    /* MODEL_LABELS_MAX */
	size_t label_count;
};

static inline uint64_t position(const struct pprof_in *in, const struct cur *c)
{
	return (uint64_t)((const char *)c->pos - in->bytes.ptr);
}

static inline int bad(const struct pprof_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -EBADMSG;
}

static inline int too_big(const struct pprof_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -E2BIG;
}

/* Gives a failed model or array operation its reason. */
static inline int failed(const struct pprof_in *in, uint64_t at, int r)
{
	if (r < 0)
		codec_fail(in->error, at, false, "%s", r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

static inline struct cur span_cur(const struct pprof_in *in, struct span span)
{
	return cur_of(in->bytes.ptr + span.at, span.size);
}

/* Every function below returns 0 or -errno, with its reason in in->error. */

int pprof_scan(struct pprof_in *in) warn_unused;
/** pprof_read_header - sample types, comments and the like; the string table is known. */
int pprof_read_header(struct pprof_in *in) warn_unused;
int pprof_read_tables(struct pprof_in *in) warn_unused;
int pprof_read_samples(struct pprof_in *in) warn_unused;

/** pprof_limits_look - Return: 0, -E2BIG over limits->memory_max, -ECANCELED. */
int pprof_limits_look(struct pprof_in *in) warn_unused;

/* Call it once for every few bytes of input, so that long work can be stopped and stays within its limit. */
static inline int pprof_step(struct pprof_in *in)
{
	return ++in->steps % PPROF_STEPS ? 0 : pprof_limits_look(in);
}

/** pprof_steps - the same for @count at once. */
static inline int pprof_steps(struct pprof_in *in, size_t count)
{
	size_t before = in->steps;

	in->steps += count;
	return before / PPROF_STEPS == in->steps / PPROF_STEPS ? 0 : pprof_limits_look(in);
}

/** pprof_string - string @si of the file as one of the model. */
int pprof_string(struct pprof_in *in, uint64_t si, uint64_t at, uint32_t *out) warn_unused;
/** pprof_symbol - the same for a name that limits->text_max may cut. */
int pprof_symbol(struct pprof_in *in, uint64_t si, uint64_t at, uint32_t *out) warn_unused;
/** pprof_id_find - Return: row + 1, or 0. */
uint32_t pprof_id_find_sparse(const struct id_table *t, uint64_t id);
static inline uint32_t pprof_id_find(const struct id_table *t, uint64_t id)
{
	return id < t->dense_count ? t->dense[id] : pprof_id_find_sparse(t, id);
}

void pprof_id_release(struct id_table *t);
