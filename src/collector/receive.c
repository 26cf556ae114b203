/* SPDX-License-Identifier: Apache-2.0 */
/* A body becomes a window: what wraps it is taken off, what it says is checked, and only then the store sees it. All
 * layers of compression share one budget of bytes. */
#include "base/log.h"
#include "codec/gzip.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "collector/access.h"
#include "collector/collector_int.h"
#include "collector/live.h"

#define OVERFLOW_SAY_NS (3600 * NSEC_PER_SEC)
#define RATIO_MAX 200 /* of compression beyond the first MiB (docs/collector.md, limits) */

/* What is light has one place more: it does not wait for what takes long. The large one has a lane of its own. */
static void enter(struct call *call, struct received *r)
{
	struct collector *c = call->collector;
	bool is_light = MAX(call->rq->body.len, gzip_promise(call->rq->body)) <= RECEIVE_LIGHT;

	if (r->is_large)
		return;
	r->gate = &c->decoders;
	if (is_light && gate_try(r->gate))
		return;
	if (is_light)
		r->gate = &c->light;
	gate_enter(r->gate, http_rank(call->rq));
}

static void leave(struct received *r)
{
	if (r->gate)
		gate_leave(r->gate);
	r->gate = NULL;
}

void received_release(struct received *r)
{
	leave(r);
	window_release(&r->window);
	buf_release(&r->unwrapped);
	*r = (struct received){ 0 };
}

bool receive_later(struct call *call, struct received *r)
{
	if (r->is_large)
		return false;
	http_again(call->rq, HTTP_LANE_LARGE);
	call->later = true;
	buf_clear(&call->rs->body); /* of a part that was judged before */
	return true;
}

void receive_compute(struct call *call, struct received *r)
{
	if (!r->gate)
		enter(call, r);
}

void receive_again(struct call *call, struct received *r)
{
	window_release(&r->window);
	r->window = (struct window){ 0 };
	receive_compute(call, r);
}

static size_t expanded_max(const struct call *call, const struct received *r)
{
	size_t max = call->collector->config.expanded_max;

	return r->is_large ? max : MIN(max, (size_t)RECEIVE_SMALL);
}

static bool upload_stop(void *ctx)
{
	const struct call *call = ctx;

	return http_broken(call->rq);
}

struct codec_limits receive_limits(struct call *call, const struct received *r, size_t expanded)
{
	return (struct codec_limits){ .expanded_max = expanded,
				      .samples_max = call->collector->config.samples_max,
				      .depth_max = RECEIVE_DEPTH_MAX,
				      .text_max = RECEIVE_SYMBOL_MAX,
				      .memory_max = r->is_large ? 2 * call->collector->config.expanded_max
								: 4 * (size_t)RECEIVE_SMALL,
				      .may_repeat = true, /* the store's dictionary finds them */
				      .stop = upload_stop,
				      .stop_ctx = call };
}

static bool too_large(struct call *call)
{
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_TOO_LARGE, 1);
	answer_error(call->rs, 413, "the profile is too large: it expands to more than %zu bytes, or too fast",
		     call->collector->config.expanded_max);
	return false;
}

bool receive_failed(struct call *call, int r, const char *what)
{
	if (r == -ENOMEM) {
		answer_error(call->rs, 503, "out of memory");
	} else if (r == -ECANCELED) {
		answer_store(call, r, "");
	} else if (r == -E2BIG) {
		metrics_add(call->collector->metrics, COLLECTOR_PROFILES_TOO_LARGE, 1);
		answer_error(call->rs, 413, "the profile is too large (%s)", what);
	} else {
		metrics_add(call->collector->metrics, COLLECTOR_PROFILES_MALFORMED, 1);
		answer_error(call->rs, 400, "malformed profile (%s)", what);
	}
	return false;
}

void receive_decoded(struct call *call, const struct window *w)
{
	const struct model *m = w->model;
	uint64_t count = 0;
	uint32_t cut;

	if (intern_find(&m->strings, STR(CODEC_STACK_CUT), &cut) < 0)
		return;
	for (size_t i = 0; i < m->samples_count; i++)
		count += m->samples[i].end == cut;
	metrics_add(call->collector->metrics, COLLECTOR_STACKS_CUT, count);
}

