/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "collector/collector_int.h"

#define SOON_NS (20 * NSEC_PER_MSEC)

struct watch {
	const struct store *store;
	struct store_state *state;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the rest; held for moments */
	pthread_cond_t wanted, done;
	bool stop;
	uint64_t asked, answered; /* how often */
	struct store_stats stats;
	uint64_t at_ns; /* when it was asked for; 0: never */
};

static void *run(void *arg)
{
	struct watch *w = arg;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		uint64_t asked = w->asked, now_ns = clock_monotonic_ns(&clock_system);
		struct store_stats stats;
		int r;

		if (asked == w->answered) {
			(void)pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&w->lock);
		r = w->store->stats(w->state, &stats);
		(void)pthread_mutex_lock(&w->lock);
		if (r == 0) {
			w->stats = stats;
			w->at_ns = now_ns;
		}
		w->answered = asked;
		(void)pthread_cond_broadcast(&w->done);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

bool watch_stats(struct watch *w, struct store_stats *out, uint64_t *age_ns)
{
	uint64_t now_ns = clock_monotonic_ns(&clock_system), until_ns = now_ns + SOON_NS, mine;
	struct timespec until = { (time_t)(until_ns / NSEC_PER_SEC), (long)(until_ns % NSEC_PER_SEC) };
	bool any;
	int r = 0;

	(void)pthread_mutex_lock(&w->lock);
	mine = ++w->asked;
	(void)pthread_cond_signal(&w->wanted);
	while (w->answered < mine && r == 0)
		r = pthread_cond_timedwait(&w->done, &w->lock, &until);
	any = w->at_ns != 0;
	*out = w->stats;
	*age_ns = now_ns - MIN(w->at_ns, now_ns);
	(void)pthread_mutex_unlock(&w->lock);
	return any;
}

static void destroy(struct watch *w)
{
	(void)pthread_cond_destroy(&w->wanted);
	(void)pthread_cond_destroy(&w->done);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

int watch_new(const struct store *store, struct store_state *state, struct watch **out)
{
	struct watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;
	int r;

	if (!w)
		return -ENOMEM;
	w->store = store;
	w->state = state;
	(void)pthread_mutex_init(&w->lock, NULL); /* these cannot fail on Linux */
	(void)pthread_cond_init(&w->wanted, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->done, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	r = pthread_create(&w->thread, NULL, run, w);
	if (r) {
		destroy(w);
		return -r;
	}
	*out = w;
	return 0;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->lock);
	w->stop = true;
	(void)pthread_cond_signal(&w->wanted);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	destroy(w);
}
