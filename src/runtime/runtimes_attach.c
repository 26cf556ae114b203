/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to one process, and what is told of it. A pid may come to mean another process at any time: /proc/PID is
 * opened first, its start time compared, and once more when the memory has been read. An exec in between is told by the
 * exec id: what was found then is of nobody. */
#include "runtime/runtimes_int.h"

#include <sys/uio.h>
#include <unistd.h>

#include "proc/proc_read.h"

/* ---- memory and /proc ---- */

static int read_process(void *self, void *dst, uint32_t size, uint64_t at)
{
	const struct program *p = self;
	struct iovec to = { dst, size }, from = { (void *)(uintptr_t)at, size };
	ssize_t n = process_vm_readv((pid_t)p->pid, &to, 1, &from, 1, 0);

	return n < 0 ? -errno : n == (ssize_t)size ? 0 : -EFAULT;
}

static bool is_same(struct runtimes *r, int dir, const struct program *p)
{
	struct proc_facts facts;

	return proc_facts_read(dir, p->start_ns, &r->scratch, &facts) == 0;
}

/* Return: a descriptor of /proc/PID, -ESRCH when it is another process's by now. */
int runtimes_open_process(struct runtimes *r, const struct program *p)
{
	int dir = proc_dir_open(r->host_root, p->pid);

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	if (is_same(r, dir, p))
		return dir;
	close(dir);
	return -ESRCH;
}

/* ---- entries ---- */

static void set_state(struct runtimes *r, struct runtimes_attached *a, enum runtimes_state state)
{
	pthread_mutex_lock(&r->lock);
	a->state = state;
	pthread_mutex_unlock(&r->lock);
}

bool runtimes_has_ready(const struct runtimes_entry *e, enum abi_runtime id)
{
	for (size_t i = 0; i < e->attached_count; i++)
		if (e->attached[i].state == RUNTIMES_READY && e->attached[i].probed->binary->runtime->id == id)
			return true;
	return false;
}

void runtimes_add(struct runtimes *r, struct runtimes_entry *e, const struct runtimes_probed *probed, uint64_t start,
		  uint64_t offset)
{
	uint64_t address;

	for (size_t i = 0; i < e->attached_count; i++)
		if (e->attached[i].probed == probed)
			return;
	if (e->attached_count == RUNTIMES_ATTACHED_MAX || elf_address_of(&probed->segments, offset, &address) < 0)
		return;
	pthread_mutex_lock(&r->lock);
	e->attached[e->attached_count++] = (struct runtimes_attached){
		.probed = probed,
		.bias = start - address,
		.state = probed->binary->refused[0] ? RUNTIMES_REFUSED : RUNTIMES_PENDING,
	};
	pthread_mutex_unlock(&r->lock);
}

/* ---- attaching ---- */

static char *take_text(struct buf *text)
{
	size_t len;

	if (text->error || !text->len || !buf_cstr(text)[0])
		return NULL;
	return buf_take(text, &len);
}

/* Return: 0 or -errno. */
int runtimes_tell(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, const uint8_t *info,
		  uint32_t size)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	uint8_t *copy = malloc(size);
	int result;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, info, size);
	result = r->sink.set ? r->sink.set(r->sink.self, runtime->id, e->key.pid, copy, size) : 0;
	if (result < 0) {
		free(copy);
		return result;
	}
	pthread_mutex_lock(&r->lock);
	free(a->info);
	a->info = copy;
	a->info_size = size;
	a->state = RUNTIMES_READY;
	pthread_mutex_unlock(&r->lock);
	RUNTIMES_COUNT(r, runtime, attached);
	return 0;
}

struct runtime_target runtimes_target(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a,
				      int dir)
{
	return (struct runtime_target){
		.pid = e->key.pid,
		.exec_id = e->key.exec_id,
		.start_ns = e->key.start_ns,
		.read = read_process,
		.self = &e->key,
		.bias = a->bias,
		.host_root = r->host_root,
		.proc_dir = dir,
		.effort = &a->effort,
		.ids = &r->ids,
	};
}

/* Return: 0: ready, or never will be; -EAGAIN: later; -ENOSPC: when another one has ended; -ESRCH: the process is gone.
 */
static int attach(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, int dir)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	struct runtime_target target = runtimes_target(r, e, a, dir);
	uint8_t info[RUNTIME_INFO_MAX] = { 0 };
	int result = runtime->attach(a->probed->binary, &target, info);

	if (!is_same(r, dir, &e->key))
		return -ESRCH;
	if (result > 0) {
		must(result <= RUNTIME_INFO_MAX);
		result = runtimes_tell(r, e, a, info, (uint32_t)result);
	}
	switch (result) {
	case 0:
		return 0;
	case -EAGAIN:
	case -ENOMEM:
	case -ENOENT:
	case -ENOSPC:
		RUNTIMES_COUNT(r, runtime, retries);
		return result == -ENOSPC ? -ENOSPC : -EAGAIN;
	case -ESRCH:
		return -ESRCH;
	default: /* -ENOTSUP, -EPERM, -EBADMSG */
		RUNTIMES_COUNT(r, runtime, failed);
		runtimes_note(r, a->probed,
			      result == -EPERM ? "cannot be read in another user's process"
					       : "is not laid out as its version should be");
		set_state(r, a, RUNTIMES_REFUSED);
		return 0;
	}
}

/* One of a kind: where two files of one runtime are mapped, the first that answers. */
int runtimes_attach(struct runtimes *r, struct runtimes_entry *e, int dir)
{
	int result = 0;

	for (size_t i = 0; i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];

		if (a->state != RUNTIMES_PENDING || runtimes_has_ready(e, a->probed->binary->runtime->id))
			continue;
		int one = attach(r, e, a, dir);

		if (one == -ESRCH)
			return one;
		if (one < 0 && result != -EAGAIN)
			result = one;
	}
	return result;
}

/* What it is called, for people; once per process, when nothing else waits: whole files may have to be read for it. */
void runtimes_want_description(struct runtimes *r, const struct runtimes_entry *e)
{
	struct runtimes_message *m;

	if (!r->cfg.want_application || !e->attached_count || e->application || e->metadata)
		return;
	m = runtimes_message_new(RUNTIMES_DESCRIBE, &e->key, 0);
	if (m)
		ignore(runtimes_hand_over(r, m, RUNTIMES_QUEUE_ALL)); /* then it has no description */
}

void runtimes_describe(struct runtimes *r, const struct program *process)
{
	struct runtimes_entry *e = runtimes_entry_find(r, process);
	scoped(buf_release) struct buf application = BUF_INIT(RUNTIMES_TEXT_MAX);
	scoped(buf_release) struct buf metadata = BUF_INIT(RUNTIMES_TEXT_MAX);
	scoped(closep) int dir = e && e->attached_count ? runtimes_open_process(r, process) : -1;
	const struct runtime_binary *binary;
	struct runtime_target target;
	char *texts[2] = { NULL, NULL };

	if (dir < 0 || e->application || e->metadata)
		return;
	target = runtimes_target(r, e, &e->attached[0], dir);
	binary = e->attached[0].probed->binary;
	if (binary->runtime->application && binary->runtime->application(&target, &application) == 0)
		texts[0] = take_text(&application);
	if (binary->runtime->metadata && binary->runtime->metadata(binary, &target, &metadata) == 0)
		texts[1] = take_text(&metadata);
	pthread_mutex_lock(&r->lock);
	e->application = texts[0];
	e->metadata = texts[1];
	pthread_mutex_unlock(&r->lock);
}
