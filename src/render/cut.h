/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a tree that a server sends: the largest nodes below one call path, each with what its missing children
 * have, so that every node can be opened; and two trees as one, for comparing. */
#pragma once

#include "render/tree.h"

struct tree_cut {
	struct tree tree;                               /* node 0 is the one that was asked for */
	uint64_t *self, *hidden;                        /* by node; hidden: totals of its children that are not here */
	uint64_t *base_self, *base_hidden, *base_total; /* the base's part of each; NULL: nothing is compared */
};

void tree_cut_release(struct tree_cut *c); /* a zeroed one is fine */

/**
 * tree_cut_make - the @max largest nodes of the subtree of @root
 * @base_total: of every node of @whole the part of its total that is the base's, or NULL
 *
 * Return: 0, -EINVAL (no such node, max 0), -ENOMEM.
 */
int tree_cut_make(const struct tree *whole, const uint64_t *base_total, uint32_t root, uint32_t max,
		  struct tree_cut *out) warn_unused;

/** tree_cut_encode - the columns of tree_encode(), and those of what is hidden and of the base (columns.c). */
int tree_cut_encode(const struct tree_cut *c, struct buf *out) warn_unused;

/**
 * tree_pair - a tree of the paths of both, whose totals are the sums
 * @base_total: of every node of @out the part that @base has; the caller's to free
 *
 * Return: 0, -ENOMEM, -E2BIG.
 */
int tree_pair(const struct tree *base, const struct tree *other, struct tree *out, uint64_t **base_total) warn_unused;

struct tree_step {
	struct str name, kind, module; /* as JSON has them: malformed bytes are U+FFFD */
};

/** tree_step_fits - whether a frame of that name, kind and module is @step's. @scratch: its error says what failed. */
bool tree_step_fits(const struct tree_step *step, struct str name, unsigned int kind, struct str module,
		    struct buf *scratch);

/** tree_find - the node that @steps lead to from the root. Return: 0 and *out, or -ENOENT; -ENOMEM. */
int tree_find(const struct tree *t, const struct tree_step *steps, size_t count, uint32_t *out) warn_unused;
