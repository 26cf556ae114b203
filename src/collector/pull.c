/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pull.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "codec/gzip.h"
#include "codec/pprof.h"
#include "codec/pprof_legacy.h"
#include "collector/pull_delta.h"
#include "net/http_client.h"

#define THREADS_DEFAULT 8
#define THREADS_MAX 64
#define BODY_DEFAULT MIB(32)
#define EXPANDED_DEFAULT MIB(64)
#define RATIO_MAX 200
#define SAMPLES_MAX 1000000
#define BODIES_MAX MIB(64) /* of all threads together */
#define SMALL_MAX MIB(2)   /* expanded, and four times as much of a model: larger ones one at a time */
#define DEPTH_MAX 1024     /* as of uploads: docs/collector.md, limits */
#define SYMBOL_MAX KIB(16)

/* A target and what is known about it between its scrapes: of the thread that has it while busy, else of the lock. */
struct work {
	struct pull_target target;
	struct pull_baseline baselines[PULL_KIND_COUNT];
	uint32_t said; /* bit per kind: its failure was told, and is not told again before it works */
	uint64_t next_ns;
	bool busy, gone; /* gone: not in the file any more; freed when it is not busy */
};

struct pull {
	struct pull_config cfg; /* never changed after open */
	atomic_bool cancel;
	_Atomic size_t body_bytes; /* of all answers that are here */
	pthread_mutex_t large;     /* held by the one profile that may be large, until it is delivered */
	pthread_t threads[THREADS_MAX];
	unsigned int thread_count;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	bool stop;
	struct work **works;
	size_t count;
	struct pull_stats stats;
};

static uint64_t now_ns(void)
{
	return clock_monotonic_ns(&clock_system);
}

static void work_free(struct work *w)
{
	for (size_t i = 0; w && i < PULL_KIND_COUNT; i++)
		pull_baseline_release(&w->baselines[i]);
	if (w)
		pull_target_release(&w->target);
	free(w);
}

/* One scrape */

struct scrape {
	struct pull *pull;
	struct work *work;
	struct http_client *client;
	enum pull_kind kind;
	size_t body_bytes; /* claimed */
	bool is_large;     /* holds pull->large */
};

static bool address_allowed(void *ctx, const struct sockaddr *address, socklen_t size)
{
	const struct scrape *s = ctx;

	return pull_address_allowed(&s->work->target, address, size);
}

static bool answer_room(void *ctx, size_t size)
{
	struct scrape *s = ctx;

	if (atomic_fetch_add(&s->pull->body_bytes, size) + size > BODIES_MAX) {
		atomic_fetch_sub(&s->pull->body_bytes, size);
		return false;
	}
	s->body_bytes += size;
	return true;
}

static void give_back(struct scrape *s)
{
	atomic_fetch_sub(&s->pull->body_bytes, s->body_bytes);
	s->body_bytes = 0;
	if (s->is_large)
		pthread_mutex_unlock(&s->pull->large);
	s->is_large = false;
}

static void count(struct pull *p, uint64_t *number)
{
	pthread_mutex_lock(&p->lock);
	++*number;
	pthread_mutex_unlock(&p->lock);
}

static int failed(struct scrape *s, const char *why)
{
	uint32_t bit = 1U << s->kind;

	count(s->pull, &s->pull->stats.failed);
	if (!(s->work->said & bit) && !atomic_load(&s->pull->cancel))
		log_warn("a scrape failed, again at the next interval", LOG_CSTR("target", s->work->target.url),
			 LOG_CSTR("profile", pull_kind_name(s->kind)), LOG_CSTR("why", why));
	s->work->said |= bit;
	return -EIO;
}

static int fetch(struct scrape *s, struct http_answer *answer)
{
	scoped(buf_release) struct buf url = BUF_INIT(KIB(8)), why = BUF_INIT(KIB(1));
	struct http_request request = { 0 };
	int r;

	buf_addf(&url, "%s%s", s->work->target.url, pull_kind_path(s->kind));
	if (s->kind == PULL_CPU)
		buf_addf(&url, "?seconds=%u", s->work->target.cpu_seconds);
	request.url = buf_cstr(&url);
	r = url.error ? url.error : http_send(s->client, &request, &why, answer);
	if (r < 0)
		return failed(s, why.len ? buf_cstr(&why) : strerror(-r));
	if (answer->status == 200)
		return 0;
	buf_clear(&why);
	buf_addf(&why, "status %u%s", answer->status,
		 answer->status >= 300 && answer->status < 400 ? " (redirects are not followed)" : "");
	return failed(s, buf_cstr(&why));
}

static bool is_cancelled(void *ctx)
{
	struct pull *p = ctx;

	return atomic_load(&p->cancel);
}

