/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/live.h"

#include <inttypes.h>

#include "base/base64.h"
#include "base/opt.h"
#include "collector/access.h"
#include "collector/collector_int.h"

#define STREAMS_SHARED 256     /* more get 503: somebody's further streams, */
#define STREAMS_MAX 320        /* somebody's first one, */
#define STREAMS_LOCAL 4        /* which leaves these to the machine itself */
#define STREAMS_OF_ONE 32      /* of one token */
#define STREAMS_OF_ADDRESS 128 /* without one: many people may be behind an address */
#define COMPUTING_MAX 2        /* pictures at once: the other workers answer short questions */
#define AGE_MAX_NS (ACCESS_COOKIE_SECONDS * NSEC_PER_SEC) /* a page signs in again then, and so does its stream */
#define FRESH_MIN_NS (NSEC_PER_SEC / 2)
#define REST_SHARE 4 /* a picture that takes long comes seldom: one viewer has at most a quarter of a worker */
#define NODES_MAX 200000
#define FRESH_NS (5 * NSEC_PER_SEC) /* the range moves on even when nothing comes */
#define BEAT_NS (15 * NSEC_PER_SEC) /* a comment, so that proxies and we see who is there */
#define WINDOW_MIN_NS NSEC_PER_SEC
#define WINDOW_MAX_NS (3600 * NSEC_PER_SEC)
#define PAYLOAD_MAX HTTP_PIECE_MAX
#define LATE_MAX_NS (2 * NSEC_PER_SEC)   /* after a window's end; what comes later is history and moves nothing */
#define WAIT_SAID_NS (10 * NSEC_PER_SEC) /* a stream that waits for room for its picture says so this often */
#define LATE_TURN 30                     /* ticks that the largest is remembered for, and once more */
#define SERVICES_SHOWN "100"

/* The events of one round. Its feed has a reference, and each stream that sends it. The memory counts once: for whose
 * stream made it, or for who still sends it when there is a newer one. */
struct round {
	size_t refs;
	struct http_claim claim;
	struct buf events;
};

/* What one or more streams show: equal queries have equal answers. */
struct feed_of {
	struct feed_of *next;
	char *query; /* as it came */
	size_t refs;
	bool computing;
	uint64_t computed_ns, changes; /* when, and how much had been stored by then */
	uint64_t took_ns;              /* to compute it */
	uint64_t seq;                  /* of the last round; 0: there was none yet */
	struct round *round;           /* that; NULL: it had to make room */
	size_t size;                   /* bytes that it took */
};

struct live_stream {
	struct live_stream *next, **at;
	struct live *live;
	struct feed_of *feed;
	struct http_request *rq;
	struct round *sends; /* the piece that is under way, or was */
	uint64_t sender, sent_seq, sent_ns, opened_ns;
	uint64_t waits_ns;        /* since when there is no room, or it was said; 0: there is */
	bool said_hello, is_once; /* once: the first round is the end */
};

struct live {
	struct collector *collector;
	pthread_mutex_t lock; /* guards everything below; taken for moments, never while something is computed */
	struct live_stream *streams;
	struct feed_of *feeds;
	size_t stream_count, computing;
	_Atomic uint64_t changes;
	/* How long after its begin a window is here: the largest of now and of the turn before. */
	_Atomic uint64_t behind_ns, behind_before_ns;
	_Atomic uint64_t visible_ns; /* when the newest profile comes into the range, of the monotonic clock */
	uint64_t seen_changes, ticks;
};

int live_new(struct collector *c, struct live **out)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->collector = c;
	(void)pthread_mutex_init(&l->lock, NULL); /* no attributes: cannot fail on Linux */
	*out = l;
	return 0;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	(void)pthread_mutex_destroy(&l->lock);
	free(l);
}

static uint64_t now_of(const struct live *l)
{
	return clock_monotonic_ns(l->collector->config.clock);
}

static uint64_t behind_of(const struct live *l)
{
	return MAX(atomic_load(&l->behind_ns), atomic_load(&l->behind_before_ns));
}

