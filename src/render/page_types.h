/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a profile that a page can show, each with a tree of its own. */
#pragma once

#include "render/tree.h"

#define PAGE_TYPES_MAX ((size_t)8)

struct page_type {
	struct str name; /* of the sample type, such as "cpu"; borrowed, as the unit is */
	struct str unit;
	double scale;       /* unit per stored value */
	double nanoseconds; /* per stored value, 0: unknown */
	uint32_t nodes;
	uint64_t total;
	struct tree_negative negative; /* what its tree leaves out */
};

/** Takes one of the values. The tree may be moved out; then *t is to be zeroed. Return: 0 or -errno, which ends all. */
typedef int page_type_fn(void *ctx, const struct page_type *type, struct tree *t);

/**
 * page_types_each - the column @value first, then from the last to the first those that have anything and are no
 * multiple of one that was told; at most PAGE_TYPES_MAX
 * @value: a column of @m
 * @style: what frames are called
 *
 * Return: 0, -ENOMEM, -E2BIG, what @take returned.
 */
int page_types_each(const struct model *m, size_t value, const struct frame_style *style, page_type_fn *take,
		    void *ctx) warn_unused;

/** page_types_json - append what a page is told of its values: {"title":..., "types":[...], "kinds":[...]}. It may
 * stand inside a script element. */
void page_types_json(struct str title, const struct page_type *types, size_t count, struct buf *out);

/** page_type_count - what of @type a tree knows. */
void page_type_count(struct page_type *type, const struct tree *t);
/** page_type_divisor - what every value of a column can be divided by; 0 when there is nothing above zero. */
uint64_t page_type_divisor(const struct model *m, size_t value);
bool page_type_has_unit(const struct model *m, size_t value, struct str unit);
