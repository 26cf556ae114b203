/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of flame graphs that move, on a simulated clock: whose memory counts for whom, who waits, when they end. */
#include "support.h"

#include <sys/socket.h>
#include <unistd.h>

#include "collector/collector_int.h"
#include "collector/live.h"
#include "net/http_int.h"
#include "store_support.h"

#define S NSEC_PER_SEC
#define START (UINT64_C(1795000000) * S)
#define LARGE 2500 /* functions: their picture counts */
#define SMALL 10
#define VIEWERS_MAX 64

struct scene {
	struct fixture *f;
	struct collector *c;
	struct http_server server;
	struct clock
		clock; /* the fixture's, but asking for the time of day takes cost_ns: so long does a picture take */
	uint64_t cost_ns;
	uint32_t random;
};

/* Somebody with a stream. */
struct viewer {
	struct scene *s;
	struct http_exchange x;
	struct http_connection link;
	char query[64];
};

static uint64_t monotonic(void *self)
{
	return ((struct scene *)self)->f->now;
}

static uint64_t wall(void *self)
{
	struct scene *s = self;

	s->f->now += s->cost_ns;
	return s->f->now;
}

static int begin(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	void *f = NULL;
	int r = s ? fixture_memory(&f) : -1;

	if (r)
		return r;
	s->f = f;
	s->f->now = START;
	s->random = 1;
	s->clock = (struct clock){ monotonic, wall, s };
	(void)pthread_mutex_init(&s->server.lock, NULL);
	r = collector_new(&(struct collector_config){ .store = s->f->store,
						      .state = s->f->s,
						      .clock = &s->clock,
						      .body_max = MIB(1),
						      .expanded_max = MIB(1),
						      .samples_max = 1000,
						      .list_limit = 100,
						      .decoders = 1 },
			  &s->c);
	*state = s;
	return r;
}

static int end(void **state)
{
	struct scene *s = *state;
	void *f = s->f;

	collector_free(s->c);
	assert_int_equal(s->server.answer_bytes, 0);
	senders_release(&s->server.senders);
	(void)pthread_mutex_destroy(&s->server.lock);
	free(s);
	return fixture_end(&f);
}

/* A profile of the last @length_ns whose names do not get smaller by deflate: the picture of a LARGE one is larger than
 * what does not count. It is stored under its begin and comes now, as windows do. */
static void put_window(struct scene *s, size_t stacks, uint64_t length_ns)
{
	struct window w = { 0 };

	assert_int_equal(window_init(&w, MIB(16)), 0);
	assert_int_equal(model_add_value_type(w.model, STR("cpu"), STR("nanoseconds")), 0);
	w.start_ns = s->f->now - length_ns;
	w.end_ns = s->f->now;
	for (size_t i = 0; i < stacks; i++) {
		struct model_function function = { .kind = MODEL_KIND_NATIVE };
		struct model_line line = { 0 };
		struct model_location location = { .line_count = 1 };
		struct model_sample row = { 0 };
		const int64_t value = 1;
		char name[64];
		uint32_t at;
		size_t len = 0;

		while (len + 8 < sizeof(name)) {
			s->random = s->random * 1664525 + 1013904223;
			len += (size_t)snprintf(name + len, sizeof(name) - len, "%08x", s->random);
		}
		assert_int_equal(model_add_string(w.model, str_of(name), &function.name), 0);
		function.system_name = function.name;
		assert_int_equal(model_add_function(w.model, &function, &line.function), 0);
		assert_int_equal(model_add_location(w.model, &location, &line, &at), 0);
		assert_int_equal(model_add_stack(w.model, 0, at, &row.stack), 0);
		assert_int_equal(model_add_sample(w.model, &row, &value), 0);
	}
	(void)fixture_put(s->f, "a", "cpu", "host=h", w.start_ns, &w);
	live_changed(s->c->live, w.start_ns, &w);
	window_release(&w);
	s->f->now++;
}

static void put(struct scene *s, size_t stacks)
{
	put_window(s, stacks, 0);
}

static struct viewer *watch(struct scene *s, uint64_t sender, const char *query, unsigned int want)
{
	struct viewer *v = calloc(1, sizeof(*v));
	struct call call = { .collector = s->c };

