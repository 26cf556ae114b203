/* SPDX-License-Identifier: Apache-2.0 */
#include "render/profile_sum.h"

#include <inttypes.h>

#include "base/array.h"

#define ROWS_BYTES GIB(2)

void profile_sum_init(struct profile_sum *s, bool folded)
{
	*s = (struct profile_sum){ .folded = folded };
	intern_init(&s->rows, ROWS_BYTES);
}

void profile_sum_release(struct profile_sum *s)
{
	intern_release(&s->rows);
	free(s->counts);
	s->counts = NULL;
	s->cap = 0;
}

/* The next row: its text, and the digits of its count behind the last blank. */
static bool next_row(bool folded, struct str *rest, struct str *row, struct str *digits)
{
	const struct str end = folded ? STR("\n") : STR("\n\n");
	ptrdiff_t at = str_search(*rest, end);
	struct str whole = at < 0 ? str_trim(*rest) : str_first(*rest, (size_t)at);

	*rest = at < 0 ? STR("") : str_skip(*rest, (size_t)at + end.len);
	at = str_rfind(whole, ' ');
	if (at < 0)
		return false;
	*row = str_first(whole, (size_t)at + 1);
	*digits = str_skip(whole, (size_t)at + 1);
	return true;
}

int profile_sum_add(struct profile_sum *s, struct str text)
{
	struct str row, digits;

	while (next_row(s->folded, &text, &row, &digits)) {
		const size_t before = s->cap;
		uint64_t count;
		uint32_t id;
		int r = str_to_u64(digits, 0, UINT64_MAX, &count);

		r = r ? r : intern_add(&s->rows, row, &id);
		r = r ? r : array_reserve(&s->counts, &s->cap, (size_t)id + 1);
		if (r < 0)
			return r;
		if (s->cap > before)
			memset(s->counts + before, 0, (s->cap - before) * sizeof(*s->counts));
		s->counts[id] += count;
	}
	return 0;
}

static int by_count(const void *a, const void *b, void *ctx)
{
	const struct profile_sum *s = ctx;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (s->counts[x] != s->counts[y])
		return s->counts[x] < s->counts[y] ? -1 : 1;
	return str_cmp(intern_get(&s->rows, x), intern_get(&s->rows, y));
}

int profile_sum_write(struct profile_sum *s, struct buf *out)
{
	const size_t count = intern_count(&s->rows);
	uint32_t *order = calloc(count, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 1; i < count; i++)
		order[i - 1] = i;
	qsort_r(order, count - 1, sizeof(*order), by_count, s);
	for (size_t i = 0; i + 1 < count; i++) {
		buf_adds(out, intern_get(&s->rows, order[i]));
		buf_addf(out, "%" PRIu64 "%s", s->counts[order[i]], s->folded ? "\n" : "\n\n");
	}
	free(order);
	profile_sum_release(s);
	profile_sum_init(s, s->folded);
	return out->error;
}
