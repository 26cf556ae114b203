/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/gate.h"

void gate_init(struct gate *g, unsigned int places)
{
	g->free = places;
	(void)pthread_mutex_init(&g->lock, NULL); /* no attributes: cannot fail on Linux */
}

void gate_destroy(struct gate *g)
{
	(void)pthread_mutex_destroy(&g->lock);
}

struct gate_place {
	struct gate_place *next;
	uint64_t rank;
	pthread_cond_t called;
	bool is_called;
};

/* g->lock is held. */
static void wait_in_line(struct gate *g, uint64_t rank)
{
	struct gate_place place = { .rank = rank }, **at = &g->first;

	(void)pthread_cond_init(&place.called, NULL); /* no attributes: cannot fail on Linux */
	while (*at && (*at)->rank <= rank)
		at = &(*at)->next;
	place.next = *at;
	*at = &place;
	while (!place.is_called)
		(void)pthread_cond_wait(&place.called, &g->lock);
	(void)pthread_cond_destroy(&place.called);
}

void gate_enter(struct gate *g, uint64_t rank)
{
	(void)pthread_mutex_lock(&g->lock);
	if (g->free)
		g->free--;
	else
		wait_in_line(g, rank);
	(void)pthread_mutex_unlock(&g->lock);
}

bool gate_try(struct gate *g)
{
	bool got;

	(void)pthread_mutex_lock(&g->lock);
	got = g->free > 0;
	g->free -= got;
	(void)pthread_mutex_unlock(&g->lock);
	return got;
}

/* Whose rank is lowest gets the place, if anybody waits. */
void gate_leave(struct gate *g)
{
	struct gate_place *place;

	(void)pthread_mutex_lock(&g->lock);
	place = g->first;
	if (place) {
		g->first = place->next;
		place->is_called = true;
		(void)pthread_cond_signal(&place->called);
	} else {
		g->free++;
	}
	(void)pthread_mutex_unlock(&g->lock);
}
