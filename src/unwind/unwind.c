/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/unwind.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/random.h"
#include "proc/program_hash.h"
#include "unwind/raw_walk.h"
#include "unwind/rows_files.h"
#include "unwind/spaces.h"
#include "unwind/table_memory.h"

#define BUDGET_DEFAULT MIB(64)
#define QUEUE_BYTES_MAX MIB(8)  /* of raw samples and mappings on their way, and of finished ones not taken yet */
#define QUEUE_BYTES_ALL MIB(12) /* what else there is (forks, exits) may go on top: losing it would leak */
#define QUEUE_BYTES_LONG MIB(4) /* above that no copy of a stack has more than ABI_STACK_MAX: 240 of them fit */
#define KNOWN_MAX 32768         /* processes whose last mappings the reader remembers */
#define ROUND_NS (100 * NSEC_PER_MSEC) /* what came of the work is told to the kernel at least this often */
#define TELL_NS (15 * NSEC_PER_MSEC)   /* of loading; a grace period takes 10 to 20 ms, and small files share one */
#define YOUNG_NS (100 * NSEC_PER_MSEC)
#define WORKER_NICE 10
#define WANTED_MAX 1024 /* raw samples asked for the file they wait for, in a round */
/* A raw sample waits whose stack filled its copy, or some smaller ones. What the kernel has not been told of makes yet
 * more of them, and on a machine with ten busy programs a CPU an ordinary thread waits 20 ms for each turn: then it is
 * as urgent as the reader. */
#define HURRY_BYTES KIB(16)
#define HURRY_NICE (-10)

enum message_kind { MESSAGE_SET, MESSAGE_SHARE, MESSAGE_FORGET, MESSAGE_RAW };

struct message {
	struct message *next;
	size_t bytes; /* that it counts */
	enum message_kind kind;
	struct program process, parent;
	struct maps_ref *maps; /* SET, RAW */
	bool is_old;
	bool is_full;              /* RAW: the stack is at least as long as its copy */
	uint32_t file_id;          /* RAW: of the code where its walk stands; 0: none */
	struct abi_sample *sample; /* RAW: owned; the finished one later */
};

struct list {
	struct message *first, **end;
};

struct known { /* what the reader handed over of a process */
	struct program key;
	struct maps_ref *maps; /* or NULL */
};

struct unwind {
	struct unwind_config cfg; /* both threads, never changed after open */
	struct table_memory *memory;
	struct table_sink sink;

	/* The reader's. */
	struct known *known;
	size_t known_count, known_cap;
	struct u64map known_index; /* hash of a process -> index of known */
	uint64_t seed;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */

	/* The worker's; use of a file is told by both. */
	char *host_root;
	struct rows_files source_files;
	struct rows_source files, source; /* source: files, in a hurry */
	struct rows *rows;
	struct spaces *spaces;
	struct raw_walk *raw_walk;
	uint32_t wanted[WANTED_MAX];                   /* scratch of load_wanted() */
	const struct message *waiting_raw[WANTED_MAX]; /* scratch of tell_waiting() */
	pthread_t worker;
	bool worker_runs;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed, idle;
	struct list work, finished;
	size_t bytes;   /* of all messages */
	size_t waiting; /* of those in work */
	bool is_busy, stops, drains;
	bool can_hurry, hurries; /* the worker's priority: may it be raised again; is it now */
	pid_t worker_tid;        /* 0: it has not run yet */
	struct unwind_totals totals;
};

/* ---- lists ---- */

