/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cardinality.h"

#include <pthread.h>

#include "base/random.h"
#include "base/u64map.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PERIOD_NS (3600 * NSEC_PER_SEC)

/* Two sets: what is met in this period, and what was met in the one before. */
struct cardinality {
	size_t max;
	uint64_t seed;
	pthread_mutex_t lock; /* guards what follows */
	struct u64map now, before;
	size_t carried;    /* of before: met again, and counted in now */
	uint64_t began_ns; /* the period; 0: none yet */
};

int cardinality_new(size_t max, struct cardinality **out)
{
	struct cardinality *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->max = max;
	c->seed = random_u64();
	(void)pthread_mutex_init(&c->lock, NULL); /* no attributes: cannot fail on Linux */
	u64map_init(&c->now, 2 * max + 2);
	u64map_init(&c->before, 2 * max + 2);
	*out = c;
	return 0;
}

void cardinality_free(struct cardinality *c)
{
	if (!c)
		return;
	u64map_release(&c->now);
	u64map_release(&c->before);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

static uint64_t hash_text(uint64_t hash, struct str text)
{
	return XXH3_64bits_withSeed(text.ptr ? text.ptr : "", text.len, hash);
}

static uint64_t hash_label(uint64_t seed, const struct store_label *label)
{
	return hash_text(hash_text(seed, label->key), label->value);
}

/* Labels in any order are the same series: their hashes are added up. */
static uint64_t series_hash(const struct cardinality *c, const struct store_upload *u, size_t label_count)
{
	uint64_t hash = hash_text(hash_text(c->seed, u->service), u->type), labels = 0;

	for (size_t i = 0; i < label_count; i++)
		labels += hash_label(c->seed, &u->labels[i]);
	return hash_text(hash, str_n((const char *)&labels, sizeof(labels)));
}

/* The lock is held. */
static void turn(struct cardinality *c, uint64_t now_ns)
{
	struct u64map old = c->before;

	if (c->began_ns && now_ns - c->began_ns < PERIOD_NS)
		return;
	c->before = c->now;
	c->now = old;
	u64map_clear(&c->now);
	if (!c->began_ns || now_ns - c->began_ns >= 2 * PERIOD_NS)
		u64map_clear(&c->before);
	c->carried = 0;
	c->began_ns = MAX(now_ns, (uint64_t)1);
}

static size_t known(const struct cardinality *c)
{
	return c->now.used + c->before.used - c->carried;
}

/* The lock is held. Return: whether the series is counted, within @max of all. */
static bool admit(struct cardinality *c, uint64_t hash, size_t max)
{
	uint32_t unused;
	bool old;

	if (u64map_get(&c->now, hash, &unused) == 0)
		return true;
	old = u64map_get(&c->before, hash, &unused) == 0;
	if (!old && known(c) >= max)
		return false;
	if (u64map_put(&c->now, hash, 0) == 0)
		c->carried += old;
	return true;
}

enum cardinality_verdict cardinality_admit(struct cardinality *c, const struct store_upload *u, uint64_t now_ns)
{
	enum cardinality_verdict verdict = CARDINALITY_FITS;

	if (!c->max)
		return verdict;
	(void)pthread_mutex_lock(&c->lock);
	turn(c, now_ns);
	if (!admit(c, series_hash(c, u, u->label_count), c->max))
		verdict = admit(c, series_hash(c, u, 0), c->max + c->max / 10 + 1) ? CARDINALITY_NO_LABELS
										   : CARDINALITY_NO_SERVICE;
	(void)pthread_mutex_unlock(&c->lock);
	return verdict;
}

size_t cardinality_count(struct cardinality *c)
{
	size_t count;

	(void)pthread_mutex_lock(&c->lock);
	count = known(c);
	(void)pthread_mutex_unlock(&c->lock);
	return count;
}
