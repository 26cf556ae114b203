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

/* Return: 0: it is; -ESRCH: it is gone, or another process has its pid; -errno: that cannot be told now. */
static int check_same(struct runtimes *r, int dir, const struct program *p)
{
	struct proc_facts facts;
	int result = proc_facts_read(dir, p->start_ns, &r->scratch, &facts);

	return result == -ENOENT ? -ESRCH : result;
}

int runtimes_open_process(struct runtimes *r, const struct program *p)
{
	int dir = proc_dir_open(r->host_root, p->pid), result;

	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	result = check_same(r, dir, p);
	if (result == 0)
		return dir;
	close(dir);
	return result;
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
		if (e->attached[i].state == RUNTIMES_READY &&
		    (id == ABI_RUNTIME_NONE || e->attached[i].probed->binary->runtime->id == id))
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
	e->since_ns = clock_monotonic_ns(r->clock); /* it starts up now, however old the process is */
	pthread_mutex_unlock(&r->lock);
}

/* ---- which runtimes a process has ---- */

int runtimes_add_range(struct abi_runtimes *head, enum abi_runtime runtime, const struct abi_code_range *range)
{
	uint64_t end;

	if (!range->size || range->low < WALK_USER_MIN || __builtin_add_overflow(range->low, range->size, &end) ||
	    end - 1 > WALK_USER_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < head->range_count; i++) {
		const struct abi_code_range *other = &head->ranges[i];

		if (range->low < other->low + other->size && other->low < end)
			return -EBADMSG;
	}
	if (head->range_count == ABI_CODE_RANGES)
		return -ENOSPC;
	head->ranges[head->range_count++] =
		(struct abi_code_range){ .low = range->low, .size = range->size, .runtime = runtime };
	return 0;
}

static void add_to_head(struct runtimes *r, struct abi_runtimes *head, const struct runtimes_attached *a)
{
	const struct runtime *runtime = a->probed->binary->runtime;

	if (!runtime->in_line)
		head->behind |= (uint16_t)(1U << runtime->id);
	for (size_t i = 0; i < a->range_count; i++)
		if (runtimes_add_range(head, runtime->id, &a->ranges[i]) < 0)
			RUNTIMES_COUNT(r, runtime, ranges_refused); /* its code is walked as any other JIT code */
}

/* Tells the sink which runtimes @e has: those that are ready, and @more. Return: 0 or -errno. */
static int tell_head(struct runtimes *r, struct runtimes_entry *e, const struct runtimes_attached *more)
{
	struct abi_runtimes head = { .start_ns = e->key.start_ns, .exec_id = e->key.exec_id };
	int result;

	for (size_t i = 0; i < e->attached_count; i++)
		if (e->attached[i].state == RUNTIMES_READY || &e->attached[i] == more)
			add_to_head(r, &head, &e->attached[i]);
	result = r->sink.head ? r->sink.head(r->sink.self, e->key.pid, &head) : 0;
	if (result < 0)
		return result;
	pthread_mutex_lock(&r->lock);
	e->head = head;
	pthread_mutex_unlock(&r->lock);
	return 0;
}

/* A sampler that walks no frames of @runtime may stand beside one that copies stacks, in which the host does. Return: 0
 * or -errno. */
static int tell_info(struct runtimes *r, const struct runtime *runtime, uint32_t pid, const uint8_t *info,
		     uint32_t size)
{
	int result = r->sink.set ? r->sink.set(r->sink.self, runtime->id, pid, info, size) : 0;

	return result == -ENOSYS && runtime->in_line && !r->cfg.only_runtimes ? 0 : result;
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
	result = tell_info(r, runtime, e->key.pid, copy, size);
	if (result == 0) {
		result = tell_head(r, e, a);
		if (result < 0 && r->sink.forget)
			r->sink.forget(r->sink.self, runtime->id, e->key.pid);
	}
	if (result < 0) {
		free(copy);
		return result;
	}
	pthread_mutex_lock(&r->lock);
	free(a->info);
	a->info = copy;
	a->info_size = size;
	a->state = RUNTIMES_READY;
	r->has_teller |= runtime->thread_names != NULL;
	pthread_mutex_unlock(&r->lock);
	RUNTIMES_COUNT(r, runtime, attached);
	return 0;
}

