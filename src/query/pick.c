/* SPDX-License-Identifier: Apache-2.0 */
#include "query/pick.h"

#include <strings.h>

int pick_column_of(const struct model *m, struct str sample, struct str unit)
{
	for (size_t i = 0; i < m->value_type_count; i++)
		if (str_eq(model_string(m, m->value_types[i].type), sample) &&
		    (!unit.len || str_eq(model_string(m, m->value_types[i].unit), unit)))
			return (int)i;
	return -1;
}

int pick_column(struct model *m, size_t column)
{
	int64_t *values = calloc(m->samples_count + 1, sizeof(*values)); /* samples may have theirs in any order */
	size_t kept = 0;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < m->samples_count; i++) {
		struct model_sample sample = m->samples[i];

		values[kept] = model_values(m, &sample)[column];
		if (!values[kept])
			continue;
		sample.first_value = (uint32_t)kept;
		m->samples[kept++] = sample;
	}
	if (kept)
		memcpy(m->values, values, kept * sizeof(*values));
	free(values);
	m->samples_count = m->values_count = kept;
	m->value_types[0] = m->value_types[column];
	m->value_type_count = 1;
	m->default_type = 0;
	return 0;
}

static bool is_one_of(struct str text, const struct str *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text.len == values[i].len && !strncasecmp(text.ptr, values[i].ptr, text.len))
			return true;
	return false;
}

static bool set_fits(const struct model *m, const struct model_label_set *set, struct str key, const struct str *values,
		     size_t count)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct model_label *label = &m->labels[set->first + i];

		if (!label->is_number && str_eq(model_string(m, label->key), key) &&
		    is_one_of(model_string(m, label->text), values, count))
			return true;
	}
	return false;
}

int pick_labelled(struct model *m, struct str key, const struct str *values, size_t count)
{
	bool *fits = calloc(m->label_sets_count + 1, sizeof(*fits));
	size_t kept = 0;

	if (!fits)
		return -ENOMEM;
	for (size_t i = 0; i < m->label_sets_count; i++)
		fits[i] = set_fits(m, &m->label_sets[i], key, values, count);
	for (size_t i = 0; i < m->samples_count; i++)
		if (fits[m->samples[i].label_set])
			m->samples[kept++] = m->samples[i];
	m->samples_count = kept;
	free(fits);
	return 0;
}

/* Call sites */

struct site {
	struct tree *t;
	const struct str *names;
	size_t count;
	uint32_t *path;  /* node of each level above the site, of the branch that is looked at */
	uint64_t *total; /* of the nodes above the site */
	bool *fits;      /* by level: the path to it does */
};

/* Totals of the site's nodes go to those above them. */
static void note_totals(struct site *s)
{
	struct tree *t = s->t;

	for (uint32_t i = 0; i < t->node_count; i++) {
		uint32_t level = t->level[i];

		if (level > s->count)
			continue;
		s->fits[level] =
			!level || (s->fits[level - 1] && str_eq(tree_frame_text(t, t->frame[i]), s->names[level - 1]));
		s->path[level] = i;
		for (size_t above = 0; level == s->count && s->fits[level] && above < s->count; above++)
			s->total[s->path[above]] += t->total[i];
	}
}

static void keep(struct site *s)
{
	struct tree *t = s->t;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->node_count; i++) {
		uint32_t level = t->level[i];
		bool stays;

		if (level <= s->count)
			s->fits[level] = !level || (s->fits[level - 1] &&
						    str_eq(tree_frame_text(t, t->frame[i]), s->names[level - 1]));
		stays = !level || (s->fits[MIN((size_t)level, s->count)] && (level >= s->count || s->total[i]));
		if (!stays)
			continue;
		t->frame[kept] = t->frame[i];
		t->level[kept] = level;
		t->total[kept++] = level < s->count ? s->total[i] : t->total[i];
	}
	t->node_count = kept;
}

int pick_call_site(struct tree *t, const struct str *names, size_t count)
{
	struct site s = { .t = t, .names = names, .count = count };
	int r = -ENOMEM;

	if (!count)
		return 0;
	s.path = calloc(count + 1, sizeof(*s.path));
	s.fits = calloc(count + 1, sizeof(*s.fits));
	s.total = calloc(t->node_count, sizeof(*s.total));
	if (s.path && s.fits && s.total) {
		note_totals(&s);
		keep(&s);
		r = 0;
	}
	free(s.path);
	free(s.fits);
	free(s.total);
	return r;
}
