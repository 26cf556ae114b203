/* SPDX-License-Identifier: Apache-2.0 */
/* One request from its first line to the end of its answer, as libmicrohttpd steps through it. All of this runs in the
 * connections' thread, but for http_gone(). */
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>

#include "base/clock.h"
#include "net/http_int.h"

#define HEADERS_MAX 100
#define STREAM_BLOCK KIB(16)
#define BODY_AT_ONCE MIB(1) /* room for a body of this length is made before it comes */
#define DISCARD_MAX MIB(64) /* of a body nobody wants: beyond, the connection is cut */
#define BODY_SMALL KIB(512) /* bodies up to this have a quarter of the memory of all to themselves */

void response_release(struct http_response *rs)
{
	for (size_t i = 0; i < rs->header_count; i++) {
		free(rs->headers[i].name);
		free(rs->headers[i].value);
	}
	buf_release(&rs->body);
}

void http_header_set(struct http_response *rs, const char *name, struct str value)
{
	struct http_header *h = &rs->headers[rs->header_count];

	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
			return;
	if (rs->header_count == HTTP_HEADERS_OUT_MAX)
		return;
	*h = (struct http_header){ str_dup(str_of(name)), str_dup(value) };
	if (h->name && h->value) {
		rs->header_count++;
		return;
	}
	free(h->name);
	free(h->value);
}

struct str http_header_get(const struct http_request *rq, const char *name)
{
	return str_of(MHD_lookup_connection_value(rq->exchange->connection, MHD_HEADER_KIND, name));
}

static bool has_ended(const struct http_request *rq, short events)
{
	struct pollfd p = { .fd = rq->exchange->link ? rq->exchange->link->fd : -1, .events = events };

	if (atomic_load(&rq->exchange->server->stopping))
		return true;
	return p.fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & (events | POLLHUP | POLLERR));
}

bool http_gone(const struct http_request *rq)
{
	return has_ended(rq, POLLRDHUP);
}

bool http_broken(const struct http_request *rq)
{
	return has_ended(rq, 0);
}

static void name_remote(struct http_exchange *x)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *a = info ? info->client_addr : NULL;

	if (a && a->sa_family == AF_INET) {
		(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, x->remote,
				sizeof(x->remote));
	} else if (a && a->sa_family == AF_INET6) {
		const struct in6_addr *in = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
		bool is_v4 = IN6_IS_ADDR_V4MAPPED(in); /* of a socket for both: the address is the IPv4 one */

		(void)inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? in->s6_addr + 12 : in->s6_addr, x->remote,
				sizeof(x->remote));
	}
}

void *exchange_begin(void *server, const char *uri, struct MHD_Connection *connection)
{
	struct http_server *s = server;
	struct http_exchange *x = calloc(1, sizeof(*x));
	const union MHD_ConnectionInfo *info;
	size_t len = strlen(uri);

	if (!x)
		return NULL;
	x->server = s;
	x->connection = connection;
	x->request = (struct http_request){ .lane = HTTP_LANE_READ,
					    .is_tls = s->config.tls_cert != NULL,
					    .received_ns = clock_monotonic_ns(&clock_system),
					    .exchange = x };
	x->response.body = (struct buf)BUF_INIT(GIB(2));
	x->uri_too_long = len > s->config.path_max;
	x->uri = x->uri_too_long ? NULL : str_dup(str_n(uri, len));
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	x->link = info ? info->socket_context : NULL;
	name_remote(x);
	x->request.remote = str_of(x->remote);
	return x;
}

static void refuse(struct http_exchange *x, unsigned int status, const char *why)
{
	x->server->config.refuse(x->server->config.ctx, &x->request, status, why, &x->response);
}

struct header_check {
	size_t count, bytes, lengths, hosts, encodings;
	bool is_coded; /* a transfer coding other than chunked: where the body ends is not known */
};

static enum MHD_Result check_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct header_check *c = ctx;

	(void)kind;
	c->count++;
	c->bytes += strlen(name) + (value ? strlen(value) : 0) + 4;
	c->lengths += strcasecmp(name, "content-length") == 0;
	c->hosts += strcasecmp(name, "host") == 0;
	if (strcasecmp(name, "transfer-encoding") == 0) {
		c->encodings++;
		c->is_coded |= !value || strcasecmp(value, "chunked") != 0;
	}
	return MHD_YES;
}

