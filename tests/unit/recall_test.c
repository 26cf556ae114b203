/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/recall.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

struct thing {
	struct recalled item;
	uint64_t what;
};

static atomic_size_t alive;

static void thing_free(struct recalled *item)
{
	struct thing *t = (struct thing *)item;

	t->what = 0;
	atomic_fetch_sub(&alive, 1);
	free(t);
}

static struct thing *thing_new(uint64_t what, size_t size)
{
	struct thing *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	*t = (struct thing){ { .size = size, .refs = 1, .free = thing_free }, what };
	atomic_fetch_add(&alive, 1);
	return t;
}

static struct recall_key key_of(uint64_t what)
{
	struct recall_key key = { { 0 } };

	memcpy(key.bytes + 16, &what, sizeof(what));
	return key;
}

static void put(struct recall *r, uint64_t key, uint64_t what, size_t size)
{
	struct thing *t = thing_new(what, size);
	struct recall_key at = key_of(key);

	recall_put(r, &at, &t->item);
	recall_done(r, &t->item);
}

/* Return: what is under @key, 0 for nothing. */
static uint64_t look(struct recall *r, uint64_t key)
{
	struct recall_key at = key_of(key);
	struct recalled *item = recall_get(r, &at);
	uint64_t what = item ? ((struct thing *)item)->what : 0;

	recall_done(r, item);
	return what;
}

static void finds_what_was_put(void **state)
{
	struct recall_stats stats;
	struct recall *r;

	(void)state;
	assert_int_equal(recall_new(KIB(64), &r), 0);
	assert_int_equal(look(r, 1), 0);
	put(r, 1, 11, 100);
	put(r, 2, 22, 100);
	assert_int_equal(look(r, 1), 11);
	assert_int_equal(look(r, 2), 22);
	assert_int_equal(look(r, 3), 0);
	put(r, 1, 12, 300); /* in place of the other */
	assert_int_equal(look(r, 1), 12);
	assert_int_equal(alive, 2);
	recall_stats(r, &stats);
	assert_int_equal(stats.count, 2);
	assert_int_equal(stats.bytes, 400 + 2 * RECALL_ITEM_COST);
	assert_int_equal(stats.bytes_max, KIB(64));
	assert_int_equal(stats.hits, 3);
	assert_int_equal(stats.misses, 2);
	recall_free(r);
	assert_int_equal(alive, 0);
}

static void keeps_to_its_bound(void **state)
{
	struct recall_stats stats;
	struct recall *r;

	(void)state;
	assert_int_equal(recall_new(KIB(16), &r), 0);
	for (uint64_t i = 1; i <= 1000; i++) {
		put(r, i, i, KIB(2));
		assert_int_equal(look(r, 1), 1); /* what is asked for stays */
		recall_stats(r, &stats);
		assert_true(stats.bytes <= KIB(16));
		assert_int_equal(stats.bytes, stats.count * (KIB(2) + RECALL_ITEM_COST));
		assert_int_equal(alive, stats.count);
	}
	assert_int_equal(stats.count, 7);
	assert_int_equal(look(r, 1000), 1000);
	assert_int_equal(look(r, 990), 0);
	assert_false(recall_fits(r, KIB(12)));
	put(r, 2000, 2000, KIB(12)); /* too much for one: throws nobody out */
	assert_int_equal(look(r, 2000), 0);
	assert_int_equal(look(r, 1), 1);
	put(r, 2001, 2001, KIB(12) - RECALL_ITEM_COST);
	assert_int_equal(look(r, 2001), 2001);
	recall_free(r);
	assert_int_equal(recall_new(MIB(64), &r), 0);
	for (uint64_t i = 1; i <= 2 * RECALL_ITEMS; i++)
		put(r, i, i, 1);
	recall_stats(r, &stats);
	assert_int_equal(stats.count, RECALL_ITEMS);
	assert_int_equal(look(r, RECALL_ITEMS), 0);
	assert_int_equal(look(r, RECALL_ITEMS + 1), RECALL_ITEMS + 1);
	recall_free(r);
	assert_int_equal(recall_new(0, &r), 0);
	put(r, 1, 1, 1);
	assert_int_equal(look(r, 1), 0);
	recall_free(r);
	assert_int_equal(alive, 0);
}

static void what_is_used_outlives_its_place(void **state)
{
	struct recall_key key = key_of(1);
	struct recalled *item;
	struct recall *r;

	(void)state;
	assert_int_equal(recall_new(KIB(4), &r), 0);
	put(r, 1, 11, KIB(2));
	item = recall_get(r, &key);
	assert_non_null(item);
	put(r, 2, 22, KIB(2));
	assert_int_equal(look(r, 1), 0);
	assert_int_equal(((struct thing *)item)->what, 11);
	assert_int_equal(alive, 2);
	recall_done(r, item);
	assert_int_equal(alive, 1);
	recall_done(r, NULL);
	recall_free(r);
	assert_int_equal(alive, 0);
}

#define ASKERS 4

static void *ask_and_put(void *ctx)
{
	struct recall *r = ctx;

	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t key = 1 + i * 7 % 13, got = look(r, key);

		if (got && got != key)
			return "another's";
		if (!got)
			put(r, key, key, KIB(1) + key * 100);
	}
	return NULL;
}

static void many_may_ask(void **state)
{
	pthread_t threads[ASKERS];
	struct recall_stats stats;
	struct recall *r;

	(void)state;
	assert_int_equal(recall_new(KIB(16), &r), 0); /* not for all: some go while others are used */
	for (size_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_and_put, r), 0);
	for (size_t i = 0; i < ASKERS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	recall_stats(r, &stats);
	assert_int_equal(stats.count, alive);
	assert_int_equal(stats.hits + stats.misses, ASKERS * 20000);
	assert_true(stats.bytes <= KIB(16) && stats.hits && stats.misses);
	recall_free(r);
	assert_int_equal(alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_put),
		cmocka_unit_test(keeps_to_its_bound),
		cmocka_unit_test(what_is_used_outlives_its_place),
		cmocka_unit_test(many_may_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
