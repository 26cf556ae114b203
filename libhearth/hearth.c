/* SPDX-License-Identifier: Apache-2.0 */
/* The library's interface and its thread: pause, sample, hand over, pause. */
#include "hearth.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "libhearth/profile.h"
#include "sink/push.h"

#define COLLECTOR_DEFAULT "http://127.0.0.1:10100"
#define MEMORY_MAX MIB(8)
#define PROFILE_MAX MIB(64)
#define WATCH_NS (100 * NSEC_PER_MSEC)
#define LABELS_MAX 32
#define FREQUENCY_MAX 1000
#define STACK_SIZE_MIN \
	MIB(2) /* of the thread, whatever the program has as default: a name of many levels takes 1 MiB */

/* What runs between hearth_start() and hearth_stop(). */
struct runner {
	/* Never changed after start. */
	char *service;
	struct window_label labels[LABELS_MAX];
	size_t label_count;
	unsigned int frequency_hz;
	uint64_t cpu_ns, round_ns, jitter_min_ns, jitter_ns, stop_ns;
	bool takes_profiles;
	void (*say)(void *ctx, const char *message);
	void *say_ctx;
	uint64_t run[2];
	struct push *push; /* locks inside */
	pthread_t thread;
	int said;             /* the thread's: the error that was told last */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool stop, stopping;
	uint64_t profiles, samples, number;
};

/* One at a time in a process: a program that starts it twice is told. */
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `running` and its `stopping` */
static struct runner *running;

static void runner_free(struct runner *r)
{
	if (!r)
		return;
	push_close(r->push);
	for (size_t i = 0; i < r->label_count; i++) {
		free(r->labels[i].key);
		free(r->labels[i].value);
	}
	free(r->service);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void runner_freep(struct runner **r)
{
	runner_free(*r);
}

static void say(const struct runner *r, const char *what, const char *why)
{
	char message[512];

	if (!r->say)
		return;
	(void)snprintf(message, sizeof(message), "%s%s%s", what, *why ? ": " : "", why);
	r->say(r->say_ctx, message);
}

static void say_push(void *ctx, const char *what, const char *why)
{
	say(ctx, what, why);
}

/* Sending */

static int put(struct runner *r, struct str type, uint64_t created_ns, struct str body)
{
	scoped(buf_release) struct buf query = BUF_INIT(UPLOAD_QUERY_MAX), key = BUF_INIT(UPLOAD_KEY_MAX);
	struct upload u;

	pthread_mutex_lock(&r->lock);
	buf_addf(&key, "%016" PRIx64 "%016" PRIx64 "-%" PRIu64, r->run[0], r->run[1], r->number++);
	pthread_mutex_unlock(&r->lock);
	upload_query(&query, str_of(r->service), type, r->labels, r->label_count, created_ns);
	if (query.error || key.error)
		return query.error ? query.error : key.error;
	u = (struct upload){ .query = buf_str(&query), .key = buf_str(&key), .body = body };
	return push_put(r->push, &u);
}

int hearth_send(const char *type, const void *bytes, size_t size)
{
	int r = -ENOTCONN;

	if (!type || !*type || !bytes || !size)
		return -EINVAL;
	pthread_mutex_lock(&running_lock);
	if (running)
		r = put(running, str_of(type), clock_wall_ns(&clock_system), str_n(bytes, size));
	pthread_mutex_unlock(&running_lock);
	return r;
}

/* The thread */

/* Return: false when it is time to stop. */
static bool pause_for(struct runner *r, uint64_t ns)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };
	int e = 0;
	bool stop;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && e != ETIMEDOUT)
		e = pthread_cond_timedwait(&r->wake, &r->lock, &until);
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return !stop;
}

static void hand_over(struct runner *r, struct profile *p)
{
	scoped(buf_release) struct buf body = BUF_INIT(PROFILE_MAX);
	uint64_t samples = 0;
	int e = profile_finish(p, r->labels, r->label_count, &body, &samples);

	if (e == 0 && !samples)
		return; /* the program slept: there is nothing to tell */
	if (e == 0)
		e = put(r, STR("cpu"), profile_start_ns(p), buf_str(&body));
	if (e < 0)
		say(r, "a profile is lost", strerror(-e));
	pthread_mutex_lock(&r->lock);
	r->profiles++;
	r->samples += samples;
	pthread_mutex_unlock(&r->lock);
}

