/* SPDX-License-Identifier: Apache-2.0 */
/* profefe's API: uploads, lists, services, version. The words of its errors are part of it.
 * Source: profefe, pkg/profefe/profiles_handler.go, reply.go. */
#include <inttypes.h>

#include "build_info.h"
#include "collector/collector_int.h"

#define LIST_MAX 100000 /* elements of one answer */

/* The profile object. Source: profefe, pkg/profefe/models.go */

static void add_labels(struct json_out *json, const struct store_label *labels, size_t count)
{
	json_out_key(json, STR("labels"));
	json_out_begin(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_out_begin(json, '{');
		json_out_key(json, STR("key"));
		json_out_string(json, labels[i].key);
		json_out_key(json, STR("value"));
		json_out_string(json, labels[i].value);
		json_out_end(json, '}');
	}
	json_out_end(json, ']');
}

static void profile_object(struct json_out *json, const struct store_profile *profile)
{
	scoped(buf_release) struct buf time = BUF_INIT(64);
	char id[STORE_ID_TEXT + 1];

	store_id_text(&profile->id, id);
	clock_add_iso(&time, profile->created_ns);
	buf_addc(&time, 'Z');
	json_out_begin(json, '{');
	json_out_key(json, STR("id"));
	json_out_string(json, str_of(id));
	json_out_key(json, STR("type"));
	json_out_string(json, profile->type);
	json_out_key(json, STR("service"));
	json_out_string(json, profile->service);
	if (profile->label_count)
		add_labels(json, profile->labels, profile->label_count);
	json_out_key(json, STR("created_at"));
	json_out_string(json, buf_str(&time));
	json_out_end(json, '}');
}

/* Upload */

struct upload_params {
	struct str service, type;
	struct query_labels labels;
	uint64_t created_ns; /* 0: not given */
};

static bool upload_params_read(struct call *call, struct upload_params *p)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	struct str created = http_query_get(&call->query, STR("created_at"));
	int r = query_range_service(http_query_get(&call->query, STR("service")), &p->service, &why);

	r = r ? r : query_range_labels(http_query_get(&call->query, STR("labels")), &p->labels, &why);
	if (r == 0 && created.len && query_time(created, call->now_ns, &p->created_ns) < 0) {
		query_range_bad_time("created_at", created, "", &why);
		r = -EBADMSG;
	}
	if (r < 0)
		return call_bad(call, r, &why);
	p->type = str_trim(http_query_get(&call->query, STR("type")));
	if (query_type_known(p->type) || str_eq(p->type, STR("auto")))
		return true;
	answer_error(call->rs, 400, "bad request: unknown profile type");
	return false;
}

/* Return: whether there is something to store. */
static bool check_samples(struct call *call, const struct upload_params *p, const struct received *in)
{
	if (in->window.model->samples_count)
		return true;
	if (str_eq(p->type, STR("block")) || str_eq(p->type, STR("mutex"))) {
		metrics_add(call->collector->metrics, COLLECTOR_PROFILES_EMPTY, 1);
		answer_empty(call->rs, 204); /* a healthy program waits for nothing */
		return false;
	}
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_MALFORMED, 1);
	answer_error(call->rs, 400, "malformed profile (could not parse pprof profile: profile is empty: no samples)");
	return false;
}

static bool receive_upload(struct call *call, struct upload_params *p, struct received *in)
{
	bool is_auto = str_eq(p->type, STR("auto"));

	if (!receive_bytes(call, in))
		return false;
	if (str_eq(p->type, STR("trace")) || (is_auto && query_is_trace(in->raw))) {
		p->type = STR("trace");
		if (in->raw.len)
			return true;
		answer_error(call->rs, 400, "malformed profile (the trace is empty)");
		return false;
	}
	if (!receive_profile(call, in->raw, in))
		return false;
	if (is_auto)
		p->type = query_type_detect(in->window.model);
	if (!check_samples(call, p, in))
		return false;
	if (in->window.model->time_ns > 0)
		p->created_ns = (uint64_t)in->window.model->time_ns;
	return true;
}

