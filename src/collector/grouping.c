/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/grouping.h"

#include "base/intern.h"
#include "base/wire.h"

#define KEYS_MAX MIB(64)

struct parts {
	const struct flame_groups *groups;
	struct intern keys; /* of a part: its values, one for each group */
	struct buf key;     /* scratch */
	bool has_others;    /* there are more parts than may be */
};

static void parts_release(struct parts *p)
{
	intern_release(&p->keys);
	buf_release(&p->key);
}

static const struct store_label *find_label(const struct store_series *series, struct str name)
{
	for (size_t i = 0; i < series->label_count; i++)
		if (str_eq(series->labels[i].key, name))
			return &series->labels[i];
	return NULL;
}

/* Size + 1 and bytes of each value; 0 where there is none. */
static int make_key(struct parts *p, const struct store_series *series)
{
	buf_clear(&p->key);
	for (size_t i = 0; i < p->groups->count; i++) {
		const struct tree_group *group = &p->groups->items[i];
		const struct store_label *label =
			group->kind == TREE_KIND_THREAD ? NULL : find_label(series, group->label);

		wire_add_varint(&p->key, label ? label->value.len + 1 : 0);
		if (label)
			buf_adds(&p->key, label->value);
	}
	return p->key.error;
}

static void read_key(const struct parts *p, struct str key, struct tree_group *out)
{
	struct cur c = cur_of(key.ptr, key.len);

	for (size_t i = 0; i < p->groups->count; i++) {
		uint64_t size = wire_varint(&c);
		struct cur value = cur_sub(&c, size ? size - 1 : 0);

		out[i] = p->groups->items[i];
		if (size)
			out[i].usual = size > 1 ? cur_rest(&value) : STR("");
	}
}

static int note_series(void *ctx, const struct store_series *series)
{
	struct parts *p = ctx;
	uint32_t id;
	int r = make_key(p, series);

	if (r < 0 || intern_find(&p->keys, buf_str(&p->key), &id) == 0)
		return r;
	if (intern_count(&p->keys) > GROUPING_PARTS_MAX) {
		p->has_others = true;
		return 0;
	}
	return intern_add(&p->keys, buf_str(&p->key), &id);
}

/* Which series are of a part. */
struct wanted {
	struct parts *p;
	uint32_t id;                     /* 0: those that are of none */
	const struct store_selector *of; /* what they are chosen from */
};

static bool fits(void *ctx, const struct store_series *series)
{
	const struct wanted *w = ctx;
	uint32_t id = 0;

	if (w->of->fits && !w->of->fits(w->of->fits_ctx, series))
		return false;
	if (make_key(w->p, series) < 0)
		return false; /* out of memory: the sum will be, too */
	return (intern_find(&w->p->keys, buf_str(&w->p->key), &id) == 0 ? id : 0) == w->id;
}

static bool take_part(struct call *call, const struct query_range *range, const struct store_selector *sel,
		      const struct tree_group *groups, grouping_fn *take, void *ctx)
{
	scoped(window_release) struct window w = { 0 };
	struct store_sum info;

	return call_sum_selected(call, range, sel, &w, &info) && (!info.profiles || take(ctx, &w, &info, groups));
}

static bool take_parts(struct call *call, const struct query_range *range, struct parts *p,
		       const struct store_selector *of, grouping_fn *take, void *ctx)
{
	struct tree_group groups[TREE_GROUPS_MAX];
	struct wanted wanted = { .p = p, .of = of };
	struct store_selector sel = *of;
	bool fine = true;

	sel.fits = fits;
	sel.fits_ctx = &wanted;
	for (uint32_t id = 1; fine && id < intern_count(&p->keys); id++) {
		wanted.id = id;
		read_key(p, intern_get(&p->keys, id), groups);
		fine = take_part(call, range, &sel, groups, take, ctx);
	}
	if (!fine || !p->has_others)
		return fine;
	wanted.id = 0;
	for (size_t i = 0; i < p->groups->count; i++) {
		groups[i] = p->groups->items[i];
		groups[i].usual = STR("(others)");
	}
	return take_part(call, range, &sel, groups, take, ctx);
}

static bool is_by_series(const struct flame_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->items[i].kind != TREE_KIND_THREAD)
			return true;
	return false;
}

bool grouping_sum(struct call *call, const struct query_range *range, const struct flame_groups *groups,
		  grouping_fn *take, void *ctx)
{
	const struct collector_config *config = &call->collector->config;
	scoped(parts_release) struct parts p = { .groups = groups, .key = BUF_INIT(KIB(64)) };
	struct store_selector sel = call_select(call, range);
	int r;

	sel.to_read = true;
	intern_init(&p.keys, KEYS_MAX);
	if (range->within.to_ns)
		sel = query_within_select(&range->within, sel);
	if (!is_by_series(groups))
		return take_part(call, range, &sel, groups->items, take, ctx);
	r = config->store->series(config->state, &sel, note_series, &p);
	if (r < 0)
		answer_store(call, r, "failed to list series");
	return r == 0 && take_parts(call, range, &p, &sel, take, ctx);
}
