/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's names: one thread lists all containers whenever an id is met that the last list did not have. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/random.h"
#include "base/similar.h"
#include "base/u64map.h"
#include "proc/container.h"
#include "proc/engines.h"

#define ASK_TIMEOUT_NS (3 * NSEC_PER_SEC)
#define FIRST_WAIT_NS (500 * NSEC_PER_MSEC) /* of the reader, once */
#define FIND_TIMEOUT_NS (5 * NSEC_PER_SEC)
#define IDS_MAX 16384
#define TRIES_MAX 3 /* lists without an id before it counts as unknown to the engine */
#define LIST_PERIOD_NS (2 * NSEC_PER_SEC)
#define LIST_PERIOD_DEAD_NS (10 * NSEC_PER_SEC) /* after no answer */

struct known {
	char id[CONTAINER_ID_SIZE + 1];
	char *name;  /* NULL: not in any list yet */
	size_t rank; /* of the engine that said it */
	uint32_t tries;
};

struct containers {
	struct engines *engines; /* the thread's */
	pthread_t thread;
	_Atomic uint32_t generation;
	atomic_bool ends;
	pthread_mutex_t lock; /* guards everything below; never held while asking */
	pthread_cond_t wake, answered;
	bool stop, wanted, listed;
	uint64_t next_list_ns, first_until_ns;
	struct known *items;
	size_t count, cap;
	struct u64map by_id; /* hash of an id -> index; on the rare collision the later id stays unnamed */
	uint64_t seed;
};

static uint64_t now_ns(void)
{
	return clock_monotonic_ns(&clock_system);
}

static void timed_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	pthread_cond_timedwait(cond, lock, &until);
}

static void forget_all(struct containers *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->items[i].name);
	c->count = 0;
	u64map_clear(&c->by_id);
}

/* The entry of an id, made when there is none; NULL when out of memory or when another id has the same hash. */
static struct known *entry_of(struct containers *c, struct str id)
{
	uint64_t hash = XXH3_64bits_withSeed(id.ptr, id.len, c->seed);
	uint32_t index;

	if (u64map_get(&c->by_id, hash, &index) == 0)
		return memcmp(c->items[index].id, id.ptr, CONTAINER_ID_SIZE) ? NULL : &c->items[index];
	if (c->count >= IDS_MAX)
		forget_all(c);
	if (array_grow(&c->items, &c->cap, c->count, IDS_MAX) < 0 ||
	    u64map_put(&c->by_id, hash, (uint32_t)c->count) < 0)
		return NULL;
	c->items[c->count] = (struct known){ 0 };
	memcpy(c->items[c->count].id, id.ptr, CONTAINER_ID_SIZE);
	return &c->items[c->count++];
}

/* What one engine says, and to whom. */
struct taking {
	struct containers *containers;
	size_t rank;
};

static int take_name(void *ctx, struct str id, struct str name)
{
	const struct taking *t = ctx;
	struct known *known = entry_of(t->containers, id);
	char *copy;

	if (!known || (known->name && known->rank <= t->rank))
		return 0;
	copy = str_dup(name);
	if (!copy)
		return -ENOMEM;
	free(known->name);
	known->name = copy;
	known->rank = t->rank;
	return 0;
}

/* Is nothing wanted that no engine has told? */
static bool all_are_known(const struct containers *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->items[i].name)
			return false;
	return true;
}

