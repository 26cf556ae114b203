/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One sample, whatever it was taken for: what comes before the walk of the user stack, and how it is sent.
 *
 * The includer has the settings, count_add(), ring_flags() and the map `ring`; long.h, runtimes.h. */
#pragma once

#include <bpf/bpf_core_read.h>

#include "raw.h"
#include "seen.h"

static __always_inline void take_kernel_stack(struct walk *w, void *ctx)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 count;
	long size;

	if (settings.no_kernel)
		return;
	size = bpf_get_stack(ctx, w->scratch, ABI_KERNEL_FRAMES_MAX * 8, 0);
	if (size <= 0) {
		count_add(ABI_COUNTER_KERNEL_STACK_FAILED, 1);
		sample->flags |= ABI_SAMPLE_KERNEL_CUT;
		return;
	}
	count = (__u32)size / 8;
	if (count >= ABI_KERNEL_FRAMES_MAX)
		sample->flags |= ABI_SAMPLE_KERNEL_CUT;
	for (__u32 i = 0; i < ABI_KERNEL_FRAMES_MAX; i++) {
		struct abi_frame *frame = &w->frames[i];

		if (i >= count)
			break;
		frame->kind = ABI_FRAME_KERNEL;
		frame->flags = i ? ABI_FRAME_RETURN : 0;
		frame->runtime = 0;
		frame->extra = 0;
		frame->a = w->scratch[i];
		frame->b = 0;
		w->count = i + 1;
	}
	sample->kernel_count = (__u16)w->count;
}

/* Fills the head. */
static __always_inline void take_identity(struct abi_sample *sample, struct task_struct *task, __u64 pid_tgid)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 start = pid_tgid ? BPF_CORE_READ(leader, start_boottime) : 0; /* the idle tasks are one process */

	sample->process_start_ns = start;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	sample->pid = pid_tgid >> 32;
	sample->tid = (__u32)pid_tgid;
	sample->cpu = bpf_get_smp_processor_id();
	sample->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	bpf_probe_read_kernel_str(sample->comm, sizeof(sample->comm), leader->comm);
	bpf_get_current_comm(sample->thread_name, sizeof(sample->thread_name));
	if (seen_first(sample->pid, start, BPF_CORE_READ(task, flags) & PF_EXITING) ||
	    bpf_ktime_get_boot_ns() - start < settings.young_ns)
		sample->flags |= ABI_SAMPLE_YOUNG;
}

/* Empties @w and its sample, and says whose it is and when it was. */
static __always_inline struct abi_sample *sample_begin(struct walk *w, struct task_struct *task, __u64 pid_tgid,
						       __u64 now_ns, enum abi_trigger trigger)
{
	struct abi_sample *sample = walk_sample(w);

	__builtin_memset(sample, 0, sizeof(*sample));
	sample->header.time_ns = now_ns;
	sample->trigger = trigger;
	w->count = 0;
	w->pid = pid_tgid >> 32;
	w->mode = settings.mode;
	w->read_failures = 0;
	w->runtime_count = 0;
	w->runtime_end = ABI_RUNTIME_END_NONE;
	take_identity(sample, task, pid_tgid);
	return sample;
}

/* Return: number of the address space whose mappings are known, or 0. */
static __always_inline __u32 find_space(const struct abi_sample *sample)
{
	__u32 pid = sample->pid;
	struct abi_space *space;

	if (settings.mode == WALK_FP || settings.copy_all)
		return 0;
	space = bpf_map_lookup_elem(&spaces, &pid);
	if (!space || space->start_ns != sample->process_start_ns || space->exec_id != sample->exec_id)
		return 0;
	return space->space;
}

/* @tail: bytes behind the frames. Return: whether the host will have it; otherwise it is counted. */
static __always_inline bool send_sample(struct walk *w, __u32 tail)
{
	struct abi_sample *sample = walk_sample(w);
	__u64 size = sizeof(*sample) + ((__u64)w->count + w->runtime_count) * sizeof(struct abi_frame) + tail;
	bool is_tick;

	sample->frame_count = (__u16)w->count;
	sample->user_end = w->end;
	sample->runtime_count = (__u16)w->runtime_count;
	sample->runtime_end = w->runtime_end;
	sample->header.type = ABI_RECORD_SAMPLE;
	sample->header.version = ABI_VERSION;
	sample->header.size = (__u32)size;
	if (w->read_failures)
		count_add(ABI_COUNTER_USER_READ_FAILED, w->read_failures);
	unwind_bound(size, sizeof(*sample) + sizeof(w->frames));
	is_tick = sample->trigger == ABI_TRIGGER_TICK;
	if (tail && is_tick && long_send()) {
		count_add(ABI_COUNTER_SAMPLES, 1);
		return true;
	}
	if (bpf_ringbuf_output(&ring, w->head, size, ring_flags(sample->flags & (ABI_SAMPLE_YOUNG | ABI_SAMPLE_ASK)))) {
		count_add(is_tick ? ABI_COUNTER_LOST_RING_FULL : ABI_COUNTER_WAITS_LOST, 1);
		return false;
	}
	if (is_tick)
		count_add(ABI_COUNTER_SAMPLES, 1);
	return true;
}

/* Sends what the walk could not finish, with all that the host needs to do so. Return: as send_sample(). */
static __always_inline bool send_raw(struct walk *w, const struct abi_vma *vma, bool ask)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 tail = raw_take(w, vma);

	if (tail) {
		sample->flags |= ABI_SAMPLE_RAW;
		count_add(ABI_COUNTER_RAW, 1);
	}
	if (ask && seen_may_ask(sample->pid, sample->process_start_ns, sample->header.time_ns)) {
		sample->flags |= ABI_SAMPLE_ASK;
		count_add(ABI_COUNTER_MAPPINGS_ASKED, 1);
	}
	return send_sample(w, tail);
}

/* The same of a mapping that nothing is known about. A function of its own: what is empty here is no part of the stack
 * that the walk runs on. */
static __noinline int send_raw_unknown(struct walk *w, bool ask)
{
	struct abi_vma unknown = {};

	return send_raw(w, &unknown, ask);
}
