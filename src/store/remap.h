/* SPDX-License-Identifier: Apache-2.0 */
/* Carries rows of one model into another, each once and only those that are asked for. The caller places the mappings
 * first, since that is where dictionaries differ from profiles: they know no addresses. */
#pragma once

#include "model/model.h"

struct remap {
	struct model *into;
	const struct model *from;
	/* Rows of @from to rows of @into; 0: not yet */
	uint32_t *strings, *mappings, *functions, *locations, *stacks, *processes, *threads, *label_sets;
	uint64_t *shifts; /* per mapping: what its addresses grow by */
	struct model_line *lines;
	size_t lines_cap;
	uint32_t *path;
	size_t path_cap;
	struct model_label *labels; /* MODEL_LABELS_MAX */
};

int remap_init(struct remap *rm, struct model *into, const struct model *from) warn_unused;
void remap_release(struct remap *rm); /* a zeroed one is fine */

/** remap_find_strings - look up all strings that the target has already, side by side. Adds none: those that are new
 * are added when they are asked for. Right after remap_init(). */
void remap_find_strings(struct remap *rm);
/** remap_find - the same of functions and locations; after the strings, and after the mappings are placed. */
void remap_find(struct remap *rm);

/**
 * remap_all - all functions, locations and stacks, whoever asks for them: each gets the number it has in the source
 * After the mappings are placed. The target has none of its own and may_repeat. Return: 0, -ENOMEM or -E2BIG.
 */
int remap_all(struct remap *rm) warn_unused;

/** remap_place - mapping @row of the source becomes @as (strings of the source). Return: 0, -ENOMEM, -E2BIG. */
int remap_place(struct remap *rm, uint32_t row, const struct model_mapping *as) warn_unused;

/* Each: 0 and *out, -ENOMEM or -E2BIG. A mapping that was not placed counts as none. */
int remap_string(struct remap *rm, uint32_t row, uint32_t *out) warn_unused;
int remap_type(struct remap *rm, struct model_value_type row, struct model_value_type *out) warn_unused;
int remap_stack(struct remap *rm, uint32_t row, uint32_t *out) warn_unused;
int remap_process(struct remap *rm, uint32_t row, uint32_t *out) warn_unused;
int remap_thread(struct remap *rm, uint32_t row, uint32_t *out) warn_unused;
int remap_label_set(struct remap *rm, uint32_t row, uint32_t *out) warn_unused;
