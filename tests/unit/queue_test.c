/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "base/queue.h"

#define ITEMS 20000

static uintptr_t received_sum, received_count;

static void *take_all(void *argument)
{
	void *item;

	while ((item = queue_take(argument))) {
		received_sum += (uintptr_t)item;
		received_count++;
	}
	return NULL;
}

/* Everything that was put is either taken or handed back as dropped: nothing is lost unseen. */
static void nothing_is_lost_between_threads(void **state)
{
	struct queue q;
	pthread_t thread;
	uintptr_t put_sum = 0, dropped_sum = 0, dropped_count = 0;

	(void)state;
	assert_int_equal(queue_init(&q), 0);
	assert_int_equal(pthread_create(&thread, NULL, take_all, &q), 0);
	for (uintptr_t i = 1; i <= ITEMS; i++) {
		void *dropped;

		queue_put(&q, (void *)i, &dropped);
		put_sum += i;
		dropped_sum += (uintptr_t)dropped;
		dropped_count += dropped != NULL;
	}
	queue_close(&q);
	pthread_join(thread, NULL);
	assert_int_equal(received_sum + dropped_sum, put_sum);
	assert_int_equal(received_count + dropped_count, ITEMS);
	queue_release(&q);
}

static void a_full_queue_gives_back_the_oldest(void **state)
{
	struct queue q;
	void *dropped;

	(void)state;
	assert_int_equal(queue_init(&q), 0);
	for (uintptr_t i = 1; i <= QUEUE_CAP; i++) {
		queue_put(&q, (void *)i, &dropped);
		assert_null(dropped);
	}
	queue_put(&q, (void *)(uintptr_t)99, &dropped);
	assert_ptr_equal(dropped, (void *)(uintptr_t)1);
	queue_close(&q);
	for (uintptr_t i = 2; i <= QUEUE_CAP; i++)
		assert_ptr_equal(queue_take(&q), (void *)i);
	assert_ptr_equal(queue_take(&q), (void *)(uintptr_t)99);
	assert_null(queue_take(&q));
	queue_release(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_between_threads),
		cmocka_unit_test(a_full_queue_gives_back_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
