/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/runtimes_int.h"

#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "proc/proc_read.h"
#include "proc/program_hash.h"

#define SEEN_MAX 4096 /* mappings of one process that are looked at */
#define NOTICES_MAX KIB(64)
#define MAPS_MAX MIB(16)
#define END_NS (5 * NSEC_PER_SEC) /* a slow disk may be at one file for so long */

/* ---- entries ---- */

struct runtimes_entry *runtimes_entry_find(const struct runtimes *r, const struct program *p)
{
	uint32_t at;

	return u64map_get(&r->entry_index, program_hash(p, r->seed), &at) < 0 ? NULL : &r->entries[at];
}

bool runtimes_is_replaced(const struct runtimes *r, const struct program *p)
{
	must(r->entries || !r->entry_count);
	for (size_t i = 0; i < r->entry_count; i++) {
		const struct program *other = &r->entries[i].key;

		if (other->pid == p->pid && other->start_ns == p->start_ns &&
		    exec_is_before(p->exec_id, other->exec_id))
			return true;
	}
	return false;
}

struct runtimes_entry *runtimes_entry_get(struct runtimes *r, const struct program *p)
{
	struct runtimes_entry *e = runtimes_entry_find(r, p);

	if (e || runtimes_is_replaced(r, p))
		return e;
	pthread_mutex_lock(&r->lock);
	if (array_grow(&r->entries, &r->entry_cap, r->entry_count, RUNTIMES_PROCESSES_MAX) == 0 &&
	    u64map_put(&r->entry_index, program_hash(p, r->seed), (uint32_t)r->entry_count) == 0) {
		e = &r->entries[r->entry_count++];
		*e = (struct runtimes_entry){ .key = *p, .since_ns = clock_monotonic_ns(r->clock) };
	}
	pthread_mutex_unlock(&r->lock);
	return e;
}

void runtimes_set_metadata(struct runtimes *r, struct runtimes_entry *e, char *metadata)
{
	r->metadata_bytes -= e->metadata ? strlen(e->metadata) : 0;
	r->metadata_bytes += metadata ? strlen(metadata) : 0;
	free(e->metadata);
	e->metadata = metadata;
}

size_t runtimes_metadata_room(const struct runtimes *r, const struct runtimes_entry *e)
{
	size_t others = r->metadata_bytes - (e->metadata ? strlen(e->metadata) : 0);
	size_t left = RUNTIMES_METADATA_ALL - MIN(others, (size_t)RUNTIMES_METADATA_ALL);

	return MAX(MIN(left, (size_t)RUNTIMES_METADATA_MAX), (size_t)RUNTIMES_TEXT_MAX);
}

static void entry_release(struct runtimes *r, struct runtimes_entry *e)
{
	for (size_t i = 0; i < e->attached_count; i++) {
		free(e->attached[i].info);
		if (e->attached[i].learnt)
			e->attached[i].probed->binary->runtime->unlearn(e->attached[i].learnt);
	}
	free(e->application);
	runtimes_set_metadata(r, e, NULL);
}

void runtimes_entry_drop(struct runtimes *r, struct runtimes_entry *e)
{
	struct runtimes_entry *last;
	size_t at = (size_t)(e - r->entries);

	pthread_mutex_lock(&r->lock);
	ignore(u64map_remove(&r->entry_index, program_hash(&e->key, r->seed))); /* it is there */
	entry_release(r, e);
	last = &r->entries[--r->entry_count];
	if (last != e) {
		*e = *last;
		must(u64map_put(&r->entry_index, program_hash(&e->key, r->seed), (uint32_t)at) == 0); /* replaces */
	}
	pthread_mutex_unlock(&r->lock);
}

void runtimes_count(struct runtimes *r, const struct runtime *runtime, size_t offset)
{
	must(runtime->id < ABI_RUNTIME_COUNT);
	pthread_mutex_lock(&r->lock);
	(*(uint64_t *)(void *)((uint8_t *)&r->stats[runtime->id] + offset))++;
	pthread_mutex_unlock(&r->lock);
}

/* ---- the reader ---- */

void runtimes_list_init(struct runtimes_list *l)
{
	*l = (struct runtimes_list){ .end = &l->first };
}

