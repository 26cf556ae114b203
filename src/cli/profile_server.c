/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a moment is drawn once, whoever looks: a stream that is asked for its next piece takes the newest one,
 * and one that is slow has missed those between. */
#include "cli/profile_server.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "cli/view_gate.h"
#include "collector/collector.h"
#include "collector/confine.h"
#include "collector/feed.h"
#include "collector/privilege.h"
#include "net/http_parse.h"
#include "render/png.h"
#include "sink/format.h"

#define SERVICE "profile"
#define KEPT_MAX 330 /* windows of a second: the longest range that slides is 5 min */
#define BYTES_MAX MIB(64)
#define STREAMS_MAX 256
#define BOUNDARY "hearth-frame"
#define TICK_MS 200
#define GRACE_NS (200 * NSEC_PER_MSEC)

enum what { WHAT_NOTHING, WHAT_PAGE, WHAT_MOVE, WHAT_STREAM, WHAT_FILE };

static const struct file {
	const char *name, *format, *type; /* format NULL: a picture */
} files[] = {
	{ "snapshot.png", NULL, "image/png" },
	{ "snapshot.svg", "svg", "image/svg+xml" },
	{ "snapshot.folded", "folded", "text/plain; charset=utf-8" },
	{ "snapshot.pb.gz", "pprof", "application/octet-stream" },
};

struct viewer { /* of the stream */
	struct viewer *next, **at;
	struct server *server;
	struct http_request *rq;
	uint64_t sent; /* number of the picture; 0: none */
	bool has_begun;
};

struct server {
	const struct command *command;
	const struct profile_server_config *config;
	struct buf base; /* the path with a slash at its end */
	struct store_state *state;
	struct collector *collector;
	struct http_server *http;
	struct feed_config feed_config;
	struct feed *feed;
	int listen_fd, signals;
	_Atomic uint64_t windows;
	pthread_mutex_t lock; /* guards the rest; not held while a picture is drawn */
	pthread_cond_t drawn;
	struct viewer *viewers;
	size_t viewer_count;
	bool is_drawing;
	uint64_t picture_of; /* windows that it has, + 1; 0: there is none */
	struct buf picture;
};

static void server_release(struct server *s)
{
	if (s->http)
		http_server_stop(s->http, GRACE_NS);
	feed_close(s->feed);
	http_server_close(s->http);
	collector_free(s->collector);
	store_memory.close(s->state);
	closep(&s->listen_fd);
	closep(&s->signals);
	buf_release(&s->base);
	buf_release(&s->picture);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_cond_destroy(&s->drawn);
}

static int fail(const struct server *s, int r, struct buf *why)
{
	command_fail(s->command, "-T: %s", why->len ? buf_cstr(why) : strerror(-r));
	return r;
}

/* What was sampled so far, and its picture */

static int sum_all(struct server *s, struct window *out)
{
	const struct store_selector all = { .to_ns = UINT64_MAX };
	struct store_sum info;

	return store_memory.sum(s->state, &all, out, &info);
}

static int draw(struct server *s, uint64_t number, struct buf *out)
{
	const struct render_png_config cfg = { .width = s->config->width,
					       .height = s->config->height,
					       .shimmer = s->config->shimmer ? number : 0 };
	const struct frame_style style = { 0 };
	scoped(window_release) struct window w = { 0 };
	struct tree tree = { 0 };
	int r = sum_all(s, &w);

	if (r == 0 && w.model->value_type_count)
		r = tree_from_model(w.model, model_count_value(w.model), 1, &style, &tree);
	r = r ? r : render_png(&tree, &cfg, out);
	tree_release(&tree);
	return r;
}

/* s->lock is held, and let go while it is drawn; who comes meanwhile waits when there is none yet. Return: 0, -errno.
 */
