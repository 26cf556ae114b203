/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Perl's frames behind the native ones, and the names of its subs, which are read where they are met first and sent
 * before the sample: string evals make subs and free them again.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "behind.h"
#include "names.h"

#include "abi/perl.h"

#define PERLS_MAX 4096 /* processes; what is more the host refuses and counts */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PERLS_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_perl);
} perls SEC(".maps");

static __always_inline void perl_seen(struct walk *w);
#define walk_perl_seen(w) perl_seen(w)
/* A global function: the verifier looks at it once. */
__attribute__((noinline)) int perl_look(__u32 trigger);
#define walk_perl_look(w) perl_look(walk_sample(w)->trigger)
__attribute__((noinline)) __u64 perl_hek(__u32 trigger, __u64 at);
#define walk_perl_hek(w, at) perl_hek(walk_sample(w)->trigger, at)
__attribute__((noinline)) __u64 perl_names(__u32 trigger);
#define walk_perl_names(w) perl_names(walk_sample(w)->trigger)
__attribute__((noinline)) __u64 perl_file(__u32 trigger);
#define walk_perl_file(w) perl_file(walk_sample(w)->trigger)
static __always_inline __u64 perl_recall(__u32 kind, __u64 hash);
static __always_inline void perl_remember(__u32 kind, __u64 hash, __u64 value);
#define walk_perl_recall(w, kind, hash) perl_recall(kind, hash)
#define walk_perl_remember(w, kind, hash, value) perl_remember(kind, hash, value)
#include "walk/walk_perl.h"

__u64 perl_hek(__u32 trigger, __u64 at)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_perl_hash_hek(w, at) : 0;
}

__u64 perl_names(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_perl_read_names(w) : 0;
}

__u64 perl_file(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_perl_read_file(w) : 0;
}

#define PERL_KNOWN 1024 /* subs, and as many statements, of each CPU; a power of two */

struct perl_known {
	struct {
		__u64 hash, value;
	} all[2][PERL_KNOWN];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct perl_known);
} perls_known SEC(".maps");

static __always_inline __u64 perl_recall(__u32 kind, __u64 hash)
{
	__u32 zero = 0;
	struct perl_known *known = bpf_map_lookup_elem(&perls_known, &zero);
	__u64 at = hash & (PERL_KNOWN - 1);

	return known && known->all[kind & 1][at].hash == hash ? known->all[kind & 1][at].value : 0;
}

/* A tick may come in between: then nothing has that hash. */
static __always_inline void perl_remember(__u32 kind, __u64 hash, __u64 value)
{
	__u32 zero = 0;
	struct perl_known *known = bpf_map_lookup_elem(&perls_known, &zero);
	__u64 at = hash & (PERL_KNOWN - 1);

	if (!known)
		return;
	known->all[kind & 1][at].hash = 0;
	barrier();
	known->all[kind & 1][at].value = value;
	barrier();
	known->all[kind & 1][at].hash = hash;
}

int perl_look(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_perl_meet(w) : 0;
}

#define PERL_TEXTS (ABI_PERL_FILE_BYTES + ABI_PERL_PACKAGE_BYTES + ABI_PERL_NAME_BYTES)

struct perl_record { /* lies in scratch */
	__u64 head[sizeof(struct abi_name) / 8];
	struct abi_perl_name name;
	__u8 texts[PERL_TEXTS + 8]; /* the last ones are only written */
};

_Static_assert(sizeof(struct perl_record) <= (WALK_PERL_WORDS - WALK_PERL_FREE) * 8, "it fits");
_Static_assert(ABI_PERL_PACKAGE_BYTES == ABI_PERL_NAME_BYTES, "one bound for both");

/* Adds the text of the HEK at @at to the record; zeros up to the next multiple of 8. Return: bytes sent. Global, so
 * verified once. */
__attribute__((noinline)) int perl_take_hek(__u32 trigger, __u64 at)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct perl_record *r;
	struct abi_name *head;
	__u32 length = 0;
	__u64 size, to;

	if (!w || !at)
		return 0;
	r = (struct perl_record *)&w->scratch[WALK_PERL_FREE];
	head = (struct abi_name *)r->head;
	if (bpf_probe_read_user(&length, sizeof(length), (const void *)(at + ABI_PERL_HEK_LENGTH)) ||
	    length > WALK_PERL_NAME_MAX)
		return 0;
	size = length < ABI_PERL_NAME_BYTES ? length : ABI_PERL_NAME_BYTES;
	to = head->bytes_size - sizeof(r->name);
	unwind_bound(size, ABI_PERL_NAME_BYTES);
	unwind_bound(to, PERL_TEXTS - ABI_PERL_NAME_BYTES);
	if (!size)
		return 0;
	*(__u64 *)(r->texts + to + (size & ~7ULL)) = 0;
	if (bpf_probe_read_user(r->texts + to, size, (const void *)(at + ABI_PERL_HEK_TEXT)))
		return 0;
	head->bytes_size += (size + 7) & ~7ULL;
	return (int)size;
}

