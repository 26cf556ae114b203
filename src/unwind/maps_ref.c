/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/maps_ref.h"

struct maps_ref *maps_ref_new(const struct mappings *maps)
{
	struct maps_ref *m = calloc(1, sizeof(*m));

	if (m && mappings_copy(&m->maps, maps) < 0) {
		free(m);
		return NULL;
	}
	if (m)
		atomic_init(&m->refs, 1);
	return m;
}

struct maps_ref *maps_ref_get(struct maps_ref *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void maps_ref_put(struct maps_ref *m)
{
	if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	mappings_release(&m->maps);
	free(m);
}

bool maps_equal(const struct mappings *a, const struct mappings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct mapping *x = &a->items[i], *y = &b->items[i];

		if (x->start != y->start || x->end != y->end || x->offset != y->offset || x->file_id != y->file_id ||
		    x->kind != y->kind)
			return false;
	}
	return true;
}
