/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/serve.h"

#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "collector/collector.h"
#include "collector/confine.h"
#include "collector/feed.h"
#include "collector/privilege.h"
#include "collector/pull_run.h"
#include "collector/tokens.h"
#include "net/http_parse.h"
#include "store/snapshots.h"

#define MAINTAIN_SECONDS 60
#define DESCRIPTORS_WANTED 65536
#define WRITERS 16 /* uploads between their first byte and their commit; no more than decoders compute */

struct serving {
	const struct serve_config *config;
	struct buf *why; /* the caller's: what went wrong at the start */
	struct buf path, token_path;
	struct pull_store to; /* the store */
	struct token_file *tokens;
	struct snapshots *snapshots; /* NULL: none are taken */
	struct collector *collector;
	struct http_server *server;
	struct pull *pull; /* NULL: nothing is scraped */
	struct feed *feed; /* or NULL */
	int listen_fd;
	bool is_loopback;
	pthread_t keeper;
	bool keeps;
	pthread_mutex_t lock; /* guards stop */
	pthread_cond_t changed;
	bool stop;
};

const char *const serve_log_levels[] = { "debug", "info", "warn", "error", NULL };
const char *const serve_log_formats[] = { "console", "json", NULL };

void serve_data_dir(const char *given, struct buf *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (given && *given)
		buf_addf(out, "%s", given);
	else if (geteuid() == 0)
		buf_adds(out, STR("/var/lib/hearth"));
	else if (state && *state)
		buf_addf(out, "%s/hearth", state);
	else
		buf_addf(out, "%s/.local/state/hearth", home ? home : "");
}

/* The keeper: what the store has to do now and then, away from requests. */

static bool wait_or_stop(struct serving *s)
{
	struct timespec until;
	bool stop;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail; the wall clock may be set */
	until.tv_sec += MAINTAIN_SECONDS;
	(void)pthread_mutex_lock(&s->lock);
	while (!s->stop && r == 0)
		r = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	stop = s->stop;
	(void)pthread_mutex_unlock(&s->lock);
	return !stop;
}

static void *keep(void *arg)
{
	struct serving *s = arg;
	int r = s->to.store->warm(s->to.state);

	if (r < 0)
		log_warn("what recent services need could not be loaded, it will be when it is asked for", LOG_ERR(r));
	collector_ready(s->collector);
	do {
		r = s->to.store->maintain(s->to.state);
		if (r < 0)
			log_warn("the store could not be tidied, again in a minute", LOG_ERR(r));
		if (s->config->tls_cert && http_server_reload(s->server) < 0)
			log_warn("the certificate cannot be read, the old one stays",
				 LOG_CSTR("file", s->config->tls_cert));
	} while (wait_or_stop(s));
	return NULL;
}

static int start_keeper(struct serving *s)
{
	int r = pthread_create(&s->keeper, NULL, keep, s);

	s->keeps = r == 0;
	return -r;
}

static void stop_keeper(struct serving *s)
{
	if (!s->keeps)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->stop = true;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_join(s->keeper, NULL);
	s->keeps = false;
}

static void serving_release(struct serving *s)
{
	if (s->server)
		http_server_stop(s->server, s->config->exit_timeout_ns);
	pull_close(s->pull);
	stop_keeper(s);
	feed_close(s->feed);
	http_server_close(s->server);
	collector_free(s->collector);
	token_file_close(s->tokens);
	snapshots_close(s->snapshots);
	if (s->to.state)
		s->to.store->close(s->to.state);
	if (s->listen_fd >= 0)
		(void)close(s->listen_fd);
	buf_release(&s->path);
	buf_release(&s->token_path);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_cond_destroy(&s->changed);
}

/* Steps of the start */

static int fail(const struct serving *s, int r, const char *what)
{
	buf_addf(s->why, "%s: %s", what, strerror(-r));
	return r;
}

