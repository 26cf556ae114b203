/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of requests and the threads that work them off. */
#include <sys/resource.h>

#include "base/clock.h"
#include "net/http_int.h"

#define RUNNING_NS (5 * NSEC_PER_MSEC) /* what a request that runs may still take */
#define BYTE_NS 640 /* of lead for each byte less: small requests pass larger ones that came before, up to a bound */

/* server->lock is held */
static uint64_t rank_of(const struct http_exchange *x, uint64_t now_ns)
{
	size_t running = x->sender ? x->sender->running[x->request.lane] : 0;

	return (x->queued_ns ? x->queued_ns : x->request.received_ns) + sender_spent(x->sender, now_ns) +
	       running * RUNNING_NS + x->weight * BYTE_NS;
}

uint64_t http_rank(const struct http_request *rq)
{
	struct http_server *s = rq->exchange->server;
	uint64_t rank;

	(void)pthread_mutex_lock(&s->lock);
	rank = rank_of(rq->exchange, clock_monotonic_ns(&clock_system));
	(void)pthread_mutex_unlock(&s->lock);
	return rank;
}

static bool is_heavy(const struct http_server *s, const struct http_exchange *x)
{
	return s->config.weight_light && x->weight > s->config.weight_light;
}

static bool is_query(enum http_lane lane)
{
	return lane == HTTP_LANE_READ || lane == HTTP_LANE_MERGE;
}

/* Neither one sender nor heavy requests get the last workers of a lane. One that has only one worker is served in
 * turns. */
static bool has_share(const struct http_server *s, const struct http_exchange *x, enum http_lane lane)
{
	size_t all = s->config.workers[lane], share = all > 1 ? all - MAX(all / 4, (size_t)1) : 1;

	if (x->sender && x->sender->running[lane] >= share)
		return false;
	return !is_heavy(s, x) || s->queues[lane].running_heavy < share;
}

/* server->lock is held. Return: what is next, taken out; NULL: there is nothing that may run now. */
static struct http_exchange *take_next(struct http_server *s, enum http_lane lane)
{
	struct http_queue *q = &s->queues[lane];
	struct http_exchange **best = NULL, *last = NULL, *x;
	uint64_t now = clock_monotonic_ns(&clock_system), least = UINT64_MAX;

	for (struct http_exchange **at = &q->first; *at; at = &(*at)->next) {
		uint64_t rank = rank_of(*at, now);

		if (rank < least && has_share(s, *at, lane)) {
			least = rank;
			best = at;
		}
	}
	if (!best)
		return NULL;
	x = *best;
	*best = x->next;
	for (struct http_exchange *at = q->first; at; at = at->next)
		last = at;
	q->last = last;
	q->count--;
	q->running_heavy += is_heavy(s, x);
	if (x->sender)
		x->sender->running[lane]++;
	return x;
}

static struct http_exchange *take(struct http_server *s, enum http_lane lane)
{
	struct http_queue *q = &s->queues[lane];
	struct http_exchange *x;