void runtimes_list_add(struct runtimes_list *l, struct runtimes_message *m)
{
	m->next = NULL;
	*l->end = m;
	l->end = &m->next;
	l->added++;
}

/* Before all that are not urgent. */
static void list_add_urgent(struct runtimes_list *l, struct runtimes_message *m)
{
	struct runtimes_message **at = &l->first;

	while (*at && (*at)->is_urgent)
		at = &(*at)->next;
	m->next = *at;
	*at = m;
	if (!m->next)
		l->end = &m->next;
	l->added++;
}

struct runtimes_message *runtimes_list_take(struct runtimes_list *l)
{
	struct runtimes_message *m = l->first;

	if (!m)
		return NULL;
	l->first = m->next;
	if (!l->first)
		l->end = &l->first;
	return m;
}

static void list_free(struct runtimes_list *l)
{
	for (struct runtimes_message *m; (m = runtimes_list_take(l));)
		free(m);
}

static struct runtimes_list *list_of(struct runtimes *r, enum runtimes_message_kind kind)
{
	if (kind == RUNTIMES_SEE_LONG)
		return &r->looks;
	return kind >= RUNTIMES_READ ? &r->reads : &r->work;
}

/* Without room it is dropped: what it tells is told again, but for a start, which has a MiB of its own. */
bool runtimes_hand_over(struct runtimes *r, struct runtimes_message *m, size_t limit)
{
	bool fits;

	pthread_mutex_lock(&r->lock);
	fits = r->bytes + m->bytes <= limit;
	if (fits) {
		r->bytes += m->bytes;
		(m->is_urgent ? list_add_urgent : runtimes_list_add)(list_of(r, m->kind), m);
		pthread_cond_signal(m->kind == RUNTIMES_SEE_LONG ? &r->looks_changed : &r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	if (!fits)
		free(m);
	return fits;
}

struct runtimes_message *runtimes_message_new(enum runtimes_message_kind kind, const struct program *p, size_t seen)
{
	size_t bytes = sizeof(struct runtimes_message) + seen * sizeof(struct runtimes_seen);
	struct runtimes_message *m = calloc(1, bytes);

	if (!m)
		return NULL;
	m->kind = kind;
	m->process = *p;
	m->bytes = bytes;
	return m;
}

static bool has_attached(const struct runtimes_entry *e, const struct runtimes_probed *probed)
{
	for (size_t i = 0; i < e->attached_count; i++)
		if (e->attached[i].probed == probed)
			return true;
	return e->attached_count == RUNTIMES_ATTACHED_MAX;
}

/* A runtime that makes code may do so elsewhere from now on: V8 reserves a range for each new isolate. One that was
 * refused because of what it looked like may look otherwise. */
static bool may_change(const struct runtimes_entry *e)
{
	for (size_t i = 0; i < e->attached_count; i++) {
		const struct runtimes_attached *a = &e->attached[i];

		if ((a->state == RUNTIMES_READY && a->probed->binary->runtime->code_moves) ||
		    (a->state == RUNTIMES_REFUSED && a->doubt_ns))
			return true;
	}
	return false;
}

/* Does the worker know of every runtime in there, and where its code is? */
static bool is_known(struct runtimes *r, const struct program *p, const struct mappings *maps)
{
	const struct runtimes_entry *e;
	bool known;

	pthread_mutex_lock(&r->lock);
	e = runtimes_entry_find(r, p);
	known = e && !may_change(e);
	for (size_t i = 0; known && i < maps->count; i++) {
		const struct runtimes_probed *probed = maps->items[i].kind == PROC_PLACE_FILE
							       ? runtimes_files_get(&r->probed, maps->items[i].file_id)
							       : NULL;

		known = !probed || !probed->binary || has_attached(e, probed);
	}
	pthread_mutex_unlock(&r->lock);
	return known;
}

/* How many mappings the worker should know of; *fresh: files nobody has looked at. */
static size_t count_wanted(const struct runtimes *r, const struct mappings *maps, size_t *fresh)
{
	size_t wanted = 0;

	*fresh = 0;
	for (size_t i = 0; i < maps->count; i++) {
		const struct runtimes_probed *p;

		if (maps->items[i].kind != PROC_PLACE_FILE)
			continue;
		p = runtimes_files_get(&r->probed, maps->items[i].file_id);
		*fresh += !p;
		wanted += p != &runtimes_nothing;
	}
	return MIN(wanted, (size_t)SEEN_MAX);
}

bool runtimes_see(struct runtimes *r, const struct program *process, const struct mappings *maps)
{
	size_t fresh, wanted = count_wanted(r, maps, &fresh), all = 0;
	struct runtimes_message *m;

	if (!wanted || (!fresh && is_known(r, process, maps)))
		return true;
	/* All of them: the main program is told from the others by where it lies. */
	for (size_t i = 0; i < maps->count; i++)
		all += maps->items[i].kind == PROC_PLACE_FILE;
	all = MIN(all, (size_t)SEEN_MAX);
	m = runtimes_message_new(RUNTIMES_SEE, process, all);
	if (!m)
		return false;
	for (size_t i = 0; i < maps->count && m->seen_count < all; i++) {
		const struct mapping *map = &maps->items[i];

		if (map->kind == PROC_PLACE_FILE)
			m->seen[m->seen_count++] = (struct runtimes_seen){ map->start, map->offset, map->device,
									   map->inode, map->file_id };
	}
	return runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES);
}

/* Most processes have no runtime: the worker sleeps through their starts, forks and ends. */
static bool may_have_entry(struct runtimes *r, const struct program *p)
{
	bool may;

	pthread_mutex_lock(&r->lock);
	may = r->work.first || r->looks.first || r->is_busy || r->is_looking || runtimes_entry_find(r, p);
	pthread_mutex_unlock(&r->lock);
	return may;
}

void runtimes_started(struct runtimes *r, const struct program *process)
{
	bool may = may_have_entry(r, process);
	struct runtimes_message *m;

	if (!may && !atomic_load_explicit(&r->has_programs, memory_order_relaxed))
		return;
	m = runtimes_message_new(RUNTIMES_START, process, 0);
	if (m) /* what was told during the exec is told again by nobody else */
		ignore(runtimes_hand_over(r, m, may ? RUNTIMES_QUEUE_STARTS : RUNTIMES_QUEUE_BYTES));
}

void runtimes_share(struct runtimes *r, const struct program *child, const struct program *parent)
{
	struct runtimes_message *m;

	if (!may_have_entry(r, parent))
		return;
	m = runtimes_message_new(RUNTIMES_SHARE, child, 0);
	if (!m)
		return;
	m->parent = *parent;
	ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_ALL));
}

