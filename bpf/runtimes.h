/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The one list of language runtimes on the kernel side: which of them a process has, in one look-up, and what is done
 * for each of them at a tick, a fork, an exec and an exit. A runtime has a shell of its own (python.h) with the map of
 * what its walker must know of a process.
 *
 * The host writes a runtime's own entry first, then the one in `runtimes`. */
#pragma once

#include "java.h"
#include "nodejs.h"
#include "perl.h"
#include "php.h"
#include "python.h"
#include "ruby.h"

#define RUNTIMES_MAX 8192 /* processes with a language runtime; what is more the host refuses and counts */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUNTIMES_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_runtimes);
} runtimes SEC(".maps");

/* The runtime of the tests: tests/bpf/fake_shell.h. */
#ifdef RUNTIMES_FAKE
#include RUNTIMES_FAKE
#endif

static __always_inline bool runtimes_has(__u32 behind, __u32 runtime)
{
	return behind & 1U << runtime;
}

/* Has @head code of @runtime? */
static __always_inline bool runtimes_in_line(const struct abi_runtimes *head, __u32 runtime)
{
	for (int i = 0; i < ABI_CODE_RANGES; i++)
		if (i < head->range_count && head->ranges[i].runtime == runtime)
			return true;
	return false;
}

/* Before the native walk: which runtimes the process has, and where the code of those is that stand in line. Where
 * their steps are not taken, the walks behind the native one know by it whether compiled code runs. */
static __always_inline void runtimes_begin(struct walk *w)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_runtimes *head = bpf_map_lookup_elem(&runtimes, &pid);

	w->behind = 0;
	w->range_count = 0;
	w->in_line = 0;
	if (!head || head->start_ns != sample->process_start_ns || head->exec_id != sample->exec_id)
		return;
	w->behind = head->behind;
	if (!head->range_count)
		return;
	w->in_line = w->mode != WALK_FP && !settings.copy_all;
	w->range_count = head->range_count;
	__builtin_memcpy(w->ranges, head->ranges, sizeof(w->ranges));
}

/* Behind the native walk: names of methods that it met, and the frames of those that keep a list of their own.
 * @trigger: what the names of a runtime's loops end in (UNWIND_STEP_OF): nothing at a tick, _switch where a thread
 * leaves its CPU. */
#define RUNTIMES_BEHIND(w, task, trigger)                          \
	do {                                                       \
		if (java_names_begin(w))                           \
			UNWIND_LOOP(java_names##trigger);          \
		if (runtimes_has((w)->behind, ABI_RUNTIME_PYTHON)) \
			BEHIND_WALK(w, task, python, trigger);     \
		if (runtimes_has((w)->behind, ABI_RUNTIME_RUBY))   \
			BEHIND_WALK(w, task, ruby, trigger);       \
		if (runtimes_has((w)->behind, ABI_RUNTIME_PHP))    \
			BEHIND_WALK(w, task, php, trigger);        \
		if (runtimes_has((w)->behind, ABI_RUNTIME_PERL))   \
			BEHIND_WALK(w, task, perl, trigger);       \
	} while (0)

/* The step of runtime w->unwinder. SWITCH: there is none, or nothing is known of the process. */
static __always_inline int runtimes_step(struct walk *w)
{
	switch (w->unwinder) {
	case ABI_RUNTIME_JAVA:
		return java_step(w);
	case ABI_RUNTIME_NODEJS:
		return nodejs_step(w);
	case ABI_RUNTIME_PHP:
		return php_compiled_step(w);
	case ABI_RUNTIME_RUBY:
		return ruby_compiled_step(w);
#ifdef RUNTIMES_FAKE
	case RUNTIMES_FAKE_ID:
		return runtimes_fake_step(w);
#endif
	default:
		return WALK_SWITCH;
	}
}

/* One frame whose code is a runtime's. Global, so verified once. */
__attribute__((noinline)) int unwind_runtime(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	int next;

	if (!w)
		return WALK_DONE;
	walk_begin_step(w);
	next = runtimes_step(w);
	if (next == WALK_SWITCH && w->info_of != w->unwinder)
		count_add(ABI_COUNTER_RUNTIME_NO_INFO, 1);
	next = walk_stepped(w, next);
	if (next == WALK_DONE && w->end == ABI_END_NO_PROGRESS)
		count_add(ABI_COUNTER_RUNTIME_STUCK, 1);
	return next;
}

/* A process is gone, or another program takes its place. */
static __always_inline void runtimes_forget(__u32 pid)
{
	struct abi_runtimes *head = bpf_map_lookup_elem(&runtimes, &pid);

	if (!head)
		return;
	if (runtimes_has(head->behind, ABI_RUNTIME_PYTHON))
		bpf_map_delete_elem(&pythons, &pid);
	if (runtimes_has(head->behind, ABI_RUNTIME_RUBY))
		bpf_map_delete_elem(&rubies, &pid);
	if (runtimes_has(head->behind, ABI_RUNTIME_PHP))
		bpf_map_delete_elem(&phps, &pid);
	if (runtimes_in_line(head, ABI_RUNTIME_JAVA))
		bpf_map_delete_elem(&javas, &pid);
	if (head->range_count)
		nodejs_forget(pid);
	if (runtimes_has(head->behind, ABI_RUNTIME_PERL))
		bpf_map_delete_elem(&perls, &pid);
#ifdef RUNTIMES_FAKE
	runtimes_fake_forget(pid);
#endif
	bpf_map_delete_elem(&runtimes, &pid);
}

/* A child runs in a copy of its parent's memory, or in the very same, until exec. */
static __always_inline void runtimes_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_runtimes *head = bpf_map_lookup_elem(&runtimes, &parent_pid), copy;

	if (!head || head->start_ns != parent->group_leader->start_boottime ||
	    head->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy = *head;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	if (runtimes_has(copy.behind, ABI_RUNTIME_PYTHON))
		python_share(parent, child);
	if (runtimes_has(copy.behind, ABI_RUNTIME_RUBY))
		ruby_share(parent, child);
	if (runtimes_has(copy.behind, ABI_RUNTIME_PHP))
		php_share(parent, child);
	if (runtimes_in_line(&copy, ABI_RUNTIME_JAVA))
		java_share(parent, child);
	if (copy.range_count)
		nodejs_share(parent, child);
	if (runtimes_has(copy.behind, ABI_RUNTIME_PERL))
		perl_share(parent, child);
#ifdef RUNTIMES_FAKE
	runtimes_fake_share(parent, child);
#endif
	bpf_map_update_elem(&runtimes, &pid, &copy, BPF_ANY);
}