/* Return: whether the header is fine; otherwise the response is filled. */
static bool header_ok(struct http_exchange *x)
{
	struct header_check c = { 0 };
	struct str length = http_header_get(&x->request, "Content-Length");
	uint64_t size;

	(void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, check_header, &c);
	if (x->uri_too_long)
		refuse(x, 414, "the address is too long");
	else if (!x->uri || !x->method)
		refuse(x, 503, "out of memory");
	else if (c.count > HEADERS_MAX || c.bytes > x->server->config.header_max)
		refuse(x, 431, "the header is too large");
	else if (c.lengths > 1 || c.hosts > 1 || c.encodings > 1 || (c.lengths && c.encodings))
		refuse(x, 400, "bad request: contradicting headers");
	else if (length.ptr && str_to_u64(length, 0, INT64_MAX, &size) < 0)
		refuse(x, 400, "bad request: bad Content-Length");
	else if (c.is_coded)
		refuse(x, 501, "no transfer coding but chunked is understood"); /* RFC 9112 6.1 */
	else
		return true;
	x->has_no_end = c.is_coded;
	x->response.close = true;
	return false;
}

uint64_t socket_acked(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ? 0 : info.tcpi_bytes_acked;
}

static void begin_to_answer(struct http_exchange *x)
{
	if (!x->link)
		return;
	(void)pthread_mutex_lock(&x->server->lock);
	x->link->answering = true;
	pace_begin(&x->link->pace, clock_monotonic_ns(&clock_system), socket_acked(x->link->fd));
	(void)pthread_mutex_unlock(&x->server->lock);
}

static struct MHD_Response *whole_answer(struct http_exchange *x)
{
	size_t len;
	char *bytes = buf_take(&x->response.body, &len);
	struct MHD_Response *out = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);

	x->bytes_out = len;
	if (!out)
		free(bytes);
	return out;
}

static enum MHD_Result answer(struct http_exchange *x)
{
	struct http_response *rs = &x->response;
	bool streams = rs->stream.more;
	struct MHD_Response *out;
	enum MHD_Result r;

	out = streams ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, x, NULL)
		      : whole_answer(x);
	if (!out)
		return MHD_NO;
	if (streams)
		stream_begin(x);
	if (rs->content_type)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, rs->content_type);
	for (size_t i = 0; i < rs->header_count; i++)
		(void)MHD_add_response_header(out, rs->headers[i].name, rs->headers[i].value);
	if (rs->close)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
	r = MHD_queue_response(x->connection, rs->status, out);
	x->queued_answer = r == MHD_YES;
	begin_to_answer(x);
	MHD_destroy_response(out);
	return r;
}

static bool waits_to_send(const struct http_request *rq)
{
	struct str expect = http_header_get(rq, "Expect");

	return expect.ptr && strcasecmp(expect.ptr, "100-continue") == 0;
}

/* The answer is known before the body is there. A client that is still sending would see a broken connection instead of
 * the answer, so a body of bearable size is read and thrown away first. */
static enum MHD_Result answer_early(struct http_exchange *x)
{
	struct str length = http_header_get(&x->request, "Content-Length");
	uint64_t size = 0;

	if (length.ptr && str_to_u64(length, 0, UINT64_MAX, &size) < 0)
		size = UINT64_MAX;
	if (waits_to_send(&x->request) || size > DISCARD_MAX || x->has_no_end) {
		x->response.close = true;
		return answer(x);
	}
	x->state = EXCHANGE_DISCARD;
	return MHD_YES;
}

static void split_uri(struct http_exchange *x)
{
	struct str uri = str_of(x->uri);
	ptrdiff_t mark = str_find(uri, '?');

	x->request.path = mark < 0 ? uri : str_first(uri, (size_t)mark);
	x->request.query = mark < 0 ? STR("") : str_skip(uri, (size_t)mark + 1);
	x->request.method = str_of(x->method);
}

/* begin() may have said whom the request is done for. */
static void name_sender(struct http_exchange *x)
{
	struct http_server *s = x->server;
	const union MHD_ConnectionInfo *info;
	uint64_t id = x->request.sender;

	if (!id) {
		info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
		id = info && info->client_addr ? sender_address(info->client_addr) : 1;
	}
	(void)pthread_mutex_lock(&s->lock);
	x->sender = sender_get(&s->senders, id);
	(void)pthread_mutex_unlock(&s->lock);
}