static void upload(struct call *call, struct upload_params *p, struct received *in)
{
	struct store_upload up = { .service = p->service, .labels = p->labels.items, .label_count = p->labels.count };
	struct store_profile stored = { .service = p->service,
					.labels = p->labels.items,
					.label_count = p->labels.count };
	struct json_out json;

	if (!receive_upload(call, p, in))
		return;
	up.type = stored.type = p->type;
	up.created_ns = stored.created_ns = p->created_ns ? p->created_ns : call->now_ns;
	if (!receive_store(call, in, &up, &stored.id))
		return;
	stored.service = up.service; /* not as asked for when there are too many series */
	stored.labels = up.labels;
	stored.label_count = up.label_count;
	answer_begin(call->rs, &json);
	profile_object(&json, &stored);
	answer_end(call->rs, &json);
}

void profefe_upload(struct call *call)
{
	struct upload_params p = { 0 };
	struct received in = { 0 };

	if (upload_params_read(call, &p))
		upload(call, &p, &in);
	received_release(&in);
	query_labels_release(&p.labels);
}

/* List */

struct listing {
	struct json_out json;
	uint64_t total;
	bool any;
	struct store_id first; /* of what is shown: where the page before this one ends */
	/* Pages end before a profile: lists are sorted by time, then id. */
	bool has_end, end_found;
	struct store_id end;
	uint64_t end_ns;
	size_t behind; /* profiles of the same moment, the one itself counted */
};

static int count_one(void *ctx, const struct store_profile *profile)
{
	struct listing *l = ctx;

	l->total++;
	if (l->has_end && memcmp(profile->id.bytes, l->end.bytes, STORE_ID_SIZE) == 0) {
		l->end_found = true;
		l->end_ns = profile->created_ns;
	}
	l->behind += l->end_found && profile->created_ns == l->end_ns;
	return 0;
}

static int show_one(void *ctx, const struct store_profile *profile)
{
	struct listing *l = ctx;

	if (l->end_found && profile->created_ns == l->end_ns &&
	    memcmp(profile->id.bytes, l->end.bytes, STORE_ID_SIZE) >= 0)
		return 0;
	if (!l->any)
		l->first = profile->id;
	l->any = true;
	profile_object(&l->json, profile);
	return l->json.out->error;
}

/* before=TIME or before=ID. An id that is gone counts by its second. */
static bool before_param(struct call *call, struct query_range *p, struct listing *l)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	uint64_t before_ns;

	if (!p->before.len)
		return true;
	if (store_id_parse(p->before, &l->end) == 0) {
		uint64_t seconds = (uint64_t)l->end.bytes[0] << 24 | (uint64_t)l->end.bytes[1] << 16 |
				   (uint64_t)l->end.bytes[2] << 8 | l->end.bytes[3];

		l->has_end = true;
		p->to_ns = MIN(p->to_ns, (seconds + 1) * NSEC_PER_SEC - 1);
		return true;
	}
	if (query_time(p->before, call->now_ns, &before_ns) < 0) {
		query_range_bad_time("before", p->before, "", &why);
		return call_bad(call, -EBADMSG, &why);
	}
	p->to_ns = MIN(p->to_ns, before_ns ? before_ns - 1 : 0);
	return true;
}

/* Return: as a visitor. */
static int find(struct call *call, const struct query_range *p, struct listing *l)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = call_select(call, p);
	size_t limit = sel.limit ? MIN(sel.limit, (size_t)LIST_MAX) : config->list_limit;
	int r;

	sel.limit = 0;
	r = sel.from_ns <= sel.to_ns ? config->store->list(config->state, &sel, count_one, l) : 0;
	if (r < 0 || !l->total)
		return r;
	sel.limit = limit + l->behind;
	if (l->end_found)
		sel.to_ns = l->end_ns;
	json_out_begin(&l->json, '[');
	r = config->store->list(config->state, &sel, show_one, l);
	json_out_end(&l->json, ']');
	if (l->total > limit + l->behind && l->any) {
		char id[STORE_ID_TEXT + 1];

		store_id_text(&l->first, id);
		http_header_set(call->rs, "X-Next-Before", str_of(id));
	}
	return r;
}