/* A stop ends it early with what there is. */
static bool take_profile(struct runner *r)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + r->cpu_ns, now_ns;
	struct profile *p = NULL;
	bool going = true;
	int e = sampler_claim(); /* the program may have taken the signal meanwhile */

	if (e == 0)
		e = profile_open(r->frequency_hz, &p);
	if (e < 0) {
		if (e != r->said)
			say(r, "no profile can be taken",
			    e == -EBUSY ? "the program has a handler for SIGPROF" : strerror(-e));
		r->said = e;
		return true;
	}
	sampler_begin(r->frequency_hz);
	while (going && (now_ns = clock_monotonic_ns(&clock_system)) < until_ns) {
		going = pause_for(r, MIN(WATCH_NS, until_ns - now_ns));
		sampler_watch();
		sampler_drain(profile_add, p);
	}
	sampler_end();
	sampler_drain(profile_add, p);
	hand_over(r, p);
	profile_free(p);
	return going;
}

static uint64_t jitter(const struct runner *r)
{
	return r->jitter_min_ns + random_u64() % (r->jitter_ns + 1);
}

static void *run(void *ctx)
{
	struct runner *r = ctx;

	pthread_setname_np(pthread_self(), "hearth");
	if (!pause_for(r, jitter(r)))
		return NULL;
	while (take_profile(r) && pause_for(r, r->round_ns + jitter(r)))
		;
	return NULL;
}

/* Starting */

static uint64_t milliseconds(unsigned int given, unsigned int usual)
{
	return (given ? given : usual) * NSEC_PER_MSEC;
}

static int copy_labels(struct runner *r, const struct hearth_options *o)
{
	if (o->label_count > LABELS_MAX || (o->label_count && !o->labels))
		return -EINVAL;
	for (size_t i = 0; i < o->label_count; i++) {
		struct window_label *label = &r->labels[r->label_count++];

		if (!o->labels[i].key || !*o->labels[i].key || !o->labels[i].value)
			return -EINVAL;
		label->key = str_dup(str_of(o->labels[i].key));
		label->value = str_dup(str_of(o->labels[i].value));
		if (!label->key || !label->value)
			return -ENOMEM;
	}
	return 0;
}

static int choose_service(struct runner *r, const char *given)
{
	char path[1024];
	ssize_t size;

	if (given && *given) {
		r->service = str_dup(str_of(given));
		return r->service ? 0 : -ENOMEM;
	}
	size = readlink("/proc/self/exe", path, sizeof(path));
	r->service = str_dup(size > 0 ? str_base(str_n(path, (size_t)size)) : str_of(program_invocation_short_name));
	return r->service ? 0 : -ENOMEM;
}

static int copy_options(struct runner *r, const struct hearth_options *o)
{
	int e;

	r->frequency_hz = o->frequency_hz ? o->frequency_hz : 100;
	if (r->frequency_hz > FREQUENCY_MAX)
		return -EINVAL;
	r->cpu_ns = milliseconds(o->cpu_ms, 10000);
	r->round_ns = milliseconds(o->round_ms, 60000);
	r->jitter_min_ns = o->jitter_ms ? 0 : NSEC_PER_SEC;
	r->jitter_ns = milliseconds(o->jitter_ms, 8000);
	r->stop_ns = milliseconds(o->stop_ms, 2000);
	r->takes_profiles = !o->no_cpu;
	r->say = o->say;
	r->say_ctx = o->say_ctx;
	r->run[0] = random_u64();
	r->run[1] = random_u64();
	e = copy_labels(r, o);
	return e < 0 ? e : choose_service(r, o->service);
}

