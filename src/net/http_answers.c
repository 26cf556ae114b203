/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of what is made and not taken by its reader yet: whole answers, pieces of streams, what several of them share.
 * One budget for all, shared between senders. */
#include "base/clock.h"
#include "net/http_int.h"

#define ANSWER_SMALL KIB(64) /* always let through: health, lists, errors, events without a picture */

/* server->lock is held. One claim of any size, then at most as much as is left to the others. @before is given back. */
static bool has_room(const struct http_server *s, const struct http_sender *sender, size_t bytes,
		     const struct http_claim *before)
{
	const size_t max = s->config.answers_max, left = max - MIN(s->answer_bytes - before->bytes, max);
	const size_t others = sender ? sender->answers - (before->sender == sender ? before->bytes : 0) : 0;

	if (!max || bytes <= ANSWER_SMALL)
		return true;
	return bytes <= left && (!others || others + bytes <= left);
}

/* server->lock is held. What @c had before is given back. */
static void charge(struct http_server *s, struct http_sender *sender, size_t bytes, struct http_claim *c)
{
	const struct http_claim before = *c;

	bytes = bytes > ANSWER_SMALL ? bytes : 0;
	*c = (struct http_claim){ .server = s, .sender = bytes ? sender : NULL, .bytes = bytes };
	s->answer_bytes += bytes;
	if (c->sender) {
		c->sender->refs++;
		c->sender->answers += bytes;
	}
	s->answer_bytes -= before.bytes;
	if (before.sender) {
		before.sender->answers -= before.bytes;
		sender_put(&s->senders, before.sender, clock_monotonic_ns(&clock_system));
	}
}

bool http_claim(const struct http_request *rq, size_t bytes, struct http_claim *out)
{
	struct http_exchange *x = rq->exchange;
	struct http_server *s = x->server;
	bool fits;

	(void)pthread_mutex_lock(&s->lock);
	fits = has_room(s, x->sender, bytes, out);
	if (fits)
		charge(s, x->sender, bytes, out);
	(void)pthread_mutex_unlock(&s->lock);
	return fits;
}

void http_claim_give(const struct http_request *rq, size_t bytes, struct http_claim *c)
{
	struct http_exchange *x = rq->exchange;

	(void)pthread_mutex_lock(&x->server->lock);
	charge(x->server, x->sender, bytes, c);
	(void)pthread_mutex_unlock(&x->server->lock);
}

void http_claim_release(struct http_claim *c)
{
	struct http_server *s = c->server;

	if (!s)
		return;
	(void)pthread_mutex_lock(&s->lock);
	charge(s, NULL, 0, c);
	(void)pthread_mutex_unlock(&s->lock);
}

bool http_piece_claim(struct http_request *rq, size_t bytes)
{
	struct http_exchange *x = rq->exchange;

	if (http_claim(rq, bytes, &x->claim))
		return true;
	x->stream_retry = true; /* a worker has it: nobody else looks */
	return false;
}

void answer_hold(struct http_exchange *x)
{
	if (http_claim(&x->request, x->response.body.cap, &x->claim))
		return;
	response_release(&x->response);
	x->response = (struct http_response){ .body = BUF_INIT(GIB(2)) };
	http_answers_refuse(&x->request, &x->response);
}

bool http_answers_full(const struct http_request *rq)
{
	const struct http_sender *sender = rq->exchange->sender;
	struct http_server *s = rq->exchange->server;
	size_t left;
	bool full;

	(void)pthread_mutex_lock(&s->lock);
	left = s->config.answers_max - MIN(s->answer_bytes, s->config.answers_max);
	full = s->config.answers_max && (left <= s->config.answers_max / 8 || (sender && sender->answers >= left / 2));
	(void)pthread_mutex_unlock(&s->lock);
	return full;
}

void http_answers_refuse(const struct http_request *rq, struct http_response *rs)
{
	struct http_server *s = rq->exchange->server;

	atomic_fetch_add(&s->refused_answers, 1);
	s->config.refuse(s->config.ctx, rq, 503, HTTP_ANSWERS_FULL, rs);
	http_header_set(rs, "Retry-After", STR("5"));
}