uint64_t http_sender(const struct http_request *rq)
{
	return rq->exchange->sender ? rq->exchange->sender->id : 1;
}

static enum MHD_Result first_step(struct http_exchange *x, const char *method)
{
	struct http_server *s = x->server;
	struct str length = http_header_get(&x->request, "Content-Length");
	uint64_t size = 0;

	(void)pthread_mutex_lock(&s->lock);
	s->busy++;
	x->counted = true;
	if (x->link) {
		x->link->busy = x->link->reading = true;
		x->link->heard_ns = clock_monotonic_ns(&clock_system);
		x->link->held = 0;
		pace_begin(&x->link->pace, x->link->heard_ns, 0);
		x->link->requests++;
	}
	(void)pthread_mutex_unlock(&s->lock);
	x->method = str_dup(str_of(method));
	if (x->uri && x->method)
		split_uri(x);
	if (!header_ok(x))
		return answer_early(x);
	if (atomic_load(&s->quiet)) {
		refuse(x, 503, "the server stops");
		x->response.close = true;
		return answer_early(x);
	}
	if (!s->config.begin(s->config.ctx, &x->request, &x->response))
		return answer_early(x);
	if (length.ptr)
		ignore(str_to_u64(length, 0, UINT64_MAX, &size)); /* header_ok() looked at it */
	name_sender(x);
	if (size > x->request.body_max && x->request.body_max) {
		refuse(x, 413, "the body is too large");
		return answer_early(x);
	}
	x->body.max = x->request.body_max;
	if (size && size <= BODY_AT_ONCE)
		(void)buf_reserve(&x->body, size); /* without memory: take_bytes() finds out */
	x->state = EXCHANGE_BODY;
	return MHD_YES;
}

/* A piece of a body came. Return: whether it comes fast enough. */
static bool hear(struct http_exchange *x, size_t size)
{
	struct http_server *s = x->server;
	uint64_t now = clock_monotonic_ns(&clock_system);
	bool slow = false;

	if (!x->link)
		return true;
	(void)pthread_mutex_lock(&s->lock);
	x->link->heard_ns = now;
	x->link->held = x->claimed;
	slow = pace_is_slow(&x->link->pace, now, x->link->pace.bytes + size, body_need(s, x->link));
	(void)pthread_mutex_unlock(&s->lock);
	return !slow;
}

static void stop_reading(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->server->lock);
	if (x->link)
		x->link->reading = false;
	(void)pthread_mutex_unlock(&x->server->lock);
}

/* What is kept free for small bodies; less where a single large one would not fit beside it. */
static size_t kept_for_small(const struct http_exchange *x)
{
	size_t max = x->server->config.bodies_max;

	return MIN(max / 4, max - MIN(x->body.max, max));
}

/* server->lock is held. The memory of all bodies has a limit. Large ones leave some of it to small ones. A sender may
 * have one large body of any size, and otherwise as much as it leaves to the others. */
static bool may_claim(const struct http_exchange *x, size_t size, bool is_large)
{
	const struct http_server *s = x->server;
	const struct http_sender *sender = x->sender;
	size_t max = s->config.bodies_max, moved = is_large && !x->is_large ? x->claimed : 0;
	size_t large_left;

	if (s->body_bytes + size > max)
		return false;
	if (!is_large)
		return !sender || sender->body_small + size <= MAX(max - s->body_bytes, (size_t)BODY_SMALL);
	max -= kept_for_small(x);
	if (s->body_large + moved + size > max)
		return false;
	large_left = max - s->body_large - moved;
	return !sender || sender->body_large == (x->is_large ? x->claimed : 0) ||
	       sender->body_large + moved + size <= large_left;
}

/* server->lock is held. @claimed: all that the body has from now on. */
static void account(struct http_exchange *x, size_t claimed, bool is_large)
{
	struct http_server *s = x->server;
	size_t *before = NULL, *after = NULL;

	if (x->sender) {
		before = x->is_large ? &x->sender->body_large : &x->sender->body_small;
		after = is_large ? &x->sender->body_large : &x->sender->body_small;
		*before -= x->claimed;
		*after += claimed;
	}
	s->body_bytes += claimed - x->claimed;
	s->body_large -= x->is_large ? x->claimed : 0;
	s->body_large += is_large ? claimed : 0;
	x->claimed = claimed;
	x->is_large = is_large;
}