static __always_inline __u32 perl_hek_size(__u64 at)
{
	__u32 length = 0;

	if (!at || bpf_probe_read_user(&length, sizeof(length), (const void *)(at + ABI_PERL_HEK_LENGTH)))
		return 0;
	return length;
}

static __always_inline void perl_take_file(struct walk *w, struct perl_record *r)
{
	struct walk_perl_more *more = walk_perl_more(w);
	struct abi_name *head = (struct abi_name *)r->head;
	__u32 size = more->file_size;

	if (size >= ABI_PERL_FILE_BYTES)
		size = ABI_PERL_FILE_BYTES - 1;
	/* One call to the verifier, not a move for each word on each path. */
	if (bpf_probe_read_kernel(r->texts, ABI_PERL_FILE_BYTES, &w->scratch[WALK_PERL_FILE]))
		size = 0;
	r->name.file_sent = size;
	r->name.file_is_cut = more->file_is_cut;
	head->bytes_size += (size + 7) & ~7ULL;
}

/* Sends the name of the frame at hand. Return: 1 when it was sent. Global, so verified once. */
__attribute__((noinline)) int perl_send_name(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct walk_perl_more *more;
	struct perl_record *r;
	struct walk_perl *p;
	struct abi_name *head;
	__u64 size;

	if (!w)
		return 0;
	more = walk_perl_more(w);
	p = walk_perl_state(w);
	if (p->what == ABI_PERL_SUB && more->of != p->cv && walk_perl_resolve(w) != p->key)
		return 0;
	if (!more->has_text && !walk_perl_file(w))
		return 0;
	r = (struct perl_record *)&w->scratch[WALK_PERL_FREE];
	head = (struct abi_name *)r->head;
	__builtin_memset(r, 0, sizeof(r->head) + sizeof(r->name));
	r->name.what = p->what;
	head->bytes_size = sizeof(r->name);
	perl_take_file(w, r);
	if (p->what == ABI_PERL_SUB) {
		r->name.package_size = perl_hek_size(more->package);
		r->name.package_sent = perl_take_hek(trigger, more->package);
		r->name.name_size = perl_hek_size(more->name);
		r->name.name_sent = perl_take_hek(trigger, more->name);
	}
	name_head(head, walk_sample(w), p->key, p->cookie, ABI_RUNTIME_PERL);
	size = head->header.size;
	unwind_bound(size, sizeof(*r));
	return name_send(r, size);
}

/* Mostly it is known. */
static __always_inline void perl_seen(struct walk *w)
{
	struct walk_perl *p = walk_perl_state(w);
	struct names *names = names_of_cpu();
	struct name_set set;

	if (!names)
		return;
	if (!names_look(names, walk_perl_mix(p->process ^ p->key, p->cookie) & ~NAME_FLAG, &set) &&
	    perl_send_name(walk_sample(w)->trigger))
		names_remember(&set, 0);
}

UNWIND_STEP_OF(UNWIND_TICK, perl, walk_perl_step)
UNWIND_STEP_OF(UNWIND_SWITCH, perl_switch, walk_perl_step)

/* Return: whether there may be frames of Perl to be walked behind the native ones. */
static __always_inline bool perl_begin(struct walk *w, struct task_struct *task)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_perl *info = bpf_map_lookup_elem(&perls, &pid);

	if (!info || info->start_ns != sample->process_start_ns || info->exec_id != sample->exec_id)
		return false;
	behind_begin(w, task);
	walk_perl_start(w, info, walk_perl_mix(info->start_ns, names_process(pid, info->exec_id)));
	return true;
}

/* Perl's own native frames are few: a sub called from Perl has none. */
static __always_inline bool perl_again(struct walk *w)
{
	(void)w;
	return false;
}

/* A child runs in a copy of its parent's memory, or in the very same, until exec. */
static __always_inline void perl_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_perl *info = bpf_map_lookup_elem(&perls, &parent_pid), copy;

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy = *info;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	bpf_map_update_elem(&perls, &pid, &copy, BPF_ANY);
}
