/* SPDX-License-Identifier: Apache-2.0 */
/* A body becomes a window: what wraps it is taken off, what it says is checked, and only then the store sees it. All
 * layers of compression share one budget of bytes. */
#include "base/log.h"
#include "codec/gzip.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "collector/collector_int.h"

#define OVERFLOW_SAY_NS (3600 * NSEC_PER_SEC)
#define RATIO_MAX 200 /* of compression beyond the first MiB (design/server.md 5.7) */

void gate_init(struct gate *g, unsigned int places)
{
	g->free = places;
	(void)pthread_mutex_init(&g->lock, NULL); /* no attributes: cannot fail on Linux */
}

void gate_destroy(struct gate *g)
{
	(void)pthread_mutex_destroy(&g->lock);
}

struct gate_place {
	struct gate_place *next;
	pthread_cond_t called;
	bool is_called;
};

/* g->lock is held. */
static void wait_in_line(struct gate *g)
{
	struct gate_place place = { 0 };

	(void)pthread_cond_init(&place.called, NULL); /* no attributes: cannot fail on Linux */
	if (g->last)
		g->last->next = &place;
	else
		g->first = &place;
	g->last = &place;
	while (!place.is_called)
		(void)pthread_cond_wait(&place.called, &g->lock);
	(void)pthread_cond_destroy(&place.called);
}

void gate_enter(struct gate *g)
{
	(void)pthread_mutex_lock(&g->lock);
	if (g->free)
		g->free--;
	else
		wait_in_line(g);
	(void)pthread_mutex_unlock(&g->lock);
}

/* Who waits longest gets the place, if anybody waits. */
void gate_leave(struct gate *g)
{
	struct gate_place *place;

	(void)pthread_mutex_lock(&g->lock);
	place = g->first;
	if (place) {
		g->first = place->next;
		g->last = g->first ? g->last : NULL;
		place->is_called = true;
		(void)pthread_cond_signal(&place->called);
	} else {
		g->free++;
	}
	(void)pthread_mutex_unlock(&g->lock);
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
	if (r->large)
		gate_leave(r->large);
	*r = (struct received){ 0 };
}

bool receive_spend(struct call *call, struct received *r)
{
	if (r->large)
		return false;
	leave(r); /* nobody waits for the large one while others wait for him */
	r->large = &call->collector->large;
	gate_enter(r->large);
	r->gate = &call->collector->decoders;
	gate_enter(r->gate);
	return true;
}

static size_t expanded_max(const struct call *call, const struct received *r)
{
	size_t max = call->collector->config.expanded_max;

	return r->large ? max : MIN(max, (size_t)RECEIVE_SMALL);
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
				      .memory_max = r->large ? 2 * call->collector->config.expanded_max
							     : 4 * (size_t)RECEIVE_SMALL,
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

static int unwrap(struct call *call, struct received *out)
{
	size_t max = expanded_max(call, out);

	buf_release(&out->unwrapped);
	out->unwrapped = (struct buf)BUF_INIT(max);
	return gzip_unpack(call->rq->body, max, RATIO_MAX, &out->unwrapped);
}

bool receive_bytes(struct call *call, struct received *out)
{
	struct str encoding = http_header_get(call->rq, "Content-Encoding");
	int r;

	*out = (struct received){ .raw = call->rq->body, .gate = &call->collector->decoders };
	gate_enter(out->gate);
	metrics_add(call->collector->metrics, COLLECTOR_UPLOADED_BYTES, call->rq->body.len);
	receive_spent(call);
	if (!encoding.len || http_value_is(encoding, STR("identity")))
		return true;
	if (!http_value_is(encoding, STR("gzip"))) {
		answer_error(call->rs, 415, "Content-Encoding: only gzip is understood");
		http_header_set(call->rs, "Accept-Encoding", STR("gzip"));
		return false;
	}
	r = unwrap(call, out);
	if (r == -E2BIG && receive_spend(call, out))
		r = unwrap(call, out);
	if (r == -E2BIG)
		return too_large(call);
	if (r == -ENOMEM)
		answer_error(call->rs, 503, "out of memory");
	else if (r < 0)
		answer_error(call->rs, 400, "bad request: the body is not the gzip data that its header promises");
	out->raw = buf_str(&out->unwrapped);
	return r == 0;
}

/* gzip around pprof or around a legacy form, or either of them bare. */
static int decode(struct str bytes, const struct codec_limits *limits, struct window *out, struct codec_error *error)
{
	scoped(buf_release) struct buf expanded = BUF_INIT(limits->expanded_max);
	struct codec_error ignored = { 0 };
	int r;

	if (gzip_is(bytes)) {
		r = gzip_unpack(bytes, limits->expanded_max, RATIO_MAX, &expanded);
		if (r < 0) {
			codec_fail(error, 0, false, "%s",
				   r == -EBADMSG ? "damaged gzip data" : "gzip data expands too far, or too fast");
			return r;
		}
		bytes = buf_str(&expanded);
	}
	r = pprof_decode_limited(bytes, limits, out, error);
	if (r == -EBADMSG && bytes.len && codec_legacy.sniff(bytes))
		r = codec_legacy.decode_limited(bytes, limits, out, r == -EBADMSG ? error : &ignored);
	return r;
}

/* Within what is granted to it now. */
static int decode_once(struct call *call, struct str bytes, struct received *r, struct codec_error *error)
{
	size_t max = expanded_max(call, r), spent = MIN(r->unwrapped.len, max);
	struct codec_limits limits = receive_limits(call, r, MAX(max - spent, (size_t)1));

	*error = (struct codec_error){ 0 };
	return decode(bytes, &limits, &r->window, error);
}

bool receive_profile(struct call *call, struct str bytes, struct received *out)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	struct codec_error error = { 0 };
	int r = decode_once(call, bytes, out, &error);

	if (r == -E2BIG && receive_spend(call, out))
		r = decode_once(call, bytes, out, &error);
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
	upload->request_key = http_header_get(call->rq, "Idempotency-Key");
	upload->packed = packed;
	upload->packed_ctx = in;
	fold_series(call, in, upload);
	r = config->store->put(config->state, upload, out);
	if (r >= 0) {
		metrics_add(m, r == 1 ? COLLECTOR_PROFILES_REPEATED : COLLECTOR_PROFILES_STORED, 1);
		return true;
	}
	if (r == -E2BIG)
		answer_error(call->rs, 400, "bad request: a name, a label or the Idempotency-Key is too long");
	else if (r == -ERANGE)
		answer_error(call->rs, 400, "bad request: the profile's time is outside 1970 to 2106");
	else if (r == -EINVAL)
		answer_error(call->rs, 400, "bad request: no service or no type");
	else if (r == -EOVERFLOW)
		too_many_days(call);
	else
		answer_store(call, r, "failed to collect profile");
	return false;
}