static bool claim(struct http_exchange *x, size_t size)
{
	struct http_server *s = x->server;
	bool is_large = x->claimed + size > BODY_SMALL, fits;

	(void)pthread_mutex_lock(&s->lock);
	fits = may_claim(x, size, is_large);
	if (fits)
		account(x, x->claimed + size, is_large);
	(void)pthread_mutex_unlock(&s->lock);
	return fits;
}

static void drop_body(struct http_exchange *x)
{
	buf_release(&x->body);
	(void)pthread_mutex_lock(&x->server->lock);
	account(x, 0, false);
	(void)pthread_mutex_unlock(&x->server->lock);
}

static void give_up(struct http_exchange *x, unsigned int status, const char *why, const char *retry)
{
	drop_body(x);
	refuse(x, status, why);
	if (retry)
		http_header_set(&x->response, "Retry-After", str_of(retry));
	x->state = EXCHANGE_DISCARD;
}

static enum MHD_Result take_bytes(struct http_exchange *x, const char *data, size_t size)
{
	if (!hear(x, size)) {
		atomic_fetch_add(&x->server->timed_out, 1);
		return MHD_NO;
	}
	if (x->state == EXCHANGE_DISCARD || !x->request.body_max) { /* nobody reads it */
		x->discarded += size;
		return x->discarded > DISCARD_MAX ? MHD_NO : MHD_YES;
	}
	if (size > x->body.max - x->body.len) {
		give_up(x, 413, "the body is too large", NULL);
	} else if (!claim(x, size)) {
		atomic_fetch_add(&x->server->refused_bytes, 1);
		give_up(x, 503, "too many uploads at once", "1");
	} else {
		buf_add(&x->body, data, size);
		if (x->body.error)
			give_up(x, 503, "out of memory", "1");
	}
	return MHD_YES;
}

/* Everything has come: hand over to a worker. */
static enum MHD_Result run(struct http_exchange *x)
{
	x->request.body = buf_str(&x->body);
	stop_reading(x);
	if (x->server->config.weigh)
		x->weight = x->server->config.weigh(x->server->config.ctx, &x->request);
	x->state = EXCHANGE_RUNNING;
	MHD_suspend_connection(x->connection);
	if (workers_submit(x->server, x))
		return MHD_YES;
	refuse_busy(x);
	x->state = EXCHANGE_DONE;
	MHD_resume_connection(x->connection);
	return MHD_YES;
}

enum MHD_Result exchange_step(void *server, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *data, size_t *size, void **state)
{
	struct http_exchange *x = *state;

	(void)server;
	(void)connection;
	(void)url;
	(void)version;
	if (!x)
		return MHD_NO;
	if (x->state == EXCHANGE_NEW)
		return first_step(x, method);
	if (*size) {
		size_t given = *size;

		*size = 0;
		return take_bytes(x, data, given);
	}
	if (x->state == EXCHANGE_BODY)
		return run(x);
	if (x->queued_answer || x->state == EXCHANGE_RUNNING)
		return MHD_YES;
	return answer(x);
}

void exchange_end(void *server, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
	struct http_exchange *x = *state;
	struct http_server *s = server;
	bool sent;

	(void)connection;
	if (!x)
		return;
	*state = NULL;
	sent = x->queued_answer && code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
	if (x->uri && x->method && x->request.path.ptr)
		s->config.done(s->config.ctx, &x->request, sent ? x->response.status : 0, x->bytes_out);
	(void)pthread_mutex_lock(&s->lock);
	s->busy -= x->counted;
	(void)pthread_cond_broadcast(&s->drained);
	if (x->link) {
		x->link->busy = x->link->reading = x->link->answering = false;
		x->link->since_ns = clock_monotonic_ns(&clock_system);
	}
	(void)pthread_mutex_unlock(&s->lock);
	drop_body(x);
	stream_end(x);
	http_claim_release(&x->claim);
	(void)pthread_mutex_lock(&s->lock);
	sender_put(&s->senders, x->sender, clock_monotonic_ns(&clock_system));
	(void)pthread_mutex_unlock(&s->lock);
	response_release(&x->response);
	free(x->uri);
	free(x->method);
	free(x);
}
