/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/recall.h"

#include <pthread.h>

struct place {
	struct recall_key key;
	struct recalled *item;
	uint64_t used; /* tick of the last question */
};

struct recall {
	pthread_mutex_t lock; /* guards the rest, and the references of all items */
	size_t bytes, bytes_max, count;
	uint64_t tick, hits, misses;
	struct place places[RECALL_ITEMS];
};

int recall_new(size_t bytes_max, struct recall **out)
{
	struct recall *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->bytes_max = bytes_max;
	(void)pthread_mutex_init(&r->lock, NULL); /* no attributes: cannot fail on Linux */
	*out = r;
	return 0;
}

void recall_free(struct recall *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		r->places[i].item->free(r->places[i].item);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

bool recall_fits(const struct recall *r, size_t size)
{
	return size + RECALL_ITEM_COST <= r->bytes_max / 4 * 3;
}

/* The lock is held. Return: the place, or NULL. */
static struct place *find(struct recall *r, const struct recall_key *key)
{
	for (size_t i = 0; i < r->count; i++)
		if (!memcmp(r->places[i].key.bytes, key->bytes, sizeof(key->bytes)))
			return &r->places[i];
	return NULL;
}

struct recalled *recall_get(struct recall *r, const struct recall_key *key)
{
	struct recalled *item = NULL;
	struct place *place;

	(void)pthread_mutex_lock(&r->lock);
	place = find(r, key);
	if (place) {
		place->used = ++r->tick;
		item = place->item;
		item->refs++;
		r->hits++;
	} else {
		r->misses++;
	}
	(void)pthread_mutex_unlock(&r->lock);
	return item;
}

/* The lock is held. An item that nobody uses joins @gone. */
static void drop(struct recall *r, struct place *place, struct recalled **gone)
{
	struct recalled *item = place->item;

	r->bytes -= item->size + RECALL_ITEM_COST;
	*place = r->places[--r->count];
	if (--item->refs)
		return;
	item->next = *gone;
	*gone = item;
}

static struct place *oldest(struct recall *r)
{
	struct place *found = &r->places[0];

	for (size_t i = 1; i < r->count; i++)
		if (r->places[i].used < found->used)
			found = &r->places[i];
	return found;
}

void recall_put(struct recall *r, const struct recall_key *key, struct recalled *item)
{
	struct recalled *gone = NULL; /* freed when others can go on */
	struct place *place;

	if (!recall_fits(r, item->size))
		return;
	(void)pthread_mutex_lock(&r->lock);
	place = find(r, key);
	if (place)
		drop(r, place, &gone);
	while (r->count == RECALL_ITEMS || (r->count && r->bytes + item->size + RECALL_ITEM_COST > r->bytes_max))
		drop(r, oldest(r), &gone);
	r->places[r->count++] = (struct place){ *key, item, ++r->tick };
	r->bytes += item->size + RECALL_ITEM_COST;
	item->refs++;
	(void)pthread_mutex_unlock(&r->lock);
	while (gone) {
		struct recalled *next = gone->next;

		gone->free(gone);
		gone = next;
	}
}

void recall_done(struct recall *r, struct recalled *item)
{
	bool is_last;

	if (!item)
		return;
	(void)pthread_mutex_lock(&r->lock);
	is_last = !--item->refs;
	(void)pthread_mutex_unlock(&r->lock);
	if (is_last)
		item->free(item);
}

void recall_stats(struct recall *r, struct recall_stats *out)
{
	(void)pthread_mutex_lock(&r->lock);
	*out = (struct recall_stats){
		.count = r->count, .bytes = r->bytes, .bytes_max = r->bytes_max, .hits = r->hits, .misses = r->misses
	};
	(void)pthread_mutex_unlock(&r->lock);
}
