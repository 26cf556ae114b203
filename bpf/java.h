/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* HotSpot's frames in the native walk: what the kernel side knows of each process, and the step. */
#pragma once

#include "unwind.h"

#include "abi/java.h"

#define JAVAS_MAX 4096 /* processes; what is more the host refuses and counts */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, JAVAS_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_java);
} javas SEC(".maps");

/* Global functions: the verifier looks at them once, and kernel 5.10 accepts the loop around the first. */
__attribute__((noinline)) int java_candidate(__u32 trigger);
#define walk_java_candidate(w) java_candidate(walk_sample(w)->trigger)
__attribute__((noinline)) int java_virtual(__u32 trigger);
#define walk_java_virtual(w) java_virtual(walk_sample(w)->trigger)
__attribute__((noinline)) int java_identity(__u32 trigger);
#define walk_java_identity(w) java_identity(walk_sample(w)->trigger)
#include "walk/walk_java.h"

int java_candidate(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

#ifdef WALK_X86_64
	return w ? (int)walk_java_returns(w) : 0;
#else
	return w ? 0 : 1;
#endif
}

int java_identity(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

#ifdef WALK_X86_64
	return w ? walk_java_identify(w) : 1;
#else
	return w ? 1 : 0;
#endif
}

int java_virtual(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

#ifdef WALK_X86_64
	return w ? walk_java_virtual_step(w) : WALK_DONE;
#else
	return w ? WALK_DONE : WALK_SWITCH;
#endif
}

/* Once in a walk. Return: whether the process is known; then w->info has it. */
static __always_inline bool java_info(struct walk *w)
{
	const struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_java *info;

	if (w->info_of == ABI_RUNTIME_JAVA)
		return true;
	info = bpf_map_lookup_elem(&javas, &pid);
	if (!info || info->start_ns != sample->process_start_ns || info->exec_id != sample->exec_id)
		return false;
	__builtin_memcpy(w->info, info, sizeof(*info));
	w->info_of = ABI_RUNTIME_JAVA;
	return true;
}

static __always_inline int java_step(struct walk *w)
{
	return java_info(w) ? (int)walk_java_step(w) : (int)WALK_SWITCH;
}

static __always_inline void java_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_java *info = bpf_map_lookup_elem(&javas, &parent_pid);

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	if (bpf_map_update_elem(&javas, &pid, info, BPF_ANY))
		return;
	info = bpf_map_lookup_elem(&javas, &pid);
	if (!info)
		return;
	info->exec_id = (__u32)child->self_exec_id;
	info->start_ns = child->start_boottime;
}