void live_changed(struct live *l, uint64_t created_ns, const struct window *w)
{
	const uint64_t wall_ns = clock_wall_ns(l->collector->config.clock);
	const uint64_t late_ns = wall_ns - MIN(created_ns, wall_ns);
	const uint64_t most_ns = (w && w->model ? window_duration_ns(w) : 0) + LATE_MAX_NS;
	const uint64_t behind_ns = late_ns <= most_ns ? late_ns : 0;
	uint64_t before_ns = atomic_load(&l->behind_ns);

	while (before_ns < behind_ns && !atomic_compare_exchange_weak(&l->behind_ns, &before_ns, behind_ns))
		;
	atomic_store(&l->visible_ns, now_of(l) + behind_of(l) - MIN(behind_ns, behind_of(l)));
	atomic_fetch_add(&l->changes, 1);
}

/* Has something come into the range since it was computed? Where much is stored there is always something that is not
 * in it yet: once a second it does not matter. */
static bool has_news(const struct live *l, const struct feed_of *f)
{
	const uint64_t visible_ns = atomic_load(&l->visible_ns), now = now_of(l);
	const bool has_changed = f->changes != atomic_load(&l->changes);

	if (now < visible_ns)
		return has_changed && now - f->computed_ns > NSEC_PER_SEC;
	return has_changed || f->computed_ns < visible_ns;
}

/* live->lock is held. */
static bool is_due(const struct live *l, const struct live_stream *s, uint64_t now)
{
	const struct feed_of *f = s->feed;

	return s->sent_seq != f->seq || has_news(l, f) || now - f->computed_ns > FRESH_NS || now - s->sent_ns > BEAT_NS;
}

void live_tick(struct live *l)
{
	uint64_t now = now_of(l);

	(void)pthread_mutex_lock(&l->lock);
	if (++l->ticks % LATE_TURN == 0)
		atomic_store(&l->behind_before_ns, atomic_exchange(&l->behind_ns, 0));
	for (struct live_stream *s = l->streams; s; s = s->next)
		if (is_due(l, s, now))
			http_stream_wake(s->rq);
	(void)pthread_mutex_unlock(&l->lock);
}

/* Rounds; live->lock is held */

/* NULL is fine. */
static void round_put(struct live *l, struct round *r)
{
	struct live_stream *s = l->streams;

	if (!r)
		return;
	if (!--r->refs) {
		http_claim_release(&r->claim);
		buf_release(&r->events);
		free(r);
		return;
	}
	while (s && s->sends != r)
		s = s->next;
	if (s) /* so it never counts for somebody who has nothing of it any more */
		http_claim_give(s->rq, r->events.cap, &r->claim);
}

/* @claim and @events are moved. Return: one reference, or NULL without memory; then they are released. */
static struct round *round_new(struct http_claim *claim, struct buf *events)
{
	struct round *r = calloc(1, sizeof(*r));

	if (r) {
		*r = (struct round){ .refs = 1, .claim = *claim, .events = *events };
	} else {
		http_claim_release(claim);
		buf_release(events);
	}
	*claim = (struct http_claim){ 0 };
	*events = (struct buf){ 0 };
	return r;
}

/* Whether nobody sends the feed's round, nor will. */
static bool is_idle(const struct live *l, const struct feed_of *f)
{
	for (const struct live_stream *s = l->streams; s; s = s->next)
		if (s->feed == f && s->sent_seq != f->seq)
			return false;
	return f->round && f->round->refs == 1;
}

static void forget_round(struct live *l, struct feed_of *f)
{
	round_put(l, f->round);
	f->round = NULL;
}

/* Room for the next round of the stream's feed. What feeds keep for who may come gives way. Return: 0 or -EBUSY. */
static int make_room(struct live_stream *s, size_t size, struct http_claim *out)
{
	struct live *l = s->live;

	if (http_claim(s->rq, size, out))
		return 0;
	for (struct feed_of *f = l->feeds; f; f = f->next)
		if (is_idle(l, f))
			forget_round(l, f);
	return http_claim(s->rq, size, out) ? 0 : -EBUSY;
}

