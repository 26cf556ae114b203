/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's parts: otlp_decode.c (the file, limits), otlp_decode_headers.c (messages around the samples),
 * otlp_decode_tables.c (the dictionary), otlp_decode_samples.c. */
#pragma once

#include "base/array.h"
#include "base/wire.h"
#include "codec/otlp_int.h"

#define ROWS_MAX ((size_t)UINT32_MAX - 1)
#define OTLP_STEPS 4096 /* between two looks at the limits */

struct span {
	uint32_t at, size; /* in the bytes of the file, which are below 4 GiB */
};

struct span_list {
	struct span *items;
	size_t count, cap;
};

enum attribute_form { FORM_NONE, FORM_TEXT, FORM_NUMBER, FORM_LIST, FORM_MAP };

struct attribute {
	uint32_t key, text, unit; /* strings of the model */
	int64_t number;           /* also of a truth value, whose text is "true" or "false" */
	enum attribute_form form;
	struct span list; /* FORM_LIST: struct ArrayValue */
};

struct resource_in {
	struct attribute *attributes; /* those that become labels of every sample */
	size_t count, cap;
	uint32_t host, service; /* strings */
	struct attribute slots[OTLP_SLOT_COUNT];
};

struct profile_in {
	struct span span;
	uint32_t resource; /* in resources */
	uint32_t scope;    /* a number for each ScopeProfiles */
	uint32_t column;
	bool has_type;
	bool has_samples;
};

struct function_in {
	uint32_t name, system_name, filename; /* strings */
	int64_t start_line;
	uint32_t native; /* row of the model when used as a native function, or 0 */
};

struct stack_in {
	uint32_t row;
	bool is_cut;
};

struct link_in {              /* a row of the link table, read when a sample asks for it */
	uint32_t trace, span; /* strings of hexadecimal digits; 0: none */
	bool is_read;
};

struct otlp_in {
	struct str bytes;
	struct window *window;
	struct model *m;
	struct codec_error *error;
	const struct codec_limits *limits;
	size_t steps;
	uint64_t done;
	struct span_list tables[TABLE_COUNT], resource_profiles;
	bool has_dictionary, is_ours;
	uint32_t *strings; /* strings of the model + 1, 0: not looked up yet */
	struct attribute *attributes;
	uint32_t *mappings, *locations;
	struct function_in *functions;
	struct stack_in *stacks;
	struct link_in *links;
	uint8_t *comments_read; /* by attribute: its comments are in */
	struct resource_in *resources;
	size_t resources_count, resources_cap;
	struct profile_in *profiles;
	size_t profiles_count, profiles_cap;
	uint32_t scopes;
	uint64_t start_ns, end_ns, duration_ns; /* start: 0 when no profile says it */
	/* Strings of the model */
	uint32_t slot_keys[OTLP_SLOT_COUNT], trace_key, span_key, service_key, host_key, service_label;
	uint32_t cut; /* string: CODEC_STACK_CUT */
	/* Scratch */
	struct model_line *lines;
	size_t lines_count, lines_cap;
	uint32_t *frames, *nodes;
	size_t frames_count, frames_cap, nodes_cap;
	struct model_label *labels; /* MODEL_LABELS_MAX */
	size_t label_count;
	uint64_t *times;
	int64_t *values;
	size_t times_count, times_cap, values_count, values_cap;
	struct buf text, clean;
	/* What a profile cannot hold */
	uint64_t payload_bytes, lost_lists, lost_attributes, lost_times, dropped, cleaned, unknown_types;
	struct str payload_format;
};

static inline uint64_t position(const struct otlp_in *in, const struct cur *c)
{
	return (uint64_t)((const char *)c->pos - in->bytes.ptr);
}

static inline struct span span_of(const struct otlp_in *in, const struct wire_field *f)
{
	return (struct span){ (uint32_t)position(in, &f->bytes), (uint32_t)cur_left(&f->bytes) };
}

static inline struct cur span_cur(const struct otlp_in *in, struct span span)
{
	return cur_of(in->bytes.ptr + span.at, span.size);
}

static inline int bad(const struct otlp_in *in, uint64_t at, const char *reason)
{
	codec_fail(in->error, at, false, "%s", reason);
	return -EBADMSG;
}

/* Gives a failed model or array operation its reason. */
static inline int failed(const struct otlp_in *in, uint64_t at, int r)
{
	if (r < 0)
		codec_fail(in->error, at, false, "%s", r == -E2BIG ? "too many or too long entries" : "out of memory");
	return r;
}

/** otlp_other - a file of another version. @version: which ones have what was found. Return: -ENOTSUP. */
int otlp_other(const struct otlp_in *in, uint64_t at, const char *version);

/** otlp_limits_look - Return: 0, -E2BIG over limits->memory_max, -ECANCELED. */
int otlp_limits_look(struct otlp_in *in) warn_unused;

/* Call it for every few bytes of input, so that long work can be stopped and stays within its limit. */
static inline int otlp_step(struct otlp_in *in)
{
	return ++in->steps % OTLP_STEPS ? 0 : otlp_limits_look(in);
}

/* Every function below returns 0 or -errno, with its reason in in->error. */

/** otlp_read_attributes - strings and attributes, which messages outside of the dictionary use. */
int otlp_read_attributes(struct otlp_in *in) warn_unused;
/** otlp_read_resource_profiles - everything but samples: resource, scopes, value types, times, comments. */
int otlp_read_resource_profiles(struct otlp_in *in, struct span span) warn_unused;
/** otlp_read_tables - mappings, functions, locations and stacks become rows of the model. */
int otlp_read_tables(struct otlp_in *in) warn_unused;
/** otlp_read_samples - of all profiles; value types are known. */
int otlp_read_samples(struct otlp_in *in) warn_unused;

/** otlp_string - string @si of the dictionary as one of the model. */
int otlp_string(struct otlp_in *in, uint64_t si, uint64_t at, uint32_t *out) warn_unused;
/** otlp_text - text that stands in a message. */
int otlp_text(struct otlp_in *in, struct str text, uint64_t at, uint32_t *out) warn_unused;
/** otlp_any - an AnyValue. @out: text, number, form, list are set. */
int otlp_any(struct otlp_in *in, struct cur c, uint64_t at, struct attribute *out) warn_unused;
/** otlp_add_attribute - take it for its slot in @slots, or else make a label of it in the scratch list.
 * @has_container: containers are labels, because the resource says which one it is */
int otlp_add_attribute(struct otlp_in *in, const struct attribute *a, struct attribute *slots, bool has_container,
		       uint64_t at) warn_unused;
/** otlp_attribute - row @index of the attribute table. */
int otlp_attribute(const struct otlp_in *in, uint64_t index, uint64_t at, const struct attribute **out) warn_unused;

typedef int otlp_index_fn(struct otlp_in *in, uint64_t index, uint64_t at, void *ctx);
/** otlp_indices - call @each for every number of a repeated field, packed or not. */
int otlp_indices(struct otlp_in *in, struct wire_field *f, uint64_t at, otlp_index_fn *each, void *ctx) warn_unused;