	assert_non_null(v);
	v->s = s;
	v->link.fd = -1;
	(void)snprintf(v->query, sizeof(v->query), "%s", query);
	v->x = (struct http_exchange){ .server = &s->server, .link = &v->link };
	v->x.sender = sender_get(&s->server.senders, sender);
	v->x.request = (struct http_request){
		.exchange = &v->x, .query = str_of(v->query), .lane = HTTP_LANE_READ, .remote = STR("192.0.2.1")
	};
	v->x.response.body = (struct buf)BUF_INIT(MIB(1));
	call.rq = &v->x.request;
	call.rs = &v->x.response;
	call.now_ns = s->f->now;
	assert_int_equal(http_query_parse(call.rq->query, &call.query), 0);
	view_live(&call);
	http_query_release(&call.query);
	assert_int_equal(call.rs->status, want);
	return v;
}

static void leave(struct viewer *v)
{
	stream_end(&v->x);
	http_claim_release(&v->x.claim);
	response_release(&v->x.response);
	sender_put(&v->s->server.senders, v->x.sender, v->s->f->now);
	free(v);
}

/* What the connections' thread and a worker do with a stream whose reader has taken all. Return: as more(). */
static int next(struct viewer *v)
{
	buf_release(&v->x.piece);
	v->x.piece = (struct buf)BUF_INIT(HTTP_PIECE_MAX);
	v->x.lent = STR("");
	return stream_work(&v->x);
}

static struct str said(const struct viewer *v)
{
	return v->x.lent.len ? v->x.lent : buf_str(&v->x.piece);
}

static bool says(const struct viewer *v, const char *what)
{
	return str_search(said(v), str_of(what)) >= 0;
}

static bool sees_picture(struct viewer *v)
{
	return next(v) == 1 && says(v, "event: flame\n");
}

static struct viewer *greet(struct scene *s, uint64_t sender, const char *query)
{
	struct viewer *v = watch(s, sender, query, 200);

	assert_int_equal(next(v), 1);
	assert_true(says(v, "event: hello\n"));
	return v;
}

/* A question that nobody else has. */
static struct viewer *greet_own(struct scene *s, uint64_t sender, size_t number)
{
	char query[64];

	(void)snprintf(query, sizeof(query), "window=1m&max-nodes=%zu", 100000 + number);
	return greet(s, sender, query);
}

/* Memory */

static void equal_questions_share_a_picture(void **state)
{
	struct scene *s = *state;
	struct viewer *v[20];
	size_t one;

	put(s, LARGE);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = greet(s, 1 + i % 2, "window=1m");
	assert_true(sees_picture(v[0]));
	one = s->server.answer_bytes;
	assert_true(one > KIB(64));
	for (size_t i = 1; i < ARRAY_SIZE(v); i++)
		assert_true(sees_picture(v[i]));
	assert_int_equal(s->server.answer_bytes, one);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		leave(v[i]);
	assert_int_equal(s->server.answer_bytes, 0);
}

/* One who takes nothing more keeps an old picture, and pays for it; not who asked first. */
static void an_old_picture_counts_for_who_keeps_it(void **state)
{
	struct scene *s = *state;
	struct viewer *fast, *slow;

	put(s, LARGE);
	fast = greet(s, 1, "window=1m");
	slow = greet(s, 2, "window=1m");
	assert_true(sees_picture(fast) && sees_picture(slow));
	assert_true(fast->x.sender->answers > KIB(64));
	assert_int_equal(slow->x.sender->answers, 0);
	for (int i = 0; i < 5; i++) {
		s->f->now += 6 * S;
		put(s, LARGE);
		assert_true(sees_picture(fast));
		assert_true(slow->x.sender->answers > KIB(64) && slow->x.sender->answers < MIB(2));
		assert_int_equal(s->server.answer_bytes, fast->x.sender->answers + slow->x.sender->answers);
	}
	leave(fast);
	assert_true(slow->x.sender->answers > KIB(64));
	leave(slow);
}

