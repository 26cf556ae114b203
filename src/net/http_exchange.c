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
#define ANSWER_SMALL KIB(64)
#define BODY_AT_ONCE MIB(1) /* room for a body of this length is made before it comes */
#define DISCARD_MAX MIB(64) /* of a body nobody wants: beyond, the connection is cut */

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

	if (a && a->sa_family == AF_INET)
		(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, x->remote,
				sizeof(x->remote));
	else if (a && a->sa_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, x->remote,
				sizeof(x->remote));
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
	x->server->config.refuse(x->server->config.ctx, status, why, &x->response);
}

struct header_check {
	size_t count, bytes, lengths, hosts, encodings;
};

static enum MHD_Result check_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct header_check *c = ctx;

	(void)kind;
	c->count++;
	c->bytes += strlen(name) + (value ? strlen(value) : 0) + 4;
	c->lengths += strcasecmp(name, "content-length") == 0;
	c->hosts += strcasecmp(name, "host") == 0;
	c->encodings += strcasecmp(name, "transfer-encoding") == 0;
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
	else
		return true;
	x->response.close = true;
	return false;
}

/* Memory of answers that nobody takes: each waits in full. Small ones are always let through: health, lists, errors. */
void answer_hold(struct http_exchange *x)
{
	struct http_server *s = x->server;
	size_t size = x->response.body.cap;

	if (size <= ANSWER_SMALL || !s->config.answers_max)
		return;
	x->held = size;
	if (atomic_fetch_add(&s->answer_bytes, size) + size <= s->config.answers_max)
		return;
	atomic_fetch_sub(&s->answer_bytes, size);
	x->held = 0;
	response_release(&x->response);
	x->response = (struct http_response){ .body = BUF_INIT(GIB(2)) };
	http_answers_refuse(&x->request, &x->response);
}

bool http_answers_full(const struct http_request *rq)
{
	const struct http_server *s = rq->exchange->server;

	return s->config.answers_max && s->answer_bytes >= s->config.answers_max / 8 * 7;
}

void http_answers_refuse(const struct http_request *rq, struct http_response *rs)
{
	struct http_server *s = rq->exchange->server;

	atomic_fetch_add(&s->refused_answers, 1);
	s->config.refuse(s->config.ctx, 503, "too many large answers wait for their readers", rs);
	http_header_set(rs, "Retry-After", STR("5"));
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
	x->link->answer_since_ns = clock_monotonic_ns(&clock_system);
	x->link->acked = socket_acked(x->link->fd);
	(void)pthread_mutex_unlock(&x->server->lock);
}

static enum MHD_Result answer(struct http_exchange *x)
{
	struct http_response *rs = &x->response;
	struct MHD_Response *out;
	enum MHD_Result r;
	size_t len;
	char *bytes = buf_take(&rs->body, &len);

	out = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
	if (!out) {
		free(bytes);
		return MHD_NO;
	}
	if (rs->content_type && len)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, rs->content_type);
	for (size_t i = 0; i < rs->header_count; i++)
		(void)MHD_add_response_header(out, rs->headers[i].name, rs->headers[i].value);
	if (rs->close)
		(void)MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
	r = MHD_queue_response(x->connection, rs->status, out);
	x->queued_answer = r == MHD_YES;
	x->bytes_out = len;
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
	if (waits_to_send(&x->request) || size > DISCARD_MAX) {
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
		x->link->body_since_ns = x->link->heard_ns = clock_monotonic_ns(&clock_system);
		x->link->got = 0;
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
	x->link->got += size;
	slow = connection_is_slow(&s->config, x->link, now);
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

/* The memory of all bodies together has a limit. */
static bool claim(struct http_exchange *x, size_t size)
{
	struct http_server *s = x->server;

	if (atomic_fetch_add(&s->body_bytes, size) + size <= s->config.bodies_max) {
		x->claimed += size;
		return true;
	}
	atomic_fetch_sub(&s->body_bytes, size);
	return false;
}

static void drop_body(struct http_exchange *x)
{
	buf_release(&x->body);
	atomic_fetch_sub(&x->server->body_bytes, x->claimed);
	x->claimed = 0;
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
	x->state = EXCHANGE_RUNNING;
	MHD_suspend_connection(x->connection);
	if (workers_submit(x->server, x))
		return MHD_YES;
	atomic_fetch_add(&x->server->refused_busy, 1);
	refuse(x, 503, "too many requests at once");
	http_header_set(&x->response, "Retry-After", STR("1"));
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
		x->link->busy = x->link->reading = false;
		x->link->answer_since_ns = 0;
		x->link->since_ns = clock_monotonic_ns(&clock_system);
	}
	(void)pthread_mutex_unlock(&s->lock);
	drop_body(x);
	atomic_fetch_sub(&s->answer_bytes, x->held);
	response_release(&x->response);
	free(x->uri);
	free(x->method);
	free(x);
}
