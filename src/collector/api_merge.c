/* SPDX-License-Identifier: Apache-2.0 */
/* Merges and downloads: stored profiles as one pprof file (docs/collector.md). */
#include "base/array.h"
#include "codec/pprof.h"
#include "collector/collector_int.h"

#define IDS_MAX 10000

/* Types of different profiles, for people */

struct type_names {
	struct buf text;
	size_t sets;
};

static int add_types(void *ctx, const struct store_point *point)
{
	struct type_names *t = ctx;
	scoped(buf_release) struct buf one = BUF_INIT(KIB(8));

	for (size_t i = 0; i < point->value_count; i++)
		buf_addf(&one, "%s" STR_FMT "/" STR_FMT, i ? "," : "", STR_ARG(point->columns[i].key),
			 STR_ARG(point->columns[i].value));
	if (t->sets >= 8 || str_search(buf_str(&t->text), buf_str(&one)) >= 0)
		return 0;
	buf_addf(&t->text, "%s[" STR_FMT "]", t->sets++ ? " and " : "", STR_ARG(buf_str(&one)));
	return 0;
}

static own_frame void refuse_types(struct call *call, const struct store_selector *sel)
{
	const struct collector_config *config = &call->collector->config;
	struct type_names t = { .text = BUF_INIT(KIB(4)) };

	ignore(config->store->totals(config->state, sel, add_types, &t)); /* for the text only */
	answer_error(call->rs, 409,
		     "can't merge profiles of different sample types%s%s; compat=1 merges what they share",
		     t.sets ? ": " : "", t.sets ? buf_cstr(&t.text) : "");
	buf_release(&t.text);
}

/* compat=1: only what all have in common */

struct id_list {
	struct store_id *items;
	size_t count, cap;
};

static int note_id(void *ctx, const struct store_profile *profile)
{
	struct id_list *ids = ctx;
	int r = array_grow(&ids->items, &ids->cap, ids->count, (size_t)1 << 24);

	if (r == 0)
		ids->items[ids->count++] = profile->id;
	return r;
}

static int take_in(struct window *into, struct window *from, bool common, struct store_sum *info)
{
	bool is_first = !into->model;
	int r = is_first ? window_init(into, GIB(1)) : 0;

	r = r ? r : model_merge(into->model, from->model);
	if (r == -EINVAL && common) {
		r = model_keep_common(into->model, from->model);
		r = r ? r : model_merge(into->model, from->model);
	}
	if (r < 0)
		return r;
	window_add_times(into, from, is_first);
	info->profiles++;
	return 0;
}

/* @sample: profiles without it are left out; empty: none is. */
static int add_common(struct call *call, const struct store_id *id, struct str sample, struct window *out,
		      struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct store_document document = { 0 };
	int r = config->store->read(config->state, id, &document);

	if (r == 0 && document.is_raw)
		info->skipped++;
	else if (r == 0 && (!sample.len || model_value_index(document.window.model, sample) >= 0))
		r = take_in(out, &document.window, true, info);
	store_document_release(&document);
	return r == -ENOENT ? 0 : r; /* it expired meanwhile */
}

own_frame int merge_common(struct call *call, const struct store_selector *sel, struct str sample, struct window *out,
			   struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct id_list ids = { 0 };
	int r;

	*info = (struct store_sum){ 0 };
	r = config->store->list(config->state, sel, note_id, &ids);
	for (size_t i = 0; r == 0 && i < ids.count; i++)
		r = call_stop(call) ? -ECANCELED : add_common(call, &ids.items[i], sample, out, info);
	free(ids.items);
	return r;
}

/* within=FROM-TO */

struct within {
	struct call *call;
	const struct query_within *range;
	struct str sample;
	uint64_t first_ns; /* of the profiles that may have samples in the range: the first one's created_ns */
	struct store_profile *items; /* their ids and moments alone */
	size_t count, cap;
};

static int note_first(void *ctx, const struct store_point *p)
{
	struct within *w = ctx;
	uint64_t since = query_within_since(w->range);

	if (!p->duration_ns || p->created_ns >= since || p->duration_ns >= since - p->created_ns)
		w->first_ns = MIN(w->first_ns, p->created_ns);
	return 0;
}

