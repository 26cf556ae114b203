/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/push.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/safe.h"
#include "sink/spool.h"

#define SPOOL_DEFAULT MIB(256)
#define MEMORY_DEFAULT MIB(32)
#define RETRY_DEFAULT_NS NSEC_PER_SEC
#define RETRY_MAX_NS (120 * NSEC_PER_SEC)
#define RETRY_AFTER_MAX_NS (600 * NSEC_PER_SEC)
#define FAILURES_MAX 10 /* of one profile, while others are taken */
#define ITEMS_MAX 65536
#define REQUEST_NS (30 * NSEC_PER_SEC) /* and upload_more_ns() */

struct item {
	uint64_t number;
	size_t size;
	char *bytes;          /* as in a file; NULL: it is in the spool */
	uint32_t failures;    /* answers of 500 */
	uint64_t sent_before; /* push.stats.sent at the first of them */
};

struct push {
	/* Never changed after open. */
	char *url, *token, *ca_file;
	char *shown; /* the URL as it may be logged */
	size_t spool_max, memory_max;
	uint64_t jitter_ns, retry_min_ns;
	void (*say)(void *ctx, const char *what, const char *why);
	void *say_ctx;
	struct http_client *client; /* the sender's */
	struct spool *spool;        /* its functions need no lock; or NULL */
	pthread_t sender;
	atomic_bool cancel;
	bool said_refused, said_unreachable; /* the sender's */
	uint32_t said_denied;                /* the sender's: status that was said, or 0 */
	pthread_mutex_t lock;                /* guards what follows; never held while sending, reading or writing */
	pthread_cond_t wake, progress;       /* something for the sender to do; something the sender has done */
	bool stop, flushing, said_memory, said_dropped;
	struct item *items; /* those from `first` on wait, oldest first */
	size_t first, count, cap;
	uint64_t next_number, sending; /* sending: number under way, or 0 */
	size_t spool_bytes, memory_bytes;
	uint32_t failures;      /* attempts in a row that failed for now */
	uint64_t not_before_ns; /* monotonic */
	struct push_stats stats;
};

static uint64_t now_ns(void)
{
	return clock_monotonic_ns(&clock_system);
}

uint64_t push_pause_ns(uint64_t retry_min_ns, uint32_t failures, uint64_t random)
{
	uint64_t pause = retry_min_ns;

	for (uint32_t i = 1; i < failures && pause < RETRY_MAX_NS; i++)
		pause *= 2;
	pause = MIN(pause, RETRY_MAX_NS);
	return pause / 2 + random % (pause / 2 + 1);
}

/* Items. All with the lock held. */

static size_t waiting(const struct push *p)
{
	return p->count - p->first;
}

static int append(struct push *p, const struct item *item)
{
	int r;

	if (p->first && p->first >= waiting(p)) {
		memmove(p->items, p->items + p->first, waiting(p) * sizeof(*p->items));
		p->count -= p->first;
		p->first = 0;
	}
	r = array_grow(&p->items, &p->cap, p->count, 2 * ITEMS_MAX);
	if (r < 0)
		return r;
	p->items[p->count++] = *item;
	*(item->bytes ? &p->memory_bytes : &p->spool_bytes) += item->size;
	return 0;
}

/* The item is the caller's then. */
static struct item take_out(struct push *p, size_t at)
{
	struct item item = p->items[at];

	memmove(p->items + p->first + 1, p->items + p->first, (at - p->first) * sizeof(*p->items));
	p->first++;
	*(item.bytes ? &p->memory_bytes : &p->spool_bytes) -= item.size;
	return item;
}

static size_t find_number(const struct push *p, uint64_t number)
{
	size_t at = p->first;

	while (at < p->count && p->items[at].number != number)
		at++;
	return at;
}

/* The oldest in memory or on disk; what is being sent stays. Return: false when there is none. */
static bool take_oldest(struct push *p, bool in_memory, struct item *out)
{
	for (size_t at = p->first; at < p->count; at++) {
		if (!!p->items[at].bytes != in_memory || p->items[at].number == p->sending)
			continue;
		*out = take_out(p, at);
		p->stats.dropped++;
		return true;
	}
	return false;
}

static void say(const struct push *p, const char *what, const char *why)
{
	if (p->say)
		p->say(p->say_ctx, what, why);
	else
		log_warn(what, LOG_CSTR("collector", p->shown), LOG_CSTR("why", why));
}

/* Without the lock. */

static void say_dropped(struct push *p)
{
	bool first;

	pthread_mutex_lock(&p->lock);
	first = !p->said_dropped;
	p->said_dropped = true;
	pthread_mutex_unlock(&p->lock);
	if (first)
		say(p, "no more room for profiles that wait for the collector: the oldest are dropped from now on", "");
}