static void slow_readers_are_bounded(void **state)
{
	struct scene *s = *state;
	struct viewer *v[VIEWERS_MAX], *other;
	size_t got = 0, waits = 0, first_waits = 0;

	put(s, LARGE);
	s->server.config.answers_max = MIB(2);
	for (size_t i = 0; i < VIEWERS_MAX; i++) {
		int r;

		v[i] = greet_own(s, 1, i);
		r = next(v[i]); /* and nothing more is taken */
		assert_true(r == 1 || r == -EAGAIN);
		got += r == 1;
		if (r == -EAGAIN && !waits++)
			first_waits = i;
		assert_true(s->server.answer_bytes <= MIB(2));
	}
	assert_true(got > 1 && waits > VIEWERS_MAX / 2);
	assert_true(v[0]->x.sender->answers <= MIB(1));
	other = greet(s, 2, "window=1m");
	assert_true(sees_picture(other));

	s->f->now += 5 * S;
	assert_int_equal(next(v[first_waits]), -EAGAIN);
	s->f->now += 6 * S;
	assert_int_equal(next(v[first_waits]), 1);
	assert_true(says(v[first_waits], "event: problem\n") && says(v[first_waits], HTTP_ANSWERS_FULL));
	assert_int_equal(next(v[first_waits]), -EAGAIN); /* it was said */
	for (size_t i = 0; i < first_waits; i++) {
		leave(v[i]);
		v[i] = NULL;
	}
	assert_true(sees_picture(v[first_waits]));
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		if (v[i])
			leave(v[i]);
	leave(other);
}

/* Pictures that feeds keep for who may come give way to others. */
static void kept_pictures_give_way(void **state)
{
	struct scene *s = *state;
	struct viewer *v[VIEWERS_MAX];

	put(s, LARGE);
	s->server.config.answers_max = MIB(1);
	for (size_t i = 0; i < VIEWERS_MAX; i++) {
		v[i] = greet_own(s, 1, i);
		assert_true(sees_picture(v[i]));
		assert_int_equal(next(v[i]), -EAGAIN); /* it is taken */
	}
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		leave(v[i]);
}

/* Time */

static void a_stream_ends_after_12_hours(void **state)
{
	struct scene *s = *state;
	struct viewer *v;

	put(s, SMALL);
	v = greet(s, 1, "window=1m");
	s->f->now += 12 * 3600 * S - 1;
	assert_int_equal(next(v), 1);
	assert_false(says(v, "event: bye\n"));
	s->f->now += 1;
	assert_int_equal(next(v), 0);
	assert_true(says(v, "event: bye\n") && says(v, "12 hours"));
	leave(v);
}

/* One picture and the end: of the range that streams have, which a profile of a whole window's length ago is in. */
static void one_picture_is_asked_for(void **state)
{
	struct scene *s = *state;
	struct viewer *v, *stays;

	put_window(s, SMALL, 10 * S);
	stays = greet(s, 1, "window=10s");
	assert_true(sees_picture(stays));
	v = greet(s, 1, "window=10s&once=1");
	assert_int_equal(next(v), 0);
	assert_true(says(v, "event: totals\n") && says(v, "event: flame\n"));
	leave(v);
	s->f->now += 60 * S;
	v = greet(s, 1, "window=10s&once=1");
	assert_int_equal(next(v), 0);
	assert_true(says(v, "event: empty\n"));
	leave(v);
	leave(stays);
	leave(watch(s, 1, "window=10s&once=", 200));
	leave(watch(s, 1, "window=10s&once=2", 400));
	leave(watch(s, 1, "window=start&once=1", 400));
	s->c->config.live_only = true;
	put(s, SMALL);
	v = greet(s, 1, "window=start&once=1");
	assert_int_equal(next(v), 0);
	assert_true(says(v, "event: flame\n"));
	leave(v);
}

/* Who asks once does not keep a connection until there is room. */
static void one_picture_without_room_is_said_at_once(void **state)
{
	struct scene *s = *state;
	struct viewer *v[VIEWERS_MAX], *once;

	put(s, LARGE);
	s->server.config.answers_max = MIB(1);
	for (size_t i = 0; i < VIEWERS_MAX; i++) {
		v[i] = greet_own(s, 1, i);
		(void)next(v[i]);
	}
	once = greet(s, 1, "window=1m&once=1");
	assert_int_equal(next(once), 0);
	assert_true(says(once, "event: problem\n") && says(once, HTTP_ANSWERS_FULL));
	leave(once);
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		leave(v[i]);
}

