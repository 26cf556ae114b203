/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are made piece by piece while they are taken (docs/decisions/0010). A piece is made by a worker; while
 * it is, and while there is nothing to say, the connection is suspended, so that neither a worker nor the connections'
 * thread waits for anybody. */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "net/http_int.h"

#define PIECE_SMALL KIB(64) /* its memory does not count, so its reader may take its time */
#define STUCK_NS (20 * NSEC_PER_SEC)
#define RESUMED_AT_ONCE 64

static struct str piece_of(const struct http_exchange *x)
{
	return x->lent.len ? x->lent : buf_str(&x->piece);
}

static void drop_piece(struct http_exchange *x)
{
	buf_release(&x->piece);
	x->piece = (struct buf)BUF_INIT(HTTP_PIECE_MAX);
	x->lent = STR("");
	http_claim_release(&x->claim);
}

static void submit_or_wait(struct http_server *s, struct http_exchange *x)
{
	x->queued_ns = clock_monotonic_ns(&clock_system);
	x->stream_state = workers_submit_locked(s, x) ? STREAM_WORKING : STREAM_WAITING; /* the tick tries again */
	x->stream_retry = x->stream_state == STREAM_WAITING;
}

ssize_t stream_read(void *exchange, uint64_t at, char *to, size_t room)
{
	struct http_exchange *x = exchange;
	struct http_server *s = x->server;
	size_t left = atomic_load(&x->piece_left), size = MIN(room, left); /* no worker has it now */
	struct str piece = piece_of(x);

	(void)at;
	if (x->stream_state == STREAM_FAILED)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (size) {
		memcpy(to, piece.ptr + (piece.len - left), size);
		atomic_store(&x->piece_left, left - size);
		x->bytes_out += size;
		return (ssize_t)size;
	}
	drop_piece(x);
	if (x->stream_last)
		return MHD_CONTENT_READER_END_OF_STREAM;
	MHD_suspend_connection(x->connection);
	(void)pthread_mutex_lock(&s->lock);
	submit_or_wait(s, x);
	(void)pthread_mutex_unlock(&s->lock);
	return 0;
}

int stream_work(struct http_exchange *x)
{
	int r = x->response.stream.more(x->response.stream.ctx, &x->piece);

	r = x->piece.error ? x->piece.error : r;
	if (r < 0)
		drop_piece(x);
	else
		http_claim_give(&x->request, x->piece.cap, &x->claim); /* what it has become */
	return r;
}

void http_piece_lend(struct http_request *rq, struct str bytes)
{
	rq->exchange->lent = bytes;
}

void stream_settle(struct http_exchange *x, int r)
{
	struct http_server *s = x->server;
	bool resume = true;

	(void)pthread_mutex_lock(&s->lock);
	if (r == -EAGAIN && x->stream_woken) {
		x->stream_woken = false;
		submit_or_wait(s, x);
		resume = false;
	} else if (r == -EAGAIN) {
		x->stream_state = STREAM_WAITING;
		resume = false;
	} else {
		x->stream_state = r < 0 ? STREAM_FAILED : STREAM_READY;
		x->stream_last = r == 0;
		x->piece_size = r < 0 ? 0 : piece_of(x).len;
		atomic_store(&x->piece_left, x->piece_size);
		if (x->link)
			pace_begin(&x->link->piece_pace, clock_monotonic_ns(&clock_system), socket_acked(x->link->fd));
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (resume)
		MHD_resume_connection(x->connection); /* x may be gone from here on */
}

void http_stream_wake(struct http_request *rq)
{
	struct http_exchange *x = rq->exchange;
	struct http_server *s = x->server;

	(void)pthread_mutex_lock(&s->lock);
	if (x->stream_state == STREAM_WAITING)
		submit_or_wait(s, x);
	else
		x->stream_woken = true;
	(void)pthread_mutex_unlock(&s->lock);
}

bool http_stopping(const struct http_request *rq)
{
	return atomic_load(&rq->exchange->server->quiet);
}

bool stream_is_stuck(struct http_connection *c, uint64_t now_ns, uint64_t rate)
{
	const struct http_exchange *x = c->stream;
	uint64_t acked = socket_acked(c->fd);
	bool has_piece = x->stream_state == STREAM_READY && atomic_load(&x->piece_left), has_bytes;
	int waits = 0;

	if (has_piece && x->piece_size > PIECE_SMALL && pace_is_slow(&c->piece_pace, now_ns, acked, rate))
		return true;
	has_bytes = (ioctl(c->fd, SIOCOUTQ, &waits) == 0 && waits > 0) || has_piece;
	if (acked != c->moved_bytes || !has_bytes) {
		c->moved_bytes = acked;
		c->moved_ns = now_ns;
		return false;
	}
	return now_ns - MIN(c->moved_ns, now_ns) > STUCK_NS;
}

/* Nobody looks at a suspended connection but we. */
static bool has_gone(const struct http_connection *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* server->lock is held. Return: how many connections are to be resumed; a full @out: there may be more. */
static size_t streams_tick(struct http_server *s, bool all, struct MHD_Connection **out, size_t max)
{
	size_t count = 0;

	for (struct http_connection *c = s->connections; c && count < max; c = c->next) {
		struct http_exchange *x = c->stream;

		if (!x || x->stream_state != STREAM_WAITING)
			continue;
		if (all || has_gone(c)) {
			x->stream_state = STREAM_FAILED;
			out[count++] = x->connection;
		} else if (x->stream_retry) {
			submit_or_wait(s, x);
		}
	}
	return count;
}

void streams_resume(struct http_server *s, bool all)
{
	struct MHD_Connection *list[RESUMED_AT_ONCE];
	size_t count;

	do { /* one that is suspended does not go away before it is resumed */
		(void)pthread_mutex_lock(&s->lock);
		count = streams_tick(s, all, list, ARRAY_SIZE(list));
		(void)pthread_mutex_unlock(&s->lock);
		for (size_t i = 0; i < count; i++)
			MHD_resume_connection(list[i]);
	} while (count == ARRAY_SIZE(list));
}

void streams_say_stop(struct http_server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	for (struct http_connection *c = s->connections; c; c = c->next) {
		if (c->stream && c->stream->stream_state == STREAM_WAITING)
			submit_or_wait(s, c->stream);
		else if (c->stream)
			c->stream->stream_woken = true;
	}
	(void)pthread_mutex_unlock(&s->lock);
}

void stream_begin(struct http_exchange *x)
{
	x->piece = (struct buf)BUF_INIT(HTTP_PIECE_MAX);
	(void)pthread_mutex_lock(&x->server->lock);
	x->stream_state = STREAM_READY;
	if (x->link) {
		x->link->stream = x;
		x->link->moved_ns = clock_monotonic_ns(&clock_system);
	}
	(void)pthread_mutex_unlock(&x->server->lock);
}

void stream_end(struct http_exchange *x)
{
	struct http_stream *stream = &x->response.stream;

	if (x->link) {
		(void)pthread_mutex_lock(&x->server->lock);
		x->link->stream = NULL;
		(void)pthread_mutex_unlock(&x->server->lock);
	}
	if (stream->more && stream->close)
		stream->close(stream->ctx);
	stream->more = NULL;
	drop_piece(x);
}