/* What a body expands to takes time, whether it is a profile in the end or not. An ordinary one costs what it has as it
 * comes. */
static void spend_expanded(struct call *call, struct received *r, uint64_t bytes)
{
	uint64_t before = MAX(r->expanded / RECEIVE_USUAL_RATIO, (uint64_t)call->rq->body.len), after;

	r->expanded += bytes;
	after = MAX(r->expanded / RECEIVE_USUAL_RATIO, (uint64_t)call->rq->body.len);
	access_spent(call, after - before);
}

/* out->raw becomes what @packed holds, which may lie in out->unwrapped. */
static int unwrap_once(struct call *call, struct str packed, struct received *out)
{
	size_t max = expanded_max(call, out);
	struct buf plain = BUF_INIT(max);
	int r = gzip_unpack(packed, max, RATIO_MAX, &plain);

	spend_expanded(call, out, r == -E2BIG ? max : plain.len);
	if (r < 0) {
		buf_release(&plain);
		return r;
	}
	buf_release(&out->unwrapped);
	out->unwrapped = plain;
	out->raw = buf_str(&out->unwrapped);
	return 0;
}

bool receive_unwrap(struct call *call, struct received *out)
{
	struct str packed = out->raw;
	int r = unwrap_once(call, packed, out);

	if (r == -E2BIG)
		return receive_later(call, out) ? false : too_large(call);
	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r < 0)
		answer_error(call->rs, 400, "bad request: damaged gzip data");
	return r == 0;
}

bool receive_bytes(struct call *call, struct received *out)
{
	struct str encoding = http_header_get(call->rq, "Content-Encoding");

	*out = (struct received){ .raw = call->rq->body, .is_large = call->rq->lane == HTTP_LANE_LARGE };
	enter(call, out);
	if (!call->rq->tries) {
		metrics_add(call->collector->metrics, COLLECTOR_UPLOADED_BYTES, call->rq->body.len);
		access_spent(call, call->rq->body.len);
	}
	if (!encoding.len || http_value_is(encoding, STR("identity")))
		return true;
	if (!http_value_is(encoding, STR("gzip"))) {
		answer_error(call->rs, 415, "Content-Encoding: only gzip is understood");
		http_header_set(call->rs, "Accept-Encoding", STR("gzip"));
		return false;
	}
	return receive_unwrap(call, out);
}

/* gzip around pprof or around a legacy form, or either of them bare. */
static int decode(struct call *call, struct str bytes, struct received *in, const struct codec_limits *limits,
		  struct codec_error *error)
{
	scoped(buf_release) struct buf expanded = BUF_INIT(limits->expanded_max);
	struct codec_error ignored = { 0 };
	int r;

	if (gzip_is(bytes)) {
		r = gzip_unpack(bytes, limits->expanded_max, RATIO_MAX, &expanded);
		spend_expanded(call, in, r == -E2BIG ? limits->expanded_max : expanded.len);
		if (r < 0) {
			codec_fail(error, 0, false, "%s",
				   r == -EBADMSG ? "damaged gzip data" : "gzip data expands too far, or too fast");
			return r;
		}
		bytes = buf_str(&expanded);
	}
	r = pprof_decode_limited(bytes, limits, &in->window, error);
	if (r == -EBADMSG && bytes.len && codec_legacy.sniff(bytes))
		r = codec_legacy.decode_limited(bytes, limits, &in->window, r == -EBADMSG ? error : &ignored);
	return r;
}

/* Within what is granted to it. */
static int decode_granted(struct call *call, struct str bytes, struct received *r, struct codec_error *error)
{
	size_t max = expanded_max(call, r), spent = MIN(r->unwrapped.len, max);
	struct codec_limits limits = receive_limits(call, r, MAX(max - spent, (size_t)1));

	return decode(call, bytes, r, &limits, error);
}