/* Within what is granted to it now. */
static int decode_once(struct scrape *s, struct str bytes, struct window *out, struct codec_error *error)
{
	size_t max = s->is_large ? s->pull->cfg.expanded_max : MIN(s->pull->cfg.expanded_max, (size_t)SMALL_MAX);
	const struct codec_limits limits = { .expanded_max = max,
					     .samples_max = SAMPLES_MAX,
					     .depth_max = DEPTH_MAX,
					     .text_max = SYMBOL_MAX,
					     .memory_max = s->is_large ? 2 * max : 4 * max,
					     .stop = is_cancelled,
					     .stop_ctx = s->pull };
	scoped(buf_release) struct buf expanded = BUF_INIT(max);
	int r = 0;

	*error = (struct codec_error){ 0 };
	if (gzip_is(bytes)) {
		r = gzip_unpack(bytes, max, RATIO_MAX, &expanded);
		bytes = buf_str(&expanded);
	}
	if (r == 0)
		r = pprof_decode_limited(bytes, &limits, out, error);
	if (r == -EBADMSG && bytes.len && codec_legacy.sniff(bytes))
		r = codec_legacy.decode_limited(bytes, &limits, out, error);
	return r;
}

static int decode(struct scrape *s, struct str bytes, struct window *out)
{
	struct codec_error error;
	int r = decode_once(s, bytes, out, &error);

	if (r == -E2BIG) {
		pthread_mutex_lock(&s->pull->large);
		s->is_large = true;
		r = decode_once(s, bytes, out, &error);
	}
	if (r < 0)
		return failed(s, r == -E2BIG       ? "the profile is too large"
				 : error.reason[0] ? error.reason
						   : strerror(-r));
	return 0;
}

static bool is_cumulative(enum pull_kind kind)
{
	static const bool kinds[] = {
#define X(id, name, path, cumulative) cumulative,
		PULL_KINDS(X)
#undef X
	};

	return kinds[kind];
}

/* What was allocated, or waited for, since the last scrape. */
static int make_difference(struct scrape *s, struct window *w)
{
	enum pull_change how;
	int r;

	if (!is_cumulative(s->kind))
		return 0;
	r = pull_delta(w->model, &s->work->baselines[s->kind], &how);
	if (r < 0)
		return failed(s, r == -E2BIG ? "too many stacks to make differences of" : strerror(-r));
	if (how == PULL_RESTARTED)
		count(s->pull, &s->pull->stats.restarts);
	return 0;
}

static void deliver(struct scrape *s, struct window *w)
{
	struct pull *p = s->pull;
	struct pulled pulled = { .target = &s->work->target, .type = str_of(pull_kind_name(s->kind)), .window = w };
	int r;

	pulled.created_ns = w->model->time_ns > 0 ? (uint64_t)w->model->time_ns : clock_wall_ns(&clock_system);
	if (!w->model->samples_count) {
		count(p, &p->stats.empty);
		return;
	}
	r = p->cfg.deliver(p->cfg.ctx, &pulled);
	count(p, r < 0 ? &p->stats.undelivered : &p->stats.delivered);
	if (r < 0)
		log_warn("a scraped profile is lost", LOG_CSTR("target", s->work->target.url),
			 LOG_CSTR("profile", pull_kind_name(s->kind)), LOG_ERR(r));
}

static void scrape_kind(struct scrape *s)
{
	scoped(http_answer_release) struct http_answer answer = { 0 };
	scoped(window_release) struct window w = { 0 };

	count(s->pull, &s->pull->stats.scrapes);
	if (fetch(s, &answer) < 0 || decode(s, buf_str(&answer.body), &w) < 0 || make_difference(s, &w) < 0)
		return;
	s->work->said &= ~(1U << s->kind);
	deliver(s, &w);
}

static void scrape_target(struct pull *p, struct work *w)
{
	struct scrape s = { .pull = p, .work = w };
	struct http_client_config http = {
		.connect_ns = w->target.timeout_ns,
		.total_ns = w->target.timeout_ns + w->target.cpu_seconds * NSEC_PER_SEC,
		.answer_max = p->cfg.body_max,
		.user_agent = p->cfg.user_agent,
		.no_proxy = true, /* the guard judges the target's address, not a proxy's */
		.cancel = &p->cancel,
		.address_allowed = address_allowed,
		.answer_room = answer_room,
		.ctx = &s,
	};

	if (http_client_open(&http, &s.client) < 0) {
		ignore(failed(&s, "out of memory"));
		return;
	}
	for (s.kind = 0; s.kind < PULL_KIND_COUNT && !atomic_load(&p->cancel); s.kind++) {
		if (w->target.kinds & 1U << s.kind)
			scrape_kind(&s);
		give_back(&s);
	}
	http_client_close(s.client);
}

/* The threads. With the lock held where nothing else is said. */

static void remove_work(struct pull *p, size_t at)
{
	work_free(p->works[at]);
	p->works[at] = p->works[--p->count];
}

/* The target that is due first and nobody has. */
static struct work *next_work(struct pull *p)
{
	struct work *best = NULL;

	for (size_t i = 0; i < p->count; i++) {
		struct work *w = p->works[i];

		if (!w->busy && !w->gone && (!best || w->next_ns < best->next_ns))
			best = w;
	}
	return best;
}

static uint64_t random_below(uint64_t limit)
{
	return limit ? random_u64() % limit : 0;
}

