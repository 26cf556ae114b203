/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. Every place that is handed on was tried first: the thread states that
 * hang in the interpreter's list must lie where the key and the thread-local variable say they do.
 *
 * x86-64 glibc keeps the values of pthread keys at 784 behind the thread pointer, 16 bytes each, the value at 8; those
 * from 32 on in blocks whose addresses are at 1296. musl keeps the address of an array at 128 (1.2) or 136 (1.1).
 * Sources: glibc 2.36, nptl/descr.h (equal from 2.21 to 2.39); musl 1.2.3 and 1.1.24, src/internal/pthread_impl.h.
 *
 * Not done for aarch64: there pthread_self() is not the thread pointer; only the list of threads is left. */
#include <elf.h>

#include "base/clock.h"
#include "base/cur.h"
#include "runtime/python_int.h"

#define INTERPRETERS_MAX 8
#define THREADS_MAX 32
#define KEYS_MAX 1024 /* PTHREAD_KEYS_MAX */
#define GLIBC_KEYS 784
#define GLIBC_BLOCKS 1296
#define GLIBC_BLOCK_KEYS 32
#define TLS_MODULES_MAX 4096
#define TLS_REACH ((int64_t)16 << 20) /* from the thread pointer down to the end of the static block */
#define PIECE KIB(64)                 /* read at once when something is searched for */
#define SEARCH_MAX MIB(8)
/* Pointers followed, 0.4 us each; once per file, when all is well. A process that has none, or hides it, is given up; a
 * file never is, but what is beyond its limit waits. */
#define SEARCH_TRIES_MAX 32768
#define SEARCH_TRIES_PROCESS (1u << 18)
#define SEARCH_TRIES_FILE (1u << 20)
#define SEARCH_TRIES_PER_S (1u << 16) /* that the limit of a file moves on */
#define SEARCH_PIECE_TRIES 64         /* that reading a piece is worth */
#define FRAMES_MAX 64

struct thread {
	uint64_t state;   /* address of its PyThreadState */
	uint64_t pointer; /* its thread pointer, which pthread_self() is */
};

struct attach {
	const struct python_binary *binary;
	const struct runtime_target *target;
	struct abi_python *out;
	uint64_t runtime; /* addresses in the process */
	uint16_t thread_interp;
	uint16_t object_type; /* of PyObject */
	bool is_free_threaded;
	struct thread threads[THREADS_MAX];
	size_t thread_count;
};

static int read_bytes(const struct attach *a, void *dst, uint32_t size, uint64_t at)
{
	int r = a->target->read(a->target->self, dst, size, at);

	return r == -EFAULT ? -EAGAIN : r; /* not mapped yet, or no more: who starts up is asked again */
}

static int read_u64(const struct attach *a, uint64_t at, uint64_t *out)
{
	uint8_t bytes[8];
	int r = read_bytes(a, bytes, sizeof(bytes), at);
	struct cur c = cur_of(bytes, sizeof(bytes));

	if (r == 0)
		*out = cur_le64(&c);
	return r;
}

static int read_u32(const struct attach *a, uint64_t at, uint32_t *out)
{
	uint8_t bytes[4];
	int r = read_bytes(a, bytes, sizeof(bytes), at);
	struct cur c = cur_of(bytes, sizeof(bytes));

	if (r == 0)
		*out = cur_le32(&c);
	return r;
}

static uint64_t in_process(const struct attach *a, uint64_t address)
{
	return address + a->target->bias;
}

/* ---- without names ---- */

static bool is_pointer(uint64_t word)
{
	return word >= 4096 && word < UINT64_C(1) << 47 && !(word & 7);
}

/* Is there a thread in its list that points back, and whose thread pointer points to itself, as the ABI wants? */
static bool is_interpreter(const struct attach *a, uint64_t at)
{
	const struct abi_python_layout *l = &a->out->layout;
	uint64_t thread, owner, pointer, self;

	return read_u64(a, at + l->interp_threads, &thread) == 0 && is_pointer(thread) &&
	       read_u64(a, thread + a->thread_interp, &owner) == 0 && owner == at &&
	       read_u64(a, thread + l->thread_id, &pointer) == 0 && is_pointer(pointer) &&
	       read_u64(a, pointer, &self) == 0 && self == pointer;
}

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
	struct cur c = cur_of(bytes + at, 8);

	return cur_le64(&c);
}