int runtimes_tell_again(struct runtimes *r, struct runtimes_entry *e)
{
	int result = 0;

	for (size_t i = 0; i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];

		if (a->state != RUNTIMES_READY ||
		    tell_info(r, a->probed->binary->runtime, e->key.pid, a->info, a->info_size) == 0)
			continue;
		set_state(r, a, RUNTIMES_PENDING);
		result = -EAGAIN;
	}
	if (!runtimes_has_ready(e, ABI_RUNTIME_NONE) || tell_head(r, e, NULL) == 0)
		return result;
	for (size_t i = 0; i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];

		if (a->state != RUNTIMES_READY)
			continue;
		set_state(r, a, RUNTIMES_PENDING);
		if (r->sink.forget)
			r->sink.forget(r->sink.self, a->probed->binary->runtime->id, e->key.pid);
	}
	return -EAGAIN;
}

/* Return: whether the ranges are others than before. */
static bool sync_one(struct runtimes *r, struct runtimes_entry *e, const struct runtime_target *target,
		     struct runtimes_attached *a, void *info)
{
	const struct runtime_binary *binary = a->probed->binary;
	struct abi_code_range ranges[ABI_CODE_RANGES] = { 0 };
	int count = binary->runtime->sync ? binary->runtime->sync(binary, target, info, ranges) : -ENOTSUP;

	e->hides_code |= count == -EAGAIN;
	if (count < 0)
		return false;
	must(count <= ABI_CODE_RANGES);
	if ((uint32_t)count == a->range_count && !memcmp(a->ranges, ranges, sizeof(ranges)))
		return false;
	pthread_mutex_lock(&r->lock);
	a->range_count = (uint32_t)count;
	memcpy(a->ranges, ranges, sizeof(ranges));
	pthread_mutex_unlock(&r->lock);
	return true;
}

/* What could not be told is told the next time. */
static void renew(struct runtimes *r, const struct runtimes_entry *e, struct runtimes_attached *a, const uint8_t *info)
{
	if (tell_info(r, a->probed->binary->runtime, e->key.pid, info, a->info_size) < 0)
		return;
	pthread_mutex_lock(&r->lock);
	memcpy(a->info, info, a->info_size);
	pthread_mutex_unlock(&r->lock);
}

/* Is what was read that program's still? */
static bool may_tell(struct runtimes *r, const struct runtimes_entry *e, int dir)
{
	return check_same(r, dir, &e->key) == 0 && !runtimes_is_replaced(r, &e->key);
}

void runtimes_sync(struct runtimes *r, struct runtimes_entry *e, int dir)
{
	_Alignas(uint64_t) uint8_t info[RUNTIME_INFO_MAX];

	for (size_t i = 0; i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];
		struct runtime_target target = runtimes_target(r, e, a, dir);

		if (a->state != RUNTIMES_READY)
			continue;
		memcpy(info, a->info, a->info_size);
		e->head_is_old |= sync_one(r, e, &target, a, info);
		if (memcmp(info, a->info, a->info_size) != 0 && may_tell(r, e, dir))
			renew(r, e, a, info);
	}
	if (e->head_is_old && may_tell(r, e, dir))
		e->head_is_old = tell_head(r, e, NULL) < 0;
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
		.of_file = a->probed->learnt,
		.of_process = a->learnt,
	};
}

void runtimes_remark(struct runtimes *r, const struct runtimes_entry *e, const struct runtime *runtime,
		     const char *remark)
{
	if (!remark[0])
		return;
	pthread_mutex_lock(&r->lock);
	buf_addf(&r->notices, "process %u: %s %s\n", e->key.pid, runtime->title, remark);
	pthread_mutex_unlock(&r->lock);
}

void runtimes_learn(struct runtimes *r, const struct runtimes_entry *e, struct runtimes_attached *a,
		    struct runtime_target *target)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	char remark[RUNTIME_WHY_MAX] = "";

	if (a->learnt || !runtime->learn_process)
		return;
	target->remark = remark;
	if (runtime->learn_process(target, a->info, &a->learnt) == 0)
		target->of_process = a->learnt;
	target->remark = NULL;
	runtimes_remark(r, e, runtime, remark);
}

/* Once for each file. Return: 0, or as runtime.attach(). */
static int learn_file(const struct runtimes_probed *probed, struct runtime_target *target)
{
	struct runtimes_probed *p = (struct runtimes_probed *)(uintptr_t)probed; /* malloc'd, not const there */
	const struct runtime *runtime = p->binary->runtime;
	int r = !p->learnt && runtime->learn_file ? runtime->learn_file(p->binary, target, &p->learnt) : 0;

	target->of_file = p->learnt;
	return r;
}

