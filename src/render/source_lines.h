/* SPDX-License-Identifier: Apache-2.0 */
/* The source lines of one function of a tree: which of them cost what. */
#pragma once

#include "render/cut.h"

struct source_line {
	uint32_t file;        /* string of the model; 0: not known */
	int64_t line;         /* below 1: not known */
	uint64_t self, total; /* total: samples with the line anywhere in their stack, recursion counts once */
};

struct source_lines {
	struct source_line *items; /* largest total first */
	size_t count;
	uint64_t self, total; /* of the function */
};

void source_lines_release(struct source_lines *s); /* a zeroed one is fine */

/**
 * source_lines_find - the lines of the function that @frame names, as the frames of tree_from_model() are called
 * @value: column of the model; values below 1 are left out
 *
 * Return: 0, -ENOENT when no sample has the function, -ENOMEM.
 */
int source_lines_find(const struct model *m, size_t value, const struct tree_step *frame,
		      struct source_lines *out) warn_unused;
