/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ruby's frames behind the native ones, and the names of its iseqs: their memory may be another's when the host comes
 * to read it, so what one is called is read where it is met first and sent before the sample. Names of C functions
 * stay: the host reads those.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "behind.h"
#include "names.h"

#include "abi/ruby.h"

#define RUBIES_MAX 4096 /* processes; what is more the host refuses and counts */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RUBIES_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_ruby);
} rubies SEC(".maps");

static __always_inline void ruby_seen(struct walk *w);
#define walk_ruby_seen(w) ruby_seen(w)
/* A global function: the verifier looks at it once. */
__attribute__((noinline)) int ruby_level(__u32 trigger);
#define walk_ruby_level(w) ruby_level(walk_sample(w)->trigger)
__attribute__((noinline)) int ruby_pushes(__u32 trigger);
#define walk_ruby_pushes(w) ruby_pushes(walk_sample(w)->trigger)
__attribute__((noinline)) int ruby_candidate(__u32 trigger);
#define walk_ruby_candidate(w, info) ruby_candidate(walk_sample(w)->trigger)
#include "walk/walk_ruby.h"

int ruby_level(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_ruby_look_at_level(w) : 1;
}

int ruby_pushes(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_ruby_look_at_push(w) : 0;
}

static __always_inline const struct abi_ruby *ruby_info(const struct walk *w)
{
	const struct abi_sample *sample = (const struct abi_sample *)w->head;
	__u32 pid = sample->pid;
	const struct abi_ruby *info = bpf_map_lookup_elem(&rubies, &pid);

	return info && info->start_ns == sample->process_start_ns && info->exec_id == sample->exec_id ? info : NULL;
}

int ruby_candidate(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_ruby *info = w ? ruby_info(w) : NULL;

	return info ? (int)walk_ruby_look_at(w, info) : (int)WALK_RUBY_OTHER;
}

#define RUBY_TEXTS \
	(ABI_RUBY_FILE_BYTES + ABI_RUBY_NAME_BYTES + ABI_RUBY_CLASS_BYTES + ABI_RUBY_INDEX_BYTES + ABI_RUBY_LINES_BYTES)
#define RUBY_TEXT_MAX (1ULL << 20) /* bytes; a longer text is none */
#define RUBY_TYPE_MASK 0x1f
#define RUBY_TYPE_STRING 0x05
#define RUBY_TYPE_ARRAY 0x07
#define RUBY_TYPE_CLASS 0x02
#define RUBY_TYPE_MODULE 0x03
#define RUBY_USER1 (1U << 13) /* String: its bytes are elsewhere; Array: its elements are here */
#define RUBY_INDEX_SMALL 54   /* words of code that the head of the index is enough for: 8 bytes for nine of them */
#define RUBY_INDEX_BLOCK 512  /* words more, for each block of 80 bytes */

struct ruby_record { /* lies in scratch */
	__u64 head[sizeof(struct abi_name) / 8];
	struct abi_ruby_name name;
	__u8 texts[RUBY_TEXTS + 8]; /* the last ones are only written */
};

_Static_assert(sizeof(struct ruby_record) <= WALK_RUBY_FREE_WORDS * 8, "it fits");
_Static_assert(ABI_RUBY_FILE_BYTES >= ABI_RUBY_NAME_BYTES && ABI_RUBY_FILE_BYTES >= ABI_RUBY_INDEX_BYTES &&
		       ABI_RUBY_FILE_BYTES >= ABI_RUBY_LINES_BYTES && ABI_RUBY_FILE_BYTES >= ABI_RUBY_CLASS_BYTES,
	       "one bound for all");
_Static_assert(ABI_RUBY_NAME_BYTES == ABI_RUBY_INDEX_BYTES && ABI_RUBY_NAME_BYTES == ABI_RUBY_CLASS_BYTES,
	       "one for three");

enum ruby_part { RUBY_FILE, RUBY_NAME, RUBY_CLASS, RUBY_INDEX, RUBY_LINES, RUBY_PARTS };

struct ruby_text {
	__u64 data, size;
};

/* The String of a path: the real one of an Array of two, where there is one. Return: 0: unreadable. */
static __always_inline __u64 ruby_path(__u64 value)
{
	__u64 words[5], pair[2], flags;

	if (bpf_probe_read_user(words, sizeof(words), (const void *)value))
		return 0;
	if ((words[0] & RUBY_TYPE_MASK) != RUBY_TYPE_ARRAY)
		return value;
	if (bpf_probe_read_user(pair, sizeof(pair), (const void *)(words[0] & RUBY_USER1 ? value + 16 : words[4])))
		return 0;
	if (!(pair[1] & 7) && !bpf_probe_read_user(&flags, sizeof(flags), (const void *)pair[1]) &&
	    (flags & RUBY_TYPE_MASK) == RUBY_TYPE_STRING)
		return pair[1];
	return pair[0];
}

