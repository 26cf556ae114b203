/* SPDX-License-Identifier: Apache-2.0 */
/* profefe's API: uploads, lists, services, version (spec/collector.md 2). The words of its errors are part of it. */
#include <inttypes.h>

#include "build_info.h"
#include "collector/collector_int.h"

#define LIST_MAX 100000 /* elements of one answer */

bool range_stop(void *ctx)
{
	struct call *call = ctx;
	uint64_t max_ns = call->collector->config.query_max_ns;

	call->too_long = max_ns && clock_monotonic_ns(&clock_system) - call->rq->received_ns > max_ns;
	return call->too_long || http_gone(call->rq);
}

static bool out_of_memory(struct call *call)
{
	answer_error(call->rs, 503, "out of memory");
	return false;
}

static bool bad(struct call *call, const char *name, struct str raw, const char *kind, const char *why)
{
	answer_error(call->rs, 400, "bad request: bad \"%s\" %s\"" STR_FMT "\"%s%s", name, kind, STR_ARG(raw),
		     why ? ": " : "", why ? why : "");
	return false;
}

static bool bad_time(struct call *call, const char *name, struct str raw, const char *kind)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));

	buf_addf(&why, "time in unsupported format \"" STR_FMT "\"", STR_ARG(raw));
	return bad(call, name, raw, kind, buf_cstr(&why));
}

/* Parameters */

static bool service_param(struct call *call, struct str *out)
{
	*out = http_query_get(&call->query, STR("service"));
	if (!out->len) {
		answer_error(call->rs, 400, "bad request: missing \"service\"");
		return false;
	}
	if (out->len > STORE_NAME_MAX)
		return bad(call, "service", str_first(*out, 64), "", "too long");
	return true;
}

bool parse_labels_param(struct call *call, struct query_labels *out)
{
	struct str raw = http_query_get(&call->query, STR("labels"));
	int r = query_labels_parse(raw.ptr ? raw : STR(""), out);

	if (r == -ENOMEM)
		return out_of_memory(call);
	if (r < 0)
		return bad(call, "labels", str_first(raw, 256), "",
			   r == -EBADMSG ? "invalid URL escape" : "too many, or too long");
	return true;
}

static bool time_param(struct call *call, const char *name, uint64_t *out)
{
	struct str raw = http_query_get(&call->query, str_of(name));

	if (!raw.len) {
		answer_error(call->rs, 400, "bad request: missing \"%s\"", name);
		return false;
	}
	return query_time(raw, call->now_ns, out) == 0 || bad_time(call, name, str_first(raw, 64), "timestamp ");
}

void range_params_release(struct range_params *p)
{
	query_labels_release(&p->labels);
}

static bool limit_param(struct call *call, size_t *out)
{
	struct str raw = http_query_get(&call->query, STR("limit"));
	uint64_t value = 0;

	if (raw.len && str_to_u64(raw, 0, UINT32_MAX, &value) < 0)
		return bad(call, "limit", str_first(raw, 64), "", "not a number of profiles");
	*out = (size_t)value;
	return true;
}

static bool range_ok(struct call *call, const struct store_selector *sel)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(1));

	if (sel->from_ns <= sel->to_ns)
		return true;
	clock_add_iso(&text, sel->from_ns);
	buf_adds(&text, STR(", "));
	clock_add_iso(&text, sel->to_ns);
	answer_error(call->rs, 400, "bad request: CreatedAtMin after CreatedAtMax: %s", buf_cstr(&text));
	return false;
}

bool range_params_read(struct call *call, struct range_params *out)
{
	struct range_params p = { .sel = { .stop = range_stop, .stop_ctx = call } };
	bool fine = service_param(call, &p.sel.service) && parse_labels_param(call, &p.labels);

	fine = fine && time_param(call, "from", &p.sel.from_ns) && time_param(call, "to", &p.sel.to_ns) &&
	       limit_param(call, &p.sel.limit) && range_ok(call, &p.sel);
	if (!fine) {
		range_params_release(&p);
		return false;
	}
	p.type = str_trim(http_query_get(&call->query, STR("type")));
	p.before = http_query_get(&call->query, STR("before"));
	*out = p;
	out->sel.labels = out->labels.items;
	out->sel.label_count = out->labels.count;
	return true;
}

/* The profile object (spec/collector.md 2.2) */

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

void profile_object(struct json_out *json, const struct store_profile *profile)
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
	struct str created;

	if (!service_param(call, &p->service) || !parse_labels_param(call, &p->labels))
		return false;
	created = http_query_get(&call->query, STR("created_at"));
	if (created.len && query_time(created, call->now_ns, &p->created_ns) < 0)
		return bad_time(call, "created_at", str_first(created, 64), "");
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
static bool before_param(struct call *call, struct range_params *p, struct listing *l)
{
	uint64_t before_ns;

	if (!p->before.len)
		return true;
	if (store_id_parse(p->before, &l->end) == 0) {
		uint64_t seconds = (uint64_t)l->end.bytes[0] << 24 | (uint64_t)l->end.bytes[1] << 16 |
				   (uint64_t)l->end.bytes[2] << 8 | l->end.bytes[3];

		l->has_end = true;
		p->sel.to_ns = MIN(p->sel.to_ns, (seconds + 1) * NSEC_PER_SEC - 1);
		return true;
	}
	if (query_time(p->before, call->now_ns, &before_ns) < 0)
		return bad_time(call, "before", str_first(p->before, 64), "");
	p->sel.to_ns = MIN(p->sel.to_ns, before_ns ? before_ns - 1 : 0);
	return true;
}

/* Return: as a visitor. */
static int find(struct call *call, struct range_params *p, struct listing *l)
{
	const struct collector_config *config = &call->collector->config;
	size_t limit = p->sel.limit ? MIN(p->sel.limit, (size_t)LIST_MAX) : config->list_limit;
	int r;

	p->sel.limit = 0;
	r = p->sel.from_ns <= p->sel.to_ns ? config->store->list(config->state, &p->sel, count_one, l) : 0;
	if (r < 0 || !l->total)
		return r;
	p->sel.limit = limit + l->behind;
	if (l->end_found)
		p->sel.to_ns = l->end_ns;
	json_out_begin(&l->json, '[');
	r = config->store->list(config->state, &p->sel, show_one, l);
	json_out_end(&l->json, ']');
	if (l->total > limit + l->behind && l->any) {
		char id[STORE_ID_TEXT + 1];

		store_id_text(&l->first, id);
		http_header_set(call->rs, "X-Next-Before", str_of(id));
	}
	return r;
}

static void list(struct call *call, struct range_params *p)
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
	struct range_params p;

	if (!range_params_read(call, &p))
		return;
	if (p.type.len && !query_type_known(p.type))
		answer_error(call->rs, 400, "bad request: unknown profile type");
	else {
		p.sel.type = p.type;
		list(call, &p);
	}
	range_params_release(&p);
}

/* Deletion: ours */

void profefe_delete(struct call *call)
{
	const struct collector_config *config = &call->collector->config;
	struct range_params p;
	struct json_out json;
	int removed;

	if (!range_params_read(call, &p))
		return;
	p.sel.type = p.type;
	removed = config->store->remove(config->state, &p.sel);
	range_params_release(&p);
	if (removed < 0) {
		answer_store(call, removed, "failed to delete profiles");
		return;
	}
	answer_begin(call->rs, &json);
	json_out_begin(&json, '{');
	json_out_key(&json, STR("deleted"));
	json_out_u64(&json, (uint64_t)removed);
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
	struct store_selector sel = { .to_ns = UINT64_MAX, .stop = range_stop, .stop_ctx = call };
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
