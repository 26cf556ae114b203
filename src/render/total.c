/* SPDX-License-Identifier: Apache-2.0 */
#include "render/total.h"

static bool is_base(const struct model *m, const struct model_label_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct model_label *label = &m->labels[set->first + i];

		if (!label->is_number && str_eq(model_string(m, label->key), STR(TOTAL_BASE_LABEL)) &&
		    str_eq(model_string(m, label->text), STR("true")))
			return true;
	}
	return false;
}

int64_t render_total(const struct model *m, size_t value)
{
	int64_t all = 0, base = 0;
	uint32_t known = 0; /* the label set looked at last */
	bool known_is_base = false;

	for (size_t i = 0; i < m->samples_count; i++) {
		const struct model_sample *s = &m->samples[i];
		int64_t amount = saturating_abs(model_values(m, s)[value]);

		if (s->label_set != known) {
			known = s->label_set;
			known_is_base = is_base(m, &m->label_sets[known]);
		}
		all = saturating_add(all, amount);
		if (known_is_base)
			base = saturating_add(base, amount);
	}
	return base > 0 ? base : all;
}