/* include/ruby/internal/core/rstring.h: up to 3.1 short ones have their length in bits 14 to 18. */
static __always_inline void ruby_string(const struct abi_ruby_layout *l, __u64 value, struct ruby_text *out)
{
	__u64 words[4];

	out->size = 0;
	out->data = 0;
	if (bpf_probe_read_user(words, sizeof(words), (const void *)value) ||
	    (words[0] & RUBY_TYPE_MASK) != RUBY_TYPE_STRING)
		return;
	out->size = words[2];
	out->data = words[3];
	if (!(words[0] & RUBY_USER1)) {
		if (l->flags & ABI_RUBY_LONG_STRINGS) {
			out->data = value + 24;
		} else {
			out->size = words[0] >> 14 & 31;
			out->data = value + 16;
		}
	}
	if (out->size > RUBY_TEXT_MAX)
		out->size = 0;
}

/* The name of the class that the method at hand belongs to; of a singleton's the class or module that it is of. */
static __always_inline void ruby_class(struct walk *w, struct ruby_record *r, struct ruby_text *out)
{
	const struct abi_ruby_layout *l = &walk_ruby_info(w)->layout;
	__u64 at = w->scratch[WALK_RUBY_OWNER], flags = 0, value = 0;

	if (!at || bpf_probe_read_user(&flags, sizeof(flags), (const void *)at))
		return;
	if ((flags & RUBY_TYPE_MASK) == RUBY_TYPE_CLASS && flags >> (l->singleton & 63) & 1) {
		if (bpf_probe_read_user(&at, sizeof(at), (const void *)(at + l->class_object)) || (at & 7) ||
		    bpf_probe_read_user(&flags, sizeof(flags), (const void *)at))
			return;
		r->name.is_singleton = 1;
	}
	flags &= RUBY_TYPE_MASK;
	if ((flags == RUBY_TYPE_CLASS || flags == RUBY_TYPE_MODULE) &&
	    !bpf_probe_read_user(&value, sizeof(value), (const void *)(at + l->class_path)) && value && !(value & 7))
		ruby_string(l, value, out);
}

static __always_inline struct ruby_text *ruby_text(struct walk *w)
{
	return (struct ruby_text *)&w->scratch[WALK_RUBY_PART];
}

/* Where one part of the iseq at hand lies: ruby_text(). size 0: there is none. A global function: the verifier looks at
 * it once. */
__attribute__((noinline)) int ruby_find_part(__u32 trigger, __u32 part)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_ruby_layout *l;
	struct ruby_record *r;
	struct ruby_text *out;
	__u32 count = 0;
	__u64 body;

	if (!w)
		return 0;
	l = &walk_ruby_info(w)->layout;
	body = w->scratch[WALK_RUBY_IDENTITY + 1];
	r = (struct ruby_record *)&w->scratch[WALK_RUBY_FREE];
	out = ruby_text(w);
	out->size = 0;
	out->data = 0;
	if (part == RUBY_FILE) {
		ruby_string(l, ruby_path(w->scratch[WALK_RUBY_BODY + WALK_RUBY_BODY_PATH]), out);
	} else if (part == RUBY_NAME) {
		ruby_string(l, w->scratch[WALK_RUBY_BODY + WALK_RUBY_BODY_LABEL], out);
	} else if (part == RUBY_CLASS) {
		ruby_class(w, r, out);
	} else if (part == RUBY_INDEX) {
		if (l->body_lines_index == ABI_RUBY_NONE || r->name.code_size > RUBY_INDEX_SMALL + RUBY_INDEX_BLOCK)
			return 0;
		if (!bpf_probe_read_user(&out->data, sizeof(out->data), (const void *)(body + l->body_lines_index)))
			out->size = r->name.code_size > RUBY_INDEX_SMALL ? ABI_RUBY_INDEX_BYTES
									 : (r->name.code_size + 8) / 9 * 8;
	} else {
		if (bpf_probe_read_user(&out->data, sizeof(out->data), (const void *)(body + l->body_lines)) ||
		    bpf_probe_read_user(&count, sizeof(count), (const void *)(body + l->body_lines_count)) ||
		    count > 1U << 20)
			return 0;
		out->size = (__u64)count * l->line_bytes;
		r->name.lines_count = count;
		r->name.lines_at = out->data;
	}
	return 0;
}

/* Copies the beginning to texts + @to, a multiple of 8; zeros up to the next one. Return: bytes copied. */
static __always_inline __u64 ruby_copy(struct ruby_record *r, __u64 to, const struct ruby_text *from, __u64 max)
{
	__u64 size = from->size < max ? from->size : max;

	unwind_bound(size, ABI_RUBY_FILE_BYTES);
	unwind_bound(to, RUBY_TEXTS - ABI_RUBY_LINES_BYTES);
	if (!size)
		return 0;
	*(__u64 *)(r->texts + to + (size & ~7ULL)) = 0;
	return bpf_probe_read_user(r->texts + to, size, (const void *)from->data) ? 0 : size;
}

