/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes call the threads that were sampled: thread_names.h, with the worker that reads names. */
#include "runtime/runtimes_int.h"

#include "base/io.h"
#include "proc/proc_read.h"

#define NAMES_MAX 16384 /* threads of one process that a runtime tells of */
#define TEXT_MAX MIB(4) /* of their names */

/* ---- the reader, and who builds windows ---- */

/* With the lock held. */
static bool can_tell(const struct runtimes *r, const struct program *process)
{
	const struct runtimes_entry *e = runtimes_entry_find(r, process);

	for (size_t i = 0; e && i < e->attached_count; i++)
		if (e->attached[i].state == RUNTIMES_READY && e->attached[i].probed->binary->runtime->thread_names)
			return true;
	return false;
}

bool runtimes_thread(struct runtimes *r, const struct program *process, uint32_t tid, struct str comm)
{
	struct runtimes_message *m;
	bool can, want;

	if (!r->threads || !r->has_teller)
		return false;
	pthread_mutex_lock(&r->lock);
	can = can_tell(r, process);
	want = can && thread_names_want(r->threads, process, tid, comm, clock_monotonic_ns(r->clock));
	pthread_mutex_unlock(&r->lock);
	m = want ? runtimes_message_new(RUNTIMES_THREADS, process, 0) : NULL;
	if (m)
		ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_BYTES)); /* without room: a second later */
	return can;
}

int runtimes_thread_name(struct runtimes *r, const struct program *process, uint32_t tid, struct str comm,
			 struct buf *out)
{
	struct str name;
	int result = -ENOENT;

	if (!r->threads)
		return result;
	pthread_mutex_lock(&r->lock);
	result = thread_names_find(r->threads, process, tid, comm, &name);
	if (result == 0)
		buf_adds(out, name);
	pthread_mutex_unlock(&r->lock);
	return result < 0 ? result : out->error;
}

/* ---- the worker ---- */

struct told {                /* by the runtime */
	struct u64map index; /* number of a thread, as the process knows it -> at */
	struct buf text;     /* lengths and names */
};

static void told_release(struct told *t)
{
	u64map_release(&t->index);
	buf_release(&t->text);
}

static int note(void *ctx, uint32_t tid, struct str name)
{
	struct told *t = ctx;
	uint32_t at = (uint32_t)t->text.len;
	uint16_t size = (uint16_t)MIN(name.len, (size_t)RUNTIME_THREAD_NAME_MAX);

	buf_add(&t->text, &size, sizeof(size));
	buf_add(&t->text, name.ptr, size);
	return t->text.error ? t->text.error : u64map_put(&t->index, tid, at);
}

static struct str name_of(const struct told *t, uint32_t tid)
{
	uint16_t size;
	uint32_t at;

	if (!tid || u64map_get(&t->index, tid, &at) < 0)
		return STR("");
	memcpy(&size, t->text.ptr + at, sizeof(size));
	return str_n(t->text.ptr + at + sizeof(size), size);
}

/* The process's own number of a thread that is called @comm still. Return: 0: it is gone, or called another way. */
static uint32_t inner_tid(struct runtimes *r, int dir, const struct thread_wanted *wanted)
{
	struct proc_facts facts = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "task/%u/comm", wanted->tid);
	buf_clear(&r->text);
	if (io_read_file_at(dir, path, &r->text) < 0 || !r->text.len ||
	    !str_eq(str_n(r->text.ptr, r->text.len - 1), str_of(wanted->comm))) /* a line feed ends it */
		return 0;
	snprintf(path, sizeof(path), "task/%u/status", wanted->tid);
	buf_clear(&r->text);
	if (io_read_file_at(dir, path, &r->text) < 0)
		return 0;
	proc_status_parse(buf_str(&r->text), &facts);
	return facts.inner_pid;
}

static struct runtimes_attached *find_teller(struct runtimes_entry *e)
{
	for (size_t i = 0; i < e->attached_count; i++)
		if (e->attached[i].state == RUNTIMES_READY && e->attached[i].probed->binary->runtime->thread_names)
			return &e->attached[i];
	return NULL;
}

/* What the runtime tells; those that come before it fails count. Return: -EAGAIN: it could not tell yet; or 0. */
static int ask_runtime(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, int dir,
		       struct told *told)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	struct runtime_target target = runtimes_target(r, e, a, dir);

	runtimes_learn(r, e, a, &target);
	return runtime->thread_names(&target, a->info, note, told) == -EAGAIN ? -EAGAIN : 0;
}

void runtimes_read_threads(struct runtimes *r, const struct program *process)
{
	scoped(freep) struct thread_wanted *wanted = malloc(THREAD_NAMES_WANTED_MAX * sizeof(*wanted));
	scoped(told_release) struct told told = { .text = BUF_INIT(TEXT_MAX) };
	struct runtimes_entry *e = runtimes_entry_find(r, process);
	struct runtimes_attached *a = e ? find_teller(e) : NULL;
	scoped(closep) int dir = a ? runtimes_open_process(r, process) : -1;
	size_t count;

	u64map_init(&told.index, NAMES_MAX);
	if (!wanted || dir < 0)
		return;
	/* Before the names are read: who comes later waits for the next time. */
	pthread_mutex_lock(&r->lock);
	count = thread_names_wanted(r->threads, process, wanted);
	pthread_mutex_unlock(&r->lock);
	if (ask_runtime(r, e, a, dir, &told) < 0)
		return; /* they stay wanted */
	for (size_t i = 0; i < count; i++) {
		struct str name = name_of(&told, inner_tid(r, dir, &wanted[i]));

		pthread_mutex_lock(&r->lock);
		ignore(thread_names_put(r->threads, &wanted[i], name, clock_monotonic_ns(r->clock)) < 0);
		pthread_mutex_unlock(&r->lock);
	}
}
