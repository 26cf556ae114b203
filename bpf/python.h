/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* CPython's frames behind the native ones, and the names of its functions: a code object's memory may be another's when
 * the host comes to read it, so what it is called is read where it is met first and sent before the sample.
 *
 * The includer has count_add(), ring_flags() and the map `ring`. */
#pragma once

#include "behind.h"
#include "names.h"

#include "abi/python.h"

#define PYTHONS_MAX 4096                  /* processes; what is more the host refuses and counts */
#define NAME_OF_MODULE NAME_FLAG          /* the file's name is part of the cookie */
#define MODULE_TEXT 0x3e656c75646f6d3cULL /* "<module>" */

struct { /* preallocated: a fork adds to it */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYTHONS_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct abi_python);
} pythons SEC(".maps");

static __always_inline void python_seen(struct walk *w);
#define walk_python_seen(w) python_seen(w)
/* A global function: the verifier looks at it once. */
__attribute__((noinline)) int python_fetch(__u32 trigger, __u32 piece, __u64 at);
#define walk_python_fetch(w, piece, at) python_fetch(walk_sample(w)->trigger, piece, at)
#include "walk/walk_python.h"

int python_fetch(__u32 trigger, __u32 piece, __u64 at)
{
	struct walk *w = unwind_state_of(trigger & 1);

	return w ? walk_python_read_piece(w, piece, at) : 1;
}

#define PYTHON_TEXTS (ABI_PYTHON_FILE_BYTES + ABI_PYTHON_NAME_BYTES + ABI_PYTHON_LINES_BYTES)
#define PYTHON_TEXT_MAX (1ULL << 20) /* bytes; a longer text is none */

struct python_record { /* lies in scratch */
	__u64 head[sizeof(struct abi_name) / 8];
	struct abi_python_name name;
	__u8 texts[PYTHON_TEXTS + 8]; /* the last ones are only written */
};

_Static_assert(sizeof(struct python_record) <= WALK_PYTHON_FREE_WORDS * 8, "it fits");
_Static_assert(ABI_TRIGGER_TICK == UNWIND_TICK && ABI_TRIGGER_SWITCH == UNWIND_SWITCH, "a sample knows its state");

_Static_assert(ABI_PYTHON_FILE_BYTES == ABI_PYTHON_LINES_BYTES && ABI_PYTHON_NAME_BYTES < ABI_PYTHON_FILE_BYTES,
	       "one bound for all texts");

enum python_part { PYTHON_FILE, PYTHON_NAME, PYTHON_LINES, PYTHON_PARTS };

struct python_text { /* lies in scratch */
	__u64 data, size;
	__u64 text; /* enum abi_python_text */
};

_Static_assert(sizeof(struct python_text) <= WALK_PYTHON_TEXT_WORDS * 8, "it fits");

static __always_inline struct python_text *python_text(struct walk *w)
{
	return (struct python_text *)&w->scratch[WALK_PYTHON_TEXT];
}

/* A str, as PEP 393 has it; state word: CPython 3.12, Include/cpython/unicodeobject.h. Return: 0, or 1: it is none. */
static __always_inline int python_find_str(const struct abi_python_layout *l, __u64 object, struct python_text *out)
{
	__u32 state, bit = l->string_kind_bit ? l->string_kind_bit & 31 : 2, kind;

	if (bpf_probe_read_user(&state, sizeof(state), (const void *)(object + l->string_state)))
		return 1;
	state >>= bit;
	kind = state & 7;
	if (!(state & 8) || !kind || kind == 3 || kind > 4) /* not compact: nothing that names code is so */
		return 1;
	if (state & 16) {
		out->data = object + l->string_ascii;
	} else {
		out->data = object + l->string_compact;
		out->text = ABI_PYTHON_TEXT_LATIN1 + (kind >> 1);
	}
	out->size *= kind;
	return 0;
}

_Static_assert(ABI_PYTHON_TEXT_UCS2 == ABI_PYTHON_TEXT_LATIN1 + 1 && ABI_PYTHON_TEXT_UCS4 == ABI_PYTHON_TEXT_LATIN1 + 2,
	       "kinds 1, 2 and 4");

/* One of those that make the cookie. */
static __always_inline __u64 python_object(struct walk *w, __u32 part)
{
	const struct abi_python_layout *l = &walk_python_info(w)->layout;
	__u32 at = l->code_filename;

	if (part == PYTHON_NAME)
		at = l->code_qualname != ABI_PYTHON_NONE ? l->code_qualname : l->code_name;
	else if (part == PYTHON_LINES)
		at = l->code_lines;
	return walk_python_code_word(w, at);
}

/* Where one of the texts of the code object at hand lies: python_text(). Nothing but zeros: there is none. A global
 * function: the verifier looks at it once. */