void runtimes_forget(struct runtimes *r, const struct program *process)
{
	struct runtimes_message *m;

	if (!may_have_entry(r, process))
		return;
	m = runtimes_message_new(RUNTIMES_FORGET, process, 0);
	if (m)
		ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_ALL));
}

const struct runtime_binary *runtimes_file(const struct runtimes *r, uint32_t file_id)
{
	const struct runtimes_probed *p = runtimes_files_get(&r->probed, file_id);

	return p ? p->binary : NULL;
}

bool runtimes_in_loop(const struct runtimes *r, uint32_t file_id, uint64_t offset)
{
	const struct runtime_binary *b = runtimes_file(r, file_id);

	for (size_t i = 0; b && i < b->loop_count; i++)
		if (offset >= b->loops[i].start && offset < b->loops[i].end)
			return true;
	return false;
}

/* How often a look may lead to another one of the same process: at the files that are left when one is a runtime. */
#define SETTLE_ROUNDS (RUNTIMES_ATTACHED_MAX + 1)

/* With the lock held: all that is in the list now. */
static void settle(struct runtimes *r, const struct runtimes_list *l, const struct timespec *until)
{
	uint64_t wanted = l->added;

	while (l->done < wanted && pthread_cond_timedwait(&r->settled, &r->lock, until) == 0)
		;
}

void runtimes_settle(struct runtimes *r, uint64_t patience_ns)
{
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + patience_ns;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
					.tv_nsec = (long)(until_ns % NSEC_PER_SEC) };
	int rounds = 0;

	pthread_mutex_lock(&r->lock);
	settle(r, &r->work, &until);
	do {
		settle(r, &r->looks, &until); /* which came of the work */
		settle(r, &r->work, &until);  /* of what was found */
	} while (++rounds < SETTLE_ROUNDS && r->looks.done < r->looks.added);
	pthread_mutex_unlock(&r->lock);
}

