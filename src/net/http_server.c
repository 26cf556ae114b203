/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/http_int.h"

#define CONNECTION_MEMORY KIB(96) /* of one connection: header and a piece of the body */
/* Connections that nobody has accepted yet. They are served in order, at up to 0.3 ms each where a flood sends pieces
 * of bodies: 512 of them kept everybody waiting for 130 ms. Beyond it the kernel drops the SYN, which is sent again. */
#define BACKLOG 128
#define ITEMS_MAX 32
#define LEFT_NS (50 * NSEC_PER_MSEC) /* of silence before it is looked whether a sender has left */
#define LOOKS 8                      /* connections that are looked at when one comes */
#define GRACE_NS (10 * NSEC_PER_SEC) /* a body or an answer that takes longer may have to give way */

/* Listening */

static int open_socket(const struct addrinfo *a)
{
	int on = 1, off = 0, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* best effort */
	if (a->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* an empty host is both */
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	off = -errno;
	(void)close(fd);
	return off;
}

int http_listen(struct str host, uint16_t port, struct buf *why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *found = NULL;
	scoped(freep) char *name = host.len ? str_dup(host) : NULL;
	char service[8];
	int r, fd = -EADDRNOTAVAIL;

	(void)snprintf(service, sizeof(service), "%u", port);
	hints.ai_family = host.len ? AF_UNSPEC : AF_INET6;
	r = getaddrinfo(name, service, &hints, &found);
	if (r) {
		buf_addf(why, "'" STR_FMT "': %s", STR_ARG(host), gai_strerror(r));
		return -EINVAL;
	}
	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
		fd = open_socket(a);
	freeaddrinfo(found);
	if ((fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) && !host.len) /* a machine without IPv6 */
		return http_listen(STR("0.0.0.0"), port, why);
	if (fd < 0)
		buf_addf(why, "cannot listen on " STR_FMT ":%u: %s", STR_ARG(host), port, strerror(-fd));
	return fd;
}

uint16_t http_listen_port(int fd)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return 0;
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&a)->sin6_port
					     : ((struct sockaddr_in *)(void *)&a)->sin_port);
}

/* Connections */

/* Its thread sees the end and closes it. */
static void end_connection(struct http_connection *c)
{
	c->ended = true;
	(void)shutdown(c->fd, SHUT_RDWR);
}

/* libmicrohttpd takes the end of a connection that came together with bytes for the bytes alone, and would wait for
 * more (0.9.75, edge-triggered epoll: the event is gone once something was read). A sender that ends its side behind
 * the whole body has not left: what it sent may still wait for us. */
static bool has_left(const struct http_connection *c, uint64_t now_ns)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
	int waits = 0;

	return now_ns - MIN(c->heard_ns, now_ns) > LEFT_NS && poll(&p, 1, 0) == 1 &&
	       (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) && ioctl(c->fd, FIONREAD, &waits) == 0 && !waits;
}

/* server->lock is held. Bodies whose senders have left, before they fill the room that others need: a few with each
 * connection that comes, in turn, so that they end one by one. Hundreds that end at once keep everybody waiting. */
static void end_abandoned(struct http_server *s)
{
	uint64_t now = clock_monotonic_ns(&clock_system);

	for (int i = 0; i < LOOKS; i++) {
		struct http_connection *c = s->look_at ? s->look_at : s->connections;

		if (!c)
			return;
		s->look_at = c->next;
		if (c->reading && !c->ended && c->fd >= 0 && has_left(c, now))
			end_connection(c);
	}
}

enum standing {
	STANDS_IDLE,   /* no request's header is there */
	STANDS_FRESH,  /* nor can it be expected to be */
	STANDS_READER, /* takes its answer, for long */
	STANDS_SENDER, /* sends its body, for long */
	STANDS_WORKS,  /* we are to blame for the wait, or it has just begun */
};

static enum standing standing_of(const struct http_connection *c, uint64_t now_ns)
{
	if (!c->busy)
		return !c->requests && now_ns - MIN(c->since_ns, now_ns) < NSEC_PER_SEC ? STANDS_FRESH : STANDS_IDLE;
	if (!(c->reading || c->answering) || now_ns - MIN(c->pace.since_ns, now_ns) < GRACE_NS)
		return STANDS_WORKS;
	return c->answering ? STANDS_READER : STANDS_SENDER;
}

static uint64_t stands_since(const struct http_connection *c)
{
	return c->busy ? c->pace.since_ns : c->since_ns;
}

/* Whether @a has to go rather than @b: who holds most, then who does least, then who is here longest. */
static bool goes_before(const struct http_connection *a, const struct http_connection *b, uint64_t now_ns)
{
	size_t of_a = a->peer ? a->peer->connections : 0, of_b = b->peer ? b->peer->connections : 0;
	enum standing is_a, is_b;

	if (of_a != of_b)
		return of_a > of_b;
	is_a = standing_of(a, now_ns);
	is_b = standing_of(b, now_ns);
	return is_a != is_b ? is_a < is_b : stands_since(a) < stands_since(b);
}

