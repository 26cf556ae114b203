/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The kernel side's shell around walk_fake.h. Only the object that the tests load has it (RUNTIMES_FAKE): a runtime
 * that no user has would cost every tick's verifier and every build a map. Shows what a shell of a runtime in line
 * needs. */
#pragma once

#include "tests/walk/walk_fake.h"

#define RUNTIMES_FAKE_ID FAKE_IN_LINE

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32); /* pid */
	__type(value, struct abi_fake);
} fakes SEC(".maps");

/* Once in a walk. Return: whether the process is known; then w->info has it. */
static __always_inline bool runtimes_fake_info(struct walk *w)
{
	const struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_fake *info;

	if (w->info_of == FAKE_IN_LINE)
		return true;
	info = bpf_map_lookup_elem(&fakes, &pid);
	if (!info || info->start_ns != sample->process_start_ns || info->exec_id != sample->exec_id)
		return false;
	*(struct abi_fake *)w->info = *info;
	w->info_of = FAKE_IN_LINE;
	return true;
}

static __always_inline int runtimes_fake_step(struct walk *w)
{
	return runtimes_fake_info(w) ? (int)walk_fake_step(w, (const struct abi_fake *)w->info) : (int)WALK_SWITCH;
}

static __always_inline void runtimes_fake_forget(__u32 pid)
{
	bpf_map_delete_elem(&fakes, &pid);
}

static __always_inline void runtimes_fake_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_fake *info = bpf_map_lookup_elem(&fakes, &parent_pid), copy;

	if (!info)
		return;
	copy = *info;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	bpf_map_update_elem(&fakes, &pid, &copy, BPF_ANY);
}
