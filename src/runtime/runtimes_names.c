/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions: the reader keeps them (names.h), the worker reads those whose record was lost or cut. */
#include "runtime/runtimes_int.h"

#define ROOM_MAX MIB(1)
#define ANSWERS_MAX MIB(16)               /* bytes that wait for the reader; what is more is asked for again */
#define LINE_BYTES_PER_S NAMES_LINE_BYTES /* 1 to 2 ns each */
#define REFILL_NS NSEC_PER_MSEC
#define RECALL_NS NSEC_PER_SEC /* at most that often: every function that runs is told again */

struct runtimes_answer {
	struct runtimes_answer *next;
	struct names_key key;
	int result;
	struct runtime_function function; /* its texts lie in room */
	struct buf room;
};

static void answer_free(struct runtimes_answer *a)
{
	buf_release(&a->room);
	free(a);
}

/* ---- the reader ---- */

int runtimes_names_open(struct runtimes *r)
{
	const struct runtime *const *all = r->cfg.runtimes;
	const struct runtime *registered[ABI_RUNTIME_COUNT + 1] = { NULL };

	for (size_t i = 0; !all && i < ABI_RUNTIME_COUNT && runtime_at(i); i++)
		registered[i] = runtime_at(i);
	r->name_room = (struct buf)BUF_INIT(ROOM_MAX);
	return names_new(r->cfg.name_bytes, r->clock, all ? all : registered, &r->names);
}

void runtimes_names_close(struct runtimes *r)
{
	for (struct runtimes_answer *a = r->answers, *next; a; a = next) {
		next = a->next;
		answer_free(a);
	}
	buf_release(&r->name_room);
	names_free(r->names);
}

/* What the worker has read since. */
static void take_answers(struct runtimes *r)
{
	struct runtimes_answer *a, *next;

	if (!atomic_load_explicit(&r->has_answers, memory_order_relaxed))
		return;
	pthread_mutex_lock(&r->lock);
	a = r->answers;
	r->answers = NULL;
	r->answer_bytes = 0;
	atomic_store_explicit(&r->has_answers, false, memory_order_relaxed);
	pthread_mutex_unlock(&r->lock);
	for (; a; a = next) {
		next = a->next;
		if (a->result == -ENOBUFS)
			names_not_asked(r->names, &a->key);
		else if (a->result < 0 || names_put_more(r->names, &a->key, &a->function) < 0)
			names_unreadable(r->names, &a->key);
		answer_free(a);
	}
}

const struct runtime *runtimes_of(const struct runtimes *r, enum abi_runtime id)
{
	const struct runtime *const *all = r->cfg.runtimes;

	if (!all)
		return runtime_find(id);
	while (*all && (*all)->id != id)
		all++;
	return *all;
}

void runtimes_name(struct runtimes *r, const struct abi_name *name)
{
	const struct names_key key = {
		.program = { .pid = name->pid, .exec_id = name->exec_id, .start_ns = name->process_start_ns },
		.key = name->key,
		.cookie = name->cookie,
		.runtime = name->runtime
	};
	const struct runtime *runtime = runtimes_of(r, name->runtime);
	struct runtime_function f;
	bool again;

	if (!runtime || !runtime->decode_name)
		return;
	buf_clear(&r->name_room);
	again = names_has(r->names, &key);
	/* What cannot be used is missed by the frames that need it: then the worker reads it. */
	if (runtime->decode_name(name->bytes, name->bytes_size, &r->name_room, &f) < 0 ||
	    names_put(r->names, &key, &f) < 0)
		return;
	RUNTIMES_COUNT(r, runtime, names);
	if (again)
		RUNTIMES_COUNT(r, runtime, names_again);
}

static void ask(struct runtimes *r, const struct names_key *key)
{
	struct runtimes_message *m = runtimes_message_new(RUNTIMES_READ, &key->program, 0);

	if (m) {
		m->key = *key;
		if (runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES)) {
			r->has_asked = true;
			return;
		}
	}
	names_not_asked(r->names, key);
}

bool runtimes_has_asked(struct runtimes *r)
{
	bool has = r->has_asked;

	r->has_asked = false;
	return has;
}

void runtimes_recall(struct runtimes *r)
{
	const struct program nobody = { 0 };
	struct runtimes_message *m = runtimes_message_new(RUNTIMES_RECALL, &nobody, 0);

	if (m)
		ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES)); /* the worker is told of misses, too */
}