/* Feeds; live->lock is held */

static struct feed_of *feed_get(struct live *l, struct str query)
{
	struct feed_of *f = l->feeds;

	while (f && !str_eq(str_of(f->query), query))
		f = f->next;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->query = str_dup(query);
		if (!f || !f->query) {
			free(f);
			return NULL;
		}
		f->next = l->feeds;
		l->feeds = f;
	}
	f->refs++;
	return f;
}

static void feed_put(struct live *l, struct feed_of *f)
{
	struct feed_of **at = &l->feeds;

	if (--f->refs)
		return;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	round_put(l, f->round);
	free(f->query);
	free(f);
}

/* Computing: the request of another route, with a range that ends now */

static void set_param(struct http_query *q, struct str name, struct str value)
{
	size_t at = 0;

	while (at < q->count && !str_eq(q->items[at].name, name))
		at++;
	if (at == HTTP_QUERY_MAX)
		at = HTTP_QUERY_MAX - 1; /* absurd, and then wrong only for who asks so */
	q->count = MAX(q->count, at + 1);
	q->items[at] = (struct http_param){ name, value };
}

static struct str window_of(const struct http_query *q)
{
	struct str window = http_query_get(q, STR("window"));

	return window.len ? window : STR("1m");
}

/* All since the collector began, where it shows nothing else. */
static bool is_since_start(const struct collector *c, struct str window)
{
	return c->config.live_only && str_eq(window, STR("start"));
}

/* A profile has the time of its window's begin, and is here after its end: the range ends as long ago as that takes, so
 * that "the last 10 s" are the last 10 s that can be here, without a gap, also of windows of 10 s. */
static void set_range(const struct live_stream *s, struct call *call, struct buf *from, struct buf *to)
{
	const struct live *l = s->live;
	const uint64_t to_ns = call->now_ns - MIN(behind_of(l), call->now_ns);
	uint64_t span_ns = 0;

	if (is_since_start(call->collector, window_of(&call->query))) {
		buf_addu64(from, call->collector->started_ns);
		buf_adds(to, STR("now"));
	} else {
		ignore(opt_parse_duration(window_of(&call->query), &span_ns)); /* check() has refused others */
		buf_addu64(from, to_ns - MIN(span_ns, to_ns) + 1);
		buf_addu64(to, to_ns);
	}
	set_param(&call->query, STR("from"), buf_str(from));
	set_param(&call->query, STR("to"), buf_str(to));
}

/* @limit: of services, or none: of a graph it would be one of profiles. Return: 0 and the answer in @rs, or -errno. */
static int ask(struct live_stream *s, call_fn *run, struct str limit, struct http_response *rs)
{
	struct http_request rq = *s->rq;
	struct call call = { .collector = s->live->collector, .rq = &rq, .rs = rs };
	scoped(buf_release) struct buf from = BUF_INIT(KIB(1)), to = BUF_INIT(KIB(1));
	int r = http_query_parse(rq.query, &call.query);

	if (r < 0)
		return r;
	rq.received_ns = clock_monotonic_ns(&clock_system); /* what the time of a query counts from */
	rq.body = STR("");
	call.now_ns = clock_wall_ns(call.collector->config.clock);
	set_range(s, &call, &from, &to);
	set_param(&call.query, STR("format"), STR("bin"));
	set_param(&call.query, STR("points"), STR("1"));
	set_param(&call.query, STR("limit"), limit);
	call_run(&call, run);
	http_query_release(&call.query);
	return rs->body.error;
}

static void response_clear(struct http_response *rs)
{
	for (size_t i = 0; i < rs->header_count; i++) {
		free(rs->headers[i].name);
		free(rs->headers[i].value);
	}
	buf_release(&rs->body);
}

static void add_event(struct buf *out, const char *name, uint64_t seq, struct str data)
{
	buf_addf(out, "event: %s\nid: %" PRIu64 "\ndata: ", name, seq);
	buf_adds(out, str_trim(data));
	buf_adds(out, STR("\n\n"));
}

