/* SPDX-License-Identifier: Apache-2.0 */
/* What requests of every API have in common: the range that they name, the profile that they are answered with. */
#include "codec/codec.h"
#include "codec/pprof.h"
#include "collector/collector_int.h"

#define GZIP_LEVEL 1 /* the answer's gzip is of a large merge, gzip at level 6 takes more CPU than the rest */
#define ANSWER_MAX GIB(1)
#define PIECE KIB(256) /* of a file that is made while it is taken */

bool call_stop(void *ctx)
{
	struct call *call = ctx;
	uint64_t max_ns = call->collector->config.query_max_ns;

	if (call->timeout_ns && (!max_ns || call->timeout_ns < max_ns))
		max_ns = call->timeout_ns;
	call->too_long = max_ns && clock_monotonic_ns(&clock_system) - call->rq->received_ns > max_ns;
	return call->too_long || call->too_costly || http_gone(call->rq);
}

void answer_costly(struct http_response *rs)
{
	answer_error(rs, 429, "the regular expressions take too long: fewer alternatives, or fewer series");
}

void answer_too_many(struct http_response *rs)
{
	answer_error(rs, 429, "the answer has too many rows: ask for a shorter time, or fewer labels");
}

void call_run(struct call *call, call_fn *run)
{
	run(call);
	if (call->too_costly)
		answer_costly(call->rs);
}

bool call_bad(struct call *call, int error, struct buf *why)
{
	if (error == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else
		answer_error(call->rs, 400, "bad request: %s%s", call_about(call), buf_cstr(why));
	return false;
}

bool call_range(struct call *call, const struct query_range_rules *rules, struct query_range *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(64));
	int r = query_range_read(&call->query, rules, call->now_ns, out, &why);

	if (r == 0 && out->matchers)
		out->matchers->told = &call->too_costly;
	return r == 0 || call_bad(call, r, &why);
}

bool call_whose(struct call *call, struct query_whose *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = query_whose_read(&call->query, out, &why);

	return r == 0 || call_bad(call, r, &why);
}

struct store_selector call_select(struct call *call, const struct query_range *range)
{
	struct store_selector sel = query_range_select(range);

	sel.stop = call_stop;
	sel.stop_ctx = call;
	return sel;
}

int call_pick_whose(const struct query_whose *whose, struct window *w, struct store_sum *info)
{
	struct model all, picked;
	int r = query_whose_all(whose) || !w->model ? 1 : query_whose_pick(whose, w->model);

	if (r)
		return MIN(r, 0);
	r = model_init(&picked, GIB(1));
	if (r < 0)
		return r;
	r = model_merge(&picked, w->model);
	all = r ? picked : *w->model;
	if (r == 0)
		*w->model = picked;
	model_release(&all);
	if (r == 0 && !w->model->samples_count)
		info->profiles = 0;
	return r;
}

bool call_sum_selected(struct call *call, const struct query_range *range, const struct store_selector *sel,
		       struct window *out, struct store_sum *info)
{
	const struct collector_config *config = &call->collector->config;
	struct query_whose whose;
	int r;

	if (!call_whose(call, &whose))
		return false;
	if (range->within.to_ns)
		r = merge_within(call, sel, &range->within, out, info);
	else
		r = config->store->sum(config->state, sel, out, info);
	if (r == -EINVAL &&
	    !range->within.to_ns) /* different kinds: what they share, of those that have what is asked for */
		r = merge_common(call, sel, http_query_get(&call->query, STR("sample")), out, info);
	r = r ? r : call_pick_whose(&whose, out, info);
	if (call->too_costly) { /* what came before is no sum that anybody may keep */
		answer_costly(call->rs);
		return false;
	}
	if (r == -EINVAL)
		answer_error(call->rs, 409, "the profiles have no sample type in common");
	else if (r < 0)
		answer_store(call, r, "failed to add profiles up");
	return r == 0;
}

void call_nothing(struct call *call, const struct query_range *range)
{
	bool has_others = range->within.to_ns && call->untimed;

	answer_error(call->rs, 404, "%snothing found%s", call_about(call),
		     has_others ? ": these samples have no time (--sample-times)" : "");
}

bool call_sum(struct call *call, const struct query_range *range, struct window *out, struct store_sum *info)
{
	struct store_selector sel = call_select(call, range);

	if (!call_sum_selected(call, range, &sel, out, info))
		return false;
	if (!info->profiles)
		call_nothing(call, range);
	return info->profiles > 0;
}

