/* SPDX-License-Identifier: Apache-2.0 */
#include "base/similar.h"

/* The restricted Damerau-Levenshtein distance by its recurrence, with three rows of the table. */
static size_t distance(struct str a, struct str b)
{
	size_t rows[3][SIMILAR_LENGTH_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b.len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t *oldest = before;

		now[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			bool same = a.ptr[i - 1] == b.ptr[j - 1];

			now[j] = MIN(last[j - 1] + !same, MIN(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
				now[j] = MIN(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = oldest;
	}
	return last[b.len];
}

void similar_offer(struct similar *s, const char *candidate)
{
	struct str other = str_of(candidate);
	size_t most = MAX(s->word.len / 3, (size_t)1), found;

	if (s->word.len < 2 || s->word.len > SIMILAR_LENGTH_MAX || other.len > SIMILAR_LENGTH_MAX)
		return;
	found = distance(s->word, other);
	if (found > most && s->word.len >= 3 && str_starts(other, s->word))
		found = most;
	if (found > most || (s->best && found >= s->distance))
		return;
	s->best = candidate;
	s->distance = found;
}
