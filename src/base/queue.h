/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of pointers between two threads; ownership moves with the pointer. */
#pragma once

#include <pthread.h>

#include "base/base.h"

#define QUEUE_CAP 16

struct queue {
	pthread_mutex_t lock; /* guards all fields */
	pthread_cond_t changed;
	void *items[QUEUE_CAP];
	size_t first, count;
	bool closed;
};

int queue_init(struct queue *q) warn_unused;
void queue_release(struct queue *q); /* must be empty */

/**
 * queue_put - append @item; never waits
 * @dropped: the oldest item when the queue was full, which is now the caller's again; otherwise NULL
 */
void queue_put(struct queue *q, void *item, void **dropped);
/** queue_take - wait for the next item. Return: NULL once the queue is closed and empty. */
void *queue_take(struct queue *q);
/** queue_close - no more items will come; what is in it can still be taken. */
void queue_close(struct queue *q);
