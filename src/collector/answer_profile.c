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

void call_key_u64(struct json_out *json, struct str key, uint64_t value)
{
	json_out_key(json, key);
	json_out_u64(json, value);
}
