/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of requests and the threads that work them off. */
#include "base/clock.h"
#include "net/http_int.h"

static struct http_exchange *take(struct http_server *s, enum http_lane lane)
{
	struct http_queue *q = &s->queues[lane];
	struct http_exchange *x;

	(void)pthread_mutex_lock(&s->lock);
	while (!q->first && !s->stop_workers)
		(void)pthread_cond_wait(&q->changed, &s->lock);
	x = q->first;
	if (x) {
		q->first = x->next;
		q->last = q->first ? q->last : NULL;
		q->count--;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return x;
}

static void *work(void *arg)
{
	struct http_worker *w = arg;
	struct http_server *s = w->server;
	struct http_exchange *x;

	while ((x = take(s, w->lane))) {
		s->config.handle(s->config.ctx, &x->request, &x->response);
		answer_hold(x);
		x->state = EXCHANGE_DONE;
		MHD_resume_connection(x->connection); /* x may be gone from here on */
	}
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

bool workers_submit(struct http_server *s, struct http_exchange *x)
{
	struct http_queue *q = &s->queues[x->request.lane];
	bool fits;

	(void)pthread_mutex_lock(&s->lock);
	fits = q->count < s->config.queue_max && !s->stop_workers;
	if (fits) {
		x->next = NULL;
		if (q->last)
			q->last->next = x;
		else
			q->first = x;
		q->last = x;
		q->count++;
		(void)pthread_cond_signal(&q->changed);
	}
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
