/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Off-CPU: at a switch the thread that leaves to wait is still current and its memory mapped, so its stack is walked
 * there, and the length of the wait is known when it comes back. Stacks are known by a number: the frames travel once,
 * then every wait is one small record. Threads that were pushed aside (runnable) do not wait for anything and are left
 * out.
 *
 * A switch costs microseconds here and a machine can make 100,000 of them a second, so each CPU walks at most
 * WAITS_PER_PERIOD stacks in PERIOD_NS; what is left out is counted.
 *
 * Included by sampler.bpf.c, whose helpers it uses. */
#pragma once

#define SENT_AGAIN_NS 10000000000ULL
#define PERIOD_NS 100000000ULL
#define WAITS_PER_PERIOD 200 /* at 10 us each 2 % of a CPU */
#define WAIT_TURNS 32

struct { /* thread -> its wait */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the host sets it */
	__type(key, __u32);
	__type(value, struct abi_waiting);
} waiting SEC(".maps");

struct { /* stack id -> when the host was told */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* the host sets it */
	__type(key, __u64);
	__type(value, __u64);
} sent SEC(".maps");

struct wait_period {
	__u64 start_ns;
	__u32 count, reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_period);
} wait_periods SEC(".maps");

UNWIND_NATIVE_OF(UNWIND_SWITCH, native_switch)

/* One word after another by multiplication and xor-shift: W. Stafford's variant 13 of the finalizer of MurmurHash3. */
static __always_inline __u64 wait_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash ^= hash >> 30;
	hash *= 0xbf58476d1ce4e5b9ULL;
	hash ^= hash >> 27;
	hash *= 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/* Mixes WAIT_TURNS frames from w->state[0][1] on into w->state[0][0]. Return: whether there are more. */
__attribute__((noinline)) int wait_hash_turns(void)
{
	struct walk *w = unwind_state_of(UNWIND_SWITCH);
	__u64 hash, at, end;

	if (!w)
		return 0;
	hash = w->state[0][0];
	at = w->state[0][1];
	end = (__u64)w->count + w->runtime_count;
	for (int i = 0; i < WAIT_TURNS; i++, at++) {
		const struct abi_frame *frame;

		walk_opaque(at);
		if (at >= end || at >= ABI_FRAMES_MAX)
			break;
		frame = &w->frames[at];
		hash = wait_mix(wait_mix(hash, frame->a), frame->b << 8 | frame->kind);
		if (frame->kind == ABI_FRAME_RUNTIME) /* the line */
			hash = wait_mix(hash, frame->extra);
	}
	w->state[0][0] = hash;
	w->state[0][1] = at;
	return at < end;
}

static __always_inline __u64 wait_stack_id(struct walk *w)
{
	const struct abi_sample *sample = walk_sample(w);

	w->state[0][0] = wait_mix(sample->process_start_ns, (__u64)sample->exec_id << 32 | sample->tid);
	w->state[0][1] = 0;
	for (int i = 0; i < ABI_FRAMES_MAX / WAIT_TURNS; i++)
		if (!wait_hash_turns())
			break;
	return w->state[0][0] | 1; /* never 0 */
}

static __always_inline bool wait_within_budget(__u64 now_ns)
{
	__u32 zero = 0;
	struct wait_period *p = bpf_map_lookup_elem(&wait_periods, &zero);

	if (!p)
		return false;
	if (now_ns - p->start_ns > PERIOD_NS) {
		p->start_ns = now_ns;
		p->count = 0;
	}
	if (p->count >= WAITS_PER_PERIOD) {
		count_add(ABI_COUNTER_WAITS_SKIPPED, 1);
		return false;
	}
	p->count++;
	return true;
}

/* What lies on the stack while the walk runs counts for its limit of 512 bytes, which kernels up to 6.12 have for all
 * calls in a row: what has structs of its own is no part of task_switch(). */

/* Sends the stack unless the host has had it lately. What the host has to finish it has no number yet: then it gets one
 * of its own. Return: whether the host has it; a wait without its stack is lost, and counted as that. */