static int refresh(struct server *s)
{
	struct buf fresh = BUF_INIT(BYTES_MAX);
	const uint64_t windows = atomic_load(&s->windows);
	int r;

	while (s->is_drawing && !s->picture_of)
		(void)pthread_cond_wait(&s->drawn, &s->lock);
	if (s->is_drawing || s->picture_of > windows)
		return 0;
	s->is_drawing = true;
	(void)pthread_mutex_unlock(&s->lock);
	r = draw(s, windows + 1, &fresh);
	(void)pthread_mutex_lock(&s->lock);
	s->is_drawing = false;
	if (r == 0) {
		buf_release(&s->picture);
		s->picture = fresh;
		s->picture_of = windows + 1;
	} else {
		buf_release(&fresh);
	}
	(void)pthread_cond_broadcast(&s->drawn);
	return r;
}

/* The stream */

static int more(void *ctx, struct buf *out)
{
	struct viewer *v = ctx;
	struct server *s = v->server;
	int r = -EAGAIN;

	if (http_stopping(v->rq))
		return 0;
	(void)pthread_mutex_lock(&s->lock);
	if (!s->picture_of || v->sent == s->picture_of)
		r = refresh(s);
	if (r == 0 || r == -EAGAIN) {
		r = -EAGAIN;
		if (s->picture_of != v->sent && http_piece_claim(v->rq, s->picture.len + KIB(1))) {
			/* The boundary stands behind each part: browsers show one once they see it. */
			if (!v->has_begun)
				buf_adds(out, STR("--" BOUNDARY "\r\n"));
			v->has_begun = true;
			buf_addf(out, "Content-Type: image/png\r\nContent-Length: %zu\r\n\r\n", s->picture.len);
			buf_adds(out, buf_str(&s->picture));
			buf_adds(out, STR("\r\n--" BOUNDARY "\r\n"));
			v->sent = s->picture_of;
			r = 1;
		}
	}
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

static void close_viewer(void *ctx)
{
	struct viewer *v = ctx;
	struct server *s = v->server;

	(void)pthread_mutex_lock(&s->lock);
	*v->at = v->next;
	if (v->next)
		v->next->at = v->at;
	s->viewer_count--;
	(void)pthread_mutex_unlock(&s->lock);
	free(v);
}

static void refuse(struct http_response *rs, unsigned int status, const char *why)
{
	collector_refuse(NULL, NULL, status, why, rs);
	http_header_set(rs, "Cache-Control", STR("no-store"));
}

static void open_viewer(struct server *s, struct http_request *rq, struct http_response *rs)
{
	struct viewer *v = calloc(1, sizeof(*v));
	bool fits;

	(void)pthread_mutex_lock(&s->lock);
	fits = v && s->viewer_count < STREAMS_MAX;
	if (fits) {
		*v = (struct viewer){ .next = s->viewers, .at = &s->viewers, .server = s, .rq = rq };
		if (v->next)
			v->next->at = &v->next;
		s->viewers = v;
		s->viewer_count++;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!fits) {
		free(v);
		refuse(rs, 503, "too many look at it");
		return;
	}
	rs->status = 200;
	rs->content_type = "multipart/x-mixed-replace; boundary=" BOUNDARY;
	http_header_set(rs, "Cache-Control", STR("no-store"));
	rs->stream = (struct http_stream){ v, more, close_viewer };
}

static void wake_viewers(struct server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	if (s->picture_of <= atomic_load(&s->windows))
		for (struct viewer *v = s->viewers; v; v = v->next)
			http_stream_wake(v->rq);
	else
		for (struct viewer *v = s->viewers; v; v = v->next)
			if (v->sent != s->picture_of)
				http_stream_wake(v->rq);
	(void)pthread_mutex_unlock(&s->lock);
}

static void on_stored(void *ctx)
{
	atomic_fetch_add(&((struct server *)ctx)->windows, 1);
}

/* Files */

static void send_file(struct server *s, const struct file *f, struct http_response *rs)
{
	scoped(window_release) struct window w = { 0 };
	int r;

	rs->body = (struct buf)BUF_INIT(MIB(256));
	if (!f->format) {
		(void)pthread_mutex_lock(&s->lock);
		r = refresh(s);
		if (r == 0)
			buf_adds(&rs->body, buf_str(&s->picture));
		(void)pthread_mutex_unlock(&s->lock);
	} else {
		r = sum_all(s, &w);
		r = r                            ? r
		    : !w.model->value_type_count ? -ENODATA
						 : format_find(str_of(f->format))->encode(&w, &rs->body);
	}
	r = r ? r : rs->body.error;
	if (r < 0) {
		buf_release(&rs->body);
		refuse(rs, r == -ENODATA ? 404 : 500, r == -ENODATA ? "nothing was sampled yet" : strerror(-r));
		return;
	}
	rs->status = 200;
	rs->content_type = f->type;
	http_header_set(rs, "Cache-Control", STR("no-store"));
}

/* Requests */

static const struct file *file_of(struct str rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (str_eq(rest, str_of(files[i].name)))
			return &files[i];
	return NULL;
}

static bool asks_for_page(struct http_request *rq)
{
	if (str_search(rq->query, STR("format=mjpeg")) >= 0)
		return false;
	return str_search(http_header_get(rq, "Accept"), STR("text/html")) >= 0;
}

/* What stands at a path. With a path that ends in a slash the stream is at every path below it that nothing else has,
 * as go-profile has it. @rest: for the collector. */
static enum what find(const struct server *s, struct http_request *rq, struct str *rest)
{
	const struct str base = buf_str(&s->base), bare = str_first(base, base.len - 1);
	const bool is_bare = str_eq(rq->path, bare) && bare.len;

	*rest = STR("");
	if (!is_bare && !str_starts(rq->path, base))
		return WHAT_NOTHING;
	if (!is_bare)
		*rest = str_skip(rq->path, base.len - 1);
	if (is_bare || rest->len == 1)
		return !asks_for_page(rq) ? WHAT_STREAM : is_bare ? WHAT_MOVE : WHAT_PAGE;
	if (file_of(str_skip(*rest, 1)))
		return WHAT_FILE;
	if (str_eq(*rest, STR("/api/v1/live")) || view_gate_path(rq->method, *rest) != VIEW_GATE_NOTHING)
		return WHAT_PAGE;
	return str_ends(str_of(s->config->path), STR("/")) && !str_starts(*rest, STR("/api/")) && !asks_for_page(rq)
		       ? WHAT_STREAM
		       : WHAT_NOTHING;
}

static bool begin(void *ctx, struct http_request *rq, struct http_response *rs)
{
	struct server *s = ctx;
	const struct str path = rq->path;
	struct str rest;
	enum what what = find(s, rq, &rest);

	if (what == WHAT_NOTHING) {
		refuse(rs, 404, "nothing found");
		return false;
	}
	rq->path = what == WHAT_PAGE ? rest : STR("/"); /* Host and Origin are checked for all alike */
	if (!collector_begin(s->collector, rq, rs))
		return false;
	if (what == WHAT_PAGE)
		return true;
	rq->path = path;
	if (what == WHAT_MOVE) {
		refuse(rs, 303, "the page is there");
		http_header_set(rs, "Location", buf_str(&s->base));
		return false;
	}
	rq->lane = HTTP_LANE_WATCH; /* ours: no route of the pages is in it */
	return true;
}

static size_t weigh(void *ctx, struct http_request *rq)
{
	return collector_weigh(((struct server *)ctx)->collector, rq);
}

static void handle(void *ctx, struct http_request *rq, struct http_response *rs)
{
	struct server *s = ctx;
	struct str rest;

	if (rq->lane != HTTP_LANE_WATCH)
		collector_handle(s->collector, rq, rs);
	else if (find(s, rq, &rest) == WHAT_FILE && file_of(str_skip(rest, 1)))
		send_file(s, file_of(str_skip(rest, 1)), rs);
	else if (!render_png_possible())
		refuse(rs, 501, "this build has no pictures");
	else
		open_viewer(s, rq, rs);
}

static void done(void *ctx, struct http_request *rq, unsigned int status, size_t bytes_out)
{
	collector_done(((struct server *)ctx)->collector, rq, status, bytes_out);
}

/* Start */

static int open_signals(struct server *s)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail with constant numbers */
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* the end of the windows is the end */
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

static int open_collector(struct server *s)
{
	const struct store_config store = { .clock = &clock_system, .kept_max = KEPT_MAX, .keeps_sum = true };
	struct collector_config c = { .store = &store_memory,
				      .clock = &clock_system,
				      .local_only = http_host_is_loopback(str_of(s->config->host)),
				      .body_max = MIB(4),
				      .list_limit = 1000,
				      .decoders = 1,
				      .live_only = true };
	int r = store_memory.open(&store, &s->state);

	c.state = s->state;
	return r ? r : collector_new(&c, &s->collector);
}

static int open_http(struct server *s, struct buf *why)
{
	struct http_server_config h = {
		.listen_fd = s->listen_fd,
		.workers = { [HTTP_LANE_READ] = 2, [HTTP_LANE_MERGE] = 1, [HTTP_LANE_WATCH] = 2 },
		.queue_max = 1024,
		.weight_light = KIB(256),
		.connections_max = 512,
		.header_max = KIB(32),
		.bodies_max = MIB(16),
		.path_max = KIB(16),
		.header_ns = 10 * NSEC_PER_SEC,
		.idle_ns = 120 * NSEC_PER_SEC,
		.body_rate = 1024,
		.answers_max = MIB(256),
		.answer_rate = KIB(16),
		.ctx = s,
		.begin = begin,
		.weigh = weigh,
		.handle = handle,
		.done = done,
		.refuse = collector_refuse
	};
	int r;

	s->listen_fd = -1; /* moved */
	r = http_server_open(&h, why, &s->http);
	if (r < 0)
		return r;
	collector_server(s->collector, s->http);
	collector_ready(s->collector);
	return 0;
}

static int start(struct server *s, struct buf *why)
{
	int r = open_signals(s);

	r = r ? r : privilege_drop(s->config->user, NULL, why);
	r = r ? r : confine_server(false, why);
	r = r ? r : open_collector(s);
	r = r ? r : feed_open(s->collector, s->config->feed_fd, &s->feed_config, &s->feed);
	return r ? r : open_http(s, why);
}

static void serve(struct server *s)
{
	uint64_t ticked_ns = 0;

	while (!feed_ended(s->feed)) {
		struct pollfd p = { .fd = feed_end_fd(s->feed), .events = POLLIN };
		uint64_t now_ns;

		ignore(poll(&p, 1, TICK_MS)); /* looked at again in any case */
		wake_viewers(s);
		now_ns = clock_monotonic_ns(&clock_system);
		if (now_ns - ticked_ns < NSEC_PER_SEC)
			continue;
		ticked_ns = now_ns;
		http_server_tick(s->http);
		collector_tick(s->collector);
	}
}

int profile_server_run(const struct command *c, const struct profile_server_config *config)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	scoped(server_release) struct server s = { .command = c,
						   .config = config,
						   .base = BUF_INIT(KIB(1)),
						   .picture = BUF_INIT(BYTES_MAX),
						   .listen_fd = config->listen_fd,
						   .signals = -1 };
	int r;

	(void)mallopt(M_ARENA_MAX, 2);
	(void)mallopt(M_MMAP_THRESHOLD, KIB(512));
	(void)mallopt(M_TRIM_THRESHOLD, MIB(4));
	(void)pthread_mutex_init(&s.lock, NULL); /* no attributes: these cannot fail on Linux */
	(void)pthread_cond_init(&s.drawn, NULL);
	s.feed_config = (struct feed_config){ .service = STR(SERVICE), .stored = on_stored, .ctx = &s };
	buf_addf(&s.base, "%s%s", config->path, config->path[strlen(config->path) - 1] == '/' ? "" : "/");
	log_set_level(LOG_WARN);
	r = start(&s, &why);
	if (r < 0) {
		(void)fail(&s, r, &why);
		return EXIT_FAILED;
	}
	ignore(write(config->ready_fd, "ready\n", 6) < 0); /* nobody waits for it then */
	(void)close(config->ready_fd);
	serve(&s);
	return EXIT_DONE;
}
