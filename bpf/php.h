/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* PHP's frames behind the native ones, and the names of its functions: what they are called is read where they are met
 * first and sent before the sample, since the next request has other functions in the same memory.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "behind.h"
#include "names.h"

#include "abi/php.h"

#define PHPS_MAX 4096             /* processes; what is more the host refuses and counts */
#define PHP_TEXT_MAX (1ULL << 20) /* bytes; a longer text is none */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PHPS_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_php);
} phps SEC(".maps");

static __always_inline void php_seen(struct walk *w);
#define walk_php_seen(w) php_seen(w)
/* A global function: the verifier looks at it once. */
__attribute__((noinline)) __u64 php_text(__u32 trigger, __u64 at, __u32 is_file);
#define walk_php_text(w, at, is_file) php_text(walk_sample(w)->trigger, (at), (is_file))
#include "walk/walk_php.h"

__u64 php_text(__u32 trigger, __u64 at, __u32 is_file)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_php_hash_text(w, at, (int)is_file) : 0;
}

#define PHP_TEXTS (ABI_PHP_CLASS_BYTES + ABI_PHP_NAME_BYTES + ABI_PHP_FILE_BYTES)

struct php_record { /* lies in scratch */
	__u64 head[sizeof(struct abi_name) / 8];
	struct abi_php_name name;
	__u8 texts[PHP_TEXTS + 8]; /* the last ones are only written */
};

_Static_assert(sizeof(struct php_record) <= WALK_PHP_FREE_WORDS * 8, "it fits");
_Static_assert(ABI_PHP_CLASS_BYTES == ABI_PHP_NAME_BYTES && ABI_PHP_NAME_BYTES < ABI_PHP_FILE_BYTES,
	       "one bound for all texts");

enum php_part { PHP_CLASS, PHP_NAME, PHP_FILE, PHP_PARTS };

static __always_inline struct php_record *php_record(struct walk *w)
{
	return (struct php_record *)&w->scratch[WALK_PHP_FREE];
}

/* Where the string is; 0: there is none. */
static __always_inline __u64 php_string(struct walk *w, __u32 part)
{
	__u8 type = (__u8)walk_php_func_word(w, ABI_PHP_FUNC_TYPE);
	__u64 at;

	if (part == PHP_NAME)
		return walk_php_func_word(w, ABI_PHP_FUNC_NAME);
	if (part == PHP_FILE)
		return type == ABI_PHP_INTERNAL ? 0 : walk_php_func_word(w, walk_php_info(w)->layout.func_file);
	at = walk_php_func_word(w, ABI_PHP_FUNC_SCOPE);
	return at && !bpf_probe_read_user(&at, sizeof(at), (const void *)(at + ABI_PHP_CLASS_NAME)) ? at : 0;
}

/* Adds one text to the record. A global function: the verifier looks at it once. */
__attribute__((noinline)) int php_take_part(__u32 trigger, __u32 part)
{
	struct walk *w = unwind_state_of(trigger & 1);
	__u64 at, size = 0, hash = 0, sent, to;
	struct php_record *r;
	struct abi_name *head;

	if (!w)
		return 0;
	r = php_record(w);
	head = (struct abi_name *)r->head;
	at = php_string(w, part);
	if (!at || bpf_probe_read_user(&size, sizeof(size), (const void *)(at + ABI_PHP_STRING_LENGTH)) ||
	    bpf_probe_read_user(&hash, sizeof(hash), (const void *)(at + ABI_PHP_STRING_HASH)) || size > PHP_TEXT_MAX)
		size = 0;
	sent = part == PHP_FILE ? ABI_PHP_FILE_BYTES : ABI_PHP_NAME_BYTES;
	if (size < sent)
		sent = size;
	to = head->bytes_size - sizeof(r->name);
	unwind_bound(sent, ABI_PHP_FILE_BYTES);
	unwind_bound(to, PHP_TEXTS - ABI_PHP_FILE_BYTES);
	if (sent) {
		*(__u64 *)(r->texts + to + (sent & ~7ULL)) = 0;
		if (bpf_probe_read_user(r->texts + to, sent, (const void *)(at + ABI_PHP_STRING_BYTES)))
			sent = 0;
	}
	walk_opaque(sent);
	head->bytes_size += (sent + 7) & ~7ULL;
	if (part == PHP_CLASS) {
		r->name.class_size = size;
		r->name.class_sent = sent;
	} else if (part == PHP_NAME) {
		r->name.name_hash = hash;
		r->name.name_size = size;
		r->name.name_sent = sent;
	} else {
		r->name.file_hash = hash;
		r->name.file_size = size;
		r->name.file_sent = sent;
	}
	return 0;
}

/* Sends the name of the function that p->func, p->cookie and its words say. Return: 1 when it was sent. A global
 * function: the verifier looks at it once. */
__attribute__((noinline)) int php_send_name(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct php_record *r;
	struct abi_name *head;
	struct walk_php *p;
	__u64 size;

	if (!w)
		return 0;
	p = walk_php_state(w);
	r = php_record(w);
	head = (struct abi_name *)r->head;
	__builtin_memset(r, 0, sizeof(r->head) + sizeof(r->name));
	r->name.first_line = p->first_line;
	r->name.type = (__u8)walk_php_func_word(w, ABI_PHP_FUNC_TYPE);
	head->bytes_size = sizeof(r->name);
	for (__u32 part = 0; part < PHP_PARTS; part++)
		php_take_part(trigger, part);
	name_head(head, walk_sample(w), p->func, p->cookie, ABI_RUNTIME_PHP);
	size = head->header.size;
	unwind_bound(size, sizeof(*r));
	return name_send(r, size);
}