__attribute__((noinline)) int python_find_text(__u32 trigger, __u32 part)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_python_layout *l;
	const struct abi_python *info;
	struct python_text *out;
	__u64 object, length;

	if (!w)
		return 0;
	info = walk_python_info(w);
	l = &info->layout;
	out = python_text(w);
	object = python_object(w, part);
	length = part == PYTHON_LINES ? l->bytes_length : l->string_length;

	out->text = ABI_PYTHON_TEXT_BYTES;
	out->data = object + (part == PYTHON_LINES ? l->bytes_data : l->string_ascii);
	if (!bpf_probe_read_user(&out->size, sizeof(out->size), (const void *)(object + length)) &&
	    out->size <= PYTHON_TEXT_MAX &&
	    (part == PYTHON_LINES || info->flags & ABI_PYTHON_BYTE_STRINGS || !python_find_str(l, object, out)))
		return 0;
	out->text = ABI_PYTHON_TEXT_NONE;
	out->size = 0;
	return 0;
}

/* Copies the beginning to texts + @to, a multiple of 8; zeros up to the next one. Return: bytes copied. */
static __always_inline __u64 python_copy(struct python_record *r, __u64 to, const struct python_text *from, __u64 max)
{
	__u64 size = from->size < max ? from->size : max;

	unwind_bound(size, ABI_PYTHON_FILE_BYTES);
	unwind_bound(to, PYTHON_TEXTS - ABI_PYTHON_FILE_BYTES);
	if (!size)
		return 0;
	*(__u64 *)(r->texts + to + (size & ~7ULL)) = 0;
	return bpf_probe_read_user(r->texts + to, size, (const void *)from->data) ? 0 : size;
}

/* Adds one text to the record. A global function: the verifier looks at it once. */
__attribute__((noinline)) int python_take_part(__u32 trigger, __u32 part)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct python_record *r;
	struct python_text *text;
	struct abi_name *head;
	__u64 sent;

	if (!w)
		return 0;
	r = (struct python_record *)&w->scratch[WALK_PYTHON_FREE];
	head = (struct abi_name *)r->head;
	python_find_text(trigger, part);
	text = python_text(w);
	sent = python_copy(r, head->bytes_size - sizeof(r->name), text,
			   part == PYTHON_NAME ? ABI_PYTHON_NAME_BYTES : ABI_PYTHON_FILE_BYTES);
	walk_opaque(sent);
	head->bytes_size += (sent + 7) & ~7ULL;
	if (text->size && !sent)
		text->text = ABI_PYTHON_TEXT_NONE;
	if (part == PYTHON_FILE) {
		r->name.file_size = text->size;
		r->name.file_sent = sent;
		r->name.file_text = text->text;
	} else if (part == PYTHON_NAME) {
		r->name.name_size = text->size;
		r->name.name_sent = sent;
		r->name.name_text = text->text;
	} else {
		r->name.lines_at = text->data;
		r->name.lines_size = text->size;
		r->name.lines_sent = sent;
	}
	return 0;
}

/* A pointer that leads anywhere else names nothing. */
static __always_inline bool python_is_code(const struct walk *w, __u64 code)
{
	__u64 type;

	return !walk_python_info(w)->code_type ||
	       (!bpf_probe_read_user(&type, sizeof(type), (const void *)(code + ABI_PYTHON_TYPE)) &&
		type == walk_python_info(w)->code_type);
}

/* Sends the name of the code object that p->code, p->cookie and its words say. Return: 1 when it was sent. A
 * global function: the verifier looks at it once. */
__attribute__((noinline)) int python_send_name(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	const struct abi_python_layout *l;
	struct abi_sample *sample;
	struct python_record *r;
	struct walk_python *p;
	struct abi_name *head;
	__u64 size;

	if (!w)
		return 0;
	sample = walk_sample(w);
	l = &walk_python_info(w)->layout;
	p = walk_python_state(w);
	if (!python_is_code(w, p->code)) {
		p->cookie = ABI_PYTHON_NO_COOKIE;
		return 0;
	}
	r = (struct python_record *)&w->scratch[WALK_PYTHON_FREE];
	head = (struct abi_name *)r->head;
	__builtin_memset(r, 0, sizeof(r->head) + sizeof(r->name));
	if (bpf_probe_read_user(&r->name.first_line, sizeof(r->name.first_line),
				(const void *)(p->code + l->code_first_line)))
		r->name.first_line = 0;
	r->name.version_minor = l->version_minor;
	r->name.version_major = l->version_major;
	r->name.is_qualified = l->code_qualname != ABI_PYTHON_NONE;
	head->bytes_size = sizeof(r->name);
	for (__u32 part = 0; part < PYTHON_PARTS; part++)
		python_take_part(trigger, part);
	name_head(head, sample, p->code, p->cookie, ABI_RUNTIME_PYTHON);
	size = head->header.size;
	unwind_bound(size, sizeof(*r));
	return name_send(r, size);
}

