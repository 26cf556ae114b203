/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/selection.h"

#include "base/array.h"
#include "query/pick.h"

#define IDS_MAX ((size_t)1 << 24)

static bool fits(void *ctx, const struct store_series *series)
{
	struct selection *s = ctx;

	for (size_t i = 0; i < s->count; i++)
		if (matchers_fit(&s->sets[i], series))
			return true;
	return !s->count;
}

void selection_begin(struct selection *s, struct call *call)
{
	s->sel.stop = call_stop;
	s->sel.stop_ctx = call;
	s->sel.fits = fits;
	s->sel.fits_ctx = s;
	if (s->count == 1 && !s->sel.service.len)
		s->sel.service = matchers_service(&s->sets[0]);
	if (s->count == 1 && !s->sel.type.len)
		s->sel.type = matchers_type(&s->sets[0]);
}

bool selection_failed(struct call *call, const struct selection *s, int r, const char *what)
{
	bool exhausted = false;

	for (size_t i = 0; i < s->count; i++)
		exhausted |= s->sets[i].exhausted;
	if (exhausted)
		answer_costly(call->rs);
	else if (r == -E2BIG)
		answer_too_many(call->rs);
	else if (r < 0)
		answer_store(call, r, what);
	return exhausted || r < 0;
}

bool selection_value(const struct selection *s, const struct store_point *point, int64_t *out)
{
	size_t at = point->default_column;

	if (s->sample.len)
		for (at = 0; at < point->value_count; at++)
			if (str_eq(point->columns[at].key, s->sample) &&
			    (!s->unit.len || str_eq(point->columns[at].value, s->unit)))
				break;
	if (at >= point->value_count)
		return false;
	*out = point->values[at];
	return true;
}

/* Sums */

struct id_list {
	struct store_id *items;
	size_t count, cap;
};

static int note_id(void *ctx, const struct store_profile *profile)
{
	struct id_list *ids = ctx;
	int r = array_grow(&ids->items, &ids->cap, ids->count, IDS_MAX);

	if (r == 0)
		ids->items[ids->count++] = profile->id;
	return r;
}

static int add_window(const struct selection *s, struct window *into, struct window *from, struct store_sum *info)
{
	int column = pick_column_of(from->model, s->sample, s->unit);
	int r;

	if (column < 0)
		return 0;
	r = pick_column(from->model, (size_t)column);
	from->model->period_type = (struct model_value_type){ 0 }; /* what they do not have to share */
	r = r ? r : model_merge(into->model, from->model);
	if (r < 0)
		return r;
	window_add_times(into, from, !info->profiles);
	info->profiles++;
	return 0;
}

static int add_document(struct call *call, const struct selection *s, const struct store_id *id, struct window *out,
			struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct store_document document = { 0 };
	int r = call_stop(call) ? -ECANCELED : config->store->read(config->state, id, &document);

	if (r == 0 && document.is_raw)
		info->skipped++;
	else if (r == 0)
		r = add_window(s, out, &document.window, info);
	store_document_release(&document);
	return r == -ENOENT ? 0 : r; /* it expired meanwhile */
}

own_frame static int sum_column(struct call *call, const struct selection *s, struct window *out,
				struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct id_list ids = { 0 };
	int r = window_init(out, GIB(1));

	*info = (struct store_sum){ 0 };
	r = r ? r : config->store->list(config->state, &s->sel, note_id, &ids);
	for (size_t i = 0; r == 0 && i < ids.count; i++)
		r = add_document(call, s, &ids.items[i], out, info);
	free(ids.items);
	return r;
}

bool selection_sum(struct call *call, struct selection *s, struct window *out, struct store_sum *info, size_t *column)
{
	const struct collector_config *config = &call->collector->config;
	int r = 0, found = -1;

	*info = (struct store_sum){ 0 };
	if (s->is_nothing)
		return true;
	r = config->store->sum(config->state, &s->sel, out, info);
	if (r == -EINVAL && s->sample.len)
		r = sum_column(call, s, out, info);
	if (r == -EINVAL)
		answer_error(call->rs, 409, "can't merge profiles of different sample types");
	if (r == -EINVAL || selection_failed(call, s, r, "failed to add profiles up"))
		return false;
	if (info->profiles && !s->sample.len)
		found = (int)model_default_value(out->model);
	else if (info->profiles)
		found = pick_column_of(out->model, s->sample, s->unit);
	if (found < 0)
		info->profiles = 0;
	*column = (size_t)MAX(found, 0);
	return true;
}