static int open_socket(struct serving *s)
{
	struct str host;
	uint16_t port;
	int r = http_host_split(str_of(s->config->addr), &host, &port);

	if (r < 0)
		return fail(s, r, s->config->addr);
	s->is_loopback = http_host_is_loopback(host);
	s->listen_fd = http_listen(host, port, s->why);
	return MIN(s->listen_fd, 0);
}

static int open_store(struct serving *s)
{
	const struct serve_config *config = s->config;
	struct store_config store = { .path = buf_cstr(&s->path),
				      .clock = &clock_system,
				      .age_max_ns = config->age_max_ns,
				      .size_max = config->size_max,
				      .free_min = config->free_min,
				      .rollup_age_max_ns = config->rollup_age_max_ns,
				      .past_max_ns = config->past_max_ns,
				      .ahead_max_ns = config->ahead_max_ns,
				      .dictionary_max = config->dictionary_max };
	int r = s->to.store->open(&store, &s->to.state);

	if (r == -EWOULDBLOCK)
		buf_addf(s->why, "%s: in use by another process", store.path);
	else if (r < 0)
		buf_addf(s->why, "%s: %s", store.path, strerror(-r));
	return r;
}

/* The store has the folder to itself by now; one in memory has none. */
static int open_snapshots(struct serving *s)
{
	const struct snapshots_config config = { .path = buf_cstr(&s->path),
						 .count_max = s->config->snapshots_max,
						 .size_max = s->config->snapshots_size,
						 .free_min = s->config->free_min };
	int r = s->to.store == &store_sqlite ? snapshots_open(&config, &s->snapshots) : 0;

	return r < 0 ? fail(s, r, config.path) : 0;
}

static int refuse_open(struct serving *s)
{
	buf_addf(s->why,
		 "%s is open to other machines and there is no token: make one with hearth token create"
		 " --data-dir %s, or say --insecure-no-auth",
		 s->config->addr, buf_cstr(&s->path));
	return -EACCES;
}

/* Before the folder is made. */
static int check_tokens(struct serving *s)
{
	struct stat st;

	if (s->is_loopback || s->config->no_auth || stat(buf_cstr(&s->token_path), &st) == 0 || errno != ENOENT)
		return 0;
	return refuse_open(s);
}

static int open_tokens(struct serving *s)
{
	int r = token_file_open(buf_cstr(&s->token_path), &s->tokens);

	if (r < 0)
		return fail(s, r, buf_cstr(&s->token_path));
	if (s->is_loopback || s->config->no_auth || token_file_any(s->tokens))
		return 0;
	return refuse_open(s);
}

static unsigned int cores(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return (unsigned int)MIN(MAX(count, 1L), 32L);
}

/* Files of the viewer that are not there would be asked for one by one, each with a 404 that does not name the folder.
 */
static int check_web_dir(struct serving *s)
{
	const char *folder = s->config->web_dir;
	struct stat st;

	if (!folder)
		return 0;
	if (stat(folder, &st) < 0)
		return fail(s, -errno, "cannot read the folder of --web-dir");
	return S_ISDIR(st.st_mode) ? 0 : fail(s, -ENOTDIR, "cannot read the folder of --web-dir");
}

static int open_collector(struct serving *s)
{
	const struct serve_config *config = s->config;
	struct collector_config c = { .store = s->to.store,
				      .state = s->to.state,
				      .snapshots = s->snapshots,
				      .clock = &clock_system,
				      .tokens = config->no_auth ? NULL : s->tokens,
				      .need_token = !s->is_loopback,
				      .local_only = s->is_loopback,
				      .cors_origins = config->cors.items,
				      .cors_count = config->cors.count,
				      .body_max = config->body_max,
				      .expanded_max = config->expanded_max,
				      .samples_max = config->samples_max,
				      .list_limit = config->list_limit,
				      .merge_max = config->merge_max,
				      .series_max = config->series_max,
				      .flame_max = config->flame_max,
				      .rate_max = config->rate_max,
				      .query_max_ns = config->query_max_ns,
				      .decoders = cores(),
				      .web_dir = config->web_dir,
				      .access_log = config->access_log };
	int r = collector_new(&c, &s->collector);

	return r < 0 ? fail(s, r, "cannot make the collector") : 0;
}

