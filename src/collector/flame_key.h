/* SPDX-License-Identifier: Apache-2.0 */
/* What a flame graph was made of, as a key of struct recall. */
#pragma once

#include "collector/collector_int.h"

#define FLAME_KEY_PROFILES_MAX 20000

/**
 * flame_key - the profiles of @range, one by one, and what chooses among and stands above their samples, times too
 * @sample: the column, empty: the default one
 * @profiles: how many there are
 *
 * Return: whether there is one: not of more than FLAME_KEY_PROFILES_MAX profiles, nor of ranges so long that the store
 * has sums whose profiles are gone.
 */
bool flame_key(struct call *call, const struct query_range *range, struct str sample, struct recall_key *out,
	       uint64_t *profiles) warn_unused;

/** flame_answer_key - of the columns of one answer to it. @base: of what it is compared with, or NULL. Return: whether
 * there is one. */
bool flame_answer_key(const struct call *call, const struct recall_key *key, const struct recall_key *base,
		      uint64_t nodes, struct recall_key *out) warn_unused;