static bool drop_oldest(struct push *p, bool in_memory)
{
	struct item item;
	bool found;

	pthread_mutex_lock(&p->lock);
	found = take_oldest(p, in_memory, &item);
	pthread_mutex_unlock(&p->lock);
	if (!found)
		return false;
	if (item.bytes)
		free(item.bytes);
	else
		ignore(spool_remove(p->spool, item.number)); /* it is tried again by the next run then */
	say_dropped(p);
	return true;
}

static bool has_room(struct push *p, bool in_memory, size_t size)
{
	bool fits;

	pthread_mutex_lock(&p->lock);
	fits = waiting(p) < ITEMS_MAX &&
	       (in_memory ? p->memory_bytes + size <= p->memory_max : p->spool_bytes + size <= p->spool_max);
	pthread_mutex_unlock(&p->lock);
	return fits;
}

static int make_room(struct push *p, bool in_memory, size_t size)
{
	if (size > (in_memory ? p->memory_max : p->spool_max))
		return -E2BIG; /* nobody else has to go for it */
	while (!has_room(p, in_memory, size))
		if (!drop_oldest(p, in_memory))
			return -E2BIG;
	return 0;
}

static int put_item(struct push *p, const struct item *item)
{
	int r;

	pthread_mutex_lock(&p->lock);
	if (!waiting(p) && !p->flushing && p->jitter_ns)
		p->not_before_ns = MAX(p->not_before_ns, now_ns() + random_u64() % p->jitter_ns);
	r = append(p, item);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return r;
}

static int put_on_disk(struct push *p, uint64_t number, const struct upload *u)
{
	struct item item = { .number = number, .size = spool_size(u) };
	int r = p->spool ? make_room(p, false, item.size) : -ENOENT;

	if (r < 0)
		return r;
	do
		r = spool_write(p->spool, number, u);
	while ((r == -ENOSPC || r == -EDQUOT) && drop_oldest(p, false));
	if (r < 0)
		return r;
	r = put_item(p, &item);
	if (r < 0)
		ignore(spool_remove(p->spool, number)); /* the next run would send it */
	return r;
}

static void say_memory(struct push *p, int error)
{
	bool first;

	pthread_mutex_lock(&p->lock);
	first = p->spool && !p->said_memory;
	p->said_memory = true;
	pthread_mutex_unlock(&p->lock);
	if (first)
		say(p, "the spool cannot be written: profiles wait in memory and are lost when the program ends",
		    strerror(-error));
}

static int put_in_memory(struct push *p, uint64_t number, const struct upload *u)
{
	scoped(buf_release) struct buf bytes = BUF_INIT(p->memory_max);
	struct item item = { .number = number };
	int r;

	spool_encode(u, &bytes);
	r = bytes.error ? bytes.error : make_room(p, true, bytes.len);
	if (r < 0)
		return r;
	item.bytes = buf_take(&bytes, &item.size);
	r = put_item(p, &item);
	if (r < 0)
		free(item.bytes);
	return r;
}

int push_put(struct push *p, const struct upload *u)
{
	uint64_t number;
	int r;

	pthread_mutex_lock(&p->lock);
	number = p->next_number++;
	pthread_mutex_unlock(&p->lock);
	r = put_on_disk(p, number, u);
	if (r < 0) {
		say_memory(p, r);
		r = put_in_memory(p, number, u);
	}
	if (r < 0) {
		pthread_mutex_lock(&p->lock);
		p->stats.dropped++;
		pthread_mutex_unlock(&p->lock);
	}
	return r;
}

/* The sender. */

static int load(struct push *p, const struct item *item, struct buf *bytes, struct upload *out)
{
	return item->bytes ? spool_decode(str_n(item->bytes, item->size), out)
			   : spool_read(p->spool, item->number, bytes, out);
}

/* Whether there is nothing left to send. Other errors may pass: something is short, or a disk or a server of files does
 * not answer at the moment. */
static bool is_lost(int error)
{
	return error == -EBADMSG || error == -ENOENT || error == -E2BIG;
}

/* What a status asks for. */
static const char *remedy(uint32_t status)
{
	if (status == 401)
		return "the collector does not know our token; profiles are kept and sent once one is right "
		       "(--token-file)";
	if (status == 403)
		return "our token has not the scope ingest; profiles are kept and sent once one has (--token-file)";
	return "no collector at this address; profiles are kept and sent once it is right (--push)";
}