static void list(struct call *call, struct query_range *p)
{
	struct listing l = { 0 };
	int r;

	if (!before_param(call, p, &l))
		return;
	answer_begin(call->rs, &l.json);
	r = find(call, p, &l);
	if (r < 0) {
		answer_store(call, r, "failed to find profiles");
		return;
	}
	if (!l.any) {
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	answer_end(call->rs, &l.json);
	answer_count(call->rs, "X-Total-Count", l.total - l.behind);
}

void profefe_list(struct call *call)
{
	struct query_range p;

	if (!call_range(call, &query_range_profefe, &p))
		return;
	if (p.type.len && !query_type_known(p.type))
		answer_error(call->rs, 400, "bad request: unknown profile type");
	else
		list(call, &p);
	query_range_release(&p);
}

/* Deletion: ours */

void profefe_delete(struct call *call)
{
	const struct collector_config *config = &call->collector->config;
	struct query_range p;
	struct store_selector sel;
	struct store_removed removed;
	struct json_out json;
	int r;

	if (!call_range(call, &query_range_profefe, &p))
		return;
	sel = call_select(call, &p);
	r = config->store->remove(config->state, &sel, &removed);
	query_range_release(&p);
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_DELETED, removed.profiles);
	if (r < 0) {
		answer_store(call, r, "failed to delete profiles");
		return;
	}
	answer_begin(call->rs, &json);
	json_out_begin(&json, '{');
	json_out_key(&json, STR("deleted"));
	json_out_u64(&json, removed.profiles);
	json_out_end(&json, '}');
	answer_end(call->rs, &json);
}

/* Services, version */

struct names {
	struct json_out json;
	struct buf last;
	bool any;
};

/* Series come sorted by service, bytewise. */
static int add_service(void *ctx, const struct store_series *series)
{
	struct names *n = ctx;

	if (n->any && str_eq(series->service, buf_str(&n->last)))
		return 0;
	json_out_string(&n->json, series->service);
	buf_clear(&n->last);
	buf_adds(&n->last, series->service);
	n->any = true;
	return n->last.error;
}

void profefe_services(struct call *call)
{
	const struct collector_config *config = &call->collector->config;
	struct store_selector sel = { .to_ns = UINT64_MAX, .stop = call_stop, .stop_ctx = call };
	struct names n = { .last = BUF_INIT(KIB(8)) };
	int r;

	answer_begin(call->rs, &n.json);
	json_out_begin(&n.json, '[');
	r = config->store->series(config->state, &sel, add_service, &n);
	buf_release(&n.last);
	if (r < 0) {
		answer_store(call, r, "failed to list services");
		return;
	}
	if (!n.any) {
		answer_error(call->rs, 404, "nothing found");
		return;
	}
	json_out_end(&n.json, ']');
	answer_end(call->rs, &n.json);
}

void profefe_version(struct call *call)
{
	struct json_out json;

	answer_begin(call->rs, &json);
	json_out_begin(&json, '{');
	json_out_key(&json, STR("version"));
	json_out_string(&json, STR(HEARTH_VERSION));
	json_out_key(&json, STR("commit"));
	json_out_string(&json, STR(HEARTH_COMMIT));
	json_out_key(&json, STR("build_time"));
	json_out_string(&json, STR(HEARTH_BUILD_TIME));
	json_out_key(&json, STR("go_version"));
	json_out_string(&json, STR(__VERSION__));
	json_out_end(&json, '}');
	answer_end(call->rs, &json);
}

/* pprof asks for names of addresses that a profile had none for. It says so itself where we have none either: stored
 * profiles carry all the names that are known. Source: google/pprof, internal/symbolz. */
void profefe_symbolz(struct call *call)
{
	answer_empty(call->rs, 200);
	call->rs->content_type = "text/plain; charset=utf-8";
	buf_adds(&call->rs->body, STR("num_symbols: 1\n"));
}
