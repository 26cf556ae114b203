/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cli/browser.h"
#include "cli/view_gate.h"
#include "collector/confine.h"
#include "net/http_parse.h"

#define STACK_BYTES MIB(1) /* of each thread: they count for --memory-limit */
#define GRACE_NS (200 * NSEC_PER_MSEC)

struct view_server {
	const struct view_server_config *config;
	struct view_gate gate;
	struct collector *collector;
	struct http_server *server;
	struct browser browser;
	int listen_fd, signals;
	uint16_t port;
};

static void view_server_release(struct view_server *s)
{
	browser_release(&s->browser);
	if (s->server)
		http_server_stop(s->server, GRACE_NS);
	http_server_close(s->server);
	collector_free(s->collector);
	closep(&s->listen_fd);
	closep(&s->signals);
}

static int fail(struct buf *why, int r, const char *what)
{
	buf_addf(why, "%s: %s", what, strerror(-r));
	return r;
}

/* Requests */

static void refuse(struct http_response *rs, unsigned int status, const char *why)
{
	collector_refuse(NULL, NULL, status, why, rs);
	http_header_set(rs, "Cache-Control", STR("no-store"));
	http_header_set(rs, "Referrer-Policy", STR("no-referrer"));
}

static void enter(const struct view_server *s, struct http_response *rs)
{
	scoped(buf_release) struct buf to = BUF_INIT(KIB(1));

	buf_addf(&to, "/%s/", s->gate.key);
	refuse(rs, 303, "the pages are there");
	http_header_set(rs, "Location", buf_str(&to));
}

static bool begin(void *ctx, struct http_request *rq, struct http_response *rs)
{
	struct view_server *s = ctx;

	switch (view_gate_check(&s->gate, rq->method, rq->path, &rq->path)) {
	case VIEW_GATE_PASS:
		return collector_begin(s->collector, rq, rs);
	case VIEW_GATE_ENTER:
		enter(s, rs);
		break;
	case VIEW_GATE_USED:
		refuse(rs, 403, "this link was for one use; open the address that hearth view printed");
		break;
	case VIEW_GATE_METHOD:
		refuse(rs, 405, "method not allowed");
		break;
	case VIEW_GATE_NOTHING:
		refuse(rs, 404, "nothing found; open the whole address that hearth view printed");
		break;
	}
	return false;
}

static size_t weigh(void *ctx, struct http_request *rq)
{
	return collector_weigh(((struct view_server *)ctx)->collector, rq);
}

static void handle(void *ctx, struct http_request *rq, struct http_response *rs)
{
	collector_handle(((struct view_server *)ctx)->collector, rq, rs);
}

static void done(void *ctx, struct http_request *rq, unsigned int status, size_t bytes_out)
{
	collector_done(((struct view_server *)ctx)->collector, rq, status, bytes_out);
}

/* Start */

static int open_collector(struct view_server *s, struct buf *why)
{
	const struct view_server_config *config = s->config;
	struct collector_config c = { .store = config->store,
				      .state = config->state,
				      .clock = &clock_system,
				      .local_only = http_host_is_loopback(config->host),
				      .body_max = MIB(4),
				      .list_limit = 1000,
				      .decoders = 1,
				      .shown = config->shown };
	int r = collector_new(&c, &s->collector);

	return r < 0 ? fail(why, r, "cannot start") : 0;
}

/* One user: a tree is made at a time, and what is small is answered meanwhile. */
static int open_server(struct view_server *s, struct buf *why)
{
	struct http_server_config h = { .listen_fd = s->listen_fd,
					.workers = { [HTTP_LANE_READ] = 2, [HTTP_LANE_MERGE] = 1 },
					.queue_max = 256,
					.weight_light = KIB(256),
					.connections_max = 256,
					.header_max = KIB(32),
					.bodies_max = MIB(16),
					.path_max = KIB(16),
					.header_ns = 10 * NSEC_PER_SEC,
					.idle_ns = 120 * NSEC_PER_SEC,
					.body_rate = 1024,
					.answer_rate = KIB(16),
					.ctx = s,
					.begin = begin,
					.weigh = weigh,
					.handle = handle,
					.done = done,
					.refuse = collector_refuse };
	int r;

	s->listen_fd = -1; /* moved */
	r = http_server_open(&h, why, &s->server);
	if (r < 0)
		return r;
	collector_server(s->collector, s->server);
	collector_ready(s->collector);
	return 0;
}

static void add_address(const struct view_server *s, const char *secret, const char *end, struct buf *out)
{
	struct str host = s->config->host.len ? s->config->host : STR("localhost");
	bool is_v6 = str_find(host, ':') >= 0;

	buf_addf(out, "http://%s" STR_FMT "%s:%u/%s%s", is_v6 ? "[" : "", STR_ARG(host), is_v6 ? "]" : "", s->port,
		 secret, end);
}

static int prepare_browser(struct view_server *s)
{
	scoped(buf_release) struct buf url = BUF_INIT(KIB(8));

	if (!s->config->browser_data || !browser_possible())
		return 0;
	add_address(s, s->gate.ticket, "", &url);
	return url.error ? url.error : browser_prepare(buf_cstr(&url), s->config->browser_data, &s->browser);
}

static int open_signals(struct view_server *s)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail with constant numbers */
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* before any thread starts */
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

static int small_stacks(void)
{
	pthread_attr_t attributes;
	int r = pthread_attr_init(&attributes);

	if (r)
		return -r;
	r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	r = r ? r : pthread_setattr_default_np(&attributes);
	(void)pthread_attr_destroy(&attributes);
	return -r;
}

static int start(struct view_server *s, struct buf *why)
{
	int r = view_gate_init(&s->gate);

	if (r < 0)
		return fail(why, r, "no random bytes");
	s->port = http_listen_port(s->listen_fd);
	r = prepare_browser(s);
	r = r ? r : open_signals(s);
	r = r ? r : small_stacks();
	if (r < 0)
		return fail(why, r, "cannot start");
	r = confine_server(false, why);
	r = r ? r : open_collector(s, why);
	return r ? r : open_server(s, why);
}

static int say_address(const struct view_server *s, struct buf *why)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(8));
	int r;

	add_address(s, s->gate.key, "/\n", &line);
	r = line.error ? line.error : io_write_all(STDOUT_FILENO, line.ptr, line.len);
	return r < 0 ? fail(why, r, "cannot print the address") : 0;
}

static void wait_for_end(struct view_server *s)
{
	struct pollfd p = { .fd = s->signals, .events = POLLIN };

	while (poll(&p, 1, 1000) <= 0) {
		http_server_tick(s->server);
		collector_tick(s->collector);
	}
}

int view_server_run(const struct view_server_config *config, struct buf *why)
{
	scoped(view_server_release) struct view_server s = {
		.config = config, .browser = BROWSER_INIT, .listen_fd = config->listen_fd, .signals = -1
	};
	int r;

	log_set_level(LOG_WARN);
	r = start(&s, why);
	r = r ? r : say_address(&s, why);
	if (r < 0)
		return r;
	browser_go(&s.browser);
	wait_for_end(&s);
	return 0;
}
