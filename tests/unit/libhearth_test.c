/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of libhearth on this very process. */
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "codec/pprof.h"
#include "libhearth/profile.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(THREAD_SANITIZER)
#define SIGNALS_ARE_LATE true
#else
#define SIGNALS_ARE_LATE false
#endif

static atomic_bool done;
static atomic_int burner_tid;

__attribute__((noinline)) static double burn_here(unsigned int n)
{
	volatile double sum = 0;

	for (unsigned int i = 1; i < n; i++)
		sum += 1.0 / i;
	return sum;
}

__attribute__((noinline)) static double burn_there(void)
{
	double sum = burn_here(20000);

	__asm__ volatile("" ::: "memory");
	return sum + 1;
}

static void *burn(void *arg)
{
	burner_tid = gettid();
	while (!done)
		burn_there();
	return arg;
}

static pthread_t start_burner(void)
{
	pthread_t thread;

	done = false;
	burner_tid = 0;
	assert_int_equal(pthread_create(&thread, NULL, burn, NULL), 0);
	while (!burner_tid)
		usleep(1000);
	return thread;
}

static void stop_burner(pthread_t thread)
{
	done = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static uint64_t cpu_ns(pthread_t thread)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* CPU time, not time: the machine may be busy. */
static void wait_for_cpu(pthread_t thread, uint64_t ns)
{
	uint64_t until = cpu_ns(thread) + ns;

	while (cpu_ns(thread) < until)
		usleep(1000);
}

static void addresses_have_names(void **state)
{
	scoped(places_release) struct places p = { 0 };
	scoped(buf_release) struct buf name = BUF_INIT(KIB(4));
	uint64_t code = (uint64_t)(uintptr_t)burn_here, local = (uint64_t)(uintptr_t)&name;
	struct stack_range stack;
	ptrdiff_t at;

	(void)state;
	assert_int_equal(places_read(&p), 0);
	at = places_find(&p, code + 3);
	assert_true(at >= 0);
	assert_int_equal(places_name(&p.items[at], code + 3, &name), 0);
	assert_string_equal(buf_cstr(&name), "burn_here");
	assert_int_equal(strlen(p.items[at].build_id), 40);
	assert_int_equal(places_find(&p, local), -1);
	assert_int_equal(places_find(&p, 0), -1);
	assert_true(places_stack(&p, local, &stack));
	assert_true(stack.start <= local && local < stack.end);
	assert_false(places_stack(&p, code, &stack));
	assert_int_equal(places_read(&p), 0); /* again: nothing is there twice */
	for (size_t i = 0; i < p.count; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(p.items[i].start, p.items[j].start);
}

struct seen {
	struct places *places;
	uint64_t samples, periods, in_burn, with_caller, others;
};

static bool is_in(struct places *p, uint64_t address, const char *function)
{
	scoped(buf_release) struct buf name = BUF_INIT(KIB(4));
	ptrdiff_t at = places_find(p, address);

	return at >= 0 && places_name(&p->items[at], address, &name) == 0 &&
	       str_starts(buf_str(&name), str_of(function)); /* burn_there.isra.0 */
}

static void look(void *ctx, const struct sample *s)
{
	struct seen *seen = ctx;
	uint64_t caller = 0;
	ptrdiff_t at = places_find(seen->places, s->frames[0]);

	seen->samples++;
	seen->periods += s->count;
	seen->others += s->tid != burner_tid;
	if (at < 0 || !is_in(seen->places, s->frames[0], "burn_here"))
		return;
	seen->in_burn++;
	if (!places_caller(&seen->places->items[at], s, &caller))
		caller = s->frame_count > 1 ? s->frames[1] : 0;
	seen->with_caller += caller && is_in(seen->places, caller - 1, "burn_there");
}

static void threads_are_sampled(void **state)
{
	scoped(places_release) struct places p = { 0 };
	struct seen seen = { .places = &p };
	struct sampler_totals totals;
	pthread_t thread;
	uint64_t used;

	(void)state;
	if (SIGNALS_ARE_LATE)
		skip_because("ThreadSanitizer delivers signals elsewhere than they came");
	thread = start_burner();
	assert_int_equal(places_read(&p), 0);
	assert_int_equal(sampler_claim(), 0);
	used = cpu_ns(thread);
	sampler_begin(100);
	for (int i = 0; i < 10; i++) {
		wait_for_cpu(thread, 50 * NSEC_PER_MSEC);
		sampler_watch();
		sampler_drain(look, &seen);
	}
	used = cpu_ns(thread) - used;
	sampler_end();
	sampler_drain(look, &seen);
	stop_burner(thread);
	sampler_totals(&totals);
	print_message("  %llu periods of 10 ms in %.3f s, %llu in burn_here, %llu with its caller\n",
		      (unsigned long long)seen.periods, (double)used / 1e9, (unsigned long long)seen.in_burn,
		      (unsigned long long)seen.with_caller);
	assert_int_equal(totals.lost, 0);
	assert_int_equal(seen.others, 0);
	assert_true(seen.periods * 10 * NSEC_PER_MSEC >= used / 10 * 8);
	assert_true(seen.periods * 10 * NSEC_PER_MSEC <= used / 10 * 12);
	assert_true(seen.in_burn * 10 >= seen.samples * 8);
	assert_true(seen.with_caller * 10 >= seen.in_burn * 9);
}

static void what_has_no_room_is_counted(void **state)
{
	scoped(places_release) struct places p = { 0 };
	struct seen seen = { .places = &p };
	struct sampler_totals before, after;
	pthread_t thread = start_burner();

	(void)state;
	assert_int_equal(sampler_claim(), 0);
	assert_int_equal(places_read(&p), 0);
	sampler_totals(&before);
	sampler_begin(1000);
	wait_for_cpu(thread, 3 * NSEC_PER_SEC); /* nobody drains */
	sampler_end();
	sampler_drain(look, &seen);
	stop_burner(thread);
	sampler_totals(&after);
	print_message("  %llu samples kept, %llu periods lost\n", (unsigned long long)seen.samples,
		      (unsigned long long)(after.lost - before.lost));
	assert_true(seen.samples > 50 && after.lost > before.lost);
	assert_true(seen.periods + after.lost - before.lost > 2000);
}

static void other_signals_do_nothing(void **state)
{
	scoped(places_release) struct places p = { 0 };
	struct seen seen = { .places = &p };
	union sigval value = { .sival_ptr = (void *)(uintptr_t)0xffffffffffffffff };
	pthread_t thread = start_burner();

	(void)state;
	assert_int_equal(sampler_claim(), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_kill(thread, SIGPROF), 0);
		ignore(pthread_sigqueue(thread, SIGPROF, value)); /* EAGAIN when many wait */
	}
	wait_for_cpu(thread, 20 * NSEC_PER_MSEC);
	sampler_begin(100);
	sampler_end(); /* what is still under way comes too late */
	sampler_drain(look, &seen);
	wait_for_cpu(thread, 50 * NSEC_PER_MSEC);
	seen.samples = 0;
	sampler_drain(look, &seen);
	stop_burner(thread);
	assert_int_equal(seen.samples, 0);
}

static void profiles_are_whole(void **state)
{
	static char key[] = "team", value[] = "a";
	const struct window_label label = { key, value };
	scoped(buf_release) struct buf body = BUF_INIT(MIB(8));
	scoped(window_release) struct window back = { 0 };
	struct codec_error error;
	struct profile *p;
	uint64_t samples = 0, count = 0, guessed = 0;
	pthread_t thread = start_burner();

	(void)state;
	assert_int_equal(sampler_claim(), 0);
	assert_int_equal(profile_open(100, &p), 0);
	sampler_begin(100);
	for (int i = 0; i < 4; i++) {
		wait_for_cpu(thread, 50 * NSEC_PER_MSEC);
		sampler_drain(profile_add, p);
	}
	sampler_end();
	sampler_drain(profile_add, p);
	stop_burner(thread);
	assert_int_equal(profile_finish(p, &label, 1, &body, &samples), 0);
	profile_free(p);
	assert_int_equal(codec_pprof.decode(buf_str(&body), &back, &error), 0);
	assert_true(str_eq(window_label(&back, STR("team")), STR("a")));
	assert_int_equal(window_counter(&back, STR("samples")), samples);
	assert_true(window_counter(&back, STR("process_cpu_ns")) > 100 * NSEC_PER_MSEC);
	for (size_t i = 0; i < back.model->samples_count; i++) {
		const struct model_sample *s = &back.model->samples[i];

		count += (uint64_t)model_values(back.model, s)[0];
		guessed += str_eq(model_string(back.model, s->end), STR("guessed"));
		assert_true(str_eq(model_string(back.model, s->end), STR("guessed")) ||
			    str_starts(model_string(back.model, s->end), STR("cut:")));
	}
	assert_true(guessed);
	assert_true(samples > 10 && count == samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_have_names),        cmocka_unit_test(threads_are_sampled),
		cmocka_unit_test(what_has_no_room_is_counted), cmocka_unit_test(other_signals_do_nothing),
		cmocka_unit_test(profiles_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
