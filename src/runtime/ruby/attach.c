/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker has to know of one process. */
#include "runtime/ruby/ruby_int.h"
#include "runtime/thread_place.h"

#define THREAD_WORDS 64 /* of rb_thread_t that are looked through for the thread's pointer */

struct attach {
	const struct ruby_binary *binary;
	const struct runtime_target *target;
	struct abi_ruby *out;
};

static uint64_t in_process(const struct attach *a, uint64_t address)
{
	return address + a->target->bias;
}

/* Where a variable really is: a program may have a copy of its own. */
static int find_variable(const struct attach *a, uint64_t at, bool is_slot, uint64_t *out)
{
	*out = in_process(a, at);
	return is_slot ? thread_read_u64(a->target, *out, out) : 0;
}

static int find_tls(struct attach *a)
{
	const struct accessor_tls *tls = &a->binary->tls;
	uint64_t words[2];
	int r;

	switch (tls->kind) {
	case ACCESSOR_TLS_OFFSET:
		a->out->way = ABI_RUBY_TLS;
		a->out->key_at = (int64_t)tls->value;
		return 0;
	case ACCESSOR_TLS_SLOT:
		r = thread_read_u64(a->target, in_process(a, tls->value), &words[0]);
		if (r < 0)
			return r;
		a->out->way = ABI_RUBY_TLS;
		a->out->key_at = (int64_t)words[0];
		return words[0] ? 0 : -EAGAIN;
	case ACCESSOR_TLS_MODULE:
		r = a->target->read(a->target->self, words, sizeof(words), in_process(a, tls->value));
		if (r < 0)
			return r;
		a->out->way = ABI_RUBY_TLS_DYNAMIC;
		a->out->module = words[0];
		a->out->offset = words[1];
		/* The loader has not been there yet; more modules than a program can have. */
		return !words[0] ? -EAGAIN : words[0] > UINT16_MAX || words[1] > UINT32_MAX ? -ENOTSUP : 0;
	default:
		return -ENOTSUP;
	}
}

/* glibc and musl have a thread's own address at its start, where the thread pointer points; and again in pthread_t.self
 * (glibc 2.31, nptl/descr.h, tcbhead_t.self at 16). The thread's struct says which thread it is. */
static bool find_pointer(const struct attach *a, uint64_t thread, uint64_t *out)
{
	uint64_t words[THREAD_WORDS];

	if (a->target->read(a->target->self, words, sizeof(words), thread) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t head[3];

		if (words[i] < WALK_USER_MIN || (words[i] & 15) || words[i] > WALK_USER_MAX ||
		    a->target->read(a->target->self, head, sizeof(head), words[i]) < 0)
			continue;
		if (head[0] == words[i] && head[2] == words[i]) {
			*out = words[i];
			return true;
		}
	}
	return false;
}

/* Up to 2.7: who has the GVL tells where threads have their structs. */
static int find_key(struct attach *a)
{
	const struct abi_ruby_layout *l = &a->out->layout;
	struct thread_value t;
	struct thread_key key;
	uint64_t ec, back, current;
	uint32_t number;
	int r = find_variable(a, a->binary->current, a->binary->current_is_slot, &current);

	if (r == 0)
		r = thread_read_u64(a->target, current, &ec);
	if (r == 0 && !ec)
		return -EAGAIN;
	if (r == 0)
		r = thread_read_u64(a->target, ec + l->ec_thread, &t.value);
	if (r == 0)
		r = thread_read_u64(a->target, t.value + l->thread_ec, &back);
	if (r == 0)
		r = a->target->read(a->target->self, &number, sizeof(number), in_process(a, a->binary->key));
	if (r < 0)
		return r;
	/* Another thread may have got the GVL meanwhile. */
	if (back != ec || !find_pointer(a, t.value, &t.pointer) || !thread_key_find(a->target, number, &t, 1, &key))
		return -EAGAIN;
	a->out->way = ABI_RUBY_KEY;
	a->out->current = current;
	a->out->key_at = key.at;
	a->out->offset = key.offset;
	if (key.is_indirect)
		a->out->layout.flags |= ABI_RUBY_KEY_INDIRECT;
	return 0;
}

/* Without it, ticks in the collector are shown as what they interrupt. */
static int find_gc(struct attach *a)
{
	const struct ruby_binary *b = a->binary;
	uint64_t at, vm, objspace;

	if (!b->vm)
		return 0;
	if (find_variable(a, b->vm, b->vm_is_slot, &at) < 0 || thread_read_u64(a->target, at, &vm) < 0 || !vm ||
	    thread_read_u64(a->target, vm + b->vm_objspace, &objspace) < 0 || !objspace)
		return -EAGAIN;
	a->out->gc_flags = objspace + 16;
	return 0;
}

int ruby_attach(const struct runtime_binary *binary, const struct runtime_target *target, void *info)
{
	const struct ruby_binary *b = (const struct ruby_binary *)binary;
	struct abi_ruby out = { .start_ns = target->start_ns, .exec_id = target->exec_id };
	struct attach a = { .binary = b, .target = target, .out = &out };
	int r;

	if (!b->version)
		return -ENOTSUP;
	out.layout = b->version->layout;
	r = b->version->major >= 3 ? find_tls(&a) : find_key(&a);
	if (r == 0)
		r = find_gc(&a);
	if (r < 0)
		return r;
	if (b->symbols)
		out.symbols = in_process(&a, b->symbols);
	out.last_operator = b->last_operator;
	out.code_low = in_process(&a, b->code_low);
	out.code_size = b->code_size;
	memcpy(info, &out, sizeof(out));
	return (int)sizeof(out);
}
