/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the word of a list that is most like one that was typed. */
#pragma once

#include "base/str.h"

#define SIMILAR_LENGTH_MAX 64 /* longer words are like nothing */

struct similar {
	struct str word;  /* what was typed; borrowed */
	const char *best; /* the most similar one so far, or NULL when none is similar enough */
	size_t distance;  /* of best */
};

static inline struct similar similar_to(struct str word)
{
	return (struct similar){ .word = word };
}

/**
 * similar_offer - one candidate; the first of equally similar ones stays
 * @candidate: borrowed while best is used
 *
 * Similar are words a third of whose letters at most was typed wrongly (left out, added, changed, or swapped with the
 * next one), and those that begin with the word, when it has three letters or more.
 */
void similar_offer(struct similar *s, const char *candidate);