static int note_profile(void *ctx, const struct store_profile *profile)
{
	struct within *w = ctx;
	int r = array_grow(&w->items, &w->cap, w->count, (size_t)1 << 24);

	if (r == 0)
		w->items[w->count++] = (struct store_profile){ .id = profile->id, .created_ns = profile->created_ns };
	return r;
}

/* @profile: of the store, whole. Return: 0 or -errno; those of nobody who is meant are left out. */
static int pick_within(struct within *w, const struct store_profile *profile, struct window *of)
{
	const struct query_moment moment = { profile->created_ns, of->start_ns, window_duration_ns(of) };
	struct query_whose whose;
	uint64_t untimed = 0;
	int column = w->sample.len ? model_value_index(of->model, w->sample) : (int)model_default_value(of->model);
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = query_whose_read(&w->call->query, &whose, &why);

	r = r ? r : query_whose_pick(&whose, of->model);
	if (r == 0)
		query_within_pick(w->range, &moment, (size_t)MAX(column, 0), of->model, &untimed);
	if (column >= 0)
		w->call->untimed = w->call->untimed + untimed < untimed ? UINT64_MAX : w->call->untimed + untimed;
	return r;
}

static int add_within(struct within *w, const struct store_profile *profile, struct window *out, struct store_sum *info)
{
	const struct collector_config *config = &w->call->collector->config;
	struct store_document document = { 0 };
	int r = config->store->read(config->state, &profile->id, &document);

	if (r == 0 && document.is_raw)
		info->skipped++;
	else if (r == 0)
		r = pick_within(w, profile, &document.window);
	if (r == 0 && !document.is_raw && document.window.model->samples_count)
		r = take_in(out, &document.window, true, info);
	store_document_release(&document);
	return r == -ENOENT ? 0 : r; /* it expired meanwhile */
}

own_frame int merge_within(struct call *call, const struct store_selector *sel, const struct query_within *within,
			   struct window *out, struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector near = query_within_select(within, *sel);
	struct within w = { .call = call,
			    .range = within,
			    .sample = http_query_get(&call->query, STR("sample")),
			    .first_ns = UINT64_MAX };
	int r;

	*info = (struct store_sum){ 0 };
	r = config->store->totals(config->state, &near, note_first, &w);
	near.from_ns = MAX(near.from_ns, MIN(w.first_ns, near.to_ns));
	r = r ? r : config->store->list(config->state, &near, note_profile, &w);
	for (size_t i = 0; r == 0 && i < w.count; i++)
		r = call_stop(call) ? -ECANCELED : add_within(&w, &w.items[i], out, info);
	free(w.items);
	return r;
}

/* Merge by query */

static bool mergeable(struct call *call, struct str type)
{
	if (!query_type_known(type)) {
		answer_error(call->rs, 405, "can't merge profiles of unknown type");
		return false;
	}
	if (str_eq(type, STR("trace"))) {
		answer_error(call->rs, 405, "can't merge profiles of trace type");
		return false;
	}
	return true;
}

static bool wants_common(const struct call *call)
{
	struct str value = http_query_get(&call->query, STR("compat"));

	return value.len && !str_eq(value, STR("0")) && !str_eq(value, STR("false"));
}

static void merge(struct call *call, const struct query_range *p)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = call_select(call, p);
	struct window w = { 0 };
	struct store_sum info;
	scoped(buf_release) struct buf name = BUF_INIT(KIB(8));
	int r;

	if (config->merge_max && (!sel.limit || sel.limit > config->merge_max))
		sel.limit = config->merge_max;
	r = config->store->sum(config->state, &sel, &w, &info);
	if (r == -EINVAL && wants_common(call))
		r = merge_common(call, &sel, STR(""), &w, &info);
	if (r == -EINVAL) {
		refuse_types(call, &sel);
	} else if (r < 0) {
		answer_store(call, r, "failed to merge profiles");
	} else if (!info.profiles) {
		answer_error(call->rs, 404, "nothing found");
	} else {
		buf_addf(&name, STR_FMT "-" STR_FMT ".pb.gz", STR_ARG(sel.service), STR_ARG(sel.type));
		answer_window(call, &w, &codec_pprof, NULL, buf_str(&name));
		answer_merged(call, &info);
	}
	window_release(&w);
}