	(void)pthread_mutex_lock(&s->lock);
	while (!(x = take_next(s, lane)) && !(s->stop_workers && !q->first))
		(void)pthread_cond_wait(&q->changed, &s->lock);
	if (!x)
		(void)pthread_cond_broadcast(&q->changed); /* the others of the lane may end, too */
	(void)pthread_mutex_unlock(&s->lock);
	return x;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0 ? 0
							      : (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Who waits because of a share may be next now. */
static void give_back(struct http_server *s, struct http_exchange *x, enum http_lane lane, uint64_t spent_ns)
{
	struct http_queue *q = &s->queues[lane];

	(void)pthread_mutex_lock(&s->lock);
	q->running_heavy -= is_heavy(s, x);
	if (x->sender) {
		x->sender->running[lane]--;
		x->sender->queries -= is_query(lane);
	}
	sender_spend(x->sender, clock_monotonic_ns(&clock_system), spent_ns);
	if (q->first)
		(void)pthread_cond_signal(&q->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

void http_again(struct http_request *rq, enum http_lane lane)
{
	rq->lane = lane;
	rq->tries++;
	rq->exchange->again = true;
}

void refuse_busy(struct http_exchange *x)
{
	struct http_server *s = x->server;

	atomic_fetch_add(&s->refused_busy, 1);
	s->config.refuse(s->config.ctx, &x->request, 503, "too many requests at once", &x->response);
	http_header_set(&x->response, "Retry-After", STR("1"));
}

static void work_off(struct http_server *s, struct http_exchange *x, enum http_lane lane)
{
	uint64_t before_ns = cpu_ns();

	if (x->stream_state != STREAM_NONE) {
		int r = stream_work(x);

		give_back(s, x, lane, cpu_ns() - before_ns);
		stream_settle(x, r);
		return;
	}
	x->again = false;
	s->config.handle(s->config.ctx, &x->request, &x->response);
	if (!x->again)
		answer_hold(x);
	give_back(s, x, lane, cpu_ns() - before_ns);
	if (x->again && workers_submit(s, x))
		return;
	if (x->again)
		refuse_busy(x);
	x->state = EXCHANGE_DONE;
	MHD_resume_connection(x->connection); /* x may be gone from here on */
}

static void *work(void *arg)
{
	struct http_worker *w = arg;
	struct http_server *s = w->server;
	struct http_exchange *x;

	if (s->config.nice[w->lane])
		ignore(setpriority(PRIO_PROCESS, 0,
				   s->config.nice[w->lane])); /* of this thread; it runs as it is then */
	while ((x = take(s, w->lane)))
		work_off(s, x, w->lane);
	return NULL;
}

int workers_start(struct http_server *s)
{
	for (int lane = 0; lane < HTTP_LANES; lane++)
		for (unsigned int i = 0; i < s->config.workers[lane]; i++) {
			struct http_worker *w = &s->workers[s->worker_count];
			int r;

			if (s->worker_count == HTTP_WORKERS_MAX)
				return -E2BIG;
			*w = (struct http_worker){ .server = s, .lane = (enum http_lane)lane };
			r = pthread_create(&w->thread, NULL, work, w);
			if (r)
				return -r;
			s->worker_count++;
		}
	return 0;
}

bool workers_submit_locked(struct http_server *s, struct http_exchange *x)
{
	struct http_queue *q = &s->queues[x->request.lane];
	bool query = is_query(x->request.lane), fits;

	fits = q->count < s->config.queue_max && !s->stop_workers;
	if (query && x->sender && s->config.queue_share)
		fits &= x->sender->queries < s->config.queue_share;
	if (fits) {
		if (x->sender)
			x->sender->queries += query;
		x->next = NULL;
		if (q->last)
			q->last->next = x;
		else
			q->first = x;
		q->last = x;
		q->count++;
		(void)pthread_cond_signal(&q->changed);
	}
	return fits;
}

bool workers_submit(struct http_server *s, struct http_exchange *x)
{
	bool fits;

	(void)pthread_mutex_lock(&s->lock);
	fits = workers_submit_locked(s, x);
	(void)pthread_mutex_unlock(&s->lock);
	return fits;
}

bool workers_drain(struct http_server *s, uint64_t ns)
{
	uint64_t until = clock_wall_ns(&clock_system) + ns;
	struct timespec at = { (time_t)(until / NSEC_PER_SEC), (long)(until % NSEC_PER_SEC) };
	bool idle;
	int r = 0;

	(void)pthread_mutex_lock(&s->lock);
	while (s->busy && r == 0)
		r = pthread_cond_timedwait(&s->drained, &s->lock, &at);
	idle = !s->busy;
	(void)pthread_mutex_unlock(&s->lock);
	return idle;
}

void workers_stop(struct http_server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->stop_workers = true;
	for (int lane = 0; lane < HTTP_LANES; lane++)
		(void)pthread_cond_broadcast(&s->queues[lane].changed);
	(void)pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->worker_count; i++)
		(void)pthread_join(s->workers[i].thread, NULL);
	s->worker_count = 0;
}
