/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

int queue_init(struct queue *q)
{
	int r;

	*q = (struct queue){ 0 };
	r = pthread_mutex_init(&q->lock, NULL);
	if (r)
		return -r;
	r = pthread_cond_init(&q->changed, NULL);
	if (r)
		pthread_mutex_destroy(&q->lock);
	return -r;
}

void queue_release(struct queue *q)
{
	must(q->count == 0);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

void queue_put(struct queue *q, void *item, void **dropped)
{
	*dropped = NULL;
	pthread_mutex_lock(&q->lock);
	must(!q->closed);
	if (q->count == QUEUE_CAP) {
		*dropped = q->items[q->first];
		q->first = (q->first + 1) % QUEUE_CAP;
		q->count--;
	}
	q->items[(q->first + q->count++) % QUEUE_CAP] = item;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void *queue_take(struct queue *q)
{
	void *item = NULL;

	pthread_mutex_lock(&q->lock);
	while (!q->count && !q->closed)
		pthread_cond_wait(&q->changed, &q->lock);
	if (q->count) {
		item = q->items[q->first];
		q->first = (q->first + 1) % QUEUE_CAP;
		q->count--;
	}
	pthread_mutex_unlock(&q->lock);
	return item;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}
