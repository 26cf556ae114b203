/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's parts: otlp_encode.c (messages around samples), otlp_encode_samples.c (which samples there are, and what
 * they have in common), otlp_encode_rows.c (rows of the dictionary). */
#pragma once

#include "base/array.h"
#include "base/wire.h"
#include "codec/otlp_int.h"

#define TABLE_MAX GIB(2) /* bytes of one table, and of one profile */

/* What samples with one process, thread, label set and end have in common. */
struct combo {
	uint32_t resource, link;
	size_t attributes, attributes_size; /* packed indexes in combo_bytes */
};

struct resource {
	struct str container, service;      /* of the model or the window */
	uint32_t first_sample, last_sample; /* + 1; 0: none */
	uint32_t first, last;               /* groups + 1; 0: none */
};

/* What is known of a process, thread, label set and end. */
struct combo_key {
	uint32_t resource;
	uint32_t combo; /* + 1; 0: not made yet */
};

/* Samples that become one: all those with times that are equal in everything else, or one without a time. */
struct group {
	uint32_t stack, combo;
	uint32_t first, last; /* samples */
	uint32_t next;        /* group + 1 of its resource */
};

struct column {
	size_t index;
	uint32_t type, unit; /* string indexes */
};

struct otlp_out {
	const struct window *w;
	const struct model *m;
	struct intern tables[TABLE_COUNT];
	uint32_t *strings, *mappings, *functions, *locations, *stacks; /* row of the model to index + 1; 0: not yet */
	struct intern combo_keys, combo_contents, resource_keys, group_keys;
	struct combo_key *keys; /* by id in combo_keys */
	size_t keys_count, keys_cap;
	struct combo *combos;
	size_t combos_count, combos_cap;
	struct buf combo_bytes;
	struct resource *resources;
	size_t resources_count, resources_cap;
	struct group *groups;
	size_t groups_count, groups_cap;
	uint32_t *group_of_key; /* by id in group_keys */
	size_t group_of_key_cap;
	uint32_t *next_sample;      /* sample + 1 of the same group */
	uint32_t *next_of_resource; /* sample + 1 of the same resource */
	struct column columns[MODEL_VALUE_TYPES_MAX];
	size_t columns_count;
	struct buf any, row, parts, clean; /* scratch of the smallest functions */
	struct buf profile, scope, resource;
	uint64_t cleaned; /* texts that were no UTF-8 */
};

/* otlp_encode_rows.c: every function returns 0, -ENOMEM or -E2BIG. Indexes are those of the file's tables. */

/** otlp_out_clean - text as protobuf's strings must be, valid until the next call; o->clean.error when it failed. */
struct str otlp_out_clean(struct otlp_out *o, struct str text);
int otlp_text_index(struct otlp_out *o, struct str text, uint32_t *out) warn_unused;
int otlp_string_index(struct otlp_out *o, uint32_t id, uint32_t *out) warn_unused; /* of a string of the model */
/** otlp_row_index - the row in o->row, as one of @table. */
int otlp_row_index(struct otlp_out *o, enum otlp_table table, uint32_t *out) warn_unused;

/* The value of an attribute is made in o->any. */
void otlp_any_text(struct otlp_out *o, struct str text);
void otlp_any_number(struct otlp_out *o, uint32_t field, int64_t value);
int otlp_attribute_index(struct otlp_out *o, uint32_t key, uint32_t unit, uint32_t *out) warn_unused;
/** otlp_add_named - append the attribute called @name with the value in o->any to a packed list. */
int otlp_add_named(struct otlp_out *o, struct str name, struct buf *to) warn_unused;
int otlp_add_text(struct otlp_out *o, struct str name, struct str text, struct buf *to) warn_unused;
/** otlp_add_number - @field: ANY_INT or ANY_BOOL */
int otlp_add_number(struct otlp_out *o, struct str name, uint32_t field, int64_t value, struct buf *to) warn_unused;
int otlp_stack_index(struct otlp_out *o, uint32_t stack, uint32_t *out) warn_unused;

/* otlp_encode_samples.c */

/** otlp_group_samples - o->resources, at least one, and for each its groups of samples. Return: as above. */
int otlp_group_samples(struct otlp_out *o) warn_unused;
/** otlp_is_hex - @size bytes as small hexadecimal digits. */
bool otlp_is_hex(struct str text, size_t size);
