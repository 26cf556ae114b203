/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* HotSpot's frames in the native walk: what the kernel side knows of each process, and the step; and names of methods
 * whose memory may be another's when the host comes to read it: where classes come and go, what an interpreted method
 * is called is read where it is met first and sent before the sample.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "names.h"
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
__attribute__((noinline)) int java_scan_word(__u32 trigger);
#define walk_java_scan_word(w) ((enum walk_next)java_scan_word(walk_sample(w)->trigger))
__attribute__((noinline)) int java_virtual(__u32 trigger);
#define walk_java_virtual(w) java_virtual(walk_sample(w)->trigger)
__attribute__((noinline)) int java_identity(__u32 trigger);
#define walk_java_identity(w) java_identity(walk_sample(w)->trigger)
#include "walk/walk_java.h"

int java_candidate(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? (int)walk_java_returns(w) : 0;
}

/* This one and java_virtual() are called on x86-64 alone. */
int java_scan_word(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

#ifdef WALK_X86_64
	return w ? (int)walk_java_scan_one(w) : WALK_DONE;
#else
	return w ? WALK_DONE : WALK_SWITCH;
#endif
}

int java_identity(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_java_identify(w) : 1;
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

/* ---- names ---- */

/* Places in scratch, in words, when the native walk is over. */
#define JAVA_NEXT 0   /* number of the frame whose name is looked at next */
#define JAVA_RECORD 8 /* below what walk_java_identify() uses */

struct java_record {
	__u64 head[sizeof(struct abi_name) / 8];
	struct abi_java_name name;
	__u8 texts[ABI_JAVA_TEXTS * ABI_JAVA_TEXT_BYTES + 8]; /* the last ones are only written */
};

_Static_assert(sizeof(struct java_record) <= (WALK_JAVA_CONST - JAVA_RECORD) * 8, "it fits");

/* Finds the Symbols of the frame's method. Return: 0, or 1: what lies there is not what was met in the walk. */
static __always_inline int java_find_symbols(struct walk *w, const struct abi_java *info, const struct abi_frame *frame)
{
	__u64 method = frame->a & ((1ULL << ABI_JAVA_COOKIE_BITS) - 1);

	w->scratch[WALK_JAVA_KEY] = method;
	if (bpf_probe_read_user(&w->scratch[WALK_JAVA_PLACE], 8, (const void *)(method + info->method_const)) ||
	    java_identity(walk_sample(w)->trigger))
		return 1;
	return w->scratch[WALK_JAVA_KEY] != frame->a || w->scratch[WALK_JAVA_PLACE] != frame->b;
}

/* Adds the text of a Symbol to the record. Return: 0, or 1: it cannot be read. A global function: the verifier looks at
 * it once. */
__attribute__((noinline)) int java_take_text(__u32 trigger, __u32 which)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_java *info;
	struct java_record *r;
	struct abi_name *head;
	__u64 symbol, to, size;
	__u16 length = 0;

	if (!w || which >= ABI_JAVA_TEXTS)
		return 1;
	info = walk_java_info(w);
	r = (struct java_record *)&w->scratch[JAVA_RECORD];
	head = (struct abi_name *)r->head;
	symbol = w->scratch[WALK_JAVA_SYMBOLS + which];
	if (bpf_probe_read_user(&length, sizeof(length), (const void *)(symbol + info->symbol_length)) || !length)
		return 1;
	size = length < ABI_JAVA_TEXT_BYTES ? length : ABI_JAVA_TEXT_BYTES;
	to = head->bytes_size - sizeof(r->name);
	unwind_bound(size, ABI_JAVA_TEXT_BYTES);
	unwind_bound(to, (ABI_JAVA_TEXTS - 1) * ABI_JAVA_TEXT_BYTES);
	*(__u64 *)(r->texts + to + (size & ~7ULL)) = 0;
	if (bpf_probe_read_user(r->texts + to, size, (const void *)(symbol + info->symbol_body)))
		return 1;
	r->name.sizes[which] = length;
	head->bytes_size += (size + 7) & ~7ULL;
	return 0;
}

/* Sends what the frame's method is called. Return: 1 when it was sent. A global function: as above. */
__attribute__((noinline)) int java_send_name(__u32 trigger, __u32 at)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct java_record *r;
	struct abi_frame *frame;
	struct abi_name *head;
	__u64 size;

	if (!w || at >= ABI_FRAMES_MAX)
		return 0;
	frame = &w->frames[at];
	if (java_find_symbols(w, walk_java_info(w), frame))
		return 0;
	r = (struct java_record *)&w->scratch[JAVA_RECORD];
	head = (struct abi_name *)r->head;
	__builtin_memset(r, 0, sizeof(r->head) + sizeof(r->name));
	head->bytes_size = sizeof(r->name);
	for (__u32 which = 0; which < ABI_JAVA_TEXTS; which++)
		if (java_take_text(trigger, which))
			return 0;
	name_head(head, walk_sample(w), frame->a, frame->b, ABI_RUNTIME_JAVA);
	size = head->header.size;
	unwind_bound(size, sizeof(*r));
	return name_send(r, size);
}

/* One frame of the native walk; mostly its name is known. */
static __always_inline int java_names_step(struct walk *w)
{
	__u64 at = w->scratch[JAVA_NEXT];
	const struct abi_sample *sample = walk_sample(w);
	struct names *names = names_of_cpu();
	struct abi_frame *frame;
	struct name_set set;
	__u64 key;

	if (!names || at >= w->count || at >= ABI_FRAMES_MAX)
		return WALK_DONE;
	w->scratch[JAVA_NEXT] = at + 1;
	frame = &w->frames[at];
	if (frame->kind != ABI_FRAME_RUNTIME || frame->runtime != ABI_RUNTIME_JAVA ||
	    frame->flags & (ABI_FRAME_COMPILED | ABI_FRAME_INTERNAL) || !(frame->b & ABI_JAVA_FULL))
		return WALK_MORE;
	key = java_identity_mix(names_process(sample->pid, sample->exec_id), frame->a);
	key = java_identity_mix(key, frame->b) & ~NAME_FLAG;
	if (!names_look(names, key, &set) && java_send_name(sample->trigger, (__u32)at))
		names_remember(&set, 0);
	return WALK_MORE;
}

UNWIND_STEP_OF(UNWIND_TICK, java_names, java_names_step)
UNWIND_STEP_OF(UNWIND_SWITCH, java_names_switch, java_names_step)

/* Return: whether the native walk met methods that may be gone soon. */
static __always_inline bool java_names_begin(struct walk *w)
{
	if (w->info_of != ABI_RUNTIME_JAVA || !(walk_java_info(w)->flags & ABI_JAVA_NAMED))
		return false;
	w->scratch[JAVA_NEXT] = walk_sample(w)->kernel_count;
	return true;
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
