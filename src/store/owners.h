/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of one profile cost by process and thread, without a look at their stacks: for store.owners(). */
#pragma once

#include "base/u64map.h"
#include "model/model.h"
#include "store/store.h"

#define OWNERS_MAX ((size_t)1 << 20) /* of one table; further ones count as not said */

/* The processes and threads of one model or dictionary, and of these the ones of one point. Number 0: not said. */
struct owner_table {
	struct store_owner *items;
	uint32_t (*texts)[4]; /* by owner: comm, container, app_id, thread in @names */
	size_t count, cap, texts_cap;
	struct intern names;
	struct u64map pairs; /* process and thread -> number */
	/* The point */
	struct store_owner *shown;
	size_t shown_count, shown_cap;
	uint32_t *place; /* by owner: in @shown, + 1; 0: not there */
	size_t place_cap;
	int64_t *values;
	size_t values_cap;
};

/** owner_table_init - an empty one; also makes a used one empty again after owner_table_release(). Return: 0, -ENOMEM.
 */
int owner_table_init(struct owner_table *t) warn_unused;
void owner_table_release(struct owner_table *t); /* a zeroed one is fine */

/** owner_table_add - the number of a process and thread of @m, which may be new. Return: 0 or -ENOMEM. */
int owner_table_add(struct owner_table *t, const struct model *m, uint32_t process, uint32_t thread,
		    uint32_t *out) warn_unused;
/** owner_table_settle - when all are there: their texts, and room for points. Return: 0 or -ENOMEM. */
int owner_table_settle(struct owner_table *t) warn_unused;

/**
 * owner_table_point - add up the rows of one profile
 * @owners: by row, below t->count
 * @values: column after column, values[column * rows + row]; sums saturate
 *
 * Return: 0 or -ENOMEM. t->shown has the owners in order of first appearance, until the next call.
 */
int owner_table_point(struct owner_table *t, const uint32_t *owners, size_t rows, size_t width,
		      const int64_t *values) warn_unused;
