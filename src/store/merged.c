/* SPDX-License-Identifier: Apache-2.0 */
#include "store/merged.h"

#define PAIRS_MAX 512 /* rows that are compared with each other; a program has some hundred mappings */

static bool mappings_differ(const struct model *m)
{
	if (m->mappings_count > PAIRS_MAX)
		return false;
	for (size_t i = 1; i < m->mappings_count; i++) {
		for (size_t k = 1; k < i; k++) {
			const struct model_mapping *a = &m->mappings[i], *b = &m->mappings[k];

			if (a->file_offset == b->file_offset &&
			    (a->filename == b->filename || (a->build_id && a->build_id == b->build_id)))
				return false;
		}
	}
	return true;
}

/* The first one stays without use, too. */
static bool mappings_used(const struct model *m)
{
	bool used[PAIRS_MAX + 1] = { true, true };

	for (size_t i = 1; i < m->locations_count; i++)
		used[m->locations[i].mapping] = true;
	for (size_t i = 0; i < m->mappings_count; i++)
		if (!used[i])
			return false;
	return true;
}

static bool comments_differ(const struct model *m)
{
	if (m->comments_count > PAIRS_MAX)
		return false;
	for (size_t i = 0; i < m->comments_count; i++)
		for (size_t k = 0; k < i; k++)
			if (m->comments[i] == m->comments[k])
				return false;
	return true;
}

static bool same_label(const struct model_label *a, const struct model_label *b)
{
	return a->key == b->key && a->is_number == b->is_number && a->number == b->number && a->text == b->text &&
	       a->unit == b->unit;
}

static bool labels_sorted(const struct model *m)
{
	for (size_t i = 0; i < m->label_sets_count; i++) {
		const struct model_label *labels = m->labels + m->label_sets[i].first;

		for (uint32_t k = 1; k < m->label_sets[i].count; k++) {
			struct model_label pair[] = { labels[k - 1], labels[k] };

			model_sort_labels(m, pair, 2);
			if (!same_label(&pair[0], &labels[k - 1]))
				return false;
		}
	}
	return true;
}

bool is_merged_to_read(const struct model *m)
{
	return mappings_differ(m);
}

bool is_merged(const struct model *m)
{
	return mappings_differ(m) && mappings_used(m) && comments_differ(m) && labels_sorted(m);
}
