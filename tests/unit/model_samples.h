/* SPDX-License-Identifier: Apache-2.0 */
/* Random small models, and a model's content as sorted lines that do not depend on how its tables are numbered. */
#pragma once

#include "base/buf.h"
#include "model/model.h"

/** random_model - the same for the same @seed. Many samples are equal; mappings lie elsewhere with another @seed. */
int random_model(uint64_t seed, struct model *out) warn_unused;

/**
 * repeated_model - 100 stacks whose functions and locations come twice and more, as a file may have them
 * @mappings: how many it has besides, of no use
 * @may_repeat: equal rows are there several times; otherwise once
 */
int repeated_model(bool may_repeat, size_t mappings, struct model *out) warn_unused;

struct content_row {
	char *key; /* everything a merged sample is told apart by */
	int64_t values[MODEL_VALUE_TYPES_MAX];
};

struct content {
	struct content_row *rows;
	size_t count, cap;
};

void content_release(struct content *c);
/** content_add - append every sample of @m that is not all zero. Aborts when out of memory. */
void content_add(struct content *c, const struct model *m);
/** content_sum - the slow, obvious merge: sort, then add up equal keys. */
void content_sum(struct content *c);
/** content_assert_same - both sorted here. */
void content_assert_same(struct content *a, struct content *b);