bool receive_profile(struct call *call, struct str bytes, struct received *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct codec_error error = { 0 };
	int r = decode_granted(call, bytes, out, &error);

	if (r == -E2BIG && receive_later(call, out))
		return false;
	if (r == 0) {
		receive_decoded(call, &out->window);
		return true;
	}
	if (r == -E2BIG)
		buf_addf(&why, "at most %zu bytes expanded and %zu samples: %s", call->collector->config.expanded_max,
			 call->collector->config.samples_max, error.reason);
	else
		buf_addf(&why, "could not parse pprof profile: %s",
			 error.reason[0] ? error.reason : "unrecognized profile format");
	return receive_failed(call, r, buf_cstr(&why));
}

/* The store's caller has nothing left to compute. */
static void packed(void *ctx)
{
	leave(ctx);
}

static void too_many_days(struct call *call)
{
	metrics_add(call->collector->metrics, COLLECTOR_DAYS_REFUSED, 1);
	answer_error(call->rs, 422, "the profile's time would need one day more than the %d that are kept",
		     STORE_DAYS_MAX);
}

static void out_of_time(struct call *call)
{
	metrics_add(call->collector->metrics, COLLECTOR_PROFILES_OUT_OF_TIME, 1);
	answer_error(
		call->rs, 422,
		"the profile's time is too long ago, or too far ahead (--max-past, --max-ahead of hearth serve); a "
		"token with the scope admin may store it");
}

static void say_overflow(struct collector *c, uint64_t now_ns)
{
	uint64_t said = atomic_load(&c->overflow_said_ns);

	if (said && now_ns - said < OVERFLOW_SAY_NS)
		return;
	if (atomic_compare_exchange_strong(&c->overflow_said_ns, &said, now_ns))
		log_warn("too many series: new ones are stored under " CARDINALITY_OVERFLOW
			 " (a label that is never the same twice?); --max-series",
			 LOG_U64("max", c->config.series_max));
}

static void fold_series(struct call *call, struct received *in, struct store_upload *upload)
{
	struct collector *c = call->collector;
	uint64_t now_ns = clock_monotonic_ns(&clock_system);
	enum cardinality_verdict verdict = cardinality_admit(c->cardinality, upload, now_ns);

	if (verdict == CARDINALITY_FITS)
		return;
	say_overflow(c, now_ns);
	metrics_add(c->metrics, COLLECTOR_PROFILES_OVERFLOWED, 1);
	in->overflow = (struct store_label){ STR(CARDINALITY_OVERFLOW), STR("true") };
	upload->labels = &in->overflow;
	upload->label_count = 1;
	if (verdict == CARDINALITY_NO_SERVICE)
		upload->service = STR(CARDINALITY_OVERFLOW);
}

bool receive_store(struct call *call, struct received *in, struct store_upload *upload, struct store_id *out)
{
	const struct collector_config *config = &call->collector->config;
	struct metrics *m = call->collector->metrics;
	int r;

	upload->window = in->window.model ? &in->window : NULL;
	if (!upload->window)
		upload->raw = in->raw;
	if (!upload->request_key.len)
		upload->request_key = http_header_get(call->rq, "Idempotency-Key");
	upload->packed = packed;
	upload->packed_ctx = in;
	fold_series(call, in, upload);
	r = config->store->put(config->state, upload, out);
	if (r == -ETIME && access_is_admin(call)) {
		upload->any_time = true;
		r = config->store->put(config->state, upload, out);
	}
	if (r >= 0) {
		metrics_add(m, r == 1 ? COLLECTOR_PROFILES_REPEATED : COLLECTOR_PROFILES_STORED, 1);
		live_changed(call->collector->live, upload->created_ns, &in->window);
		return true;
	}
	if (r == -E2BIG)
		answer_error(call->rs, 400, "bad request: a name, a label or the Idempotency-Key is too long");
	else if (r == -ERANGE)
		answer_error(call->rs, 400, "bad request: the profile's time is outside 1970 to 2106");
	else if (r == -EINVAL)
		answer_error(call->rs, 400, "bad request: no service or no type");
	else if (r == -ETIME)
		out_of_time(call);
	else if (r == -EOVERFLOW)
		too_many_days(call);
	else
		answer_store(call, r, "failed to collect profile");
	return false;
}
