/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pull_delta.h"

#include <xxhash.h>

#define COLUMNS_MAX 4 /* of Go's profiles */

/* Stack and labels as one number: 128 bits of what has no order and no row ids (model_stack_hashes()). */
struct pull_baseline_row {
	uint64_t high, low;
	int64_t values[COLUMNS_MAX];
};

void pull_baseline_release(struct pull_baseline *b)
{
	free(b->rows);
	*b = (struct pull_baseline){ 0 };
}

static void rows_free(struct pull_baseline_row **rows)
{
	free(*rows);
}

static void hash_text(XXH3_state_t *state, struct str text)
{
	XXH3_128bits_update(state, &text.len, sizeof(text.len));
	if (text.len)
		XXH3_128bits_update(state, text.ptr, text.len);
}

static void hash_labels(XXH3_state_t *state, const struct model *m, uint32_t set)
{
	const struct model_label_set *labels = &m->label_sets[set];

	for (uint32_t i = 0; i < labels->count; i++) {
		const struct model_label *label = &m->labels[labels->first + i];

		hash_text(state, model_string(m, label->key));
		if (label->is_number)
			XXH3_128bits_update(state, &label->number, sizeof(label->number));
		hash_text(state, model_string(m, label->is_number ? label->unit : label->text));
	}
}

static int by_key(const void *a, const void *b)
{
	const struct pull_baseline_row *x = a, *y = b;

	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	return (x->low > y->low) - (x->low < y->low);
}

static int make_keys(const struct model *m, struct pull_baseline_row *rows)
{
	scoped(freep) struct model_hash *hashes = calloc(m->stacks_count, sizeof(*hashes));
	int r = hashes ? model_stack_hashes(m, hashes) : -ENOMEM;
	XXH3_state_t *state = r == 0 ? XXH3_createState() : NULL;

	if (!state)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		XXH128_hash_t hash;

		XXH3_128bits_reset(state);
		XXH3_128bits_update(state, &hashes[s->stack], sizeof(hashes[s->stack]));
		hash_labels(state, m, s->label_set);
		hash = XXH3_128bits_digest(state);
		rows[i] = (struct pull_baseline_row){ .high = hash.high64, .low = hash.low64 };
		memcpy(rows[i].values, model_values(m, s), m->value_type_count * sizeof(int64_t));
	}
	XXH3_freeState(state);
	return 0;
}

static bool is_cumulative(const struct model *m, size_t column)
{
	static const char *const names[] = { "alloc_objects", "alloc_space", "contentions", "delay" };
	struct str name = model_string(m, m->value_types[column].type);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

static bool all_zero(const int64_t *values, size_t width)
{
	for (size_t i = 0; i < width; i++)
		if (values[i])
			return false;
	return true;
}

/* Two rows of one key: the stacks differ in something that the hash leaves out. Added up like one. A row of zeros is
 * left out: Go gives it the label "bytes" once it counts something, and it is another row then. */
static size_t add_twins(struct pull_baseline_row *rows, size_t count, size_t width)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (all_zero(rows[i].values, width))
			continue;
		if (!kept || by_key(&rows[kept - 1], &rows[i])) {
			rows[kept++] = rows[i];
			continue;
		}
		for (size_t c = 0; c < width; c++)
			rows[kept - 1].values[c] = saturating_add(rows[kept - 1].values[c], rows[i].values[c]);
	}
	return kept;
}

static const struct pull_baseline_row *find(const struct pull_baseline_row *rows, size_t count,
					    const struct pull_baseline_row *key)
{
	return count ? bsearch(key, rows, count, sizeof(*rows), by_key) : NULL;
}

/* A process only ever adds: what is missing or smaller is another one's. */
static bool has_restarted(const struct model *m, const struct pull_baseline *b, const struct pull_baseline_row *now,
			  size_t count)
{
	if (b->width != m->value_type_count)
		return true;
	for (size_t i = 0; i < b->count; i++) {
		const struct pull_baseline_row *row = find(now, count, &b->rows[i]);

		if (!row)
			return true;
		for (size_t c = 0; c < b->width; c++)
			if (is_cumulative(m, c) && row->values[c] < b->rows[i].values[c])
				return true;
	}
	return false;
}

/* The first sample of a key is paid the whole of what was there before; keys are hardly ever shared. */
static void subtract(struct model *m, const struct pull_baseline *b, enum pull_change how,
		     const struct pull_baseline_row *keys)
{
	for (size_t i = 0; i < m->samples_count; i++) {
		int64_t *values = m->values + m->samples[i].first_value;
		const struct pull_baseline_row *old = how == PULL_DELTA ? find(b->rows, b->count, &keys[i]) : NULL;

		for (size_t c = 0; c < m->value_type_count; c++) {
			if (!is_cumulative(m, c))
				continue;
			if (how == PULL_FIRST)
				values[c] = 0;
			else if (old)
				values[c] = MAX(values[c] - old->values[c], INT64_C(0));
		}
	}
}

static void drop_zeros(struct model *m)
{
	size_t kept = 0, width = m->value_type_count;

	for (size_t i = 0; i < m->samples_count; i++) {
		const int64_t *values = model_values(m, &m->samples[i]);

		if (all_zero(values, width))
			continue;
		memmove(m->values + kept * width, values, width * sizeof(*values));
		m->samples[kept] = m->samples[i];
		m->samples[kept].first_value = (uint32_t)(kept * width);
		kept++;
	}
	m->samples_count = kept;
	m->values_count = kept * width;
}

int pull_delta(struct model *m, struct pull_baseline *b, enum pull_change *how)
{
	scoped(rows_free) struct pull_baseline_row *rows = NULL, *keys = NULL;
	size_t count;
	int r = model_coalesce(m);

	if (r < 0)
		return r;
	if (m->samples_count > PULL_BASELINE_MAX || m->value_type_count > COLUMNS_MAX)
		return -E2BIG;
	rows = calloc(m->samples_count + 1, sizeof(*rows));
	keys = calloc(m->samples_count + 1, sizeof(*keys));
	r = rows && keys ? make_keys(m, keys) : -ENOMEM;
	if (r < 0)
		return r;
	memcpy(rows, keys, m->samples_count * sizeof(*rows));
	qsort(rows, m->samples_count, sizeof(*rows), by_key);
	count = add_twins(rows, m->samples_count, m->value_type_count);
	*how = !b->is_known ? PULL_FIRST : has_restarted(m, b, rows, count) ? PULL_RESTARTED : PULL_DELTA;
	subtract(m, b, *how, keys);
	drop_zeros(m);
	free(b->rows);
	*b = (struct pull_baseline){ .rows = rows, .count = count, .width = m->value_type_count, .is_known = true };
	rows = NULL;
	return 0;
}