void call_no_sample(struct call *call, struct str sample)
{
	answer_error(call->rs, 404, "%sthese profiles have no sample type \"" STR_FMT "\"", call_about(call),
		     STR_ARG(str_first(sample, 64)));
}

bool call_column(struct call *call, const struct model *m, struct str sample, size_t *out)
{
	int named = sample.len ? model_value_index(m, sample) : -1;

	if (sample.len && named < 0) {
		call_no_sample(call, sample);
		return false;
	}
	*out = named < 0 ? model_default_value(m) : (size_t)named;
	return true;
}

static int encode(const struct window *w, const struct codec *format, const struct codec_options *options,
		  struct buf *out)
{
	return format == &codec_pprof ? pprof_encode_level(w, GZIP_LEVEL, out) : codec_encode(format, w, options, out);
}

own_frame void answer_window(struct call *call, const struct window *w, const struct codec *format,
			     const struct codec_options *options, struct str filename)
{
	struct buf body = BUF_INIT(ANSWER_MAX);
	int r = encode(w, format, options, &body);

	if (r < 0)
		answer_error(call->rs, 503, "the profile does not fit into memory");
	else
		answer_file(call->rs, &body, filename);
	buf_release(&body);
}

/* A file that is made while it is taken. */
struct pieces {
	struct window w;
	const struct codec *format;
	void *state;
	struct http_claim claim; /* of the profile and what the format made of it */
};

static int more(void *ctx, struct buf *out)
{
	struct pieces *p = ctx;

	return p->format->next(p->state, PIECE, out);
}

static void close_pieces(void *ctx)
{
	struct pieces *p = ctx;

	p->format->end(p->state);
	window_release(&p->w);
	http_claim_release(&p->claim);
	free(p);
}

void answer_pieces(struct call *call, struct window *w, const struct codec *format, const struct codec_options *options,
		   struct str filename)
{
	struct pieces *p = calloc(1, sizeof(*p));
	struct buf none = BUF_INIT(1);
	int r = p ? 0 : -ENOMEM;

	if (p) {
		p->format = format;
		p->w = *w;
		*w = (struct window){ 0 }; /* moved in */
		r = format->begin(&p->w, options, &p->state);
	}
	if (r == 0 && !http_claim(call->rq, model_memory(p->w.model) + format->held(p->state), &p->claim))
		r = -EBUSY;
	if (r == 0) {
		answer_file(call->rs, &none, filename);
		call->rs->stream = (struct http_stream){ .ctx = p, .more = more, .close = close_pieces };
		return;
	}
	if (p)
		close_pieces(p);
	if (r == -EBUSY)
		http_answers_refuse(call->rq, call->rs);
	else
		answer_error(call->rs, 503, "the profile does not fit into memory");
}

void answer_merged(struct call *call, const struct store_sum *info)
{
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_MERGED, info->profiles);
	metrics_add(call->collector->metrics, COLLECTOR_CRASHED_PARTS, info->parts_bad);
	answer_count(call->rs, "X-Profiles-Merged", info->profiles);
	if (info->parts_bad)
		answer_count(call->rs, "X-Profiles-Damaged", info->parts_bad);
}

void call_begin(struct call *call, struct json_out *json)
{
	answer_empty(call->rs, 200);
	call->rs->content_type = "application/json";
	*json = (struct json_out){ .out = &call->rs->body };
	json_out_begin(json, '{');
}

void call_end(struct call *call, struct json_out *json)
{
	json_out_end(json, '}');
	buf_addc(&call->rs->body, '\n');
	if (call->rs->body.error)
		answer_error(call->rs, 503, "out of memory");
}

void call_key(struct json_out *json, struct str key, struct str text)
{
	json_out_key(json, key);
	json_out_string(json, text);
}

void call_key_sample(struct json_out *json, struct str key, struct str name, struct str unit, bool is_shared)
{
	scoped(buf_release) struct buf text = BUF_INIT(MIB(1));

	buf_adds(&text, name);
	if (is_shared)
		buf_addf(&text, "/" STR_FMT, STR_ARG(unit));
	call_key(json, key, text.error ? name : buf_str(&text));
}

void call_key_u64(struct json_out *json, struct str key, uint64_t value)
{
	json_out_key(json, key);
	json_out_u64(json, value);
}
