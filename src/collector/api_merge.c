/* SPDX-License-Identifier: Apache-2.0 */
/* Merges and downloads: stored profiles as one pprof file (spec/collector.md 2.7, 2.8). */
#include "base/array.h"
#include "codec/pprof.h"
#include "collector/collector_int.h"

#define IDS_MAX 10000
#define GZIP_LEVEL 1 /* the answer's gzip is the dear part of a merge (design/measured-store.md 8) */
#define ANSWER_MAX GIB(1)

static own_frame void send_window(struct call *call, const struct window *w, struct str filename)
{
	struct buf body = BUF_INIT(ANSWER_MAX);
	int r = pprof_encode_level(w, GZIP_LEVEL, &body);

	if (r < 0)
		answer_error(call->rs, 503, "the profile does not fit into memory");
	else
		answer_file(call->rs, &body, filename);
	buf_release(&body);
}

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

struct common {
	struct buf names[MODEL_VALUE_TYPES_MAX]; /* "type/unit" */
	bool gone[MODEL_VALUE_TYPES_MAX];
	size_t count;
	bool any;
};

static void common_release(struct common *c)
{
	for (size_t i = 0; i < c->count; i++)
		buf_release(&c->names[i]);
}

static bool has_column(const struct store_point *point, struct str name)
{
	for (size_t i = 0; i < point->value_count; i++) {
		struct str type = point->columns[i].key, unit = point->columns[i].value;

		if (name.len == type.len + 1 + unit.len && str_starts(name, type) && name.ptr[type.len] == '/' &&
		    str_ends(name, unit))
			return true;
	}
	return false;
}

/* Two columns of one profile may have the same name: the first one counts. */
static bool is_noted(const struct common *c, struct str name)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(buf_str(&c->names[i]), name))
			return true;
	return false;
}

static int narrow(void *ctx, const struct store_point *point)
{
	struct common *c = ctx;

	for (size_t i = 0; c->any && i < c->count; i++)
		c->gone[i] |= !has_column(point, buf_str(&c->names[i]));
	if (c->any)
		return 0;
	c->any = true;
	for (size_t i = 0; i < point->value_count; i++) {
		struct buf *name = &c->names[c->count];

		*name = (struct buf)BUF_INIT(KIB(64));
		buf_addf(name, STR_FMT "/" STR_FMT, STR_ARG(point->columns[i].key), STR_ARG(point->columns[i].value));
		if (name->error || is_noted(c, buf_str(name))) {
			int r = name->error;

			buf_release(name);
			if (r < 0)
				return r;
			continue;
		}
		c->count++;
	}
	return 0;
}

static int column_of(const struct model *m, struct str name)
{
	for (size_t i = 0; i < m->value_type_count; i++) {
		struct str type = model_string(m, m->value_types[i].type),
			   unit = model_string(m, m->value_types[i].unit);

		if (name.len == type.len + 1 + unit.len && str_starts(name, type) && name.ptr[type.len] == '/' &&
		    str_ends(name, unit))
			return (int)i;
	}
	return -1;
}

/* Keeps the columns that all share, each once, in the order of the first profile, and drops the period. */
static int reduce(struct model *m, const struct common *c)
{
	struct model_value_type types[MODEL_VALUE_TYPES_MAX];
	int columns[MODEL_VALUE_TYPES_MAX];
	size_t width = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->gone[i])
			continue;
		columns[width] = column_of(m, buf_str(&c->names[i]));
		if (columns[width] < 0)
			return -EINVAL;
		types[width] = m->value_types[columns[width]];
		width++;
	}
	for (size_t i = 0; i < m->samples_count; i++) {
		int64_t values[MODEL_VALUE_TYPES_MAX], *cells = m->values + m->samples[i].first_value;

		for (size_t j = 0; j < width; j++)
			values[j] = cells[columns[j]];
		memcpy(cells, values, width * sizeof(*cells));
	}
	memcpy(m->value_types, types, width * sizeof(*types));
	m->value_type_count = width;
	m->period_type = (struct model_value_type){ 0 };
	m->period = 0;
	m->default_type = 0;
	return width ? 0 : -EINVAL;
}

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

static int take_in(struct window *into, struct window *from, struct store_sum *info)
{
	int r = into->model ? model_merge(into->model, from->model) : 0;

	if (!into->model) {
		r = window_init(into, GIB(1));
		r = r ? r : model_merge(into->model, from->model);
		into->start_ns = from->start_ns;
	}
	into->start_ns = MIN(into->start_ns, from->start_ns);
	into->end_ns = MAX(into->end_ns, from->end_ns);
	info->profiles += r == 0;
	return r;
}

static int add_reduced(struct call *call, const struct store_id *id, const struct common *c, struct window *out,
		       struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct store_document document = { 0 };
	int r = config->store->read(config->state, id, &document);

	if (r == 0 && document.is_raw)
		info->skipped++;
	else if (r == 0)
		r = reduce(document.window.model, c);
	if (r == 0 && !document.is_raw)
		r = take_in(out, &document.window, info);
	store_document_release(&document);
	return r == -ENOENT ? 0 : r; /* it expired meanwhile */
}

static own_frame int sum_common(struct call *call, const struct store_selector *sel, struct window *out,
				struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	scoped(common_release) struct common c = { 0 };
	struct id_list ids = { 0 };
	int r = config->store->totals(config->state, sel, narrow, &c);

	*info = (struct store_sum){ 0 };
	r = r ? r : config->store->list(config->state, sel, note_id, &ids);
	for (size_t i = 0; r == 0 && i < ids.count; i++)
		r = range_stop(call) ? -ECANCELED : add_reduced(call, &ids.items[i], &c, out, info);
	free(ids.items);
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

static void count_merged(struct call *call, const struct store_sum *info)
{
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_MERGED, info->profiles);
	metrics_add(call->collector->metrics, COLLECTOR_CRASHED_PARTS, info->parts_bad);
	answer_count(call->rs, "X-Profiles-Merged", info->profiles);
	if (info->parts_bad)
		answer_count(call->rs, "X-Profiles-Damaged", info->parts_bad);
}

static void merge(struct call *call, const struct range_params *p)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = p->sel;
	struct window w = { 0 };
	struct store_sum info;
	scoped(buf_release) struct buf name = BUF_INIT(KIB(8));
	int r;

	sel.type = p->type;
	if (config->merge_max && (!sel.limit || sel.limit > config->merge_max))
		sel.limit = config->merge_max;
	r = config->store->sum(config->state, &sel, &w, &info);
	if (r == -EINVAL && wants_common(call))
		r = sum_common(call, &sel, &w, &info);
	if (r == -EINVAL) {
		refuse_types(call, &sel);
	} else if (r < 0) {
		answer_store(call, r, "failed to merge profiles");
	} else if (!info.profiles) {
		answer_error(call->rs, 404, "nothing found");
	} else {
		buf_addf(&name, STR_FMT "-" STR_FMT ".pb.gz", STR_ARG(sel.service), STR_ARG(sel.type));
		send_window(call, &w, buf_str(&name));
		count_merged(call, &info);
	}
	window_release(&w);
}

void profefe_merge(struct call *call)
{
	struct range_params p;

	if (!range_params_read(call, &p))
		return;
	if (mergeable(call, p.type))
		merge(call, &p);
	range_params_release(&p);
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
		r = take_in(&d->sum, &document.window, &d->info);
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
		send_window(d->call, &d->sum, filename);
		count_merged(d->call, &d->info);
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
		r = range_stop(call) ? -ECANCELED : add_id(&d, id);
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
		send_window(call, &document.window, text);
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