void profefe_merge(struct call *call)
{
	struct query_range p;

	if (!call_range(call, &query_range_profefe, &p))
		return;
	if (mergeable(call, p.type))
		merge(call, &p);
	query_range_release(&p);
}

/* Download by ids */

struct download {
	struct call *call;
	struct store_id ids[2]; /* of a single one */
	size_t wanted;
	struct window sum;
	struct store_sum info;
	struct buf skipped; /* ids nobody knows */
	size_t found;
	bool has_trace;
};

static void download_release(struct download *d)
{
	window_release(&d->sum);
	buf_release(&d->skipped);
}

static void skip_id(struct download *d, struct str text)
{
	if (d->skipped.len < KIB(4))
		buf_addf(&d->skipped, "%s" STR_FMT, d->skipped.len ? "+" : "", STR_ARG(str_first(text, 64)));
}

static int add_id(struct download *d, struct str text)
{
	const struct collector_config *config = &d->call->collector->config;
	struct store_document document = { 0 };
	struct store_id id;
	int r = store_id_parse(text, &id) < 0 ? -ENOENT : config->store->read(config->state, &id, &document);

	if (r == -ENOENT) {
		skip_id(d, text);
		return 0;
	}
	if (r == 0 && document.is_raw)
		d->has_trace = true;
	else if (r == 0)
		r = take_in(&d->sum, &document.window, false, &d->info);
	d->found += r == 0;
	store_document_release(&document);
	return r;
}

static void finish_download(struct download *d, int r, struct str filename)
{
	struct http_response *rs = d->call->rs;

	if (r == -EINVAL)
		answer_error(rs, 409, "can't merge profiles of different sample types");
	else if (r < 0)
		answer_store(d->call, r, "failed to get profiles by id");
	else if (d->has_trace)
		answer_error(rs, 405, "can't merge profiles of trace type");
	else if (!d->found)
		answer_error(rs, 404, "nothing found");
	else {
		answer_window(d->call, &d->sum, &codec_pprof, NULL, filename);
		answer_merged(d->call, &d->info);
		if (d->skipped.len)
			http_header_set(rs, "X-Profiles-Skipped", buf_str(&d->skipped));
	}
}

static void download_many(struct call *call, struct str ids)
{
	scoped(download_release) struct download d = { .call = call, .skipped = BUF_INIT(KIB(16)) };
	struct str rest = ids, id;
	int r = 0;

	for (size_t i = 0; r == 0 && str_next(&rest, '+', &id); i++) {
		if (!id.len || i == IDS_MAX) {
			answer_error(call->rs, 400, id.len ? "bad request: more than %d ids" : "bad request: empty id",
				     IDS_MAX);
			return;
		}
		r = call_stop(call) ? -ECANCELED : add_id(&d, id);
	}
	finish_download(&d, r, ids);
}

static void download_one(struct call *call, struct str text)
{
	const struct collector_config *config = &call->collector->config;
	struct store_document document = { 0 };
	struct store_id id;
	int r = store_id_parse(text, &id) < 0 ? -ENOENT : config->store->read(config->state, &id, &document);

	if (r == -ENOENT)
		answer_error(call->rs, 404, "nothing found");
	else if (r < 0)
		answer_store(call, r, "failed to get profile by id");
	else if (document.is_raw)
		answer_file(call->rs, &document.raw, text);
	else
		answer_window(call, &document.window, &codec_pprof, NULL, text);
	store_document_release(&document);
}

/* Clients escape ids once or twice, so "%2B" separates as '+' does. */
void profefe_download(struct call *call)
{
	scoped(buf_release) struct buf once = BUF_INIT(KIB(512)), ids = BUF_INIT(KIB(512));

	if (http_decode(call->rest, false, &once) < 0 || http_decode(buf_str(&once), false, &ids) < 0)
		answer_error(call->rs, 404, "nothing found");
	else if (str_find(buf_str(&ids), '+') < 0)
		download_one(call, buf_str(&ids));
	else
		download_many(call, buf_str(&ids));
}
