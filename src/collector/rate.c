/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/rate.h"

#include <pthread.h>

#include "base/clock.h"

#define PROBES 8 /* places that one sender may have */

struct bucket {
	uint64_t sender, at_ns; /* at_ns 0: free */
	int64_t level;          /* bytes at that time */
};

struct rate {
	uint64_t per_second;
	int64_t burst;
	pthread_mutex_t lock; /* guards buckets */
	struct bucket buckets[RATE_SENDERS];
};

int rate_new(uint64_t per_second, struct rate **out)
{
	struct rate *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->per_second = MIN(per_second, (uint64_t)INT32_MAX * 16);
	r->burst = (int64_t)(2 * r->per_second);
	(void)pthread_mutex_init(&r->lock, NULL); /* no attributes: cannot fail on Linux */
	*out = r;
	return 0;
}

void rate_free(struct rate *r)
{
	if (!r)
		return;
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

/* The sender's bucket as it is now; the one that is idle longest, which is the fullest, makes room for a new one. The
 * lock is held. */
static struct bucket *bucket_of(struct rate *r, uint64_t sender, uint64_t now_ns)
{
	struct bucket *oldest = NULL, *b = NULL;
	uint64_t idle_ns;

	for (uint64_t i = 0; i < PROBES && !b; i++) {
		struct bucket *at = &r->buckets[(sender + i) % RATE_SENDERS];

		if (at->at_ns && at->sender == sender)
			b = at;
		if (!oldest || at->at_ns < oldest->at_ns)
			oldest = at;
	}
	if (!b) {
		b = oldest;
		*b = (struct bucket){ .sender = sender, .at_ns = now_ns, .level = r->burst };
	}
	idle_ns = MIN(now_ns - MIN(b->at_ns, now_ns), 1000 * NSEC_PER_SEC); /* the product fits */
	b->level += (int64_t)(idle_ns / NSEC_PER_USEC * r->per_second / (NSEC_PER_SEC / NSEC_PER_USEC));
	b->level = MIN(b->level, r->burst);
	b->at_ns = MAX(now_ns, (uint64_t)1);
	return b;
}

uint64_t rate_wait_s(struct rate *r, uint64_t sender, uint64_t now_ns)
{
	int64_t level;

	if (!r->per_second)
		return 0;
	(void)pthread_mutex_lock(&r->lock);
	level = bucket_of(r, sender, now_ns)->level;
	(void)pthread_mutex_unlock(&r->lock);
	return level > 0 ? 0 : 1 + (uint64_t)-level / r->per_second;
}

void rate_spend(struct rate *r, uint64_t sender, uint64_t now_ns, uint64_t bytes)
{
	struct bucket *b;

	if (!r->per_second)
		return;
	(void)pthread_mutex_lock(&r->lock);
	b = bucket_of(r, sender, now_ns);
	b->level -= (int64_t)MIN(bytes, (uint64_t)INT64_MAX / 4);
	b->level = MAX(b->level, -INT64_MAX / 4);
	(void)pthread_mutex_unlock(&r->lock);
}