static void say_ready(const struct serving *s, uint16_t port)
{
	scoped(buf_release) struct buf line = BUF_INIT(KIB(4));
	struct str host = STR("");
	uint16_t asked;

	if (s->config->ready_fd <= 0)
		return;
	ignore(http_host_split(str_of(s->config->addr), &host, &asked)); /* it was used before */
	buf_addf(&line, "%s://" STR_FMT ":%u\n", s->config->tls_cert ? "https" : "http",
		 STR_ARG(host.len ? host : STR("localhost")), port);
	ignore(io_write_all(s->config->ready_fd, line.ptr, line.len)); /* nobody waits for it then */
	(void)close(s->config->ready_fd);
}

static int open_server(struct serving *s)
{
	const struct serve_config *config = s->config;
	struct http_server_config h = { .listen_fd = s->listen_fd,
					.workers = { [HTTP_LANE_WRITE] = WRITERS,
						     [HTTP_LANE_LARGE] = 1,
						     [HTTP_LANE_READ] = MAX(cores(), 4U),
						     [HTTP_LANE_MERGE] = MAX(cores() - 1, 1U),
						     [HTTP_LANE_WATCH] = 1 },
					.nice = { [HTTP_LANE_READ] = 5, [HTTP_LANE_MERGE] = 10 },
					.queue_max = 1024,
					.queue_share = MAX((size_t)config->connections_max / 4, (size_t)8),
					.weight_light = KIB(256),
					.connections_max = config->connections_max,
					.connections_per_ip = config->connections_per_ip,
					.header_max = KIB(32),
					.bodies_max = config->bodies_max,
					.answers_max = config->answers_max,
					.path_max = KIB(16),
					.header_ns = config->header_ns,
					.idle_ns = config->idle_ns,
					.body_rate = 1024,
					.answer_rate = KIB(16),
					.tls_cert = config->tls_cert,
					.tls_key = config->tls_key,
					.ctx = s->collector,
					.begin = collector_begin,
					.weigh = collector_weigh,
					.handle = collector_handle,
					.done = collector_done,
					.refuse = collector_refuse };
	uint16_t port = http_listen_port(s->listen_fd);
	int r;

	s->listen_fd = -1; /* moved */
	r = http_server_open(&h, s->why, &s->server);
	if (r < 0)
		return r;
	collector_server(s->collector, s->server);
	log_info("listening", LOG_CSTR("addr", config->addr), LOG_U64("port", port),
		 LOG_CSTR("data_dir", buf_cstr(&s->path)), LOG_CSTR("tls", config->tls_cert ? "yes" : "no"),
		 LOG_CSTR("tokens", config->no_auth              ? "not asked for"
				    : token_file_asks(s->tokens) ? "needed"
								 : "none"));
	if (!config->no_auth && token_file_asks(s->tokens) && !token_file_any(s->tokens))
		log_warn("there is a token file without a valid token: nobody can send or read (hearth token create)");
	say_ready(s, port);
	return 0;
}

static void reload(struct serving *s)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(4));
	int r = token_file_reload(s->tokens);

	r = http_server_reload(s->server) < 0 ? -EINVAL : r;
	if (s->pull && pull_reload(s->config->targets, &why, s->pull) < 0)
		r = -EINVAL;
	if (r < 0)
		log_warn("reloaded in part: what cannot be read stays as it was", LOG_ERR(r),
			 LOG_CSTR("why", buf_cstr(&why)));
	else
		log_info("reloaded");
}

/* Fed by an agent, the end of what it sends is the end; it gets the same signals and sends its last window first. */
static bool ends(struct serving *s, uint32_t signal)
{
	if (signal == SIGHUP) {
		reload(s);
		return false;
	}
	return !s->feed;
}