/* A picture that takes long comes seldom, and only that one. */
static void a_costly_picture_rests(void **state)
{
	struct scene *s = *state;
	struct viewer *costly, *cheap;
	uint64_t then;

	put(s, SMALL);
	costly = greet(s, 1, "window=1m&max-nodes=1000");
	then = s->f->now;
	s->cost_ns = S;
	assert_true(sees_picture(costly));
	s->cost_ns = 0;
	then = s->f->now - then; /* it took so long */
	assert_true(then >= S);
	cheap = greet(s, 1, "window=1m");
	assert_true(sees_picture(cheap));
	for (uint64_t waited = 0; waited + S <= 4 * then; waited += S) {
		assert_int_equal(next(costly), -EAGAIN);
		s->f->now += S;
		put(s, SMALL);
		assert_true(sees_picture(cheap));
	}
	s->f->now += S;
	assert_true(sees_picture(costly));
	leave(costly);
	leave(cheap);
}

/* The viewer whose stream makes the picture for all leaves meanwhile: the others are not told of it. */
static void one_that_leaves_takes_nobody_along(void **state)
{
	struct scene *s = *state;
	struct viewer *leaver, *stays;
	int pair[2];

	put(s, SMALL);
	leaver = greet(s, 1, "window=1m");
	stays = greet(s, 2, "window=1m");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	leaver->link.fd = pair[0];
	assert_int_equal(close(pair[1]), 0);
	assert_int_equal(next(leaver), -ECANCELED);
	assert_true(stays->x.stream_woken);
	assert_true(sees_picture(stays));
	leave(leaver);
	assert_int_equal(next(stays), -EAGAIN);
	s->f->now += 6 * S;
	assert_true(sees_picture(stays));
	leave(stays);
	assert_int_equal(close(pair[0]), 0);
}

/* How many */

/* So many streams more does somebody get. */
static size_t open_all(size_t *all, size_t own, bool has_token, bool is_local)
{
	size_t got = 0;

	while (live_may_open(&(struct live_load){ *all, own + got, has_token, is_local })) {
		got++;
		++*all;
	}
	return got;
}

static void nobody_has_all_streams(void **state)
{
	size_t all = 0, others = 0;

	(void)state;
	assert_int_equal(open_all(&all, 0, false, false), 128);
	assert_int_equal(open_all(&all, 0, true, false), 32);
	assert_true(open_all(&all, 0, false, false) >= 32);
	while (open_all(&all, 0, false, false))
		others++;
	assert_true(others > 50);
	assert_int_equal(open_all(&all, 0, false, true), 1); /* the machine itself */
	assert_true(all < 320);
}

/* Two addresses with all that they get, then a third one and loopback, through the door. */
static void a_third_address_gets_one(void **state)
{
	struct scene *s = *state;
	struct viewer *v[400];
	size_t count = 0;

	for (uint64_t sender = 1; sender <= 2; sender++) {
		struct viewer *refused;
		size_t before = count;

		while (count < before + (sender == 1 ? 128 : 64))
			v[count++] = watch(s, sender, "window=1m", 200);
		refused = watch(s, sender, "window=1m", 503);
		assert_true(str_search(buf_str(&refused->x.response.body), STR("too many live streams")) >= 0);
		leave(refused);
	}
	v[count++] = watch(s, 3, "window=1m", 200);
	v[count++] = watch(s, 4, "window=1m", 200);
	while (count)
		leave(v[--count]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_questions_share_a_picture, begin, end),
		cmocka_unit_test_setup_teardown(an_old_picture_counts_for_who_keeps_it, begin, end),
		cmocka_unit_test_setup_teardown(slow_readers_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(kept_pictures_give_way, begin, end),
		cmocka_unit_test_setup_teardown(a_stream_ends_after_12_hours, begin, end),
		cmocka_unit_test_setup_teardown(one_picture_is_asked_for, begin, end),
		cmocka_unit_test_setup_teardown(one_picture_without_room_is_said_at_once, begin, end),
		cmocka_unit_test_setup_teardown(a_costly_picture_rests, begin, end),
		cmocka_unit_test_setup_teardown(one_that_leaves_takes_nobody_along, begin, end),
		cmocka_unit_test_setup_teardown(a_third_address_gets_one, begin, end),
		cmocka_unit_test(nobody_has_all_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