static __noinline bool wait_send_stack(struct walk *w, bool raw)
{
	struct abi_sample *sample = walk_sample(w);
	__u64 id = sample->stack_id, now = sample->header.time_ns, *told;

	if (raw)
		return send_raw_unknown(w, w->end != ABI_END_NO_TABLE && w->end != ABI_END_UNSUPPORTED);
	told = bpf_map_lookup_elem(&sent, &id);
	if (told && now - *told < SENT_AGAIN_NS)
		return true;
	if (!send_sample(w, 0))
		return false;
	bpf_map_update_elem(&sent, &id, &now, BPF_ANY);
	return true;
}

/* Return: whether the user stack, if there is one, was walked to an end. */
static __always_inline bool wait_walk(struct walk *w, void *ctx, struct task_struct *task)
{
	struct abi_sample *sample = walk_sample(w);

	sample->flags |= ABI_SAMPLE_IN_KERNEL;
	take_kernel_stack(w, ctx);
	w->end = ABI_END_COMPLETE;
	if (settings.no_user || !has_user_stack(task) || regs_from_kernel(w, task, BPF_CORE_READ(task, flags)))
		return true;
	w->space = find_space(sample);
	runtimes_begin(w);
	w->recent = 0; /* a tick can come in between */
	UNWIND_LOOP(native_switch);
	raw_rewind(w);
	RUNTIMES_BEHIND(w, task, _switch);
	return !raw_wanted(w);
}

/* The wait of @sample's thread begins. */
static __noinline int wait_note(const struct abi_sample *sample)
{
	struct abi_waiting entry = {};
	__u32 tid = sample->tid;

	entry.since_ns = sample->header.time_ns;
	entry.stack_id = sample->stack_id;
	entry.process_start_ns = sample->process_start_ns;
	entry.pid = sample->pid;
	if (bpf_map_update_elem(&waiting, &tid, &entry, BPF_ANY))
		count_add(ABI_COUNTER_WAITS_LOST, 1);
	return 0;
}

static __always_inline void wait_begin(void *ctx, struct task_struct *task)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct abi_sample *sample;
	__u32 tid = (__u32)pid_tgid;
	struct walk *w;
	bool whole;

	if (!tid || task->flags & (PF_KTHREAD | PF_EXITING) || !filter_passes(pid_tgid))
		return;
	if (settings.wait_share != ~0U && bpf_get_prandom_u32() > settings.wait_share)
		return;
	if (!wait_within_budget(now))
		return;
	w = unwind_state_of(UNWIND_SWITCH);
	if (!w)
		return;
	sample = sample_begin(w, task, pid_tgid, now, ABI_TRIGGER_SWITCH);
	whole = wait_walk(w, ctx, task);
	sample->stack_id = whole ? wait_stack_id(w) : ((__u64)bpf_get_prandom_u32() << 32 | tid) ^ now;
	if (wait_send_stack(w, !whole))
		wait_note(sample);
}

static __noinline int wait_end(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct abi_waiting *entry = bpf_map_lookup_elem(&waiting, &tid);
	struct abi_wait wait = {
		.header = { .type = ABI_RECORD_WAIT,
			    .version = ABI_VERSION,
			    .size = sizeof(wait),
			    .time_ns = bpf_ktime_get_ns() },
		.pid = task->tgid,
		.tid = tid,
	};

	if (!entry)
		return 0;
	wait.process_start_ns = entry->process_start_ns;
	wait.stack_id = entry->stack_id;
	wait.wait_ns = wait.header.time_ns - entry->since_ns;
	bpf_map_delete_elem(&waiting, &tid);
	if (wait.wait_ns < settings.wait_min_ns)
		return 0;
	if (bpf_ringbuf_output(&ring, &wait, sizeof(wait), ring_flags(false)))
		count_add(ABI_COUNTER_WAITS_LOST, 1);
	else
		count_add(ABI_COUNTER_WAITS, 1);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switch, bool preempt, struct task_struct *from, struct task_struct *to)
{
	struct task_struct___5_13 *old = (void *)from;
	long state;

	if (!active)
		return 0;
	wait_end(to);
	if (preempt)
		return 0;
	state = bpf_core_field_exists(old->state) ? (long)BPF_CORE_READ(old, state)
						  : (long)BPF_CORE_READ(from, __state);
	if (state) /* else it only made room for another */
		wait_begin(ctx, from);
	return 0;
}
