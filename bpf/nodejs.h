/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The kernel side's shell around walk_nodejs.h: what its walker must know of each process. Names are read by the host:
 * nothing is sent but frames. */
#pragma once

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "unwind.h"
#include "walk/walk_nodejs.h"

#define NODEJS_MAX 2048 /* processes; what is more the host refuses and counts */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NODEJS_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_nodejs);
} nodejses SEC(".maps");

/* Once in a walk. Return: whether the process is known; then w->info has it. */
static __always_inline bool nodejs_info(struct walk *w)
{
	const struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_nodejs *info;

	if (w->info_of == ABI_RUNTIME_NODEJS)
		return true;
	info = bpf_map_lookup_elem(&nodejses, &pid);
	if (!info || info->start_ns != sample->process_start_ns || info->exec_id != sample->exec_id)
		return false;
	*(struct abi_nodejs *)w->info = *info;
	w->info_of = ABI_RUNTIME_NODEJS;
	return true;
}

static __always_inline int nodejs_step(struct walk *w)
{
	return nodejs_info(w) ? (int)walk_nodejs_step(w, (const struct abi_nodejs *)w->info) : (int)WALK_SWITCH;
}

static __always_inline void nodejs_forget(__u32 pid)
{
	bpf_map_delete_elem(&nodejses, &pid);
}

static __always_inline void nodejs_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_nodejs *info = bpf_map_lookup_elem(&nodejses, &parent_pid);

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	/* It is too long for the stack here. Until it says whose it is, it is nobody's. */
	bpf_map_update_elem(&nodejses, &pid, info, BPF_ANY);
	info = bpf_map_lookup_elem(&nodejses, &pid);
	if (!info)
		return;
	info->start_ns = child->start_boottime;
	info->exec_id = (__u32)child->self_exec_id;
}