static void recall(struct runtimes *r)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	if (now - r->recalled_ns < RECALL_NS || !names_want_recall(r->names))
		return;
	r->recalled_ns = now;
	runtimes_recall(r);
}

static void refill_lines(struct runtimes *r)
{
	uint64_t now;

	if (!names_want_line_budget(r->names))
		return;
	now = clock_monotonic_ns(r->clock);
	if (now - r->refilled_ns < REFILL_NS)
		return;
	names_add_line_budget(r->names, MIN(now - r->refilled_ns, NSEC_PER_SEC) * LINE_BYTES_PER_S / NSEC_PER_SEC);
	r->refilled_ns = now;
}

void runtimes_frame(struct runtimes *r, const struct program *process, const struct abi_frame *frame,
		    struct runtimes_frame *out)
{
	const struct names_key key = {
		.program = *process,
		.key = frame->a,
		.cookie = frame->b,
		.runtime = (enum abi_runtime)frame->runtime,
		.is_code = (frame->flags & ABI_FRAME_COMPILED) != 0,
	};

	take_answers(r);
	refill_lines(r);
	if (names_find(r->names, &key, frame->extra, out) == NAMES_ASK)
		ask(r, &key);
	if (!out->function)
		recall(r);
}

int runtimes_expand(struct runtimes *r, uint32_t function, const struct abi_frame *frame,
		    struct runtime_shown out[RUNTIME_EXPAND_MAX])
{
	refill_lines(r);
	return names_expand(r->names, function, frame->extra, frame->flags & ABI_FRAME_RETURN, out);
}

int runtimes_function(struct runtimes *r, uint32_t function, struct runtime_function *out)
{
	return names_function(r->names, function, out);
}

void runtimes_forget_names(struct runtimes *r, const struct program *process)
{
	names_forget(r->names, process);
}

/* ---- the worker ---- */

static size_t counter_of(int result)
{
	return result == 0         ? offsetof(struct runtime_stats, names_read)
	       : result == -ESTALE ? offsetof(struct runtime_stats, names_stale)
				   : offsetof(struct runtime_stats, names_unreadable);
}

/* A reader that has nothing to do takes no answers, and any process can have long names and tables. */
static bool has_room(struct runtimes *r)
{
	bool has;

	pthread_mutex_lock(&r->lock);
	has = r->answer_bytes < ANSWERS_MAX;
	pthread_mutex_unlock(&r->lock);
	return has;
}

typedef int read_fn(const struct runtime_target *target, const void *info, uint64_t key, uint64_t cookie,
		    struct buf *room, struct runtime_function *out);

/* One look at each cookie where the runtime says that nothing has been freed meanwhile, otherwise two. */
static int read_guarded(const struct runtime *runtime, read_fn *read, const struct runtime_target *target,
			const void *info, struct runtimes_answer *a)
{
	struct runtime_target within = *target;
	uint64_t before, after;
	int r;

	if (!runtime->epoch || runtime->epoch(target, info, &before) < 0)
		return read(target, info, a->key.key, a->key.cookie, &a->room, &a->function);
	within.in_epoch = true;
	r = read(&within, info, a->key.key, a->key.cookie, &a->room, &a->function);
	if (runtime->epoch(target, info, &after) == 0 && after == before)
		return r;
	buf_clear(&a->room);
	return read(target, info, a->key.key, a->key.cookie, &a->room, &a->function);
}

int runtimes_read_name(struct runtimes *r, const struct runtime *runtime, const struct runtime_target *target,
		       const void *info, const struct names_key *key)
{
	struct runtimes_answer *a = calloc(1, sizeof(*a));
	read_fn *read = NULL;
	int result;

	if (!a)
		return -ENOMEM;
	a->key = *key;
	a->room = (struct buf)BUF_INIT(ROOM_MAX);
	if (runtime)
		read = key->is_code ? runtime->read_code : runtime->read_name;
	if (!has_room(r))
		a->result = -ENOBUFS;
	else
		a->result = target && read ? read_guarded(runtime, read, target, info, a) : -ESRCH;
	a->function.is_code = key->is_code;
	if (runtime && a->result != -ENOBUFS)
		runtimes_count(r, runtime, counter_of(a->result));
	result = a->result;
	pthread_mutex_lock(&r->lock);
	r->answer_bytes += sizeof(*a) + a->room.cap;
	a->next = r->answers;
	r->answers = a;
	atomic_store_explicit(&r->has_answers, true, memory_order_relaxed);
	pthread_mutex_unlock(&r->lock);
	return result;
}