/* What walk_php_seen() does: sends what is new. Mostly it is known. */
static __always_inline void php_seen(struct walk *w)
{
	struct walk_php *p = walk_php_state(w);
	struct names *names = names_of_cpu();
	struct name_set set;

	if (!names || names_look(names, walk_php_mix(p->process ^ p->func, p->cookie) & ~NAME_FLAG, &set))
		return;
	if (php_send_name(walk_sample(w)->trigger))
		names_remember(&set, 0);
}

/* ---- what the process is busy with (--php-request) ---- */

#define PHP_REQUEST_WORDS (ABI_REQUEST_TEXT_SIZE / 8)

_Static_assert(sizeof(struct abi_request) <= WALK_PHP_FREE_WORDS * 8, "it fits");

static __always_inline struct abi_request *php_request(struct walk *w)
{
	return (struct abi_request *)&w->scratch[WALK_PHP_FREE];
}

/* Says in the sample what the texts in the record are called, and sends them where they are new. A global function: the
 * verifier looks at it once. */
__attribute__((noinline)) int php_send_request(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct names *names = names_of_cpu();
	struct abi_sample *sample;
	struct abi_request *r;
	struct name_set set;
	__u64 key;

	if (!w || !names)
		return 0;
	r = php_request(w);
	sample = walk_sample(w);
	walk_php_cut_query((__u64 *)r->path, PHP_REQUEST_WORDS);
	key = walk_php_request_key((const __u64 *)r->script, 2 * PHP_REQUEST_WORDS);
	r->header.type = ABI_RECORD_REQUEST;
	r->header.version = ABI_VERSION;
	r->header.size = sizeof(*r);
	r->header.time_ns = sample->header.time_ns;
	r->process_start_ns = sample->process_start_ns;
	r->key = key;
	r->pid = sample->pid;
	r->exec_id = sample->exec_id;
	sample->request_key = key;
	sample->flags |= ABI_SAMPLE_REQUEST;
	key = walk_php_mix(names_process(r->pid, r->exec_id) ^ r->process_start_ns, key) & ~NAME_FLAG;
	if (!names_look(names, key, &set) && name_send(r, sizeof(*r)))
		names_remember(&set, 0);
	return 0;
}

/* What the thread is busy with, if it is with anything. A global function, too. */
__attribute__((noinline)) int php_take_request(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_sample *sample;
	struct abi_request *r;
	__u64 from[ABI_PHP_REQUEST_BYTES / 8], at, uri;

	if (!w)
		return 0;
	sample = walk_sample(w);
	if (sample->trigger != ABI_TRIGGER_TICK)
		return 0;
	r = php_request(w);
	__builtin_memset(r, 0, sizeof(*r));
	at = walk_php_request_at(w, walk_php_info(w), sample->tid == sample->pid);
	if (!at || bpf_probe_read_user(from, sizeof(from), (const void *)at) || !from[ABI_PHP_REQUEST_SCRIPT / 8])
		return 0;
	if (bpf_probe_read_user_str(r->script, sizeof(r->script), (const void *)from[ABI_PHP_REQUEST_SCRIPT / 8]) <= 1)
		return 0; /* its page is not in memory */
	uri = walk_php_fcgi_uri(w, from[ABI_PHP_REQUEST_CONTEXT / 8]);
	if (!uri)
		uri = from[ABI_PHP_REQUEST_URI / 8];
	walk_opaque(uri);
	if (uri && bpf_probe_read_user_str(r->path, sizeof(r->path), (const void *)uri) < 0)
		return 0;
	return php_send_request(trigger);
}

UNWIND_STEP_OF(UNWIND_TICK, php, walk_php_step)
UNWIND_STEP_OF(UNWIND_SWITCH, php_switch, walk_php_step)

static __always_inline const struct abi_php *php_info(const struct walk *w)
{
	const struct abi_sample *sample = (const struct abi_sample *)w->head;
	__u32 pid = sample->pid;
	const struct abi_php *info = bpf_map_lookup_elem(&phps, &pid);

	return info && info->start_ns == sample->process_start_ns && info->exec_id == sample->exec_id ? info : NULL;
}

/* The native walk met code of PHP's compiler. */
static __always_inline int php_compiled_step(struct walk *w)
{
	const struct abi_php *info = php_info(w);

	if (!info)
		return WALK_SWITCH;
	w->info_of = ABI_RUNTIME_PHP;
	return walk_php_compiled_step(w, info);
}

/* Return: whether there are frames of PHP to be walked behind the native ones. */
static __always_inline bool php_begin(struct walk *w, struct task_struct *task)
{
	const struct abi_sample *sample = walk_sample(w);
	const struct abi_php *info = php_info(w);

	if (!info)
		return false;
	behind_begin(w, task);
	walk_php_start(w, info, walk_php_mix(info->start_ns, names_process(sample->pid, info->exec_id)));
	if (settings.php_request)
		php_take_request(sample->trigger);
	return true;
}

/* A frame of PHP mostly has none on the native stack: they do not crowd each other out. */
static __always_inline bool php_again(struct walk *w)
{
	(void)w;
	return false;
}

/* A child runs in a copy of its parent's memory, or in the very same, until exec. */
static __always_inline void php_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_php *info = bpf_map_lookup_elem(&phps, &parent_pid), copy;

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy = *info;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	bpf_map_update_elem(&phps, &pid, &copy, BPF_ANY);
}