/* Without the lock; the flags are the sender's. */
static void tell(struct push *p, const struct upload_result *result, bool given_up)
{
	if (result->outcome == UPLOAD_DONE) {
		if (p->said_unreachable && !p->say)
			log_info("the collector takes profiles again", LOG_CSTR("collector", p->shown));
		p->said_unreachable = false;
		p->said_denied = 0;
	} else if (result->outcome == UPLOAD_DENIED) {
		if (p->said_denied != result->status)
			say(p, remedy(result->status), result->why);
		p->said_denied = result->status;
	} else if (given_up) {
		if (!p->said_refused)
			say(p, "the collector refuses a profile, which is given up; more of these are only counted",
			    result->why);
		p->said_refused = true;
	} else {
		if (!p->said_unreachable)
			say(p, "the collector does not take profiles now: they wait", result->why);
		p->said_unreachable = true;
	}
}

/* With the lock held. Whether the profile is what the collector stumbles over: it takes others. */
static bool is_poison(const struct push *p, const struct item *item)
{
	return item->failures >= FAILURES_MAX && p->stats.sent > item->sent_before;
}

/* Another one is next: it may be this one that the collector cannot take. */
static void to_the_end(struct push *p, size_t at)
{
	struct item item = p->items[at];

	memmove(p->items + at, p->items + at + 1, (p->count - at - 1) * sizeof(item));
	p->items[p->count - 1] = item;
}

static void failed_for_now(struct push *p, size_t at, const struct upload_result *result)
{
	struct item *item = &p->items[at];
	uint64_t pause = push_pause_ns(p->retry_min_ns, ++p->failures, random_u64());

	p->stats.retries++;
	if (result->has_retry_after)
		pause = MAX(pause, MIN(result->retry_after_ns, RETRY_AFTER_MAX_NS));
	p->not_before_ns = now_ns() + pause;
	/* Nobody was there, or we are denied: no other one would fare better. */
	if (!result->was_sent || result->outcome == UPLOAD_DENIED)
		return;
	/* 503, 507 and 429 speak of the collector's state, a connection that broke of what lies between; 500 perhaps of
	 * this profile. */
	if (result->status == 500 && !item->failures++)
		item->sent_before = p->stats.sent;
	to_the_end(p, at);
}

/* With the lock held. Return: true when the item is done with, one way or the other. */
static bool judge(struct push *p, size_t at, const struct upload_result *result)
{
	if (result->outcome != UPLOAD_DONE)
		(void)snprintf(p->stats.last_error, sizeof(p->stats.last_error), "%.*s",
			       (int)sizeof(p->stats.last_error) - 1, result->why);
	p->stats.denied = result->outcome == UPLOAD_DENIED;
	if (p->stats.denied || (result->outcome == UPLOAD_AGAIN && !is_poison(p, &p->items[at]))) {
		failed_for_now(p, at, result);
		return false;
	}
	p->failures = 0;
	p->not_before_ns = 0;
	p->stats.sent += result->outcome == UPLOAD_DONE;
	p->stats.refused += result->outcome != UPLOAD_DONE;
	return true;
}

/* With the lock held, let go meanwhile. */
static void send_first(struct push *p)
{
	const struct upload_target target = { .client = p->client, .url = p->url, .token = str_of(p->token) };
	scoped(buf_release) struct buf bytes = BUF_INIT(GIB(1));
	struct upload_result result = { .outcome = UPLOAD_AGAIN };
	struct item item = p->items[p->first];
	bool done = true, judged = false;
	struct upload u;
	int r;

	p->sending = item.number;
	pthread_mutex_unlock(&p->lock);
	r = load(p, &item, &bytes, &u);
	if (r == 0)
		upload_send(&target, &u, &result);
	else if (!is_lost(r))
		(void)snprintf(result.why, sizeof(result.why), "reading it from the spool: %s", strerror(-r));
	result.was_sent |= r < 0; /* it is this one that waits, behind the others */
	pthread_mutex_lock(&p->lock);
	p->sending = 0;
	if (is_lost(r)) {
		p->stats.damaged++;
	} else if (p->stop && result.outcome == UPLOAD_AGAIN) {
		done = false; /* it was cancelled: nobody's failure */
	} else {
		done = judge(p, find_number(p, item.number), &result);
		judged = true;
	}
	if (done)
		item = take_out(p, find_number(p, item.number));
	pthread_mutex_unlock(&p->lock);
	if (judged)
		tell(p, &result, done);
	if (done && !item.bytes)
		ignore(spool_remove(p->spool, item.number)); /* sent again by the next run, under its key */
	if (done)
		free(item.bytes);
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->progress);
}

static void timed_wait(struct push *p, pthread_cond_t *cond, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	pthread_cond_timedwait(cond, &p->lock, &until);
}