/* Names are there as soon as one engine has told them, whatever the others do. */
static int take_answer(void *ctx, const struct engines_answer *answer)
{
	struct containers *c = ctx;
	struct taking taking = { .containers = c, .rank = answer->rank };
	int r;

	pthread_mutex_lock(&c->lock);
	r = engines_parse(answer, take_name, &taking);
	atomic_fetch_add(&c->generation, 1);
	if (r == 0 && all_are_known(c)) {
		c->listed = true;
		pthread_cond_broadcast(&c->answered);
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

static void count_tries(struct containers *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->items[i].name && c->items[i].tries < TRIES_MAX)
			c->items[i].tries++;
}

/* Called with the lock held; releases it while asking. */
static void list_all(struct containers *c)
{
	int r;

	c->wanted = false;
	pthread_mutex_unlock(&c->lock);
	r = engines_ask(c->engines, ASK_TIMEOUT_NS, &c->ends, take_answer, c);
	pthread_mutex_lock(&c->lock);
	if (r > 0) /* an engine that is just being started again does not say that it knows none */
		count_tries(c);
	c->listed = true;
	c->next_list_ns = now_ns() + (r > 0 ? LIST_PERIOD_NS : LIST_PERIOD_DEAD_NS);
	atomic_fetch_add(&c->generation, 1);
	pthread_cond_broadcast(&c->answered);
}

static void *run(void *ctx)
{
	struct containers *c = ctx;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (!c->wanted)
			pthread_cond_wait(&c->wake, &c->lock);
		else if (now_ns() < c->next_list_ns)
			timed_wait(&c->wake, &c->lock, c->next_list_ns);
		else
			list_all(c);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void release(struct containers *c)
{
	if (!c)
		return;
	forget_all(c);
	free(c->items);
	u64map_release(&c->by_id);
	engines_free(c->engines);
	pthread_cond_destroy(&c->wake);
	pthread_cond_destroy(&c->answered);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void releasep(struct containers **c)
{
	release(*c);
}

int containers_open(const char *host_root, const char *socket, struct containers **out)
{
	scoped(releasep) struct containers *c = calloc(1, sizeof(*c));
	pthread_condattr_t monotonic;
	int r;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &monotonic);
	pthread_cond_init(&c->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	u64map_init(&c->by_id, IDS_MAX);
	c->seed = random_u64();
	r = engines_new(host_root, socket, &c->engines);
	if (r < 0)
		return r;
	r = pthread_create(&c->thread, NULL, run, c);
	if (r)
		return -r;
	*out = c;
	c = NULL;
	return 0;
}

void containers_close(struct containers *c)
{
	if (!c)
		return;
	atomic_store(&c->ends, true);
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	release(c);
}

static int name_locked(struct containers *c, struct str id, char **out)
{
	const struct known *known = entry_of(c, id);
	char *copy;

	if (!known)
		return -ENOENT;
	if (!known->name)
		return known->tries < TRIES_MAX ? -EAGAIN : -ENOENT;
	copy = str_dup(str_of(known->name));
	if (!copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

int containers_name(struct containers *c, const char *id, char **out)
{
	struct str key = str_of(id);
	int r;

	must(key.len == CONTAINER_ID_SIZE);
	pthread_mutex_lock(&c->lock);
	r = name_locked(c, key, out);
	if (r == -EAGAIN) {
		c->wanted = true;
		pthread_cond_signal(&c->wake);
		/* The very first answer is waited for, so that no window starts with short ids. */
		if (!c->first_until_ns)
			c->first_until_ns = now_ns() + FIRST_WAIT_NS;
		while (!c->listed && now_ns() < c->first_until_ns)
			timed_wait(&c->answered, &c->lock, c->first_until_ns);
		r = name_locked(c, key, out);
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

uint32_t containers_generation(const struct containers *c)
{
	return atomic_load_explicit(&c->generation, memory_order_relaxed);
}

/* ---- a container that was asked for ---- */

/* What the engine's list and the cgroups say about the wanted container. */
struct find {
	struct str wanted;
	struct similar similar;
	char *best; /* owned: the name most like the wanted one */
	bool found;
};

static bool is_id_prefix(struct str id, struct str wanted)
{
	return wanted.len >= CONTAINER_SHORT_SIZE && str_starts(id, wanted);
}

static int find_in_list(void *ctx, struct str id, struct str name)
{
	struct find *f = ctx;
	scoped(freep) char *copy = str_dup(name);
	size_t before = f->similar.best ? f->similar.distance : SIZE_MAX;

	f->found |= str_eq(name, f->wanted) || is_id_prefix(id, f->wanted);
	if (!copy)
		return -ENOMEM;
	similar_offer(&f->similar, copy);
	if (f->similar.best && f->similar.distance < before) {
		free(f->best);
		f->best = copy;
		copy = NULL;
	}
	return 0;
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Containers of other engines: their processes tell the id, but not the name. */
static void find_in_cgroups(const char *host_root, struct find *f)
{
	scoped(buf_release) struct buf path = BUF_INIT(KIB(8)), text = BUF_INIT(KIB(64));
	scoped(closedirp) DIR *proc = NULL;

	buf_addf(&path, "%s/proc", host_root);
	proc = opendir(buf_cstr(&path));
	for (struct dirent *e; proc && !f->found && (e = readdir(proc));) {
		char id[CONTAINER_ID_SIZE + 1], name[sizeof(e->d_name) + 8];
		uint64_t pid;

		if (str_to_u64(str_of(e->d_name), 1, INT32_MAX, &pid) < 0)
			continue;
		(void)snprintf(name, sizeof(name), "%s/cgroup", e->d_name);
		buf_clear(&text);
		if (io_read_file_at(dirfd(proc), name, &text) == 0 && container_id_parse(buf_str(&text), id))
			f->found = is_id_prefix(str_of(id), f->wanted);
	}
}

static int find_in_answer(void *ctx, const struct engines_answer *answer)
{
	const struct find *f = ctx;
	int r = engines_parse(answer, find_in_list, ctx);

	return r < 0 ? r : f->found;
}

static void say_not_found(const struct engines *e, const struct find *f, int asked, struct buf *why)
{
	buf_addf(why, "--container: there is no container '" STR_FMT "'", STR_ARG(f->wanted));
	if (asked < 0) {
		buf_adds(why, STR(": the engine at "));
		engines_text(e, why);
		buf_addf(why, " does not answer (%s); its id, at least %d digits, is found without one",
			 strerror(-asked), CONTAINER_SHORT_SIZE);
	} else if (f->best) {
		buf_addf(why, "; did you mean '%s'?", f->best);
	} else {
		buf_adds(why, STR(" known to the engine at "));
		engines_text(e, why);
	}
}

static void engines_freep(struct engines **e)
{
	engines_free(*e);
}

int containers_find(const char *host_root, const char *socket, struct str wanted, struct buf *why)
{
	scoped(engines_freep) struct engines *e = NULL;
	struct find f = { .wanted = wanted, .similar = similar_to(wanted) };
	int r = engines_new(host_root, socket, &e), asked;

	if (r < 0)
		return r;
	asked = engines_ask(e, FIND_TIMEOUT_NS, NULL, find_in_answer, &f);
	if (!f.found)
		find_in_cgroups(host_root, &f);
	if (!f.found)
		say_not_found(e, &f, asked, why);
	free(f.best);
	return f.found ? 0 : -ENOENT;
}