/* From 3.7 on the head of the list is followed by the main interpreter, which mostly is the same. */
static uint64_t search_piece(const struct attach *a, const uint8_t *bytes, size_t size, size_t *tries)
{
	const struct python_binary *b = a->binary;

	for (size_t i = 0; i + 16 <= size; i += 8) {
		uint64_t word = word_at(bytes, i);

		if (!is_pointer(word) || word - in_process(a, b->data_start) < b->data_end - b->data_start ||
		    (b->version->runtime_interpreters && word_at(bytes, i + 8) != word))
			continue;
		if (++*tries > SEARCH_TRIES_MAX)
			return 0;
		if (is_interpreter(a, word))
			return i + 1;
	}
	return 0;
}

/* The variable with the head of the interpreters, among all that is writable. Return: 0; -EAGAIN: not there yet; *tries
 * says how much work it was. */
static int search_interpreters(const struct attach *a, uint64_t *out, size_t *tries)
{
	const struct python_binary *b = a->binary;
	const uint64_t size = MIN(b->data_end - b->data_start, (uint64_t)SEARCH_MAX);
	scoped(freep) uint8_t *bytes = malloc(PIECE);

	if (!bytes)
		return -ENOMEM;
	for (uint64_t at = 0; at + 16 <= size; at += PIECE - 16) {
		uint32_t piece = (uint32_t)MIN(size - at, (uint64_t)PIECE);
		uint64_t found;
		int r = read_bytes(a, bytes, piece, in_process(a, b->data_start) + at);

		*tries += SEARCH_PIECE_TRIES;
		if (r < 0)
			return r;
		found = search_piece(a, bytes, piece, tries);
		if (found) {
			*out = b->data_start + at + found - 1;
			return 0;
		}
	}
	return -EAGAIN;
}

/* Does the variable that another process had them in hold here, too? That one may have lied. */
static bool holds(const struct attach *a, uint64_t at)
{
	uint64_t head, next;

	return at && read_u64(a, in_process(a, at), &head) == 0 && is_pointer(head) &&
	       (!a->binary->version->runtime_interpreters ||
		(read_u64(a, in_process(a, at) + 8, &next) == 0 && next == head)) &&
	       is_interpreter(a, head);
}

/* Return: whether there is something left of what may be spent on all processes of the file. */
static bool file_may_cost(struct python_binary *b)
{
	uint64_t now = clock_monotonic_ns(&clock_system), spent = atomic_load_explicit(&b->tries, memory_order_relaxed);
	uint64_t past = MIN(now - atomic_load_explicit(&b->tried_ns, memory_order_relaxed), 1000 * NSEC_PER_SEC);

	if (!spent)
		past = 0; /* from the first search on */
	spent -= MIN(spent, past * SEARCH_TRIES_PER_S / NSEC_PER_SEC);
	atomic_store_explicit(&b->tried_ns, now, memory_order_relaxed);
	atomic_store_explicit(&b->tries, spent, memory_order_relaxed);
	return spent < SEARCH_TRIES_FILE;
}

/* The place is in the file: what one process has told is tried first in all others. */
static int find_stripped(struct attach *a)
{
	struct python_binary *b = (struct python_binary *)(uintptr_t)a->binary; /* malloc'd, not const there */
	uint64_t at = atomic_load_explicit(&b->found, memory_order_relaxed);
	size_t tries = 0;
	int r;

	if (!holds(a, at)) {
		if (a->target->effort && *a->target->effort > SEARCH_TRIES_PROCESS)
			return -ENOTSUP;
		if (!file_may_cost(b))
			return -EAGAIN;
		r = search_interpreters(a, &at, &tries);
		atomic_fetch_add_explicit(&b->tries, tries, memory_order_relaxed);
		if (a->target->effort)
			*a->target->effort += tries;
		if (r < 0)
			return r;
		atomic_store_explicit(&b->found, at, memory_order_relaxed);
	}
	a->out->interpreters = in_process(a, at);
	if (a->binary->version->runtime_interpreters)
		a->runtime = a->out->interpreters - a->binary->version->runtime_interpreters;
	return 0;
}

/* ---- layout ---- */

static int find_layout(struct attach *a)
{
	const struct python_version *v = a->binary->version;
	uint8_t bytes[PYTHON_OFFSETS_SIZE];
	struct python_offsets offsets;
	int r;

	a->out->layout = v->layout;
	a->thread_interp = v->thread_interp;
	if (!v->has_offsets && a->binary->is_stripped && !a->binary->runtime)
		return find_stripped(a);
	if (!v->has_offsets) {
		a->out->interpreters = v->runtime_interpreters ? a->runtime + v->runtime_interpreters
							       : in_process(a, a->binary->interp_head);
		return v->runtime_interpreters || a->binary->interp_head ? 0 : -ENOTSUP;
	}
	r = read_bytes(a, bytes, sizeof(bytes), a->runtime);
	if (r < 0)
		return r;
	r = python_offsets(bytes, sizeof(bytes), v, &offsets);
	if (r < 0)
		return -ENOTSUP;
	a->out->layout = offsets.layout;
	a->thread_interp = offsets.thread_interp;
	a->object_type = offsets.object_type;
	a->out->interpreters = a->runtime + offsets.interpreters;
	a->is_free_threaded = offsets.is_free_threaded;
	return 0;
}