static void *run(void *ctx)
{
	struct push *p = ctx;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (!waiting(p))
			pthread_cond_wait(&p->wake, &p->lock);
		else if (now_ns() < p->not_before_ns)
			timed_wait(p, &p->wake, p->not_before_ns);
		else
			send_first(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int push_flush(struct push *p, uint64_t timeout_ns)
{
	uint64_t until_ns = now_ns() + timeout_ns;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	p->flushing = true;
	p->not_before_ns = 0;
	p->stats.denied = false;
	pthread_cond_signal(&p->wake);
	while (waiting(p) && r == 0) {
		if (p->stats.denied)
			r = -EACCES; /* waiting does not mend it */
		else if (now_ns() >= until_ns || (!p->sending && p->not_before_ns >= until_ns))
			r = -ETIMEDOUT; /* the next attempt would come too late */
		else
			timed_wait(p, &p->progress, until_ns);
	}
	p->flushing = false;
	pthread_mutex_unlock(&p->lock);
	return r;
}

void push_stats(struct push *p, struct push_stats *out)
{
	pthread_mutex_lock(&p->lock);
	*out = p->stats;
	out->waiting = waiting(p);
	out->waiting_in_memory = 0;
	for (size_t at = p->first; at < p->count; at++)
		out->waiting_in_memory += p->items[at].bytes != NULL;
	pthread_mutex_unlock(&p->lock);
}

/* Opening and closing */

static void release(struct push *p)
{
	if (!p)
		return;
	for (size_t at = p->first; at < p->count; at++)
		free(p->items[at].bytes);
	free(p->items);
	http_client_close(p->client);
	spool_close(p->spool);
	if (p->token)
		explicit_bzero(p->token, strlen(p->token));
	free(p->token);
	free(p->url);
	free(p->shown);
	free(p->ca_file);
	pthread_cond_destroy(&p->wake);
	pthread_cond_destroy(&p->progress);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void releasep(struct push **p)
{
	release(*p);
}

static int take_found(void *ctx, uint64_t number, size_t size)
{
	struct push *p = ctx;
	int r = append(p, &(struct item){ .number = number, .size = size });

	p->next_number = MAX(p->next_number, number + 1);
	p->stats.found++;
	return r == -E2BIG ? 0 : r; /* more than there is room for stays where it is */
}

/* Numbers go on from the clock, so that they grow from run to run. */
static int open_spool(struct push *p, const struct push_config *cfg, struct buf *why)
{
	int r;

	p->next_number = clock_wall_ns(&clock_system);
	if (!cfg->spool_dir)
		return 0;
	r = spool_open(cfg->spool_dir, take_found, p, why, &p->spool);
	return r < 0 ? r : make_room(p, false, 0); /* the bound may be smaller than last time */
}

static int copy_config(struct push *p, const struct push_config *cfg, struct buf *why)
{
	scoped(buf_release) struct buf url = BUF_INIT(KIB(8)), shown = BUF_INIT(KIB(32));
	size_t len;
	int r = upload_collector_url(&url, str_of(cfg->url), why);

	if (r < 0)
		return r;
	safe_add_url(&shown, buf_str(&url));
	(void)buf_cstr(&url);
	(void)buf_cstr(&shown);
	p->url = buf_take(&url, &len);
	p->shown = buf_take(&shown, &len);
	p->token = str_dup(cfg->token);
	p->ca_file = cfg->ca_file ? str_dup(str_of(cfg->ca_file)) : NULL;
	p->spool_max = cfg->spool_max ? cfg->spool_max : SPOOL_DEFAULT;
	p->memory_max = cfg->memory_max ? cfg->memory_max : MEMORY_DEFAULT;
	p->jitter_ns = cfg->jitter_ns;
	p->say = cfg->say;
	p->say_ctx = cfg->say_ctx;
	p->retry_min_ns = cfg->retry_min_ns ? cfg->retry_min_ns : RETRY_DEFAULT_NS;
	return p->url && p->shown && p->token && (p->ca_file || !cfg->ca_file) ? 0 : -ENOMEM;
}

static void init_locks(struct push *p)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &monotonic);
	pthread_cond_init(&p->progress, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Signals are for the other threads. */
static int start_sender(struct push *p)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&p->sender, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int push_open(const struct push_config *cfg, struct buf *why, struct push **out)
{
	scoped(releasep) struct push *p = calloc(1, sizeof(*p));
	struct http_client_config http = { .total_ns = REQUEST_NS,
					   .ca_file = cfg->ca_file,
					   .no_verify = cfg->no_verify };
	int r;

	if (!p)
		return -ENOMEM;
	init_locks(p);
	r = copy_config(p, cfg, why);
	if (r == 0)
		r = open_spool(p, cfg, why);
	http.ca_file = p->ca_file;
	http.cancel = &p->cancel;
	if (r == 0)
		r = http_client_open(&http, &p->client);
	if (r == 0)
		r = start_sender(p);
	if (r < 0)
		return r;
	*out = p;
	p = NULL;
	return 0;
}

void push_close(struct push *p)
{
	if (!p)
		return;
	atomic_store(&p->cancel, true);
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->sender, NULL);
	release(p);
}
