/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. Every place that is handed on was tried first: the thread states that
 * hang in the interpreter's list must lie where the key and the thread-local variable say they do.
 *
 * Not done for aarch64: there pthread_self() is not the thread pointer; only the list of threads is left. */
#include <elf.h>

#include "base/clock.h"
#include "base/cur.h"
#include "runtime/python/python_int.h"
#include "runtime/thread_place.h"

#define INTERPRETERS_MAX 8
#define THREADS_MAX 32
#define PIECE KIB(64) /* read at once when something is searched for */
#define SEARCH_MAX MIB(8)
/* Pointers followed, 0.4 us each; once per file, when all is well. A process that has none, or hides it, is given up.
 * A file is never given up; its processes wait when its limit is used up. */
#define SEARCH_TRIES_MAX 32768
#define SEARCH_TRIES_PROCESS (1u << 18)
#define SEARCH_TRIES_FILE (1u << 20)
#define SEARCH_TRIES_PER_S (1u << 16) /* that the limit of a file moves on */
#define SEARCH_PIECE_TRIES 64         /* that reading a piece is worth */
#define FRAMES_MAX 64

struct attach {
	const struct python_binary *binary;
	const struct runtime_target *target;
	struct abi_python *out;
	uint64_t runtime; /* addresses in the process */
	uint16_t thread_interp;
	uint16_t object_type; /* of PyObject */
	bool is_free_threaded;
	struct thread_value threads[THREADS_MAX]; /* value: address of the PyThreadState */
	size_t thread_count;
};

static int read_bytes(const struct attach *a, void *dst, uint32_t size, uint64_t at)
{
	int r = a->target->read(a->target->self, dst, size, at);

	return r == -EFAULT ? -EAGAIN
			    : r; /* not mapped yet, or not any more: a process that starts up is asked again */
}

static int read_u64(const struct attach *a, uint64_t at, uint64_t *out)
{
	return thread_read_u64(a->target, at, out);
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

/* Is the variable that was found in another process right here, too? That process may have lied. */
static bool holds(const struct attach *a, uint64_t at)
{
	uint64_t head, next;

	return at && read_u64(a, in_process(a, at), &head) == 0 && is_pointer(head) &&
	       (!a->binary->version->runtime_interpreters ||
		(read_u64(a, in_process(a, at) + 8, &next) == 0 && next == head)) &&
	       is_interpreter(a, head);
}

/* Return: true while the work that may be spent on all processes of the file is not used up. */
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

/* The variable's place is the same for every process of the file, so a place found in one process is tried first in
 * the others. */
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
		a->threads[a->thread_count++] = (struct thread_value){ .pointer = pointer, .value = state };
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

static void use_key(struct attach *a, const struct thread_key *key)
{
	a->out->key_at = key->at;
	a->out->key_offset = key->offset;
	a->out->flags |= key->is_indirect ? ABI_PYTHON_KEY_INDIRECT : 0;
	a->out->ways |= ABI_PYTHON_KEY;
}

/* A subinterpreter's state lies in no key: one thread that agrees is enough. */
static void try_key(struct attach *a, uint32_t number)
{
	struct thread_key key;

	if (thread_key_find(a->target, number, a->threads, a->thread_count, &key))
		use_key(a, &key);
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
	if (created == 1)
		try_key(a, key);
	return 0;
}

/* Where the number cannot be read: the key whose value is the thread's state, in every thread that has one. */
static void search_key(struct attach *a)
{
	struct thread_key key;

	if (!(a->out->ways & ABI_PYTHON_KEY) && thread_key_search(a->target, a->threads, a->thread_count, &key))
		use_key(a, &key);
}

static int find_key(struct attach *a)
{
	const struct python_binary *b = a->binary;
	uint64_t at = b->key.kind == ACCESSOR_OFFSET ? a->runtime + b->key.at : in_process(a, b->key.at);
	uint32_t key;
	int r = 0;

	if (b->machine != EM_X86_64 || (b->major == 2))
		return 0; /* 2.7 numbers its own list of values, not pthread's */
	if (b->minor <= 6) {
		if (b->key.kind && read_u32(a, at, &key) == 0)
			try_key(a, key);
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

/* The variable holds the thread's state while the thread has the GIL, and 0 otherwise. A variable with another value
 * is a different one. */
static void find_tls(struct attach *a)
{
	int64_t first = 0;

	if (a->binary->machine != EM_X86_64 || !a->binary->tls.kind)
		return;
	for (size_t i = 0; i < a->thread_count; i++) {
		const struct thread_value *t = &a->threads[i];
		struct thread_variable variable;
		uint64_t value;

		thread_variable_find(a->target, &a->binary->tls, t->pointer, &variable);
		if (variable.kind != THREAD_VARIABLE_STATIC ||
		    thread_variable_read(a->target, &variable, t->pointer, &value) < 0)
			return;
		if ((value && value != t->value) || (i && variable.at != first))
			return;
		first = variable.at;
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
static bool learn_types(const struct attach *a, const struct thread_value *t, uint64_t *type, uint64_t *none)
{
	const struct abi_python_layout *l = &a->out->layout;
	uint64_t frame, code;
	uint8_t owner;

	if (read_u64(a, t->value + l->thread_frame, &frame) < 0)
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