/* A target that could not keep up starts anew from now: rounds are left out, not piled up. */
static uint64_t next_time(const struct work *w)
{
	return MAX(w->next_ns + w->target.interval_ns, now_ns());
}

static void do_work(struct pull *p, struct work *w)
{
	w->busy = true;
	pthread_mutex_unlock(&p->lock);
	scrape_target(p, w);
	pthread_mutex_lock(&p->lock);
	w->busy = false;
	w->next_ns = next_time(w);
	for (size_t i = 0; i < p->count && w->gone; i++)
		if (p->works[i] == w) {
			remove_work(p, i);
			break;
		}
	pthread_cond_broadcast(&p->changed);
}

static void wait_until(struct pull *p, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	pthread_cond_timedwait(&p->changed, &p->lock, &until);
}

static void *run(void *ctx)
{
	struct pull *p = ctx;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct work *w = next_work(p);

		if (!w)
			pthread_cond_wait(&p->changed, &p->lock);
		else if (w->next_ns > now_ns())
			wait_until(p, w->next_ns);
		else
			do_work(p, w);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Opening and replacing */

static struct work *find_work(const struct pull *p, const struct pull_target *t)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct pull_target *old = &p->works[i]->target;

		if (!p->works[i]->gone && !strcmp(old->url, t->url) && !strcmp(old->service, t->service))
			return p->works[i];
	}
	return NULL;
}

/* Spread over the interval, so that many targets are not met at once. */
static struct work *new_work(struct pull_target *t)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->next_ns = now_ns() + (random_below(t->jitter_ns));
	w->target = *t;
	*t = (struct pull_target){ 0 };
	return w;
}

/* Moves what differences are made with. One that is being scraped keeps it: the next difference begins anew. */
static void inherit(struct work *from, struct work *to)
{
	if (from->busy)
		return;
	memcpy(to->baselines, from->baselines, sizeof(to->baselines));
	memset(from->baselines, 0, sizeof(from->baselines));
	to->said = from->said;
	to->next_ns = from->next_ns;
}

static void retire_all(struct pull *p)
{
	for (size_t i = p->count; i > 0; i--) {
		p->works[i - 1]->gone = true;
		if (!p->works[i - 1]->busy)
			remove_work(p, i - 1);
	}
}

static int replace_locked(struct pull *p, struct pull_targets *targets)
{
	struct work **works = calloc(p->count + targets->count + 1, sizeof(struct work *));
	size_t count = 0;

	if (!works)
		return -ENOMEM;
	for (size_t i = 0; i < targets->count; i++) {
		struct work *old = find_work(p, &targets->items[i]);

		works[count] = new_work(&targets->items[i]);
		if (!works[count])
			continue; /* out of memory costs this target, until the next reload */
		if (old)
			inherit(old, works[count]);
		count++;
	}
	retire_all(p);
	if (p->count)
		memcpy(works + count, p->works, p->count * sizeof(struct work *)); /* still busy */
	free(p->works);
	p->works = works;
	p->count += count;
	p->stats.targets = count;
	pthread_cond_broadcast(&p->changed);
	return 0;
}

int pull_replace(struct pull *p, struct pull_targets *targets)
{
	int r;

	pthread_mutex_lock(&p->lock);
	r = replace_locked(p, targets);
	pthread_mutex_unlock(&p->lock);
	if (r == 0)
		pull_targets_release(targets);
	return r;
}

static void release(struct pull *p)
{
	for (size_t i = 0; i < p->count; i++)
		work_free(p->works[i]);
	free(p->works);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->large);
	free(p);
}

void pull_close(struct pull *p)
{
	if (!p)
		return;
	atomic_store(&p->cancel, true);
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->thread_count; i++)
		pthread_join(p->threads[i], NULL);
	release(p);
}

static void pull_closep(struct pull **p)
{
	pull_close(*p);
}

static int start_threads(struct pull *p)
{
	unsigned int want = MIN(p->cfg.threads ? p->cfg.threads : THREADS_DEFAULT, (unsigned int)THREADS_MAX);
	sigset_t every, before;
	int r = 0;

	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	while (p->thread_count < want && r == 0) {
		r = pthread_create(&p->threads[p->thread_count], NULL, run, p);
		p->thread_count += r == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return p->thread_count ? 0 : -r; /* fewer do it too */
}

static void init_locks(struct pull *p)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->large, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int pull_open(const struct pull_config *cfg, struct pull_targets *targets, struct pull **out)
{
	scoped(pull_closep) struct pull *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	init_locks(p);
	p->cfg = *cfg;
	p->cfg.body_max = cfg->body_max ? cfg->body_max : BODY_DEFAULT;
	p->cfg.expanded_max = cfg->expanded_max ? cfg->expanded_max : EXPANDED_DEFAULT;
	r = pull_replace(p, targets);
	if (r == 0)
		r = start_threads(p);
	if (r < 0)
		return r;
	*out = p;
	p = NULL;
	return 0;
}

void pull_stats(struct pull *p, struct pull_stats *out)
{
	pthread_mutex_lock(&p->lock);
	*out = p->stats;
	pthread_mutex_unlock(&p->lock);
}