/* The loader maps the whole of a library at first and its data over that afterwards, with the next call: a look between
 * the two sees other bytes of the file where the runtime's data will be. Only what lasts is believed, however late the
 * library was loaded, and the disk that it comes from may be slow. */
#define DOUBT_NS (3 * NSEC_PER_SEC)
#define DOUBT_AGAIN 10 /* so many times as long after that it is looked at again: it may have stood still meanwhile */

static uint64_t doubt_ns(const struct runtimes *r)
{
	return r->cfg.doubt_ns ? r->cfg.doubt_ns : DOUBT_NS;
}

/* What a look at such a moment says. A pointer may lead to what is not mapped yet, too. */
static bool may_pass(int result)
{
	return result == -ENOTSUP || result == -EBADMSG || result == -EFAULT;
}

/* Two doubts with another answer in between do not add up. */
static bool is_doubtful(struct runtimes *r, struct runtimes_attached *a, int result)
{
	uint64_t now = clock_monotonic_ns(r->clock);

	if (!may_pass(result)) {
		a->doubt_ns = 0;
		return false;
	}
	if (!a->doubt_ns)
		a->doubt_ns = now;
	return now - a->doubt_ns < doubt_ns(r);
}

/* @result: why */
static void refuse(struct runtimes *r, struct runtimes_attached *a, int result)
{
	a->doubt_ns = may_pass(result) ? clock_monotonic_ns(r->clock) : 0; /* it is pending: nobody else looks */
	set_state(r, a, RUNTIMES_REFUSED);
}

void runtimes_doubt_again(struct runtimes *r, struct runtimes_entry *e)
{
	for (size_t i = 0; i < e->attached_count; i++) {
		struct runtimes_attached *a = &e->attached[i];

		if (a->state == RUNTIMES_REFUSED && a->doubt_ns &&
		    clock_monotonic_ns(r->clock) - a->doubt_ns >= DOUBT_AGAIN * doubt_ns(r))
			set_state(r, a, RUNTIMES_PENDING);
	}
}

/* Return: 0: ready, or never will be; -EAGAIN: later; -ENOSPC: when another one has ended; -ESRCH: the process is gone.
 */
static int attach(struct runtimes *r, struct runtimes_entry *e, struct runtimes_attached *a, int dir)
{
	const struct runtime *runtime = a->probed->binary->runtime;
	struct runtime_target target = runtimes_target(r, e, a, dir);
	_Alignas(uint64_t) uint8_t info[RUNTIME_INFO_MAX] = { 0 };
	int result = learn_file(a->probed, &target), same;
	char why[RUNTIME_WHY_MAX] = "";

	target.why = why;
	if (result == 0)
		result = runtime->attach(a->probed->binary, &target, info);
	must(result <= RUNTIME_INFO_MAX);
	if (result > 0)
		ignore(sync_one(r, e, &target, a, info));
	same = check_same(r, dir, &e->key);
	if (same < 0)
		return same == -ESRCH ? -ESRCH : -EAGAIN;
	if (result > 0)
		result = runtimes_is_replaced(r, &e->key) ? -ESRCH : runtimes_tell(r, e, a, info, (uint32_t)result);
	if (is_doubtful(r, a, result))
		result = -EAGAIN;
	switch (result) {
	case 0:
		if (r->cfg.by_frame_pointers && runtime->in_line)
			runtimes_note_unwalked(r, a->probed);
		return 0;
	case -EAGAIN:
	case -EINTR:
	case -EIO:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ENOENT:
	case -ENOSPC:
		RUNTIMES_COUNT(r, runtime, retries);
		return result == -ENOSPC ? -ENOSPC : -EAGAIN;
	case -ESRCH:
		return -ESRCH;
	default:                                      /* -ENOTSUP, -EPERM, -EBADMSG, -ENOSYS */
		if (runtimes_is_replaced(r, &e->key)) /* what was read is the new program's */
			return -ESRCH;
		RUNTIMES_COUNT(r, runtime, failed);
		runtimes_note(r, a->probed,
			      result == -EPERM    ? "cannot be read in another user's process"
			      : result == -ENOSYS ? "is not read by this sampler"
			      : why[0]            ? why
						  : "is not laid out as its version should be");
		refuse(r, a, result);
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