/* Adds one part to the record. A global function: the verifier looks at it once. */
__attribute__((noinline)) int ruby_take_part(__u32 trigger, __u32 part)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct ruby_text *text;
	struct ruby_record *r;
	struct abi_name *head;
	__u64 sent, max;

	if (!w)
		return 0;
	r = (struct ruby_record *)&w->scratch[WALK_RUBY_FREE];
	head = (struct abi_name *)r->head;
	ruby_find_part(trigger, part);
	text = ruby_text(w);
	max = part == RUBY_NAME || part == RUBY_CLASS || part == RUBY_INDEX ? ABI_RUBY_NAME_BYTES : ABI_RUBY_FILE_BYTES;
	sent = ruby_copy(r, head->bytes_size - sizeof(r->name), text, max);
	walk_opaque(sent);
	head->bytes_size += (sent + 7) & ~7ULL;
	if (part == RUBY_FILE) {
		r->name.file_size = text->size;
		r->name.file_sent = sent;
	} else if (part == RUBY_NAME) {
		r->name.name_size = text->size;
		r->name.name_sent = sent;
	} else if (part == RUBY_CLASS) {
		r->name.class_size = text->size;
		r->name.class_sent = sent;
	} else if (part == RUBY_INDEX) {
		r->name.index_sent = sent;
	} else {
		r->name.lines_sent = sent;
	}
	return 0;
}

/* Sends the name of the iseq at hand. Return: 1 when it was sent. A global function: the verifier looks at it once. */
__attribute__((noinline)) int ruby_send_name(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_ruby_layout *l;
	struct ruby_record *r;
	struct abi_name *head;
	__u64 size, line;

	if (!w)
		return 0;
	l = &walk_ruby_info(w)->layout;
	r = (struct ruby_record *)&w->scratch[WALK_RUBY_FREE];
	head = (struct abi_name *)r->head;
	__builtin_memset(r, 0, sizeof(r->head) + sizeof(r->name));
	line = w->scratch[WALK_RUBY_BODY + WALK_RUBY_BODY_FIRST_LINE];
	r->name.first_line = l->flags & ABI_RUBY_TAGGED_LINE ? (__s32)(line >> 1) : (__s32)line;
	r->name.code_size = (__u32)(w->scratch[WALK_RUBY_BODY + WALK_RUBY_BODY_SIZE] >> 32);
	r->name.line_bytes = l->line_bytes;
	r->name.line_at = l->line_at;
	r->name.flags = l->flags;
	r->name.version_minor = l->version_minor;
	r->name.version_major = l->version_major;
	head->bytes_size = sizeof(r->name);
	for (__u32 part = 0; part < RUBY_PARTS; part++)
		ruby_take_part(trigger, part);
	name_head(head, walk_sample(w), w->scratch[WALK_RUBY_IDENTITY], walk_ruby_state(w)->cookie, ABI_RUNTIME_RUBY);
	size = head->header.size;
	unwind_bound(size, sizeof(*r));
	return name_send(r, size);
}

/* Mostly it is known. */
static __always_inline void ruby_seen(struct walk *w)
{
	struct walk_ruby *p = walk_ruby_state(w);
	struct names *names = names_of_cpu();
	struct name_set set;
	__u64 key;

	if (!names)
		return;
	key = walk_ruby_mix(p->process ^ w->scratch[WALK_RUBY_IDENTITY], p->cookie) & ~NAME_FLAG;
	if (!names_look(names, key, &set) && ruby_send_name(walk_sample(w)->trigger))
		names_remember(&set, 0);
}

UNWIND_STEP_OF(UNWIND_TICK, ruby, walk_ruby_step)
UNWIND_STEP_OF(UNWIND_SWITCH, ruby_switch, walk_ruby_step)

/* The native walk met code of Ruby's compiler. */
static __always_inline int ruby_compiled_step(struct walk *w)
{
	const struct abi_ruby *info = ruby_info(w);

	if (!info)
		return WALK_SWITCH;
	w->info_of = ABI_RUNTIME_RUBY;
	return walk_ruby_compiled_step(w, info);
}

/* Return: whether there are frames of Ruby to be walked behind the native ones. */
static __always_inline bool ruby_begin(struct walk *w, struct task_struct *task)
{
	const struct abi_sample *sample = walk_sample(w);
	const struct abi_ruby *info = ruby_info(w);

	if (!info)
		return false;
	behind_begin(w, task);
	walk_ruby_start(w, info, walk_ruby_mix(info->start_ns, names_process(sample->pid, info->exec_id)));
	return true;
}

/* A Ruby frame mostly has two or three native ones, which are folded away. Where the record is too small for both
 * lists, the native one gives way. */
static __always_inline bool ruby_again(struct walk *w)
{
	return w->end == ABI_END_FRAME_LIMIT && walk_ruby_make_room(w);
}

/* A child runs in a copy of its parent's memory, or in the very same, until exec. */
static __always_inline void ruby_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_ruby *info = bpf_map_lookup_elem(&rubies, &parent_pid), copy;

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy = *info;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	bpf_map_update_elem(&rubies, &pid, &copy, BPF_ANY);
}