/* Is the current code object that of a module, exec() or eval()? Global, so verified once. */
__attribute__((noinline)) int python_is_module(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct python_text *text;
	__u64 name;

	if (!w)
		return 0;
	python_find_text(trigger, PYTHON_NAME); /* qualified or not */
	text = python_text(w);
	return text->size == sizeof(name) && !bpf_probe_read_user(&name, sizeof(name), (const void *)text->data) &&
	       name == MODULE_TEXT;
}

/* Mixes the name of its file into p->cookie. Global, so verified once. */
__attribute__((noinline)) int python_mix_file(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct python_text *text;
	__u64 *tail, size, length;

	if (!w)
		return 0;
	tail = &w->scratch[WALK_PYTHON_SMALL];
	python_find_text(trigger, PYTHON_FILE);
	text = python_text(w);
	length = text->size;
	size = length < WALK_PYTHON_TAIL_BYTES ? length : WALK_PYTHON_TAIL_BYTES;
	__builtin_memset(tail, 0, WALK_PYTHON_TAIL_BYTES);
	unwind_bound(size, WALK_PYTHON_TAIL_BYTES);
	if (size && bpf_probe_read_user(tail, size, (const void *)(text->data + length - size)))
		length = 0;
	walk_python_state(w)->cookie = walk_python_file_cookie(walk_python_state(w)->cookie, length, tail);
	return 0;
}

static __always_inline __u64 python_name_key(struct walk *w)
{
	struct walk_python *p = walk_python_state(w);

	return walk_python_mix(p->process ^ p->code, p->cookie) & ~NAME_FLAG;
}

/* What walk_python_seen() does: sends what is new. A module is known by its cookie to be one, and then by its file.
 * Global, so verified once. */
__attribute__((noinline)) int python_meet(__u32 trigger)
{
	struct walk *w = unwind_state_of(trigger & 1);
	struct names *names = names_of_cpu();
	struct name_set set;
	__u64 found;

	if (!w || !names)
		return 0;
	found = names_look(names, python_name_key(w), &set);
	if (!found && walk_python_needs_file(&walk_python_info(w)->layout) && python_is_module(trigger)) {
		found = NAME_OF_MODULE;
		names_remember(&set, NAME_OF_MODULE);
	}
	if (found & NAME_OF_MODULE) {
		python_mix_file(trigger);
		found = names_look(names, python_name_key(w), &set);
	}
	if (!found && python_send_name(trigger))
		names_remember(&set, 0);
	return 0;
}

/* Mostly it is known. */
static __always_inline void python_seen(struct walk *w)
{
	struct names *names = names_of_cpu();
	struct name_set set;
	__u64 found;

	if (!names)
		return;
	found = names_look(names, python_name_key(w), &set);
	if (!found || found & NAME_OF_MODULE)
		python_meet(walk_sample(w)->trigger);
}

UNWIND_STEP_OF(UNWIND_TICK, python, walk_python_step)
UNWIND_STEP_OF(UNWIND_SWITCH, python_switch, walk_python_step)

/* Return: whether there are frames of CPython to be walked behind the native ones. */
static __always_inline bool python_begin(struct walk *w, struct task_struct *task)
{
	struct abi_sample *sample = walk_sample(w);
	__u32 pid = sample->pid;
	struct abi_python *info = bpf_map_lookup_elem(&pythons, &pid);
	__u64 process;

	if (!info || info->start_ns != sample->process_start_ns || info->exec_id != sample->exec_id)
		return false;
	behind_begin(w, task);
	process = walk_python_mix(info->start_ns, names_process(pid, info->exec_id));
	walk_python_start(w, info, process);
	return true;
}

/* Up to 3.10 each Python frame has two or three native ones, most of which are folded away. Where the record is too
 * small for both lists, the native one is cut in any case: it gives way, and the Python frames are walked anew. Return:
 * whether they are. */
static __always_inline bool python_again(struct walk *w)
{
	return w->end == ABI_END_FRAME_LIMIT && walk_python_make_room(w);
}

/* A child runs in a copy of its parent's memory, or in the very same, until exec. */
static __always_inline void python_share(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = parent->tgid, pid = child->tgid;
	struct abi_python *info = bpf_map_lookup_elem(&pythons, &parent_pid), copy;

	if (!info || info->start_ns != parent->group_leader->start_boottime ||
	    info->exec_id != (__u32)parent->group_leader->self_exec_id)
		return;
	copy = *info;
	copy.start_ns = child->start_boottime;
	copy.exec_id = (__u32)child->self_exec_id;
	bpf_map_update_elem(&pythons, &pid, &copy, BPF_ANY);
}