/* Until a signal says stop. */
static void wait_for_end(struct serving *s, int signals)
{
	struct signalfd_siginfo got;

	for (;;) {
		struct pollfd p[2] = { { .fd = signals, .events = POLLIN },
				       { .fd = s->feed ? feed_end_fd(s->feed) : -1, .events = POLLIN } };
		int r = poll(p, 2, 1000);

		http_server_tick(s->server);
		collector_tick(s->collector);
		if (s->feed && feed_ended(s->feed))
			break;
		if (r > 0 && p[0].revents && read(signals, &got, sizeof(got)) == sizeof(got) && ends(s, got.ssi_signo))
			break;
	}
	log_info("stopping");
}

static int open_feed(struct serving *s)
{
	static const struct feed_config feed = { 0 };
	int r = s->config->feed_fd > 0 ? feed_open(s->collector, s->config->feed_fd, &feed, &s->feed) : 0;

	return r < 0 ? fail(s, r, "cannot take windows") : 0;
}

static int start_threads(struct serving *s)
{
	int r = start_keeper(s);

	if (r < 0)
		return fail(s, r, "cannot start a thread");
	return s->config->targets ? pull_into_store(s->config->targets, &s->to, s->why, &s->pull) : 0;
}

static int start(struct serving *s)
{
	int r = open_socket(s); /* a port below 1024 needs root */

	r = r ? r : check_tokens(s);
	r = r ? r : privilege_drop(s->config->user, buf_cstr(&s->path), s->why);
	r = r ? r : check_web_dir(s);
	r = r ? r : open_tokens(s);
	r = r ? r : confine_server(s->config->targets != NULL, s->why);
	if (r == 0 && (r = log_start()) < 0) /* a thread has the rights that its maker has by then */
		return fail(s, r, "cannot start a thread");
	r = r ? r : open_store(s);
	r = r ? r : open_snapshots(s);
	r = r ? r : open_collector(s);
	r = r ? r : open_feed(s);
	r = r ? r : open_server(s);
	return r ? r : start_threads(s);
}

/* Every day of the store has a few files open, every client a socket. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	ignore(setrlimit(RLIMIT_NOFILE, &limit)); /* then there are fewer */
}

int serve_address_check(const char *addr)
{
	struct str host;
	uint16_t port;

	return http_host_split(str_of(addr), &host, &port) < 0 || str_find(str_of(addr), ':') < 0 ? -EINVAL : 0;
}

int serve_run(const struct serve_config *config, struct buf *why)
{
	static const enum log_level levels[] = { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
	scoped(serving_release) struct serving s = { .config = config,
						     .to.store = config->store ? config->store : &store_sqlite,
						     .why = why,
						     .path = BUF_INIT(KIB(16)),
						     .token_path = BUF_INIT(KIB(16)),
						     .listen_fd = -1 };
	scoped(closep) int signals = -1;
	pthread_condattr_t monotonic;
	sigset_t set;
	int r;

	raise_descriptors();
	/* Uploads are large blocks that come and go in many threads: glibc would keep some in an arena for each. */
	(void)mallopt(M_ARENA_MAX, 2);
	(void)mallopt(M_MMAP_THRESHOLD, KIB(512));
	(void)mallopt(M_TRIM_THRESHOLD, MIB(8));
	(void)pthread_mutex_init(&s.lock, NULL); /* no attributes: cannot fail on Linux */
	(void)pthread_condattr_init(&monotonic); /* these cannot fail on Linux */
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s.changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	log_set_level(levels[config->log_level]);
	log_set_json(config->log_format == 1);
	serve_data_dir(config->data_dir, &s.path);
	buf_addf(&s.token_path, "%s/tokens", buf_cstr(&s.path));
	(void)sigemptyset(&set); /* these three cannot fail with constant numbers */
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* before any thread starts */
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return fail(&s, -errno, "signalfd");
	r = start(&s);
	if (r < 0)
		return r;
	wait_for_end(&s, signals);
	return 0;
}