static uint32_t size_of_meta(struct str body)
{
	const uint8_t *p = (const uint8_t *)body.ptr;

	return body.len < 4 ? 0 : (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void add_flame(struct buf *out, uint64_t seq, struct str body)
{
	struct str meta = str_first(str_skip(body, 4), size_of_meta(body));

	buf_addf(out, "event: flame\nid: %" PRIu64 "\ndata: {\"meta\": ", seq);
	buf_adds(out, meta);
	buf_adds(out, STR(", \"bin\": \""));
	base64_add(out, body);
	buf_adds(out, STR("\"}\n\n"));
}

/* The events of one round. What fails is an event, too: the stream lives on. */
static int compute(struct live_stream *s, uint64_t seq, struct buf *out)
{
	struct http_response totals = { .body = BUF_INIT(PAYLOAD_MAX) }, flame = { .body = BUF_INIT(PAYLOAD_MAX) };
	int r = s->live->collector->config.live_only
			? 0
			: ask(s, view_services, STR(SERVICES_SHOWN), &totals); /* there is one service */

	r = r ? r : ask(s, view_flame, STR(""), &flame);
	if (r == 0 && (totals.status == 499 || flame.status == 499))
		r = -ECANCELED; /* whose stream computed it has left: the others have not */
	if (r == 0 && totals.status == 200)
		add_event(out, "totals", seq, buf_str(&totals.body));
	if (r == 0 && flame.status == 200)
		add_flame(out, seq, buf_str(&flame.body));
	else if (r == 0)
		add_event(out, flame.status == 404 ? "empty" : "problem", seq, buf_str(&flame.body));
	response_clear(&totals);
	response_clear(&flame);
	return r ? r : out->error;
}

/* What the round could not say: everybody is told so, instead of being cut off. Return: 0 or -errno. */
static int say_failure(int r, uint64_t seq, struct buf *out)
{
	buf_release(out);
	*out = (struct buf)BUF_INIT(PAYLOAD_MAX);
	add_event(out, "problem", seq,
		  r == -E2BIG ? STR("{\"code\": 413, \"error\": \"the picture is too large for a live stream: choose "
				    "fewer services\"}")
			      : STR("{\"code\": 503, \"error\": \"out of memory\"}"));
	return out->error;
}

static void wake_others(const struct live_stream *s)
{
	for (struct live_stream *other = s->live->streams; other; other = other->next)
		if (other->feed == s->feed && other != s)
			http_stream_wake(other->rq);
}

/* The feed's round from now on, if there is room. Return: 0, -EBUSY, -ENOMEM. */
static int publish(struct live_stream *s, struct http_claim *claim, struct buf *fresh)
{
	struct feed_of *f = s->feed;
	struct round *round;
	int r;

	f->size = fresh->cap;
	r = make_room(s, f->size, claim);
	if (r < 0)
		return r;
	round = round_new(claim, fresh);
	if (!round)
		return -ENOMEM;
	round_put(s->live, f->round);
	f->round = round;
	f->seq++;
	return 0;
}

/* live->lock is held, and let go meanwhile. Return: 0; -EBUSY: there is no room; -errno. */
static int refresh(struct live_stream *s)
{
	struct live *l = s->live;
	struct feed_of *f = s->feed;
	struct buf fresh = BUF_INIT(PAYLOAD_MAX);
	struct http_claim claim = { 0 };
	uint64_t changes = atomic_load(&l->changes), begin_ns = now_of(l);
	int r;

	if (f->round && f->round->refs == 1) /* nobody sends it, and nobody will */
		forget_round(l, f);
	r = make_room(s, f->size, &claim);
	if (r < 0)
		return r;
	l->computing++;
	f->computing = true;
	(void)pthread_mutex_unlock(&l->lock);
	r = compute(s, f->seq + 1, &fresh); /* seq: nobody else computes this feed */
	if (r < 0 && r != -ECANCELED)
		r = say_failure(r, f->seq + 1, &fresh);
	(void)pthread_mutex_lock(&l->lock);
	l->computing--;
	f->computing = false;
	r = r ? r : publish(s, &claim, &fresh);
	if (r == 0 || r == -EBUSY) {
		f->computed_ns = now_of(l);
		f->took_ns = f->computed_ns - begin_ns;
		f->changes = changes;
	}
	http_claim_release(&claim);
	buf_release(&fresh);
	wake_others(s);
	return r;
}

/* Whether the next round is due for this stream. */
static bool is_stale(const struct live_stream *s)
{
	const struct live *l = s->live;
	const struct feed_of *f = s->feed;
	uint64_t age = now_of(l) - f->computed_ns, rest_ns = REST_SHARE * f->took_ns;
	bool lacks = s->sent_seq != f->seq && !f->round;

	if (f->computing || l->computing >= COMPUTING_MAX) /* the next tick asks again */
		return false;
	return !f->seq || (age > rest_ns && (lacks || age > FRESH_NS || (has_news(l, f) && age > FRESH_MIN_NS)));
}

/* The stream */

/* There is no room for the picture: it comes when there is. Who asks once is told so, and may ask again. Return: as
 * more(). */
static int wait_for_room(struct live_stream *s, struct buf *out)
{
	uint64_t now = now_of(s->live);

	if (!s->waits_ns)
		s->waits_ns = now;
	if (!s->is_once && now - s->waits_ns < WAIT_SAID_NS)
		return -EAGAIN;
	s->waits_ns = now;
	add_event(out, "problem", s->sent_seq, STR("{\"code\": 503, \"error\": \"" HTTP_ANSWERS_FULL "\"}"));
	return s->is_once ? 0 : 1;
}

static int send_round(struct live_stream *s)
{
	s->waits_ns = 0;
	s->sent_seq = s->feed->seq;
	s->sent_ns = now_of(s->live);
	s->sends = s->feed->round;
	s->sends->refs++;
	http_piece_lend(s->rq, buf_str(&s->sends->events));
	return s->is_once ? 0 : 1;
}

static int say(struct live_stream *s, struct buf *out)
{
	int r = 0;

	if (http_stopping(s->rq)) {
		buf_adds(out, STR("event: bye\ndata: {\"why\": \"the server stops\"}\n\n"));
		return 0;
	}
	if (!s->said_hello) {
		s->said_hello = true;
		buf_adds(out, STR("retry: 3000\n\nevent: hello\ndata: {\"version\": 1}\n\n"));
		return 1;
	}
	if (is_stale(s))
		r = refresh(s);
	if (r == -EBUSY)
		return wait_for_room(s, out);
	if (r < 0)
		return r;
	if (s->sent_seq != s->feed->seq && s->feed->round)
		return send_round(s);
	if (now_of(s->live) - s->sent_ns <= BEAT_NS)
		return -EAGAIN;
	buf_adds(out, STR(":\n\n"));
	return 1;
}

/* Why a stream may not go on, or none: a token may have been deleted meanwhile, and a cookie ends. */
static struct str end_of(struct live_stream *s)
{
	struct call call = { .collector = s->live->collector, .rq = s->rq };

	if (!access_has(&call, TOKEN_READ))
		return STR("the token does not hold any more");
	if (now_of(s->live) - s->opened_ns >= AGE_MAX_NS)
		return STR("it was open for 12 hours");
	return STR("");
}

/* What was sent last, which is taken by now. */
static struct round *take_sent(struct live_stream *s)
{
	struct round *r = s->sends;

	s->sends = NULL;
	return r;
}

static int more(void *ctx, struct buf *out)
{
	struct live_stream *s = ctx;
	const struct str end = end_of(s);
	int r;

	if (end.len) {
		buf_addf(out, "event: bye\ndata: {\"why\": \"%.*s\"}\n\n", STR_ARG(end));
		return 0;
	}
	(void)pthread_mutex_lock(&s->live->lock);
	round_put(s->live, take_sent(s));
	r = say(s, out);
	if (out->len)
		s->sent_ns = now_of(s->live);
	(void)pthread_mutex_unlock(&s->live->lock);
	return r;
}

static void close_stream(void *ctx)
{
	struct live_stream *s = ctx;
	struct live *l = s->live;

	(void)pthread_mutex_lock(&l->lock);
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	l->stream_count--;
	round_put(l, take_sent(s));
	feed_put(l, s->feed);
	(void)pthread_mutex_unlock(&l->lock);
	free(s);
}

static size_t streams_of(const struct live *l, uint64_t sender)
{
	size_t count = 0;

	for (const struct live_stream *s = l->streams; s; s = s->next)
		count += s->sender == sender;
	return count;
}

bool live_may_open(const struct live_load *load)
{
	if (!load->own)
		return load->all < STREAMS_MAX - (load->is_local ? 0 : STREAMS_LOCAL);
	return load->all < STREAMS_SHARED && load->own < STREAMS_SHARED - load->all &&
	       load->own < (load->has_token ? STREAMS_OF_ONE : STREAMS_OF_ADDRESS);
}

/* Return: 0, -EBUSY, -ENOMEM. */
static int open_stream(struct live *l, struct call *call)
{
	struct live_stream *s = calloc(1, sizeof(*s));
	struct live_load load = { .is_local = http_host_is_loopback(call->rq->remote),
				  .has_token = call->rq->sender != 0 };
	int r = s ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	*s = (struct live_stream){ .live = l,
				   .rq = call->rq,
				   .sender = http_sender(call->rq),
				   .opened_ns = now_of(l),
				   .is_once = http_query_get(&call->query, STR("once")).len };
	(void)pthread_mutex_lock(&l->lock);
	load.all = l->stream_count;
	load.own = streams_of(l, s->sender);
	if (!live_may_open(&load))
		r = -EBUSY;
	else
		s->feed = feed_get(l, call->rq->query);
	if (r == 0 && !s->feed)
		r = -ENOMEM;
	if (r == 0) {
		s->next = l->streams;
		s->at = &l->streams;
		if (s->next)
			s->next->at = &s->next;
		l->streams = s;
		l->stream_count++;
	}
	(void)pthread_mutex_unlock(&l->lock);
	if (r < 0)
		free(s);
	else
		call->rs->stream = (struct http_stream){ s, more, close_stream };
	return r;
}

/* What would be refused in the first event is refused now. */
static bool check(struct call *call)
{
	struct str window = window_of(&call->query), once = http_query_get(&call->query, STR("once"));
	scoped(query_range_release) struct query_range range = { 0 };
	uint64_t span, nodes = 0;

	if (str_to_u64(http_query_get(&call->query, STR("max-nodes")), 0, UINT64_MAX, &nodes) == 0 &&
	    nodes > NODES_MAX) {
		answer_error(call->rs, 400, "bad request: a live stream has at most %d nodes", NODES_MAX);
		return false;
	}
	if (once.len && !str_eq(once, STR("1"))) {
		answer_error(call->rs, 400, "bad request: bad \"once\" \"" STR_FMT "\": 1, or nothing",
			     STR_ARG(str_first(once, 64)));
		return false;
	}
	if (is_since_start(call->collector, window))
		return call_range(call, &query_range_view, &range);
	if (opt_parse_duration(window, &span) < 0 || span < WINDOW_MIN_NS || span > WINDOW_MAX_NS) {
		answer_error(call->rs, 400, "bad request: bad \"window\" \"" STR_FMT "\": 1s to 1h",
			     STR_ARG(str_first(window, 64)));
		return false;
	}
	return call_range(call, &query_range_view, &range);
}

void view_live(struct call *call)
{
	int r;

	if (!check(call))
		return;
	answer_empty(call->rs, 200);
	r = open_stream(call->collector->live, call);
	if (r < 0) {
		http_header_set(call->rs, "Retry-After", STR("10"));
		answer_error(call->rs, 503, r == -EBUSY ? "too many live streams" : "out of memory");
		return;
	}
	call->rs->content_type = "text/event-stream";
	http_header_set(call->rs, "Cache-Control", STR("no-store"));
	http_header_set(call->rs, "X-Accel-Buffering", STR("no"));
}