/* server->lock is held. Above four fifths of all connections each new one costs one of the address that holds most.
 * libmicrohttpd accepts none at all once it has as many as it may. */
static void make_room(struct http_server *s, const struct http_connection *fresh)
{
	uint64_t now = clock_monotonic_ns(&clock_system);
	struct http_connection *worst = NULL;
	bool spare = s->connection_count <= s->config.connections_max / 20 * 19;

	if (s->connection_count <= s->config.connections_max / 5 * 4)
		return;
	for (struct http_connection *c = s->connections; c; c = c->next)
		if (c != fresh && c->fd >= 0 && !c->ended && standing_of(c, now) != STANDS_WORKS &&
		    !(spare && standing_of(c, now) == STANDS_FRESH) && (!worst || goes_before(c, worst, now)))
			worst = c;
	if (!worst)
		return;
	end_connection(worst);
	atomic_fetch_add(&s->made_room, 1);
}

static void link_connection(struct http_server *s, struct http_connection *c)
{
	(void)pthread_mutex_lock(&s->lock);
	c->next = s->connections;
	c->at = &s->connections;
	if (c->next)
		c->next->at = &c->next;
	s->connections = c;
	s->connection_count++;
	if (c->peer)
		c->peer->connections++;
	end_abandoned(s);
	make_room(s, c);
	(void)pthread_mutex_unlock(&s->lock);
	atomic_fetch_add(&s->accepted, 1);
}

static void unlink_connection(struct http_server *s, struct http_connection *c)
{
	(void)pthread_mutex_lock(&s->lock);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	if (s->look_at == c)
		s->look_at = c->next;
	s->connection_count--;
	if (c->peer)
		c->peer->connections--;
	sender_put(&s->senders, c->peer, clock_monotonic_ns(&clock_system));
	(void)pthread_mutex_unlock(&s->lock);
	free(c);
}

static void on_connection(void *server, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_connection *c = *context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (c)
			unlink_connection(server, c);
		*context = NULL;
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return; /* served without a watch; libmicrohttpd's own timeout stays */
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	c->fd = info ? info->connect_fd : -1;
	c->since_ns = clock_monotonic_ns(&clock_system);
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	(void)pthread_mutex_lock(&((struct http_server *)server)->lock);
	if (info && info->client_addr)
		c->peer = sender_get(&((struct http_server *)server)->senders, sender_address(info->client_addr));
	(void)pthread_mutex_unlock(&((struct http_server *)server)->lock);
	link_connection(server, c);
	*context = c;
}

/* While large bodies fill more than half of their memory, each has to be done within about a minute. */
uint64_t body_need(const struct http_server *s, const struct http_connection *c)
{
	bool short_of_memory = s->body_large > s->config.bodies_max / 8 * 3;

	return MAX(s->config.body_rate, short_of_memory ? c->held / 64 : 0);
}

static bool has_to_go(struct http_server *s, struct http_connection *c, uint64_t now_ns)
{
	if (c->answering && c->stream)
		return stream_is_stuck(c, now_ns, s->config.answer_rate);
	if (c->answering) /* what a peer acknowledged lies in its own buffer */
		return pace_is_slow(&c->pace, now_ns, socket_acked(c->fd), s->config.answer_rate);
	if (c->reading)
		return pace_is_slow(&c->pace, now_ns, c->pace.bytes, body_need(s, c)) || has_left(c, now_ns);
	return !c->busy && now_ns - c->since_ns > (c->requests ? s->config.idle_ns : s->config.header_ns);
}

void http_server_tick(struct http_server *s)
{
	uint64_t now;

	(void)pthread_mutex_lock(&s->lock);
	/* Here, so that no time noted under the lock is later: the difference would wrap, and a connection that just
	 * began would count as slow. */
	now = clock_monotonic_ns(&clock_system);
	for (struct http_connection *c = s->connections; c; c = c->next) {
		if (c->fd < 0 || c->ended || !has_to_go(s, c, now))
			continue;
		end_connection(c);
		atomic_fetch_add(&s->timed_out, 1);
	}
	senders_tidy(&s->senders, now);
	(void)pthread_mutex_unlock(&s->lock);
	streams_resume(s, false);
}

printf_like(2, 0) static void on_log(void *ctx, const char *format, va_list args)
{
	scoped(freep) char *text = NULL;

	(void)ctx;
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	log_debug("http", LOG_STR("text", str_trim(str_of(text ? text : format))));
}

static size_t keep_escapes(void *ctx, struct MHD_Connection *connection, char *text)
{
	(void)ctx;
	(void)connection;
	return strlen(text); /* we read paths and queries ourselves */
}

/* Life */

struct items {
	struct MHD_OptionItem list[ITEMS_MAX];
	size_t count;
};