static struct str lend(struct buf *room, const char *text)
{
	buf_clear(room);
	if (text)
		buf_adds(room, str_of(text));
	return room->error ? STR("") : buf_str(room);
}

/* READY wins over PENDING, that over REFUSED: a process may have two runtimes. */
static const struct runtimes_attached *best_of(const struct runtimes_entry *e)
{
	static const int rank[] = {
		[RUNTIMES_NONE] = 0, [RUNTIMES_REFUSED] = 1, [RUNTIMES_PENDING] = 2, [RUNTIMES_READY] = 3
	};
	const struct runtimes_attached *best = NULL;

	for (size_t i = 0; i < e->attached_count; i++)
		if (!best || rank[e->attached[i].state] > rank[best->state])
			best = &e->attached[i];
	return best;
}

void runtimes_process(struct runtimes *r, const struct program *process, struct runtimes_process *out)
{
	const struct runtimes_entry *e;

	*out = (struct runtimes_process){ 0 };
	pthread_mutex_lock(&r->lock);
	e = runtimes_entry_find(r, process);
	if (e) {
		const struct runtimes_attached *best = best_of(e);

		out->state = best ? best->state : RUNTIMES_PENDING;
		out->binary = best ? best->probed->binary : NULL;
		out->application = lend(&r->application, e->application);
		out->metadata_json = lend(&r->metadata, e->metadata);
	}
	pthread_mutex_unlock(&r->lock);
}

struct str runtimes_version(struct runtimes *r, const struct program *process, enum abi_runtime runtime)
{
	const struct runtime_binary *found = NULL;
	const struct runtimes_entry *e;

	pthread_mutex_lock(&r->lock);
	e = runtimes_entry_find(r, process);
	for (size_t i = 0; e && i < e->attached_count; i++) {
		const struct runtimes_attached *a = &e->attached[i];

		if (a->probed->binary->runtime->id == runtime && (!found || a->state == RUNTIMES_READY))
			found = a->probed->binary;
	}
	pthread_mutex_unlock(&r->lock);
	return str_of(found ? found->version : "");
}