/* ---- threads ---- */

static int read_thread(struct attach *a, uint64_t interp, uint64_t state, uint64_t *next)
{
	const struct abi_python_layout *l = &a->out->layout;
	uint64_t owner, pointer;
	int r = read_u64(a, state + a->thread_interp, &owner);

	if (r == 0)
		r = read_u64(a, state + l->thread_id, &pointer);
	if (r == 0)
		r = read_u64(a, state + l->thread_next, next);
	if (r < 0)
		return r;
	if (owner != interp)
		return -EBADMSG;
	if (pointer && a->thread_count < THREADS_MAX)
		a->threads[a->thread_count++] = (struct thread){ .state = state, .pointer = pointer };
	return 0;
}

static int read_interpreter(struct attach *a, uint64_t interp)
{
	uint64_t state, next = 0;
	int r = read_u64(a, interp + a->out->layout.interp_threads, &state);

	for (size_t turn = 0; r == 0 && state && turn < THREADS_MAX; turn++, state = next)
		r = read_thread(a, interp, state, &next);
	return r;
}

/* Return: 0; -EAGAIN while there is no thread. */
static int read_threads(struct attach *a)
{
	uint64_t interp, next;
	int r = read_u64(a, a->out->interpreters, &interp);

	for (size_t turn = 0; r == 0 && interp && turn < INTERPRETERS_MAX; turn++, interp = next) {
		r = read_interpreter(a, interp);
		if (r == 0)
			r = read_u64(a, interp + a->out->layout.interp_next, &next);
		if (r == 0 && !next) /* new ones go in front */
			a->out->main_interpreter = interp;
	}
	/* The lists change while they are read, and grow while the process starts up. */
	if (r == -EBADMSG || r == -EAGAIN || r == 0)
		return a->thread_count ? 0 : -EAGAIN;
	return r;
}

/* ---- the pthread key ---- */

struct key_form {
	int64_t at;
	uint32_t offset;
	bool is_indirect;
};

static int read_key(const struct attach *a, const struct key_form *form, const struct thread *t, uint64_t *out)
{
	uint64_t at = t->pointer + (uint64_t)form->at;
	int r = form->is_indirect ? read_u64(a, at, &at) : 0;

	if (r == 0 && form->is_indirect && !at)
		return -ENOENT;
	return r < 0 ? r : read_u64(a, at + form->offset, out);
}

/* Threads can end at any moment, and a subinterpreter's state lies in no key: one that agrees is enough. */
static bool is_right(const struct attach *a, const struct key_form *form)
{
	for (size_t i = 0; i < a->thread_count; i++) {
		uint64_t value;

		if (read_key(a, form, &a->threads[i], &value) == 0 && value == a->threads[i].state)
			return true;
	}
	return false;
}