static void add_item(struct items *items, enum MHD_OPTION option, intptr_t value, void *pointer)
{
	must(items->count + 1 < ITEMS_MAX);
	items->list[items->count++] = (struct MHD_OptionItem){ option, value, pointer };
}

static int start_daemon(struct http_server *s)
{
	const struct http_server_config *c = &s->config;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct items items = { 0 };

	add_item(&items, MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_log, s);
	add_item(&items, MHD_OPTION_LISTEN_SOCKET, c->listen_fd, NULL);
	add_item(&items, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL);
	add_item(&items, MHD_OPTION_CONNECTION_LIMIT, (intptr_t)c->connections_max, NULL);
	add_item(&items, MHD_OPTION_PER_IP_CONNECTION_LIMIT, (intptr_t)c->connections_per_ip, NULL);
	add_item(&items, MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)(c->idle_ns / NSEC_PER_SEC + 1), NULL);
	add_item(&items, MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)exchange_begin, s);
	add_item(&items, MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)exchange_end, s);
	add_item(&items, MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s);
	add_item(&items, MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escapes, s);
	add_item(&items, MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
	if (c->tls_cert) {
		flags |= MHD_USE_TLS;
		add_item(&items, MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)http_tls_select);
		add_item(&items, MHD_OPTION_HTTPS_PRIORITIES, 0,
			 (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE");
	}
	add_item(&items, MHD_OPTION_END, 0, NULL);
	s->daemon =
		MHD_start_daemon(flags, 0, NULL, NULL, exchange_step, s, MHD_OPTION_ARRAY, items.list, MHD_OPTION_END);
	return s->daemon ? 0 : -EIO;
}

static int open_server(struct http_server *s, struct buf *why)
{
	int r = 0;

	if (s->config.tls_cert) {
		s->tls.cert_path = s->config.tls_cert;
		s->tls.key_path = s->config.tls_key;
		r = http_tls_load(&s->tls, why);
		r = r ? r : http_tls_use(&s->tls);
	}
	r = r ? r : workers_start(s);
	r = r ? r : start_daemon(s);
	if (r < 0 && !why->len)
		buf_addf(why, "cannot start the HTTP server: %s", strerror(-r));
	return r;
}

int http_server_open(const struct http_server_config *config, struct buf *why, struct http_server **out)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		(void)close(config->listen_fd);
		return -ENOMEM;
	}
	s->config = *config;
	(void)pthread_mutex_init(&s->lock, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_mutex_init(&s->reload_lock, NULL);
	for (int lane = 0; lane < HTTP_LANES; lane++)
		(void)pthread_cond_init(&s->queues[lane].changed, NULL);
	(void)pthread_cond_init(&s->drained, NULL);
	r = open_server(s, why);
	if (r < 0) {
		http_server_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int http_server_reload(struct http_server *s)
{
	int r;

	if (!s->config.tls_cert)
		return 0;
	(void)pthread_mutex_lock(&s->reload_lock);
	r = http_tls_load(&s->tls, NULL);
	(void)pthread_mutex_unlock(&s->reload_lock);
	return r;
}

void http_server_stats(struct http_server *s, struct http_stats *out)
{
	(void)pthread_mutex_lock(&s->lock);
	*out = (struct http_stats){ .connections = s->connection_count,
				    .body_bytes = s->body_bytes,
				    .answer_bytes = s->answer_bytes };
	for (int lane = 0; lane < HTTP_LANES; lane++)
		out->waiting[lane] = s->queues[lane].count;
	(void)pthread_mutex_unlock(&s->lock);
	out->made_room = s->made_room;
	out->refused_answers = s->refused_answers;
	out->accepted = s->accepted;
	out->refused_busy = s->refused_busy;
	out->refused_bytes = s->refused_bytes;
	out->timed_out = s->timed_out;
}

void http_server_stop(struct http_server *s, uint64_t grace_ns)
{
	if (s->stopped)
		return;
	s->stopped = true;
	if (s->daemon)
		(void)MHD_quiesce_daemon(s->daemon); /* the descriptor is config.listen_fd */
	(void)close(s->config.listen_fd);
	atomic_store(&s->quiet, true);
	streams_say_stop(s);
	(void)workers_drain(s, grace_ns); /* what is not done by then ends now */
	atomic_store(&s->stopping, true);
	workers_stop(s);
	streams_resume(s, true);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	s->daemon = NULL;
}

void http_server_close(struct http_server *s)
{
	if (!s)
		return;
	http_server_stop(s, 0);
	if (s->config.tls_cert)
		ignore(http_tls_use(NULL)); /* cannot fail */
	http_tls_release(&s->tls);
	for (int lane = 0; lane < HTTP_LANES; lane++)
		(void)pthread_cond_destroy(&s->queues[lane].changed);
	senders_release(&s->senders);
	(void)pthread_cond_destroy(&s->drained);
	(void)pthread_mutex_destroy(&s->reload_lock);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}