int runtimes_head(struct runtimes *r, const struct program *process, struct abi_runtimes *out)
{
	const struct runtimes_entry *e;
	int result = -ENOENT;

	pthread_mutex_lock(&r->lock);
	e = runtimes_entry_find(r, process);
	if (e && runtimes_has_ready(e, ABI_RUNTIME_NONE)) {
		*out = e->head;
		result = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return result;
}

int runtimes_info(struct runtimes *r, const struct program *process, enum abi_runtime runtime, void *out)
{
	const struct runtimes_entry *e;
	int result = -ENOENT;

	pthread_mutex_lock(&r->lock);
	e = runtimes_entry_find(r, process);
	for (size_t i = 0; e && i < e->attached_count && result < 0; i++) {
		const struct runtimes_attached *a = &e->attached[i];

		if (a->state != RUNTIMES_READY || a->probed->binary->runtime->id != runtime)
			continue;
		memcpy(out, a->info, a->info_size);
		result = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return result;
}

bool runtimes_lives(const struct runtimes *r, const struct program *process)
{
	scoped(buf_release) struct buf text = BUF_INIT(KIB(16));
	scoped(closep) int dir = proc_dir_open(r->host_root, process->pid);
	struct proc_facts facts;

	return dir >= 0 && proc_facts_read(dir, process->start_ns, &text, &facts) == 0;
}

void runtimes_stats(struct runtimes *r, enum abi_runtime id, struct runtime_stats *out)
{
	must(id < ABI_RUNTIME_COUNT);
	pthread_mutex_lock(&r->lock);
	*out = r->stats[id];
	pthread_mutex_unlock(&r->lock);
}

void runtimes_notices(struct runtimes *r, struct buf *out)
{
	pthread_mutex_lock(&r->lock);
	buf_adds(out, buf_str(&r->notices));
	buf_clear(&r->notices);
	pthread_mutex_unlock(&r->lock);
}

/* ---- life ---- */

static int start_threads(struct runtimes *r)
{
	int result = -pthread_create(&r->worker, NULL, runtimes_worker_main, r);

	r->worker_runs = result == 0;
	if (result == 0)
		result = -pthread_create(&r->looker, NULL, runtimes_looker_main, r);
	r->looker_runs = r->worker_runs && result == 0;
	return result;
}

/* Return: 0; -ETIMEDOUT: one of them is left behind. */
static int stop_threads(struct runtimes *r)
{
	uint64_t patience_ns = r->cfg.end_ns ? r->cfg.end_ns : END_NS;
	uint64_t until_ns = clock_monotonic_ns(&clock_system) + patience_ns, now;
	int result = 0;

	pthread_mutex_lock(&r->lock);
	r->stops = true;
	pthread_cond_broadcast(&r->changed);
	pthread_cond_broadcast(&r->looks_changed);
	pthread_mutex_unlock(&r->lock);
	if (r->worker_runs && thread_join(r->worker, patience_ns) == -ETIMEDOUT)
		result = -ETIMEDOUT;
	now = clock_monotonic_ns(&clock_system);
	if (r->looker_runs && thread_join(r->looker, until_ns > now ? until_ns - now : 0) == -ETIMEDOUT)
		result = -ETIMEDOUT;
	return result;
}

static void init_lock(struct runtimes *r)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_cond_init(&r->looks_changed, &attr);
	pthread_cond_init(&r->settled, &attr);
	pthread_condattr_destroy(&attr);
}

int runtimes_open(const struct runtimes_config *cfg, struct files *files, struct runtimes **out)
{
	struct runtimes *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->files = files;
	r->seed = random_u64();
	runtimes_list_init(&r->work);
	runtimes_list_init(&r->looks);
	runtimes_list_init(&r->reads);
	r->sink = cfg->sink ? *cfg->sink : (struct runtime_sink){ 0 };
	r->clock = cfg->clock ? cfg->clock : &clock_system;
	r->scratch = (struct buf)BUF_INIT(KIB(16));
	r->text = (struct buf)BUF_INIT(MAPS_MAX);
	r->notices = (struct buf)BUF_INIT(NOTICES_MAX);
	r->application = (struct buf)BUF_INIT(RUNTIMES_TEXT_MAX);
	r->metadata = (struct buf)BUF_INIT(RUNTIMES_METADATA_MAX);
	u64map_init(&r->failures, RUNTIMES_PROGRAMS_MAX);
	u64map_init(&r->programs, RUNTIMES_PROGRAMS_MAX);
	u64map_init(&r->libraries, RUNTIMES_PROGRAMS_MAX);
	u64map_init(&r->entry_index, RUNTIMES_PROCESSES_MAX);
	init_lock(r);
	r->host_root = str_dup(str_of(cfg->host_root ? cfg->host_root : ""));
	result = r->host_root ? runtimes_names_open(r) : -ENOMEM;
	if (result == 0 && cfg->want_threads)
		result = thread_names_new(&r->threads);
	if (result == 0)
		result = start_threads(r);
	if (result < 0) {
		ignore(runtimes_close(r)); /* nothing is being read yet */
		return result;
	}
	*out = r;
	return 0;
}

int runtimes_close(struct runtimes *r)
{
	if (!r)
		return 0;
	if (stop_threads(r) == -ETIMEDOUT) {
		log_warn("the memory of a process never answers: what reads it is left behind");
		return -ETIMEDOUT;
	}
	list_free(&r->work);
	list_free(&r->looks);
	list_free(&r->reads);
	for (size_t i = 0; i < r->entry_count; i++)
		entry_release(r, &r->entries[i]);
	runtimes_names_close(r);
	thread_names_free(r->threads);
	free(r->entries);
	free(r->pending);
	runtimes_files_release(&r->probed);
	u64map_release(&r->failures);
	u64map_release(&r->programs);
	u64map_release(&r->libraries);
	u64map_release(&r->entry_index);
	buf_release(&r->scratch);
	buf_release(&r->text);
	buf_release(&r->notices);
	buf_release(&r->application);
	buf_release(&r->metadata);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->changed);
	pthread_cond_destroy(&r->looks_changed);
	pthread_cond_destroy(&r->settled);
	free(r->host_root);
	free(r);
	return 0;
}