static bool try_key(struct attach *a, uint32_t key)
{
	const struct key_form forms[] = {
		key < GLIBC_BLOCK_KEYS ? (struct key_form){ GLIBC_KEYS + (int64_t)key * 16, 8, false }
				       : (struct key_form){ GLIBC_BLOCKS + (int64_t)(key / GLIBC_BLOCK_KEYS) * 8,
							    key % GLIBC_BLOCK_KEYS * 16 + 8, true },
		{ 128, key * 8, true },
		{ 136, key * 8, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (!is_right(a, &forms[i]))
			continue;
		a->out->key_at = forms[i].at + (forms[i].is_indirect ? 0 : forms[i].offset);
		a->out->key_offset = forms[i].is_indirect ? forms[i].offset : 0;
		a->out->flags |= forms[i].is_indirect ? ABI_PYTHON_KEY_INDIRECT : 0;
		a->out->ways |= ABI_PYTHON_KEY;
		return true;
	}
	return false;
}

/* Py_tss_t: int created; int key. Return: 0 when there is no such key; -EAGAIN when it is not there yet. */
static int try_tss(struct attach *a, uint64_t at)
{
	uint32_t created = 0, key = 0;
	int r = read_u32(a, at, &created);

	if (r == 0)
		r = read_u32(a, at + 4, &key);
	if (r < 0)
		return r;
	if (!created)
		return -EAGAIN;
	if (created == 1 && key < KEYS_MAX)
		ignore(!try_key(a, key)); /* a->out->ways says */
	return 0;
}

/* Where the number cannot be had: the key whose value is the thread's state, in every thread that has one. */
static void search_key(struct attach *a)
{
	for (uint32_t key = 0; key < GLIBC_BLOCK_KEYS && !(a->out->ways & ABI_PYTHON_KEY); key++)
		ignore(!try_key(a, key)); /* a->out->ways says */
}

static int find_key(struct attach *a)
{
	const struct python_binary *b = a->binary;
	uint64_t at = b->key.kind == PYTHON_PLACE_RUNTIME ? a->runtime + b->key.at : in_process(a, b->key.at);
	uint32_t key;
	int r = 0;

	if (b->machine != EM_X86_64 || (b->major == 2))
		return 0; /* 2.7 numbers its own list of values, not pthread's */
	if (b->minor <= 6) {
		if (b->key.kind && read_u32(a, at, &key) == 0 && key < KEYS_MAX)
			ignore(!try_key(a, key));
		if (b->is_stripped)
			search_key(a);
		return 0;
	}
	if (b->key.kind)
		r = try_tss(a, at);
	if (!(a->out->ways & ABI_PYTHON_KEY) && b->version->runtime_key)
		r = try_tss(a, a->runtime + b->version->runtime_key);
	if (r == 0 && !(a->out->ways & ABI_PYTHON_KEY) && (b->is_stripped || a->is_free_threaded))
		search_key(a);
	return r;
}

/* ---- the thread-local variable ---- */

static bool module_offset(const struct attach *a, uint64_t slot, const struct thread *t, int64_t *out)
{
	uint64_t module, offset, table, block, own;

	if (read_u64(a, slot, &module) < 0 || read_u64(a, slot + 8, &offset) < 0 || !module ||
	    module > TLS_MODULES_MAX || offset > (uint64_t)TLS_REACH || read_u64(a, t->pointer + 8, &table) < 0)
		return false;
	/* glibc: {block, what to free}[]: a block that is to be freed is of one thread only. musl: block[]. */
	if (read_u64(a, table + module * 16, &block) == 0 && block != UINT64_MAX &&
	    read_u64(a, table + module * 16 + 8, &own) == 0 && !own) {
		*out = (int64_t)(block + offset - t->pointer);
		if (*out < 0 && *out >= -TLS_REACH)
			return true;
	}
	if (read_u64(a, table + module * 8, &block) < 0)
		return false;
	*out = (int64_t)(block + offset - t->pointer);
	return *out < 0 && *out >= -TLS_REACH;
}

static bool tls_offset(const struct attach *a, const struct thread *t, int64_t *out)
{
	uint64_t value = a->binary->tls.value, word;

	switch (a->binary->tls.kind) {
	case PYTHON_TLS_OFFSET:
		*out = (int64_t)value;
		return true;
	case PYTHON_TLS_SLOT:
		if (read_u64(a, in_process(a, value), &word) < 0)
			return false;
		*out = (int64_t)word;
		return true;
	case PYTHON_TLS_MODULE:
		return module_offset(a, in_process(a, value), t, out);
	default:
		return false;
	}
}

/* It holds the thread's state while that has the GIL, else nothing: anything else is not it. */
static void find_tls(struct attach *a)
{
	int64_t first = 0, at;

	if (a->binary->machine != EM_X86_64 || !a->binary->tls.kind)
		return;
	for (size_t i = 0; i < a->thread_count; i++) {
		const struct thread *t = &a->threads[i];
		uint64_t value;

		if (!tls_offset(a, t, &at) || read_u64(a, t->pointer + (uint64_t)at, &value) < 0)
			return;
		if ((value && value != t->state) || (i && at != first))
			return;
		first = at;
	}
	a->out->tls_at = first;
	a->out->ways |= ABI_PYTHON_TLS;
}

/* ---- the rest ---- */

static void find_holder(struct attach *a)
{
	const struct python_version *v = a->binary->version;

	if (v->runtime_holder && a->runtime)
		a->out->holder = a->runtime + v->runtime_holder;
	else if (v->layout.version_major == 2 || v->layout.version_minor <= 6)
		a->out->holder = a->binary->current ? in_process(a, a->binary->current) : 0;
	if (a->out->holder)
		a->out->ways |= ABI_PYTHON_HOLDER;
}

/* Type of code objects and None, by the frames of a thread: shims have None for their code. Return: both are known. */
static bool learn_types(const struct attach *a, const struct thread *t, uint64_t *type, uint64_t *none)
{
	const struct abi_python_layout *l = &a->out->layout;
	uint64_t frame, code;
	uint8_t owner;

	if (read_u64(a, t->state + l->thread_frame, &frame) < 0)
		return false;
	for (size_t turn = 0; frame && turn < FRAMES_MAX && (!*type || !*none); turn++) {
		if (read_u64(a, frame + l->frame_code, &code) < 0 ||
		    read_bytes(a, &owner, 1, frame + l->frame_entry) < 0 ||
		    read_u64(a, frame + l->frame_back, &frame) < 0)
			return false;
		code &= ~UINT64_C(7); /* marks of references */
		if (owner == l->entry_value)
			*none = code;
		else if (read_u64(a, code + a->object_type, type) < 0)
			return false;
	}
	return *type && *none;
}

static uint64_t scan_for_cleanup(const struct attach *a, uint64_t type)
{
	const struct abi_python_layout *l = &a->out->layout;
	const uint64_t start = in_process(a, a->binary->data_start);
	const uint64_t size = MIN(a->binary->data_end - a->binary->data_start, (uint64_t)PYTHON_CLEANUP_SCAN_MAX);
	scoped(freep) uint8_t *bytes = malloc(PIECE);

	if (!bytes || l->code_qualname + 8 > PYTHON_CLEANUP_SIZE || l->code_filename + 8 > PYTHON_CLEANUP_SIZE ||
	    l->code_name + 8 > PYTHON_CLEANUP_SIZE)
		return 0;
	for (uint64_t at = 0; at + PYTHON_CLEANUP_SIZE <= size; at += PIECE - PYTHON_CLEANUP_SIZE) {
		uint32_t piece = (uint32_t)MIN(size - at, (uint64_t)PIECE);

		if (read_bytes(a, bytes, piece, start + at) < 0)
			return 0;
		for (size_t i = 0; i + PYTHON_CLEANUP_SIZE <= piece; i += 8)
			if (python_is_cleanup(bytes + i, l, a->object_type, type))
				return start + at + i;
	}
	return 0;
}

/* An object of the interpreter, by the slot that holds its address where the program may have a copy of its own. */
static uint64_t object_in_process(const struct attach *a, uint64_t address, uint64_t slot)
{
	uint64_t moved;

	if (slot && read_u64(a, in_process(a, slot), &moved) == 0 && moved)
		return moved;
	return address ? in_process(a, address) : 0;
}

/* Return: 0, or -EAGAIN: no thread runs Python code yet that would tell. */
static int learn_constants(struct attach *a)
{
	uint64_t type = 0, none = 0;

	for (size_t i = 0; i < a->thread_count; i++) {
		if (!learn_types(a, &a->threads[i], &type, &none))
			continue;
		a->out->none = none;
		a->out->cleanup = scan_for_cleanup(a, type);
		a->out->code_type = a->is_free_threaded ? 0 : type;
		return 0;
	}
	return -EAGAIN;
}

static int find_constants(struct attach *a)
{
	const struct python_binary *b = a->binary;
	uint64_t code_type;

	if (b->major == 2)
		a->out->flags |= ABI_PYTHON_BYTE_STRINGS;
	code_type = object_in_process(a, b->code_type, b->code_type_slot);
	if (!a->is_free_threaded)
		a->out->code_type = code_type;
	if (b->minor <= 10 && code_type && !python_members_agree(a->target, code_type, &a->out->layout))
		return -ENOTSUP;
	if (b->minor < 13 || b->major < 3)
		return 0;
	if (b->minor >= 14)
		a->out->flags |= ABI_PYTHON_TAGGED;
	if (b->is_stripped)
		return learn_constants(a);
	a->out->none = object_in_process(a, b->none, b->none_slot);
	if (b->cleanup)
		a->out->cleanup = in_process(a, b->cleanup);
	else if (code_type && b->data_end > b->data_start)
		a->out->cleanup = scan_for_cleanup(a, code_type);
	return 0;
}

int python_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct python_binary *b = (const struct python_binary *)binary;
	struct abi_python out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	struct attach a = { .binary = b, .target = target, .out = &out };
	int r;

	if (!b->version ||
	    (!b->runtime && (b->version->has_offsets || (b->version->runtime_interpreters && !b->is_stripped))))
		return -ENOTSUP;
	a.runtime = in_process(&a, b->runtime);
	r = find_layout(&a);
	out.layout.thread_interp = a.thread_interp;
	if (r == 0)
		r = read_threads(&a);
	if (r == 0)
		r = find_key(&a);
	if (r < 0)
		return r;
	find_tls(&a);
	find_holder(&a);
	r = find_constants(&a);
	if (r < 0)
		return r;
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}