static int open_push(struct runner *r, const struct hearth_options *o)
{
	scoped(buf_release) struct buf why = BUF_INIT(KIB(1));
	const char *url = o->collector ? o->collector : getenv("HEARTH_PUSH");
	const char *token = o->token ? o->token : getenv("HEARTH_TOKEN");
	const struct push_config cfg = { .url = url && *url ? url : COLLECTOR_DEFAULT,
					 .token = str_of(token),
					 .ca_file = o->ca_file,
					 .memory_max = MEMORY_MAX,
					 .say = say_push,
					 .say_ctx = r };

	return push_open(&cfg, &why, &r->push);
}

static void init_locks(struct runner *r)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static int start_thread(struct runner *r)
{
	sigset_t every, before;
	pthread_attr_t attr;
	size_t size = 0;
	int e = pthread_attr_init(&attr);

	if (e)
		return -e;
	ignore(pthread_attr_getstacksize(&attr, &size));
	if (size < STACK_SIZE_MIN)
		e = pthread_attr_setstacksize(&attr, STACK_SIZE_MIN);
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	e = e ? e : pthread_create(&r->thread, &attr, run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ignore(pthread_attr_destroy(&attr));
	return -e;
}

/* A child has one thread, which holds no lock of ours: what others held or did is forgotten, and leaked. */
static void before_fork(void)
{
	pthread_mutex_lock(&running_lock);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&running_lock);
}

static void child_after_fork(void)
{
	sampler_forked();
	running = NULL;
	pthread_mutex_init(&running_lock, NULL);
}

static void watch_forks(void)
{
	ignore(pthread_atfork(before_fork, parent_after_fork,
			      child_after_fork)); /* out of memory: children must not start it */
}

static int start_locked(const struct hearth_options *o)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	scoped(runner_freep) struct runner *r = NULL;
	int e;

	if (running)
		return -EALREADY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	init_locks(r);
	e = copy_options(r, o);
	if (e == 0 && r->takes_profiles)
		e = sampler_claim();
	if (e == 0)
		e = open_push(r, o);
	if (e < 0)
		return e;
	pthread_once(&once, watch_forks);
	e = r->takes_profiles ? start_thread(r) : 0;
	if (e < 0)
		return e;
	running = r;
	r = NULL;
	return 0;
}

int hearth_start(const struct hearth_options *options)
{
	struct hearth_options o = HEARTH_OPTIONS_INIT;
	int e;

	if (options && options->size < offsetof(struct hearth_options, label_count))
		return -EINVAL;
	if (options)
		memcpy(&o, options, MIN(options->size, sizeof(o)));
	pthread_mutex_lock(&running_lock);
	e = start_locked(&o);
	pthread_mutex_unlock(&running_lock);
	return e;
}

void hearth_stop(void)
{
	struct runner *r;

	pthread_mutex_lock(&running_lock);
	r = running && !running->stopping ? running : NULL;
	if (r)
		r->stopping = true;
	pthread_mutex_unlock(&running_lock);
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (r->takes_profiles)
		pthread_join(r->thread, NULL);
	ignore(push_flush(r->push, r->stop_ns)); /* what is left is lost, as documented */
	pthread_mutex_lock(&running_lock);
	running = NULL; /* from here on it can be started again */
	pthread_mutex_unlock(&running_lock);
	runner_free(r);
}

static void collect_stats(struct runner *r, struct hearth_stats *out)
{
	struct push_stats pushed;
	struct sampler_totals sampler;

	push_stats(r->push, &pushed);
	sampler_totals(&sampler);
	pthread_mutex_lock(&r->lock);
	*out = (struct hearth_stats){ .profiles = r->profiles, .samples = r->samples };
	pthread_mutex_unlock(&r->lock);
	out->lost_samples = sampler.lost;
	out->missed_threads = sampler.missed_threads;
	out->sent = pushed.sent;
	out->refused = pushed.refused;
	out->dropped = pushed.dropped;
	out->waiting = pushed.waiting;
}

int hearth_get_stats(struct hearth_stats *out, size_t size)
{
	struct hearth_stats stats;
	int r = -ENOTCONN;

	pthread_mutex_lock(&running_lock);
	if (running) {
		collect_stats(running, &stats);
		memcpy(out, &stats, MIN(size, sizeof(stats)));
		r = 0;
	}
	pthread_mutex_unlock(&running_lock);
	return r;
}

const char *hearth_version(void)
{
	return HEARTH_VERSION;
}