static void list_init(struct list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void list_add(struct list *l, struct message *m)
{
	m->next = NULL;
	*l->end = m;
	l->end = &m->next;
}

static struct message *list_take(struct list *l)
{
	struct message *m = l->first;

	if (!m)
		return NULL;
	l->first = m->next;
	if (!l->first)
		l->end = &l->first;
	return m;
}

static void message_free(struct message *m)
{
	maps_ref_put(m->maps);
	free(m->sample);
	free(m);
}

static void list_free(struct list *l)
{
	for (struct message *m; (m = list_take(l));)
		message_free(m);
}

/* ---- the worker ---- */

static void publish_totals(struct unwind *u)
{
	const struct rows_stats *rows = &u->rows->stats;
	struct unwind_totals *t = &u->totals;

	t->tables_loaded = rows->loaded;
	t->tables_evicted = rows->evicted;
	t->tables_failed = rows->failed;
	t->tables_refused = rows->refused;
	t->load_ns = rows->load_ns;
	t->bytes = rows->bytes;
	t->bytes_peak = rows->bytes_peak;
	t->spaces = spaces_count(u->spaces);
	t->maps = spaces_maps(u->spaces);
}

/* Hands a sample back, shorter than it came. */
static void finish_sample(struct unwind *u, struct message *m)
{
	size_t bytes = sizeof(*m) + m->sample->header.size;

	maps_ref_put(m->maps);
	m->maps = NULL;
	pthread_mutex_lock(&u->lock);
	u->bytes -= m->bytes;
	u->bytes += bytes;
	m->bytes = bytes;
	u->totals.raw_walked++;
	list_add(&u->finished, m);
	pthread_mutex_unlock(&u->lock);
	if (u->cfg.wake_fd >= 0) {
		uint64_t one = 1;

		ignore(write(u->cfg.wake_fd, &one, sizeof(one)) < 0); /* full: it is awake */
	}
}

static void walk_raw(struct unwind *u, struct message *m)
{
	struct spaces_raw raw = { .is_old = m->is_old,
				  .is_unknown = m->sample->user_end == ABI_END_NO_PROCESS,
				  .is_full = m->is_full };
	struct abi_sample *whole;

	if (raw_walk_finish(u->raw_walk, m->sample, &m->maps->maps, &whole) < 0) {
		unwind_strip(m->sample); /* out of memory: as it came */
	} else {
		free(m->sample);
		m->sample = whole;
	}
	raw.is_cut = m->sample->user_end == ABI_END_COPY_END;
	spaces_raw(u->spaces, &m->process, m->maps, raw);
	finish_sample(u, m);
}

static void drop_message(struct unwind *u, struct message *m)
{
	pthread_mutex_lock(&u->lock);
	u->bytes -= m->bytes;
	pthread_mutex_unlock(&u->lock);
	message_free(m);
}

static void handle(struct unwind *u, struct message *m)
{
	switch (m->kind) {
	case MESSAGE_RAW:
		walk_raw(u, m);
		return;
	case MESSAGE_SET:
		spaces_set(u->spaces, &m->process, m->maps);
		break;
	case MESSAGE_SHARE:
		spaces_share(u->spaces, &m->process, &m->parent);
		break;
	case MESSAGE_FORGET:
		spaces_forget(u->spaces, &m->process);
		break;
	}
	drop_message(u, m);
}

/* Mappings first: the change of a table waits for a grace period, in which no new process is told of. A walk that meets
 * a mapping whose table is not there yet comes raw, too, but with a copy of the stack from there on. */
static void tell_kernel(struct unwind *u)
{
	spaces_flush(u->spaces);
	rows_flush(u->rows);
}

static void end_round(struct unwind *u)
{
	tell_kernel(u);
	rows_expire(u->rows);
}

/* The raw samples in the queue. Only the worker takes messages out of it: they stay where they are. */
static size_t list_waiting(struct unwind *u)
{
	size_t count = 0;

	pthread_mutex_lock(&u->lock);
	for (const struct message *m = u->work.first; m && count < WANTED_MAX; m = m->next)
		if (m->kind == MESSAGE_RAW)
			u->waiting_raw[count++] = m;
	pthread_mutex_unlock(&u->lock);
	return count;
}

/* Tells the kernel of deep processes whose samples wait, which loading rows would hold up. Return: raw samples in
 * u->waiting_raw. */
static size_t tell_waiting(struct unwind *u)
{
	size_t count = list_waiting(u);

	for (size_t i = 0; i < count; i++) {
		const struct message *m = u->waiting_raw[i];

		spaces_expect(u->spaces, &m->process, m->maps, m->is_full);
	}
	tell_kernel(u);
	return count;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Loads what most of the raw samples in the queue wait for, one file after the other, and tells the kernel of them
 * soon: until then every sample there comes raw, too, and is cut when its stack is longer than the copy. The samples
 * are walked in their order all the same. */
static void load_wanted(struct unwind *u, uint64_t start_ns)
{
	size_t raw_count = tell_waiting(u), count = 0;
	uint64_t told_ns;

	for (size_t i = 0; i < raw_count; i++)
		if (u->waiting_raw[i]->file_id)
			u->wanted[count++] = u->waiting_raw[i]->file_id;
	if (count < 2)
		return;
	qsort(u->wanted, count, sizeof(u->wanted[0]), compare_ids);
	told_ns = clock_monotonic_ns(&clock_system);
	while (rows_load_wanted(u->rows, u->wanted, count)) {
		uint64_t now_ns = clock_monotonic_ns(&clock_system);

		if (now_ns - start_ns >= ROUND_NS)
			break;
		if (now_ns - told_ns < TELL_NS)
			continue;
		tell_waiting(u);
		told_ns = clock_monotonic_ns(&clock_system);
	}
	tell_waiting(u);
}

/* With the lock held. The kernel's thread id as `who` means that thread alone. */
static void hurry(struct unwind *u)
{
	if (u->hurries || !u->can_hurry || !u->worker_tid)
		return;
	u->hurries = true;
	ignore(setpriority(PRIO_PROCESS, (id_t)u->worker_tid, HURRY_NICE)); /* it could before */
}

/* The worker's, with the lock held, which is given up: who gives up his priority is likely to lose the CPU at once, and
 * with the lock the reader would wait for as long (190 ms were seen on a machine with four busy programs a CPU). */
static void calm_down(struct unwind *u)
{
	if (!u->hurries || !u->can_hurry)
		return;
	u->hurries = false;
	pthread_mutex_unlock(&u->lock);
	ignore(setpriority(PRIO_PROCESS, (id_t)u->worker_tid, WORKER_NICE));
	pthread_mutex_lock(&u->lock);
	if (u->hurries) /* again, and perhaps before that call */
		ignore(setpriority(PRIO_PROCESS, (id_t)u->worker_tid, HURRY_NICE));
}

/* Samples wait for the rows of a file: the worker is urgent until nothing waits any more. What loading may take is
 * bounded in CPU time (LOAD_SHARE, RELOAD_SHARE in rows.c). Without this, 4 to 6 ms of work took 230 to 340 ms with
 * four busy programs a CPU. */
static int build_urgently(void *self, uint32_t file_id, struct unwind_table *out)
{
	struct unwind *u = self;

	pthread_mutex_lock(&u->lock);
	hurry(u);
	pthread_mutex_unlock(&u->lock);
	return u->files.build(u->files.self, file_id, out);
}

static int span_of_file(void *self, uint32_t file_id, struct unwind_span *out)
{
	struct unwind *u = self;

	return u->files.span(u->files.self, file_id, out);
}

/* Who lacks the right to raise a priority again stays where he is. */
static void start_nicely(struct unwind *u)
{
	pid_t tid = gettid();

	pthread_mutex_lock(&u->lock);
	u->worker_tid = tid;
	u->can_hurry = u->hurries = setpriority(PRIO_PROCESS, (id_t)tid, HURRY_NICE) == 0;
	calm_down(u);
	pthread_mutex_unlock(&u->lock);
}

/* Waits for work, at most a few seconds. Return: false at the end. */
static bool wait_for_work(struct unwind *u)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	while (!u->work.first && !u->stops)
		if (pthread_cond_timedwait(&u->changed, &u->lock, &until) != 0)
			break;
	return !u->stops;
}

/* Loading has a time of its own: with a budget that is too small for what runs it takes all of it, and when that was
 * the round's, one message was handled a round and the end of a session waited for minutes. Who drains waits for
 * samples, not for those that come raw meanwhile. */
static void work_round(struct unwind *u, bool drains)
{
	uint64_t start_ns = clock_monotonic_ns(&clock_system);
	struct message *m;

	if (!drains) {
		load_wanted(u, start_ns);
		start_ns = clock_monotonic_ns(&clock_system);
	}
	do {
		pthread_mutex_lock(&u->lock);
		m = u->stops ? NULL : list_take(&u->work);
		u->waiting -= m ? m->bytes : 0;
		pthread_mutex_unlock(&u->lock);
		if (m)
			handle(u, m);
	} while (m && clock_monotonic_ns(&clock_system) - start_ns < ROUND_NS);
	end_round(u);
}

static void *worker_main(void *argument)
{
	struct unwind *u = argument;

	start_nicely(u);
	pthread_mutex_lock(&u->lock);
	while (wait_for_work(u)) {
		bool drains = u->drains;

		u->is_busy = true;
		pthread_mutex_unlock(&u->lock);
		work_round(u, drains);
		pthread_mutex_lock(&u->lock);
		u->is_busy = false;
		publish_totals(u);
		if (!u->work.first) {
			pthread_cond_broadcast(&u->idle);
			calm_down(u);
		}
	}
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

/* ---- the reader ---- */

static struct known *find_known(const struct unwind *u, const struct program *p)
{
	uint32_t at;

	return u64map_get(&u->known_index, program_hash(p, u->seed), &at) < 0 ? NULL : &u->known[at];
}

/* NULL: out of memory, or too many: its mappings are copied each time. */
static struct known *get_known(struct unwind *u, const struct program *p)
{
	struct known *k = find_known(u, p);

	if (k)
		return k;
	if (array_grow(&u->known, &u->known_cap, u->known_count, KNOWN_MAX) < 0 ||
	    u64map_put(&u->known_index, program_hash(p, u->seed), (uint32_t)u->known_count) < 0)
		return NULL;
	u->known[u->known_count] = (struct known){ .key = *p };
	return &u->known[u->known_count++];
}

static void forget_known(struct unwind *u, const struct program *p)
{
	uint64_t hash = program_hash(p, u->seed);
	struct known *last;
	uint32_t at;

	if (u64map_get(&u->known_index, hash, &at) < 0)
		return;
	ignore(u64map_remove(&u->known_index, hash)); /* it is there */
	maps_ref_put(u->known[at].maps);
	last = &u->known[--u->known_count];
	if (last == &u->known[at])
		return;
	u->known[at] = *last;
	must(u64map_put(&u->known_index, program_hash(&last->key, u->seed), at) == 0); /* replaces: needs no room */
}

/* The mappings as both threads hold them: those of last time when they are the same. NULL: out of memory. */
static struct maps_ref *share_maps(struct unwind *u, const struct program *p, const struct mappings *maps, bool *fresh)
{
	struct known *k = get_known(u, p);
	struct maps_ref *m;

	*fresh = false;
	if (k && k->maps && maps_equal(&k->maps->maps, maps))
		return maps_ref_get(k->maps);
	*fresh = true;
	m = maps_ref_new(maps);
	if (m && k) {
		maps_ref_put(k->maps);
		k->maps = maps_ref_get(m);
	}
	return m;
}

/* Return: 0, or -EAGAIN when it was freed because there was no room. */
static int hand_over(struct unwind *u, struct message *m, size_t limit)
{
	bool fits;

	pthread_mutex_lock(&u->lock);
	fits = u->bytes + m->bytes <= limit;
	if (fits) {
		u->bytes += m->bytes;
		list_add(&u->work, m);
		u->waiting += m->bytes;
		if (u->waiting > HURRY_BYTES)
			hurry(u);
		pthread_cond_signal(&u->changed);
	} else if (m->kind == MESSAGE_RAW) {
		u->totals.raw_dropped++;
	}
	pthread_mutex_unlock(&u->lock);
	if (fits)
		return 0;
	message_free(m);
	return -EAGAIN;
}

static struct message *message_new(enum message_kind kind, const struct program *process)
{
	struct message *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->kind = kind;
	m->process = *process;
	m->bytes = sizeof(*m);
	return m;
}

static size_t maps_bytes(const struct mappings *maps)
{
	return maps->count * sizeof(*maps->items);
}

bool unwind_set_process(struct unwind *u, const struct program *process, const struct mappings *maps)
{
	struct message *m = message_new(MESSAGE_SET, process);
	bool fresh;

	if (!m)
		return false;
	m->maps = share_maps(u, process, maps, &fresh);
	if (!m->maps) {
		free(m);
		return false;
	}
	m->bytes += fresh ? maps_bytes(maps) : 0;
	return hand_over(u, m, QUEUE_BYTES_MAX) == 0;
}

void unwind_share(struct unwind *u, const struct program *child, const struct program *parent)
{
	struct message *m;

	if (!find_known(u, parent))
		return;           /* nothing was ever told of it */
	if (!get_known(u, child)) /* so that it is forgotten again */
		return;
	m = message_new(MESSAGE_SHARE, child);
	if (!m)
		return;
	m->parent = *parent;
	ignore(hand_over(u, m, QUEUE_BYTES_ALL)); /* the child's samples come raw then */
}

void unwind_forget(struct unwind *u, const struct program *process)
{
	struct message *m;

	if (!find_known(u, process))
		return;
	m = message_new(MESSAGE_FORGET, process);
	forget_known(u, process);
	if (m)
		ignore(hand_over(u, m, QUEUE_BYTES_ALL)); /* it goes when its space is wanted for another */
}

/* Has it lived so long that it is worth telling the kernel of it at its first sample? */
static bool is_old(const struct unwind *u, const struct abi_sample *sample)
{
	int64_t age = (int64_t)(sample->header.time_ns - sample->process_start_ns) + u->boot_offset_ns;

	return age >= (int64_t)YOUNG_NS;
}

/* The file whose rows the walk of a raw sample needs next; 0: none. */
static uint32_t file_of_walk(const struct abi_raw *raw, const struct mappings *maps)
{
	const struct mapping *m = mappings_find(maps, raw->pc - (raw->is_return ? 1 : 0));

	return m && (m->kind == PROC_PLACE_FILE || m->kind == PROC_PLACE_VDSO) ? m->file_id : 0;
}

/* A long copy is shortened when the queue is rather full: samples of others have to fit, too. Return: its bytes. */
static uint32_t stack_to_keep(struct unwind *u, const struct abi_raw *raw)
{
	bool is_crowded;

	if (raw->stack_size <= ABI_STACK_MAX)
		return raw->stack_size;
	pthread_mutex_lock(&u->lock);
	is_crowded = u->bytes > QUEUE_BYTES_LONG;
	pthread_mutex_unlock(&u->lock);
	return is_crowded ? ABI_STACK_MAX : raw->stack_size;
}

/* The sample with the first @stack_size bytes of its stack. NULL: out of memory. */
static struct abi_sample *copy_raw(const struct abi_sample *sample, struct abi_raw raw, uint32_t stack_size)
{
	size_t size = sample->header.size - (raw.stack_size - stack_size);
	struct abi_sample *copy = malloc(size);

	if (!copy)
		return NULL;
	memcpy(copy, sample, size);
	copy->header.size = (uint32_t)size;
	raw.stack_size = stack_size;
	memcpy(copy->frames + copy->frame_count + copy->runtime_count, &raw, sizeof(raw));
	return copy;
}

int unwind_raw(struct unwind *u, const struct abi_sample *sample, const struct mappings *maps)
{
	const struct program process = { .pid = sample->pid,
					 .exec_id = sample->exec_id,
					 .start_ns = sample->process_start_ns };
	const struct abi_raw raw = unwind_raw_state(sample);
	struct message *m = message_new(MESSAGE_RAW, &process);
	bool fresh;

	must(sample->flags & ABI_SAMPLE_RAW);
	if (!m)
		return -EAGAIN;
	m->sample = copy_raw(sample, raw, stack_to_keep(u, &raw));
	m->maps = m->sample ? share_maps(u, &process, maps, &fresh) : NULL;
	if (!m->maps) {
		message_free(m);
		return -EAGAIN;
	}
	m->is_old = is_old(u, sample);
	m->is_full = raw.stack_size >= ABI_STACK_MAX;
	m->file_id = file_of_walk(&raw, maps);
	m->bytes += m->sample->header.size + (fresh ? maps_bytes(maps) : 0);
	return hand_over(u, m, QUEUE_BYTES_MAX);
}

struct abi_sample *unwind_take(struct unwind *u)
{
	struct abi_sample *sample = NULL;
	struct message *m;

	pthread_mutex_lock(&u->lock);
	m = list_take(&u->finished);
	if (m)
		u->bytes -= m->bytes;
	pthread_mutex_unlock(&u->lock);
	if (!m)
		return NULL;
	sample = m->sample;
	m->sample = NULL;
	message_free(m);
	return sample;
}

void unwind_drain(struct unwind *u)
{
	pthread_mutex_lock(&u->lock);
	hurry(u); /* somebody waits for it */
	u->drains = true;
	while (u->work.first || u->is_busy)
		pthread_cond_wait(&u->idle, &u->lock);
	u->drains = false;
	pthread_mutex_unlock(&u->lock);
}

void unwind_touch(struct unwind *u, uint32_t file_id)
{
	rows_touch(u->rows, file_id);
}

void unwind_totals(struct unwind *u, struct unwind_totals *out)
{
	pthread_mutex_lock(&u->lock);
	*out = u->totals;
	pthread_mutex_unlock(&u->lock);
}

/* ---- life ---- */

static int64_t boot_offset_ns(void)
{
	struct timespec boot, mono;

	if (clock_gettime(CLOCK_BOOTTIME, &boot) < 0 || clock_gettime(CLOCK_MONOTONIC, &mono) < 0)
		return 0;
	return ((int64_t)boot.tv_sec - mono.tv_sec) * (int64_t)NSEC_PER_SEC + (boot.tv_nsec - mono.tv_nsec);
}

static int open_sink(struct unwind *u)
{
	int r;

	if (u->cfg.sink) {
		u->sink = *u->cfg.sink;
		return 0;
	}
	r = table_memory_new(&u->memory);
	if (r == 0)
		u->sink = table_memory_sink(u->memory);
	return r;
}

static int open_parts(struct unwind *u, struct files *files)
{
	struct rows_config rows = { .budget_bytes = u->cfg.budget_bytes ? u->cfg.budget_bytes : BUDGET_DEFAULT,
				    .sink = &u->sink,
				    .source = &u->source,
				    .clock = u->cfg.clock };
	int r = open_sink(u);

	if (r < 0)
		return r;
	u->host_root = str_dup(str_of(u->cfg.host_root ? u->cfg.host_root : ""));
	if (!u->host_root)
		return -ENOMEM;
	u->source_files = (struct rows_files){ .files = files, .host_root = u->host_root };
	u->files = rows_files_source(&u->source_files);
	u->source = (struct rows_source){ .span = span_of_file, .build = build_urgently, .self = u };
	r = rows_open(&rows, &u->rows);
	if (r == 0)
		r = spaces_open(u->rows, &u->sink, u->cfg.clock, &u->spaces);
	if (r == 0)
		r = raw_walk_new(u->rows, files, u->cfg.mode, u->cfg.runtimes, &u->raw_walk);
	if (r == 0)
		r = -pthread_create(&u->worker, NULL, worker_main, u);
	u->worker_runs = r == 0;
	return r;
}

int unwind_open(const struct unwind_config *cfg, struct files *files, struct unwind **out)
{
	struct unwind *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->cfg = *cfg;
	u->seed = random_u64();
	u->boot_offset_ns = boot_offset_ns();
	u64map_init(&u->known_index, KNOWN_MAX);
	list_init(&u->work);
	list_init(&u->finished);
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->changed, NULL);
	pthread_cond_init(&u->idle, NULL);
	r = open_parts(u, files);
	if (r < 0) {
		unwind_close(u);
		return r;
	}
	*out = u;
	return 0;
}

void unwind_close(struct unwind *u)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	u->stops = true;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	if (u->worker_runs)
		pthread_join(u->worker, NULL);
	list_free(&u->work);
	list_free(&u->finished);
	raw_walk_free(u->raw_walk);
	spaces_close(u->spaces);
	rows_close(u->rows);
	table_memory_free(u->memory);
	for (size_t i = 0; i < u->known_count; i++)
		maps_ref_put(u->known[i].maps);
	free(u->known);
	u64map_release(&u->known_index);
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->changed);
	pthread_cond_destroy(&u->idle);
	free(u->host_root);
	free(u);
}
